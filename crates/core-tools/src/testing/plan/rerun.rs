//! The arguments that make a runner run the tests of these names and no others.

use super::cargo::exact_filterset;
use super::patterns::{BETWEEN_TITLES, escape_regex, phpunit_pattern, title_pattern};
use super::{dotnet, mix};
use crate::testing::error::TestError;
use crate::testing::runner::TestRunner;
use crate::testing::target::GoTestName;
use std::collections::BTreeMap;

/// The number of tests that are run again, so that a command line has room for them.
const MAX_TESTS: usize = 1_000;
/// The number of bytes that their names have together.
const MAX_BYTES: usize = 100_000;

/// The arguments that select failed tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rerun {
    /// Of the runner; empty if none of its own tests failed.
    pub(super) arguments: Vec<String>,
    /// Of `cargo test --doc`, which follows nextest; empty if no test in documentation failed.
    pub(super) doctests: Vec<String>,
}

/// Returns the arguments that select the tests of these names.
///
/// # Errors
///
/// The runner cannot select by full names, or there are too many of them.
pub(super) fn rerun(runner: TestRunner, names: &[String]) -> Result<Rerun, TestError> {
    if names.len() > MAX_TESTS || names.iter().map(String::len).sum::<usize>() > MAX_BYTES {
        let message = format!("they are {}, and no command line has room for them", names.len());
        return Err(TestError::CannotRerun(message));
    }
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let each = |option: &str, value: &dyn Fn(&str) -> String| {
        names.iter().flat_map(|name| [option.to_owned(), value(name)]).collect::<Vec<_>>()
    };
    let one_of = |pattern: &dyn Fn(&str) -> String| {
        names.iter().map(|name| pattern(name)).collect::<Vec<_>>().join("|")
    };
    let titles = |name: &str| title_pattern(name, BETWEEN_TITLES);
    let arguments = match runner {
        // The names of pytest are its node ids, which it takes as arguments.
        TestRunner::Pytest => names.to_vec(),
        TestRunner::Cargo => exact_names(names),
        TestRunner::Nextest => return nextest(names),
        TestRunner::Go => words(&["-run", &format!("^({})$", go_tests(names))]),
        TestRunner::Vitest | TestRunner::Jest => {
            words(&["--testNamePattern", &format!("^({})$", one_of(&titles))])
        }
        TestRunner::Mocha => words(&["--grep", &format!("^({})$", one_of(&mocha_pattern))]),
        // It puts the project and the file before the titles.
        TestRunner::Playwright => {
            let pattern = |name: &str| title_pattern(name, "(?: > | )(?:.* )?");
            words(&["--grep", &format!("({})$", one_of(&pattern))])
        }
        TestRunner::Node => words(&["--test-name-pattern", &format!("^({})$", one_of(&node_pattern))]),
        TestRunner::Ava => each("--match", &str::to_owned),
        TestRunner::Bats => words(&["--filter", &format!("^({})$", one_of(&escape_regex))]),
        TestRunner::Ctest => words(&["-R", &format!("^({})$", one_of(&escape_regex))]),
        TestRunner::Rspec => each("--example", &str::to_owned),
        TestRunner::Mix => each("--only", &mix::only),
        TestRunner::Phpunit => words(&["--filter", &format!("/^({})$/", one_of(&phpunit_pattern))]),
        TestRunner::Deno => words(&["--filter", &format!("/^({})$/", one_of(&escape_regex))]),
        // Its report has a dot between suite and test, and its pattern a space.
        TestRunner::Bun => {
            let pattern = |name: &str| escape_regex(name).replace("\\.", ".");
            words(&["--test-name-pattern", &format!("^({})$", one_of(&pattern))])
        }
        TestRunner::Maven => words(&[
            &format!("-Dtest={}", maven_tests(names)),
            // A module without one of the selected tests would otherwise fail the build. Older versions know the second
            // name.
            "-Dsurefire.failIfNoSpecifiedTests=false",
            "-DfailIfNoTests=false",
        ]),
        TestRunner::Gradle => each("--tests", &|name| java_method(name).to_owned()),
        TestRunner::Dotnet => {
            let of = |name: &str| dotnet::of_name(name.split('(').next().unwrap_or(name));
            words(&["--filter", &one_of(&of)])
        }
        _ => return Err(TestError::CannotRerun(format!("{runner} cannot select tests by their names"))),
    };
    Ok(Rerun { arguments, doctests: Vec::new() })
}

/// Returns the pattern of a test of node. Before version 22, node compares only the title of the test itself, without
/// those of its suites.
fn node_pattern(name: &str) -> String {
    let whole = title_pattern(name, BETWEEN_TITLES);
    match name.rsplit_once(" > ") {
        Some((_, own)) => format!("{whole}|{}", title_pattern(own, BETWEEN_TITLES)),
        None => whole,
    }
}

/// Returns the pattern of a test of mocha. A hook that failed is no test: it runs with those of its suite.
fn mocha_pattern(name: &str) -> String {
    const HOOKS: [&str; 4] =
        ["\"before all\" hook", "\"before each\" hook", "\"after all\" hook", "\"after each\" hook"];
    let (suite, title) = name.rsplit_once(" > ").unwrap_or(("", name));
    match HOOKS.iter().any(|hook| title.starts_with(hook)) {
        false => title_pattern(name, BETWEEN_TITLES),
        true if suite.is_empty() => ".*".to_owned(),
        true => format!("{}{BETWEEN_TITLES}.*", title_pattern(suite, BETWEEN_TITLES)),
    }
}

/// Returns the arguments of libtest that select these tests alone.
fn exact_names(names: &[String]) -> Vec<String> {
    ["--", "--exact"].into_iter().map(str::to_owned).chain(names.iter().cloned()).collect()
}

