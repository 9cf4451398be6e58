//! The command of `go test`.

use super::patterns::escape_regex;
use super::step::{ResultSource, TestStep};
use crate::testing::parse::Go;
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
    let pattern = name.map(pattern);
    // With `-count=1`, results are not taken from the cache: the tests run.
    TestStep::new("go", &["test", "-json", "-count=1"], ResultSource::Stdout(Box::new(Go::default())))
        .option("-run", pattern.as_deref())
        .args(&[&packages])
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
