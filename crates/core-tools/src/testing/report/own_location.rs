//! The line of the project in which a test failed, where its runner names one of a dependency.

use crate::ci::project::Project;
use crate::testing::results::TestCase;
use std::collections::HashMap;

/// The folders of dependencies and of what a build makes of them.
const FOREIGN_FOLDERS: [&str; 12] = [
    "node_modules",
    "site-packages",
    "dist-packages",
    ".venv",
    "venv",
    ".tox",
    ".nox",
    ".cargo",
    ".rustup",
    "bower_components",
    ".yarn",
    ".bundle",
];
/// The words before the place of an assertion, in what libraries of assertions print about it.
const SOURCE_WORDS: [&str; 1] = ["Source: "];
/// The number of failures whose messages are searched.
const MAX_TESTS: usize = 500;

/// Sets file and line of each failed test to the project's own line: where the runner names one of a dependency, the
/// innermost line of the project that led there. The other line is kept as [`TestCase::raised_at`].
pub(crate) fn locate_in_project(tests: &mut [TestCase], project: &Project) {
    let mut files = ProjectFiles::new(project);
    for test in tests.iter_mut().filter(|test| test.status.is_failure()).take(MAX_TESTS) {
        locate(test, &mut files);
    }
}

fn locate(test: &mut TestCase, files: &mut ProjectFiles<'_>) {
    let error = test.error.as_deref().unwrap_or_default();
    let is_foreign = test.file.as_deref().is_some_and(|file| files.is_foreign(file));
    let own = asserted_at(error, files)
        .or_else(|| if is_foreign || test.file.is_none() { innermost(error, files) } else { None });
    let named = test.file.take().map(|file| match test.line {
        Some(line) => (format!("{file}:{line}"), file),
        None => (file.clone(), file),
    });
    match (own, named) {
        (Some((file, line)), named) => {
            let is_other = |(_, other): &(String, String)| files.own(other).as_deref() != Some(file.as_str());
            test.raised_at = named.filter(is_other).map(|(place, _)| short(&place));
            (test.file, test.line) = (Some(file), Some(line));
        }
        (None, Some((place, _))) if is_foreign => {
            test.raised_at = Some(short(&place));
            test.line = None;
        }
        (None, named) => test.file = named.map(|(_, file)| file),
    }
}

/// Returns the place of an assertion that a library names in words.
fn asserted_at(error: &str, files: &mut ProjectFiles<'_>) -> Option<(String, u64)> {
    let sources = error.lines().filter_map(|line| {
        SOURCE_WORDS.iter().find_map(|word| line.trim_start().strip_prefix(word)).and_then(location)
    });
    sources.filter_map(|(file, line)| Some((files.own(file)?, line))).next()
}

/// Returns the innermost line of the project in a trace. Python has the innermost call last, all others first.
fn innermost(error: &str, files: &mut ProjectFiles<'_>) -> Option<(String, u64)> {
    let is_python = error.contains("Traceback (most recent call last)") || error.contains(".py:");
    let mut found = None;
    for (file, line) in error.lines().flat_map(locations) {
        if let Some(file) = files.own(file) {
            found = Some((file, line));
            if !is_python {
                break;
            }
        }
    }
    found
}

/// Returns the places that a line of a trace names: `File "FILE", line LINE`, and `FILE:LINE` anywhere else.
fn locations(line: &str) -> Vec<(&str, u64)> {
    if let Some((file, rest)) =
        line.trim_start().strip_prefix("File \"").and_then(|rest| rest.split_once("\", line "))
    {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        return digits.parse().ok().map(|line| (file, line)).into_iter().collect();
    }
    let words =
        line.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"' | '\'' | '[' | ']' | ','));
    words.filter_map(location).collect()
}

/// Reads `FILE:LINE` at the beginning of a word; the name of the file has an extension.
fn location(word: &str) -> Option<(&str, u64)> {
    let word = word.strip_prefix("file://").unwrap_or(word);
    word.match_indices(':').find_map(|(colon, _)| {
        let (file, rest) = (word.get(..colon)?, word.get(colon + 1..)?);
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        let name = file.rsplit(['/', '\\']).next()?;
        let has_extension = name.rfind('.').is_some_and(|dot| dot > 0 && dot + 1 < name.len());
        if has_extension { Some((file, digits.parse().ok()?)) } else { None }
    })
}

/// Returns a place without the folders above that of the dependency: `insta-1.40.0/src/runtime.rs:734`.
fn short(place: &str) -> String {
    let markers = ["node_modules/", "site-packages/", "dist-packages/", "/library/"];
    if let Some(at) = markers.iter().filter_map(|marker| Some(place.rfind(marker)? + marker.len())).max() {
        return place[at..].to_owned();
    }
    // `registry/src/INDEX/PACKAGE/…`, `git/checkouts/PACKAGE/COMMIT/…`, `pkg/mod/HOST/…`
    match place.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/')) {
        Some((_, rest)) => rest.to_owned(),
        None => place.split_once("/pkg/mod/").map_or(place, |(_, rest)| rest).to_owned(),
    }
}

/// The files of a project, as paths in traces name them.
struct ProjectFiles<'a> {
    project: &'a Project,
    /// The folder of the project, and that of its root, each with a slash at its end.
    folder: String,
    root: String,
    known: HashMap<String, bool>,
}

