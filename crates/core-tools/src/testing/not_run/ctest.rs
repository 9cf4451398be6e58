//! The tests that the files of `CMake` declare and that `CTest` does not know.

use super::test_files::TestFileSearch;
use crate::ci::project::Project;
use crate::testing::results::{TestCase, TestsNotRun};
use std::collections::HashSet;

/// Adds the tests that an `add_test` names and that are not among those that ran.
pub(super) fn not_run(project: &Project, tests: &[TestCase], found: &mut Vec<TestsNotRun>) {
    let known: HashSet<_> = tests.iter().map(|test| test.name.as_str()).collect();
    let search = TestFileSearch {
        project,
        start: ".",
        // What others have written has tests of its own.
        enters: &|name| {
            !["_deps", "deps", "extern", "external", "submodules", "third_party", "thirdparty"]
                .contains(&name)
                && !name.starts_with("cmake-build")
        },
        is_test: &|name| name == "CMakeLists.txt",
    };
    for path in search.run(found) {
        for name in declared_tests(&project.read(&path).unwrap_or_default()) {
            if !known.contains(name) {
                let why = "CMake did not register it here: it stands in a condition, in another configuration, or in a folder that comes before `enable_testing()`";
                TestsNotRun::add(found, &format!("{name} ({path})"), why);
            }
        }
    }
}

/// Returns the names in `add_test(NAME name COMMAND …)` and `add_test(name …)`, but for those that `CMake` puts together.
fn declared_tests(text: &str) -> Vec<&str> {
    let calls = text.match_indices("add_test").filter_map(|(index, word)| {
        let line = text[..index].rsplit('\n').next().unwrap_or_default();
        let is_call = line.trim().is_empty();
        text[index + word.len()..].trim_start().strip_prefix('(').filter(|_| is_call)
    });
    let names = calls.filter_map(|arguments| {
        let mut words = arguments.split_whitespace();
        let first = words.next()?;
        let name = if first == "NAME" { words.next()? } else { first };
        let name = name.trim_matches('"').trim_end_matches(')');
        (!name.contains(['$', '<', '"'])).then_some(name)
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_declared_tests_are_found() {
        let text = "# add_test(NAME no COMMAND x)\nadd_test(NAME one COMMAND x)\n  add_test(\n    NAME \"two\"\n    COMMAND x)\nadd_test(three x)\nadd_test(NAME ${name} COMMAND x)\nmy_add_test(four)\n";
        assert_eq!(declared_tests(text), ["one", "two", "three"]);
    }
}
