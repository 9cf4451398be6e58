//! The command of `go test`.

use super::patterns::escape_regex;
use super::step::{TestResultSource, TestStep};
use crate::ci::project::Project;
use crate::testing::parse::{GoModule, GoParser};
use crate::testing::target::{GoTestName, TestTarget};

pub(super) fn test(target: &TestTarget) -> TestStep {
    let filter = &target.filter;
    let name = filter.name().map(GoTestName::parse);
    let packages = match filter.path() {
        None => name.and_then(|name| name.package).unwrap_or("./...").to_owned(),
        Some(path) if filter.is_folder => format!("./{path}/..."),
        // Go selects no files: the package of the file is run.
        Some(path) => match path.rsplit_once('/') {
            Some((folder, _)) => format!("./{folder}"),
            None => ".".to_owned(),
        },
    };
    let pattern = filter.pattern.clone().or_else(|| name.map(pattern));
    // With `-count=1`, results are not taken from the cache: the tests run.
    TestStep::new(
        "go",
        &["test", "-json", "-count=1"],
        TestResultSource::Stdout(Box::new(GoParser::of_modules(modules(&target.project)))),
    )
    .option("-run", pattern.as_deref())
    .args(&[&packages])
}

/// Returns the modules of a run: that of the folder, or those of its workspace.
fn modules(project: &Project) -> Vec<GoModule> {
    let module_in = |folder: &str| {
        let file = if folder.is_empty() { "go.mod".to_owned() } else { format!("{folder}/go.mod") };
        let text = project.read(&file)?;
        let path = text.lines().find_map(|line| line.trim().strip_prefix("module "))?;
        Some(GoModule { path: path.trim().trim_matches('"').to_owned(), folder: folder.to_owned() })
    };
    let workspace = project.read("go.work").unwrap_or_default();
    let used = workspace.lines().map(|line| line.trim().trim_start_matches("use ").trim());
    let folders = used.filter_map(|folder| folder.strip_prefix("./"));
    folders.chain([""]).filter_map(module_in).collect()
}

/// Returns the pattern for a name. Go matches each element between slashes on its own.
fn pattern(name: GoTestName<'_>) -> String {
    // A name with a package or a subtest is whole; any other may be a part of a name.
    let is_whole = name.package.is_some() || name.test.contains('/');
    let element = |element: &str| {
        let pattern = escape_regex(element);
        if is_whole { format!("^{pattern}$") } else { pattern }
    };
    name.test.split('/').map(element).collect::<Vec<_>>().join("/")
}