/// Separates the tests of nextest from those in documentation, which cargo runs after it.
fn nextest(names: &[String]) -> Result<Rerun, TestError> {
    // Only the name of a test in documentation has ` - ` between file and item.
    let (doctests, own): (Vec<_>, Vec<_>) = names.iter().cloned().partition(|name| name.contains(" - "));
    let sets: Option<Vec<_>> = own.iter().map(|name| Some(format!("({})", exact_filterset(name)?))).collect();
    let Some(sets) = sets else {
        let message = "the name of one is none that nextest's expressions can hold".to_owned();
        return Err(TestError::CannotRerun(message));
    };
    let arguments = if sets.is_empty() { Vec::new() } else { vec!["-E".to_owned(), sets.join(" | ")] };
    let doctests = if doctests.is_empty() { doctests } else { exact_names(&doctests) };
    Ok(Rerun { arguments, doctests })
}

/// Returns the alternatives of a pattern for tests of Go: those at the top, with all of their subtests.
fn go_tests(names: &[String]) -> String {
    let mut tests: Vec<_> = names
        .iter()
        .map(|name| GoTestName::parse(name).test)
        .map(|test| escape_regex(test.split('/').next().unwrap_or(test)))
        .collect();
    tests.sort_unstable();
    // Several subtests of one test give the same pattern, since a whole test is run again.
    tests.dedup();
    tests.join("|")
}

/// Returns `package.Class.method` of the name of a test, without what stands for its parameters. A test that has nothing
/// else, such as `package.Class.[1] one`, is named by its class.
fn java_method(name: &str) -> &str {
    let method = name.split(['{', '(', '[']).next().unwrap_or(name);
    method.strip_suffix('.').unwrap_or(method)
}

/// Returns the value of Surefire's `test` for tests named `package.Class.method`.
fn maven_tests(names: &[String]) -> String {
    let mut classes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in names {
        let (class, method) = java_method(name).rsplit_once('.').unwrap_or((name, "*"));
        let methods = classes.entry(class).or_default();
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    let classes: Vec<_> =
        classes.into_iter().map(|(class, methods)| format!("{class}#{}", methods.join("+"))).collect();
    classes.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(runner: TestRunner, names: &[&str]) -> Vec<String> {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        rerun(runner, &names).unwrap().arguments
    }

    #[test]
    fn the_names_of_reports_become_what_each_runner_takes() {
        let maven = arguments(
            TestRunner::Maven,
            &["demo.A.fails", "demo.A.with{int}[2]", "demo.A.with{int}[3]", "demo.B.x"],
        );
        assert_eq!(maven[0], "-Dtest=demo.A#fails+with,demo.B#x");
        let go = arguments(
            TestRunner::Go,
            &["example.org/p.TestA/one", "example.org/p.TestA", "example.org/q.TestB"],
        );
        assert_eq!(go, ["-run", "^(TestA|TestB)$"]);
        let mix = arguments(TestRunner::Mix, &["SampleTest test adds 1", "SampleTest test a suite fails"]);
        assert_eq!(mix, ["--only", "test:test adds 1", "--only", "test:test a suite fails"]);
        let hook = arguments(TestRunner::Mocha, &["a > b", "with a hook > \"before all\" hook for \"c\""]);
        assert_eq!(hook[1], format!("^(a{BETWEEN_TITLES}b|with a hook{BETWEEN_TITLES}.*)$"));
        let phpunit = arguments(TestRunner::Phpunit, &["SampleTest.testFails"]);
        assert_eq!(phpunit, ["--filter", "/^(SampleTest::testFails)$/"]);
        // Its names have backslashes, and dots only in data.
        let phpunit = arguments(TestRunner::Phpunit, &["App.Tests.SumTest.testAdds with data set \"a/1.5\""]);
        assert_eq!(phpunit[1], r#"/^(App\\Tests\\SumTest::testAdds with data set "a\/1\.5")$/"#);
        let dotnet = arguments(TestRunner::Dotnet, &["Shop.Sum<A,B>.Adds(a: 1)", "Shop.Sum.a | b"]);
        assert_eq!(dotnet[1], "FullyQualifiedName~Shop.Sum<A%2CB>.Adds|FullyQualifiedName~Shop.Sum.a \\| b");
        let gradle = arguments(TestRunner::Gradle, &["demo.A.adds(int)[1]", "demo.B.[2] two"]);
        assert_eq!(gradle, ["--tests", "demo.A.adds", "--tests", "demo.B"]);
        let mix = arguments(TestRunner::Mix, &["Shop.SumTest doctest Shop.Sum.add/2 (1)"]);
        assert_eq!(mix, ["--only", "test:doctest Shop.Sum.add/2 (1)"]);
    }

    #[test]
    fn tests_in_documentation_are_separated_from_those_of_nextest() {
        let names = ["demo::api a::fails".to_owned(), "src/lib.rs - add (line 5)".to_owned()];
        let Rerun { arguments, doctests } = rerun(TestRunner::Nextest, &names).unwrap();
        assert_eq!(arguments, ["-E", "(package(=demo) & binary(=api) & test(=a::fails))"]);
        assert_eq!(doctests, ["--", "--exact", "src/lib.rs - add (line 5)"]);
    }

    #[test]
    fn what_has_no_names_or_too_many_is_refused() {
        assert!(matches!(rerun(TestRunner::Make, &["make test".to_owned()]), Err(TestError::CannotRerun(_))));
        let many = vec!["a".to_owned(); MAX_TESTS + 1];
        assert!(matches!(rerun(TestRunner::Jest, &many), Err(TestError::CannotRerun(_))));
    }
}
