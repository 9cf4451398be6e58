//! The tests that the files of `CMake` declare and that `CTest` does not know, and those that passed though their output says
//! otherwise.

use super::test_files::TestFileSearch;
use crate::ci::project::Project;
use crate::testing::results::{ContradictedPass, TestCase, TestsNotRun};
use serde::Deserialize;
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

/// The number of tests that a note names.
const MAX_NAMED: usize = 5;

/// The properties by which a test is judged otherwise than by its exit code.
const OWN_JUDGEMENT: [&str; 3] = ["FAIL_REGULAR_EXPRESSION", "PASS_REGULAR_EXPRESSION", "WILL_FAIL"];

/// The part of `ctest --show-only=json-v1` that says how tests are judged.
#[derive(Default, Deserialize)]
struct CtestList {
    tests: Vec<ListedTest>,
}

#[derive(Deserialize)]
struct ListedTest {
    name: String,
    #[serde(default)]
    properties: Vec<TestProperty>,
}

#[derive(Deserialize)]
struct TestProperty {
    name: String,
}

/// Returns a note on the passed tests whose output says that tests failed, and whose properties, in the list of `CTest`, do not
/// say how to judge them.
pub(super) fn contradicted(passes: &[ContradictedPass], list: &str) -> Option<String> {
    let list: CtestList = serde_json::from_str(list).unwrap_or_default();
    let is_own = |test: &&ListedTest| {
        test.properties.iter().any(|property| OWN_JUDGEMENT.contains(&property.name.as_str()))
    };
    let judged: HashSet<_> = list.tests.iter().filter(is_own).map(|test| test.name.as_str()).collect();
    let open: Vec<_> = passes.iter().filter(|pass| !judged.contains(pass.test.as_str())).collect();
    let named = open.iter().take(MAX_NAMED).map(|pass| {
        let ContradictedPass { test, summary } = pass;
        format!("`{test}` printed `{}`, as {} does if tests failed", summary.line, summary.runner)
    });
    let named = named.collect::<Vec<_>>().join("; ");
    let more = open.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    (!open.is_empty()).then(|| format!("not verified: {named}{more}, and ended with exit code 0"))
}

/// Returns the names in `add_test(NAME name COMMAND …)` and `add_test(name …)`, but for those that `CMake` puts together.
fn declared_tests(text: &str) -> Vec<&str> {
    let calls = text.match_indices("add_test").filter_map(|(index, word)| {
        let line = text[..index].rsplit('\n').next().unwrap_or_default();
        // A call stands at the beginning of its line. In a comment or in a string, the word is no call.
        let is_call = line.trim().is_empty();
        text[index + word.len()..].trim_start().strip_prefix('(').filter(|_| is_call)
    });
    let names = calls.filter_map(|arguments| {
        let mut words = arguments.split_whitespace();
        let first = words.next()?;
        let name = if first == "NAME" { words.next()? } else { first };
        let name = name.trim_matches('"').trim_end_matches(')');
        // CMake puts together a name with a variable or a generator expression, and the file does not tell the result.
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
