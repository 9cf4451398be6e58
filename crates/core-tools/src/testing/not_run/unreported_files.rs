//! The files that look like tests, and of which a runner has reported none.

use super::test_files::TestFileSearch;
use crate::ci::project::Project;
use crate::testing::report::TestReport;
use crate::testing::results::{TestCase, TestsNotRun};
use std::collections::HashSet;

/// Folders of files that look like tests and are none of the project's.
const OTHERS: [&str; 9] = [
    "__fixtures__",
    "example",
    "examples",
    "fixture",
    "fixtures",
    "site-packages",
    "templates",
    "testdata",
    "venv",
];

/// The files of tests of one language.
struct TestFileKind {
    runners: &'static [&'static str],
    is_test: fn(&str) -> bool,
    /// The words of which a file of tests has one.
    words: &'static [&'static str],
    /// The file that makes a folder a project of its own, whose tests are none of this run.
    manifest: Option<&'static str>,
    /// Tests have the names of their classes, which are those of their files, and no files.
    by_class: bool,
}

const KINDS: [TestFileKind; 7] = [
    TestFileKind {
        runners: &["ava", "jest", "mocha", "node", "npm", "vitest"],
        is_test: is_test_of_javascript,
        words: &["test(", "it(", "describe(", "suite("],
        manifest: Some("package.json"),
        by_class: false,
    },
    TestFileKind {
        runners: &["bun"],
        is_test: is_test_of_bun,
        words: &["test(", "it(", "describe("],
        manifest: Some("package.json"),
        by_class: false,
    },
    TestFileKind {
        runners: &["deno"],
        is_test: is_test_of_deno,
        words: &["Deno.test", "test(", "it(", "describe("],
        manifest: Some("deno.json"),
        by_class: false,
    },
    TestFileKind {
        runners: &["rake", "rspec"],
        is_test: is_test_of_ruby,
        words: &["Minitest::", "Test::Unit", "TestCase", "RSpec", "describe "],
        manifest: None,
        by_class: false,
    },
    TestFileKind {
        runners: &["pytest"],
        is_test: |name| name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py")),
        words: &["def test"],
        manifest: None,
        by_class: false,
    },
    TestFileKind {
        runners: &["phpunit"],
        is_test: |name| name.ends_with(".php"),
        words: &["extends TestCase", "\\TestCase"],
        manifest: None,
        by_class: true,
    },
    TestFileKind {
        runners: &["gradle", "maven"],
        is_test: |name| name.ends_with(".java") || name.ends_with(".kt") || name.ends_with(".groovy"),
        words: &["@Test", "@ParameterizedTest", "extends Specification"],
        manifest: None,
        by_class: true,
    },
];

/// Returns the name of a file of JavaScript or TypeScript without its ending.
fn stem_of_script(name: &str) -> Option<&str> {
    const ENDINGS: [&str; 8] = [".cjs", ".cts", ".js", ".jsx", ".mjs", ".mts", ".ts", ".tsx"];
    ENDINGS.iter().find_map(|end| name.strip_suffix(end))
}

fn is_test_of_javascript(name: &str) -> bool {
    stem_of_script(name).is_some_and(|stem| stem.ends_with(".test") || stem.ends_with(".spec"))
}

fn is_test_of_bun(name: &str) -> bool {
    let is_test = |stem: &str| stem.ends_with("_test") || stem.ends_with("_spec");
    is_test_of_javascript(name) || stem_of_script(name).is_some_and(is_test)
}

fn is_test_of_deno(name: &str) -> bool {
    let is_test = |stem: &str| stem == "test" || stem.ends_with(".test") || stem.ends_with("_test");
    stem_of_script(name).is_some_and(is_test)
}

fn is_test_of_ruby(name: &str) -> bool {
    name.strip_suffix(".rb")
        .is_some_and(|stem| stem.ends_with("_test") || stem.ends_with("_spec") || stem.starts_with("test_"))
        && name != "test_helper.rb"
}

/// Adds the files of tests of which none was reported, if the run is a success that names the file of each test.
pub(super) fn not_run(project: &Project, report: &TestReport, found: &mut Vec<TestsNotRun>) {
    let Some(kind) = KINDS.iter().find(|kind| kind.runners.contains(&report.runner)) else { return };
    // What is deselected is counted.
    if report.success != Some(true) || report.deselected > 0 || report.truncated {
        return;
    }
    // Of tests that were only counted, nothing tells the file.
    if (report.tests.len() as u64) < report.passed + report.failed + report.skipped {
        return;
    }
    let Some(reported) = reported_files(report, kind) else { return };
    let is_own = |name: &str| !OTHERS.contains(&name);
    let search = TestFileSearch { project, start: ".", enters: &is_own, is_test: &kind.is_test };
    for path in search.run(found) {
        if reported.contains(stem(&path)) || is_in_other_project(project, &path, kind) {
            continue;
        }
        let text = project.read(&path).unwrap_or_default();
        // The tests of an abstract class run under the names of its subclasses.
        if kind.words.iter().any(|word| text.contains(word)) && !text.contains("abstract class") {
            let why = "they look like tests, and none of them was reported: a pattern, a folder or a setting leaves them out; `test_path` runs one of them";
            TestsNotRun::add(found, &path, why);
        }
    }
}

/// Returns true if the settings of a build say which tests run.
pub(super) fn selects_tests(project: &Project) -> bool {
    const WORDS: [&str; 5] = ["exclude", "includeTags", "include ", "filter", "onlyIf"];
    let files = ["build.gradle", "build.gradle.kts"];
    files.iter().any(|file| WORDS.iter().any(|word| project.file_contains(file, word)))
}

/// Returns the names of the files, without their endings, of all tests, or `None` if that of one is not known. A compiler
/// may have put the file elsewhere, under the same name.
fn reported_files<'a>(report: &'a TestReport, kind: &TestFileKind) -> Option<HashSet<&'a str>> {
    if kind.by_class {
        // Package, class, inner class and parameters stand in one name, with separators that differ between runners.
        let words = |test: &'a TestCase| test.name.split(['.', ':', '\\', '$', ' ', '(']);
        return Some(report.tests.iter().flat_map(words).collect());
    }
    let file = |test: &'a TestCase| match &test.file {
        Some(file) => Some(stem(file)),
        // Of a file that was skipped as a whole.
        None => test.name.split("::").next().filter(|path| path.ends_with(".py")).map(stem),
    };
    report.tests.iter().map(file).collect()
}

/// Returns the name of a file without its last ending.
fn stem(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

fn is_in_other_project(project: &Project, path: &str, kind: &TestFileKind) -> bool {
    let Some(manifest) = kind.manifest else { return false };
    let folders = path.match_indices('/').map(|(index, _)| &path[..index]);
    folders.into_iter().any(|folder| project.contains(&format!("{folder}/{manifest}")))
}
