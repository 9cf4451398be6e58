//! Regular expressions and names that runners select tests by.

/// The expression that matches the text between the titles of a suite and its test: runners join them with a
/// space, and reports with ` > `.
pub(super) const BETWEEN_TITLES: &str = "(?: > | )";

/// Returns a regular expression, in any of the runners' dialects, that matches this text and no other.
///
/// The `/` is escaped for those of JavaScript that take `/…/` for an expression with its delimiters.
pub(super) fn escape_regex(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if r".^$*+?()[]{}|\/".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Returns a regular expression for `suite > test`, as reports have it; `between` matches what the runner has
/// between the titles.
pub(super) fn title_pattern(name: &str, between: &str) -> String {
    name.split(" > ").map(escape_regex).collect::<Vec<_>>().join(between)
}

/// Returns the name of a file without its extensions. In Java and C# that is the name of its class.
pub(super) fn file_stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name).to_owned()
}
