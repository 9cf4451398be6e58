//! The test files of a Go module that `go test ./...` passes over.

use super::test_files::{TestFileSearch, folder_of};
use crate::ci::project::Project;
use crate::testing::results::TestsNotRun;
use std::collections::HashSet;
use std::path::Path;

/// The format in which `go list` names the files of tests that it would compile, one a line.
pub(super) const FORMAT: &str =
    "{{range .TestGoFiles}}{{$.Dir}}/{{.}}\n{{end}}{{range .XTestGoFiles}}{{$.Dir}}/{{.}}\n{{end}}";

/// Adds the files of tests that are not among those that go compiles: of other modules, and of other systems or tags.
pub(super) fn not_run(project: &Project, compiled: &str, found: &mut Vec<TestsNotRun>) {
    let root = project.folder().to_absolute();
    let compiled: HashSet<String> = compiled
        .lines()
        .filter_map(|line| {
            let path = Path::new(line);
            let path = path.strip_prefix(&root).ok()?;
            Some(path.to_string_lossy().replace('\\', "/"))
        })
        .collect();
    let search = TestFileSearch {
        project,
        start: ".",
        // The go command ignores `testdata` and names with an underscore in front.
        enters: &|name| name != "testdata" && !name.starts_with('_'),
        is_test: &|name| name.ends_with("_test.go") && !name.starts_with('_'),
    };
    for path in search.run(found) {
        if compiled.contains(&path) {
            continue;
        }
        if let Some(module) = inner_module(project, folder_of(&path)) {
            let why = format!("`{module}` is a module of its own: `project_path` `{module}` runs it");
            TestsNotRun::add(found, &path, &why);
            continue;
        }
        let text = project.read(&path).unwrap_or_default();
        if !text.contains("func Test") && !text.contains("func Example") && !text.contains("func Fuzz") {
            continue;
        }
        let why = match constraint(&text) {
            Some(constraint) => {
                format!("its constraint leaves it out here: `{constraint}`; `args` `-tags` sets tags")
            }
            None => {
                "go does not compile it here: its name is that of another system, or its package is left out"
                    .to_owned()
            }
        };
        TestsNotRun::add(found, &path, &why);
    }
}

/// Returns a note on flags that every run of go gets by a setting, if they select tests.
pub(super) fn note_on_flags(flags: &str) -> Option<String> {
    const SELECTING: [&str; 5] = ["list", "run", "short", "skip", "tags"];
    let selects = |flag: &str| {
        let name = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
        SELECTING.contains(&name.strip_prefix("test.").unwrap_or(name))
    };
    let flags = flags.trim();
    flags.split_whitespace().any(selects).then(|| {
        format!("the setting GOFLAGS, `{flags}`, selects tests: those that it leaves out did not run")
    })
}

/// Returns the folder of the innermost module, below that of the project, that a folder is in.
fn inner_module<'a>(project: &Project, folder: &'a str) -> Option<&'a str> {
    let mut folder = folder;
    while !folder.is_empty() {
        if project.contains(&format!("{folder}/go.mod")) {
            return Some(folder);
        }
        folder = folder_of(folder);
    }
    None
}

/// Returns the line with the build constraint of a file, which stands before its package clause.
fn constraint(text: &str) -> Option<&str> {
    let mut lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("package "));
    lines.find(|line| line.starts_with("//go:build ") || line.starts_with("// +build "))
}
