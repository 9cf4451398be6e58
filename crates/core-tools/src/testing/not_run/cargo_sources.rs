//! The tests that a source of Rust has, as far as its lines say.

use std::collections::{BTreeSet, HashSet};

/// Returns true if a source has a test: `#[test]`, `#[tokio::test]`, `#[test_case(…)]`, `#[rstest]`.
pub(super) fn declares_test(text: &str) -> bool {
    text.lines().any(|line| attributes_of(line.trim()).0.into_iter().any(is_test_attribute))
}

/// Returns the attributes at the beginning of a line, and the rest of the line.
fn attributes_of(line: &str) -> (Vec<&str>, &str) {
    let (mut attributes, mut rest) = (Vec::new(), line);
    while rest.starts_with("#[") {
        let Some(end) = rest.find(']') else { break };
        attributes.push(&rest[..=end]);
        rest = rest[end + 1..].trim_start();
    }
    (attributes, rest)
}

fn is_test_attribute(line: &str) -> bool {
    line.strip_prefix("#[").is_some_and(|attribute| {
        let name = attribute.split(['(', ']', ' ']).next().unwrap_or_default();
        let name = name.rsplit("::").next().unwrap_or(name);
        name == "test" || name == "test_case" || name == "rstest" || name == "quickcheck"
    })
}

/// Returns true if the documentation in a source has an example that rustdoc runs.
pub(super) fn has_documentation_tests(text: &str) -> bool {
    const NOT_RUN: [&str; 4] = ["text", "ignore", "no_run", "compile_fail"];
    let is_of_rust = |language: &str| {
        let mut words = language.split(',').map(str::trim);
        words.all(|word| {
            let is_known = ["", "rust", "should_panic"].contains(&word) || word.starts_with("edition");
            is_known && !NOT_RUN.contains(&word)
        })
    };
    let mut is_open = false;
    for line in text.lines().map(str::trim_start) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(language) = comment.and_then(|comment| comment.trim().strip_prefix("```")) else { continue };
        // The second of two ends the example.
        if !is_open && is_of_rust(language) {
            return true;
        }
        is_open = !is_open;
    }
    false
}

/// Returns the features that tests of a source need, and that are off: of the attributes of a test, of a module of tests and of
/// the whole source.
pub(super) fn missing_features(text: &str, enabled: &HashSet<&str>) -> BTreeSet<String> {
    let mut missing = BTreeSet::new();
    let mut attributes: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")) {
        if line.starts_with("#![cfg(") && declares_test(text) {
            missing.extend(features_off(line, enabled));
        }
        // The item may stand on the line of its attributes.
        let (own, rest) = attributes_of(line);
        attributes.extend(own);
        if rest.is_empty() {
            continue;
        }
        let is_of_tests =
            attributes.iter().any(|line| is_test_attribute(line) || line.starts_with("#[cfg(all(test"));
        for attribute in attributes.drain(..).filter(|line| is_of_tests && line.starts_with("#[cfg(")) {
            missing.extend(features_off(attribute, enabled));
        }
    }
    missing
}

/// Returns the features that a condition asks for and that are off. Those of `any` and `not` may be off.
fn features_off(attribute: &str, enabled: &HashSet<&str>) -> Vec<String> {
    let condition = attribute.split(']').next().unwrap_or_default();
    if condition.contains("any(") || condition.contains("not(") {
        return Vec::new();
    }
    let names = condition.split("feature").skip(1).filter_map(|rest| rest.split('"').nth(1));
    names.filter(|name| !enabled.contains(name)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_features_that_tests_need_are_found() {
        let enabled = HashSet::from(["on"]);
        for (text, features) in [
            ("#[cfg(feature = \"nope\")]\n#[test]\nfn a() {}\n", "nope"),
            ("#[test]\n#[cfg(all(unix, feature=\"x\", feature = \"y\"))]\nfn a() {}\n", "x y"),
            ("#![cfg(feature = \"nope\")]\n#[test]\nfn a() {}\n", "nope"),
            ("#[cfg(all(test, feature = \"nope\"))]\nmod tests;\n", "nope"),
            ("#[cfg(feature = \"nope\")] #[test] fn a() {}\n", "nope"),
            ("#[cfg(feature = \"on\")]\n#[test]\nfn a() {}\n", ""),
            ("#[cfg(not(feature = \"nope\"))]\n#[test]\nfn a() {}\n", ""),
            ("#[cfg(feature = \"nope\")]\nfn b() {}\n#[test]\nfn a() {}\n", ""),
            ("#![cfg(feature = \"nope\")]\nfn a() {}\n", ""),
        ] {
            let found = missing_features(text, &enabled).into_iter().collect::<Vec<_>>().join(" ");
            assert_eq!(found, features, "{text}");
        }
    }

    #[test]
    fn the_examples_that_rustdoc_runs_are_found() {
        for (text, has) in [
            ("/// ```\n/// f();\n/// ```\nfn f() {}\n", true),
            ("//! ```rust\n//! ```\n", true),
            ("/// ```text\n/// a\n/// ```\n", false),
            ("/// ```ignore\n/// ```\n/// ```should_panic\n/// ```\n", true),
            ("// ```\n", false),
        ] {
            assert_eq!(has_documentation_tests(text), has, "{text}");
        }
    }
}