impl<'a> ProjectFiles<'a> {
    fn new(project: &'a Project) -> Self {
        let with_slash = |project: &Project| {
            format!("{}/", project.folder().to_absolute().to_string_lossy().trim_end_matches('/'))
        };
        let root = project.ancestors().last().map_or_else(|| with_slash(project), |root| with_slash(&root));
        Self { project, folder: with_slash(project), root, known: HashMap::new() }
    }

    /// Returns true for a file that is surely not of the project.
    fn is_foreign(&self, file: &str) -> bool {
        let file = file.strip_prefix("file://").unwrap_or(file);
        let beneath = file.strip_prefix(self.root.as_str());
        (file.starts_with('/') && beneath.is_none())
            || file.starts_with("node:")
            || beneath.unwrap_or(file).split(['/', '\\']).any(|name| FOREIGN_FOLDERS.contains(&name))
    }

    /// Returns the path of a file of the project relative to its folder; `None` for any other file.
    fn own(&mut self, file: &str) -> Option<String> {
        if self.is_foreign(file) {
            return None;
        }
        let file = file.strip_prefix("file://").unwrap_or(file);
        let relative = file.strip_prefix(self.folder.as_str()).unwrap_or(file);
        let relative = relative.strip_prefix("./").unwrap_or(relative).replace('\\', "/");
        // A path that leaves the project is no file of the project, whatever lies there.
        if relative.starts_with('/') || relative.split('/').any(|name| name == "..") {
            return None;
        }
        let project = self.project;
        // A trace names the same files again and again, and each look at the disk is a system call.
        let exists = *self.known.entry(relative.clone()).or_insert_with(|| project.contains(&relative));
        exists.then_some(relative)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test makes its files itself")]
    use super::*;
    use crate::testing::results::TestStatus;
    use crate::workspace::Workspace;

    /// Returns file, line and the other place of a failure with this message.
    fn located(named: Option<(&str, u64)>, error: &str) -> (Option<String>, Option<u64>, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        for file in [
            "src/lib.rs",
            "tests/api.rs",
            "app/cart.py",
            "tests/test_cart.py",
            "lib/cart.js",
            "node_modules/chai/index.js",
        ] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let workspace = Workspace::new([folder.path()]).unwrap();
        let project = Project::new(workspace.locate(".").unwrap());
        let here = format!("{}/", workspace.roots().next().unwrap().display());
        let mut test =
            TestCase { error: Some(error.replace("HERE/", &here)), ..TestCase::new("a", TestStatus::Failed) };
        if let Some((file, line)) = named {
            (test.file, test.line) = (Some(file.replace("HERE/", &here)), Some(line));
        }
        let mut tests = [test];
        locate_in_project(&mut tests, &project);
        let [test] = tests;
        (test.file, test.line, test.raised_at)
    }

    fn is_at(
        found: &(Option<String>, Option<u64>, Option<String>),
        file: &str,
        line: u64,
        raised_at: Option<&str>,
    ) {
        assert_eq!((found.0.as_deref(), found.1, found.2.as_deref()), (Some(file), Some(line), raised_at));
    }

    #[test]
    fn the_innermost_line_of_the_project_is_taken_instead_of_one_of_a_dependency() {
        let rust = "thread 'a' panicked at /h/.cargo/registry/src/index.crates.io-1/insta-1.40.0/src/runtime.rs:734:9:\nstack backtrace:\n   3: insta::assert\n             at /h/.cargo/registry/src/index.crates.io-1/insta-1.40.0/src/runtime.rs:734:9\n   4: api::check\n             at ./tests/api.rs:12:5\n   5: api::a\n             at ./src/lib.rs:3:5";
        let named = Some(("/h/.cargo/registry/src/index.crates.io-1/insta-1.40.0/src/runtime.rs", 734));
        is_at(&located(named, rust), "tests/api.rs", 12, Some("insta-1.40.0/src/runtime.rs:734"));
        let python = "Traceback (most recent call last):\n  File \"HERE/tests/test_cart.py\", line 4, in test_a\n  File \"HERE/app/cart.py\", line 9, in total\n  File \"/h/lib/python3/site-packages/requests/api.py\", line 73, in get";
        let named = Some(("/h/lib/python3/site-packages/requests/api.py", 73));
        is_at(&located(named, python), "app/cart.py", 9, Some("requests/api.py:73"));
        let node = "AssertionError: no\n    at Proxy.fail (file://HERE/node_modules/chai/index.js:40:1)\n    at total (file://HERE/lib/cart.js:7:3)";
        is_at(
            &located(Some(("HERE/node_modules/chai/index.js", 40)), node),
            "lib/cart.js",
            7,
            Some("chai/index.js:40"),
        );
    }

    #[test]
    fn the_place_that_a_library_of_assertions_names_is_that_of_the_failure() {
        let insta = "Snapshot: a\nSource: tests/api.rs:8\nthread 'a' panicked at src/lib.rs:734:9:\nsnapshot assertion for 'a' failed";
        is_at(&located(Some(("src/lib.rs", 734)), insta), "tests/api.rs", 8, Some("src/lib.rs:734"));
    }

    #[test]
    fn an_own_line_stays_and_a_foreign_one_without_a_trace_is_only_noted() {
        let own = located(Some(("src/lib.rs", 3)), "panicked at src/lib.rs:3:5\n at ./tests/api.rs:9:1");
        is_at(&own, "src/lib.rs", 3, None);
        let foreign = located(Some(("/rustc/1/library/core/src/result.rs", 9)), "no trace");
        assert_eq!(foreign, (None, None, Some("core/src/result.rs:9".to_owned())));
        assert_eq!(located(None, "at 10:30:00 it failed: x.y:z"), (None, None, None));
    }
}
