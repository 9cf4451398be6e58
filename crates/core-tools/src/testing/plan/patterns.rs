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

/// Returns a regular expression for `PHPUnit`, which compares `App\\Tests\\SampleTest::testAdds with data set "one"`. Its report
/// has dots in the class and before the method.
pub(super) fn phpunit_pattern(name: &str) -> String {
    let (method, data) = match name.split_once(' ') {
        Some((method, data)) => (method, format!(" {data}")),
        None => (name, String::new()),
    };
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    match method.rsplit_once('.') {
        Some((class, method)) if class.split('.').chain([method]).all(is_name) => {
            format!("{}::{method}{}", class.replace('.', "\\\\"), escape_regex(&data))
        }
        _ => escape_regex(name),
    }
}

/// Returns the name of a file without its extensions. In Java and C# that is the name of its class.
pub(super) fn file_stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name).to_owned()
}
