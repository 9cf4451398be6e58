//! The commands of vitest, jest, mocha, AVA, Playwright Test and Node's own runner.

use super::patterns::{BETWEEN_TITLES, escape_regex, title_pattern};
use super::report_folder::{NODE_EXIT, ReportFolder};
use super::step::{TestResultSource, TestStep};
use crate::ci::project::Project;
use crate::testing::parse::TapParser;
use crate::testing::target::TestTarget;

pub(super) fn vitest(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    let reporter = format!("--reporter={}", reports.file("vitest.mjs"));
    let mut step = node_program(&target.project, &["vitest/vitest.mjs"])
        .args(&["run"])
        .flags(&target.flags)
        .args(&[&reporter])
        .option("--testNamePattern", name_pattern(target).as_deref());
    if let Some(file) = target.filter.path().filter(|_| !target.filter.is_folder) {
        for pattern in longer_paths(file) {
            step = step.option("--exclude", Some(&pattern));
        }
    }
    step.maybe_arg(target.filter.path())
}

/// Returns the patterns of the files whose paths contain that of a file: vitest would run them as well.
fn longer_paths(file: &str) -> Vec<String> {
    let escape = |text: &str| {
        let is_special = |c: char| "*?[]{}()!+@|\\".contains(c);
        text.chars().flat_map(|c| is_special(c).then_some('\\').into_iter().chain([c])).collect::<String>()
    };
    let file = file.strip_prefix("./").unwrap_or(file);
    let name = escape(file.rsplit('/').next().unwrap_or(file));
    let path = escape(file);
    let mut patterns = vec![format!("**/?*{name}*"), format!("**/{name}?*"), format!("*/**/{path}")];
    if path != name {
        // `mysrc/a.test.js` of `src/a.test.js`.
        patterns.push(format!("**/?*{path}"));
    }
    patterns
}

pub(super) fn jest(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    let reporter = format!("--reporters={}", reports.file("jest.cjs"));
    let step = node_program(&target.project, &["jest/bin/jest.js"])
        .flags(&target.flags)
        .args(&["--ci", "--testLocationInResults", &reporter])
        .option("--testNamePattern", name_pattern(target).as_deref());
    // A bare path is a pattern to jest, which fits a folder; the file must be the one that was requested.
    if target.filter.is_folder {
        step.maybe_arg(target.filter.path())
    } else {
        step.option("--runTestsByPath", target.filter.path())
    }
}

pub(super) fn mocha(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    let step = node_program(&target.project, &["mocha/bin/mocha.js", "mocha/bin/mocha"])
        .flags(&target.flags)
        .args(&["--reporter", &reports.file("mocha.cjs")])
        .option("--grep", name_pattern(target).as_deref());
    let step = if target.filter.is_folder { step.args(&["--recursive"]) } else { step };
    step.maybe_arg(target.filter.path())
}

pub(super) fn ava(target: &TestTarget) -> TestStep {
    let pattern = target.filter.pattern(|name| format!("*{name}*"));
    let step = node_program(&target.project, &["ava/entrypoints/cli.mjs"])
        .flags(&target.flags)
        .args(&["--tap"])
        .option("--match", pattern.as_deref())
        .maybe_arg(target.filter.path());
    TestStep { source: TestResultSource::Stdout(Box::new(TapParser::of_ava())), ..step }
}

pub(super) fn playwright(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    let reporter = format!("--reporter={}", reports.file("playwright.cjs"));
    // It puts the file between the project and the titles.
    let pattern = target.filter.pattern(|name| title_pattern(name, "(?: > | )(?:.* )?"));
    node_program(&target.project, &["@playwright/test/cli.js"])
        .args(&["test"])
        .flags(&target.flags)
        .args(&[&reporter])
        .option("--grep", pattern.as_deref())
        .maybe_arg(target.filter.path())
}

/// Returns the command of Node's own runner, `node --test`.
pub(super) fn node(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    let reporter = format!("--test-reporter={}", reports.file("node.mjs"));
    // It writes the file of events itself.
    let destination = "--test-reporter-destination=stdout";
    let name = target.filter.name();
    // Before version 22 a pattern is matched against a test's own title, and not against those around it.
    let own_title =
        name.and_then(|name| name.rsplit_once(" > ")).map(|(_, own)| format!("^{}$", escape_regex(own)));
    let step = TestStep::new("node", &[], TestResultSource::Events)
        .flags(&target.flags)
        .args(&["--test", &reporter, destination, &format!("--require={}", reports.file(NODE_EXIT))])
        .option("--test-name-pattern", name_pattern(target).as_deref())
        .option("--test-name-pattern", own_title.as_deref());
    match target.filter.path() {
        Some(folder) if target.filter.is_folder => {
            let files = test_files(&target.project, folder);
            step.args(&files.iter().map(String::as_str).collect::<Vec<_>>())
        }
        path => step.maybe_arg(path),
    }
}

/// Returns the pattern of the requested name for a runner that joins titles with spaces.
fn name_pattern(target: &TestTarget) -> Option<String> {
    target.filter.pattern(|name| title_pattern(name, BETWEEN_TITLES))
}

/// Returns the step that runs a program of the nearest `node_modules` that has it, under one of the names that its
/// versions have; the first where none is there.
///
/// The file is run, and not its link in `.bin`: a package manager may have put a shell script there.
fn node_program(project: &Project, names: &[&str]) -> TestStep {
    let paths: Vec<_> = names.iter().map(|name| format!("node_modules/{name}")).collect();
    let found = project.ancestors().find_map(|folder| {
        let path = paths.iter().find(|path| folder.contains(path))?.clone();
        Some((folder, path))
    });
    let (folder, path) =
        found.unwrap_or_else(|| (project.clone(), paths.into_iter().next().unwrap_or_default()));
    let program = if folder.folder().relative() == project.folder().relative() {
        path
    } else {
        folder.folder().to_absolute().join(&path).to_string_lossy().into_owned()
    };
    TestStep::new("node", &[&program], TestResultSource::Events)
}

/// Returns the files that `node --test` would find in a folder. Not all of its versions take a folder.
fn test_files(project: &Project, folder: &str) -> Vec<String> {
    const MAX_DEPTH: usize = 8;
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for name in project.entry_names(&folder) {
            let path = format!("{folder}/{name}");
            if project.folder().join(&path).is_ok_and(|path| Project::new(path).is_folder()) {
                if depth < MAX_DEPTH && name != "node_modules" && !name.starts_with('.') {
                    folders.push((path, depth + 1));
                }
            } else if is_test_file(&folder, &name) {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    found
}

fn is_test_file(folder: &str, name: &str) -> bool {
    let Some((stem, "js" | "mjs" | "cjs")) = name.rsplit_once('.') else { return false };
    folder.split('/').any(|name| name == "test")
        || stem == "test"
        || stem.starts_with("test-")
        || [".test", "-test", "_test"].iter().any(|ending| stem.ends_with(ending))
}
