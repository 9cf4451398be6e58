//! The command of `dotnet test`.

use super::patterns::file_stem;
use super::report_folder::ReportFolder;
use super::step::{TestResultSource, TestStep};
use crate::testing::target::TestTarget;

pub(super) fn test(target: &TestTarget, reports: &ReportFolder) -> TestStep {
    let path = target.filter.path();
    let project_file = path.filter(|path| path.ends_with("proj") || path.contains(".sln"));
    let class = path.filter(|path| path.ends_with(".cs")).map(file_stem);
    let name = target.filter.name().map(str::to_owned).or(class);
    let of_name = name.map(|name| of_name(&name));
    let filter = match (of_name, target.filter.pattern.as_deref()) {
        (Some(of_name), Some(pattern)) => Some(format!("{of_name}&({pattern})")),
        (of_name, pattern) => of_name.or_else(|| pattern.map(str::to_owned)),
    };
    TestStep::new("dotnet", &["test"], TestResultSource::Xml)
        .maybe_arg(project_file)
        .args(&["--logger", "trx", "--results-directory", reports.path()])
        .option("--filter", filter.as_deref())
}

/// Returns the expression that selects the tests whose full name contains this one. Its operators are escaped, and so is
/// the comma, at which `dotnet` would end the expression.
pub(super) fn of_name(name: &str) -> String {
    let mut value = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            ',' => value.push_str("%2C"),
            '\\' | '(' | ')' | '&' | '|' | '=' | '!' | '~' => value.extend(['\\', c]),
            c => value.push(c),
        }
    }
    format!("FullyQualifiedName~{value}")
}
