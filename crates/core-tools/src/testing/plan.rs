//! From a choice to command lines.

use super::cargo;
use super::parse::{Ctest, Go, Libtest, Nextest, Tap};
use super::runner::Runner;
use super::select::{Choice, Part, TestError};
use super::step::{Reads, Step};
use crate::ci::package_manager;
use crate::ci::project::Project;
use std::path::Path;

/// The reporters that are written into the folder of reports.
pub(super) const REPORTERS: [(&str, &str); 9] = [
    ("pytest.py", include_str!("reporters/pytest.py")),
    ("line.cjs", include_str!("reporters/line.cjs")),
    ("node.mjs", include_str!("reporters/node.mjs")),
    ("mocha.cjs", include_str!("reporters/mocha.cjs")),
    ("vitest.mjs", include_str!("reporters/vitest.mjs")),
    ("jest.cjs", include_str!("reporters/jest.cjs")),
    ("playwright.cjs", include_str!("reporters/playwright.cjs")),
    ("rspec.rb", include_str!("reporters/rspec.rb")),
    ("mix.exs", include_str!("reporters/mix.exs")),
];

/// The commands, in their order. `reports` is the folder for reports.
pub(super) fn steps(choice: &Choice, reports: &Path) -> Result<Vec<Step>, TestError> {
    let Choice { runner, project, part, .. } = choice;
    if part.name.as_deref().is_some_and(|name| name.starts_with('-')) || part.path.starts_with('-') {
        return Err(TestError::Option(part.name.clone().unwrap_or_else(|| part.path.clone())));
    }
    let report = |name: &str| reports.join(name).to_string_lossy().into_owned();
    let name = part.name.as_deref();
    let literal = name.map(literally);
    let pattern = literal.as_deref();
    let joined = name.map(|name| titles(name, "(?: > | )"));
    let joined = joined.as_deref();
    let path = Some(part.path.as_str()).filter(|path| !path.is_empty());
    let steps = match runner {
        Runner::Cargo => vec![cargo(choice)?],
        Runner::Nextest => nextest(choice)?,
        Runner::Bats => {
            let step = Step::new(
                "bats",
                &["--formatter", "tap", "--timing"],
                Reads::Stdout(Box::new(Tap::of_bats())),
            );
            let folder =
                if project.has_named("tests", |name| name.ends_with(".bats")) { "tests" } else { "test" };
            let step = step.add_some("--filter", pattern);
            let step = if part.folder { step.add(&["--recursive"]) } else { step };
            vec![step.add(&[path.unwrap_or(if project.has_named(".", |name| name.ends_with(".bats")) {
                "."
            } else {
                folder
            })])]
        }
        Runner::Pytest => vec![pytest(project, part, &report)],
        Runner::Vitest => {
            let reporter = format!("--reporter={}", report("vitest.mjs"));
            let step = node_program(project, "vitest/vitest.mjs")?.add(&["run", &reporter]);
            let step = step.add_some("--testNamePattern", joined).add_some("", path);
            vec![step.env("CORE_TOOLS_EVENTS", report("events"))]
        }
        Runner::Jest => {
            let reporter = format!("--reporters={}", report("jest.cjs"));
            let step = node_program(project, "jest/bin/jest.js")?.add(&[
                "--ci",
                "--testLocationInResults",
                &reporter,
            ]);
            let step = step.add_some("--testNamePattern", joined);
            let by = if part.folder { "" } else { "--runTestsByPath" };
            vec![step.add_some(by, path).env("CORE_TOOLS_EVENTS", report("events"))]
        }
        Runner::Mocha => {
            let output = format!("output={}", report("events"));
            let step = node_program(project, "mocha/bin/mocha.js")?;
            let step = step.add(&["--reporter", &report("mocha.cjs"), "--reporter-option", &output]);
            let step = step.add_some("--grep", joined);
            let step = if part.folder { step.add(&["--recursive"]) } else { step };
            vec![step.add_some("", path)]
        }
        Runner::Ava => {
            let step = node_program(project, "ava/entrypoints/cli.mjs")?.add(&["--tap"]);
            let matching = name.map(|name| format!("*{name}*"));
            let step = step.add_some("--match", matching.as_deref()).add_some("", path);
            vec![Step { reads: Reads::Stdout(Box::new(Tap::of_ava())), ..step }]
        }
        Runner::Playwright => {
            let reporter = format!("--reporter={}", report("playwright.cjs"));
            let step = node_program(project, "@playwright/test/cli.js")?.add(&["test", &reporter]);
            // It puts the file between the project and the titles.
            let grep = name.map(|name| titles(name, "(?: > | )(?:.* )?"));
            let step = step.add_some("--grep", grep.as_deref()).add_some("", path);
            vec![step.env("CORE_TOOLS_EVENTS", report("events"))]
        }
        Runner::Node => {
            let reporter = format!("--test-reporter={}", report("node.mjs"));
            let to = format!("--test-reporter-destination={}", report("events"));
            let step = Step::new("node", &["--test", &reporter, &to], Reads::Events);
            let step = step.add_some("--test-name-pattern", joined);
            // Before version 22 a pattern is held up against a test's own title, and not against those around it.
            let own =
                name.and_then(|name| name.rsplit_once(" > ")).map(|(_, own)| format!("^{}$", literally(own)));
            let step = step.add_some("--test-name-pattern", own.as_deref());
            vec![match path {
                Some(folder) if part.folder => {
                    let files = node_tests(project, folder);
                    step.add(&files.iter().map(String::as_str).collect::<Vec<_>>())
                }
                path => step.add_some("", path),
            }]
        }
        // What a script makes of further words is its own affair.
        Runner::Npm => vec![whole(choice, Step::new(package_manager(project), &["test"], Reads::Exit))?],
        Runner::Go => vec![go(part)],
        Runner::Deno => {
            let junit = format!("--junit-path={}", report("deno.xml"));
            let step = Step::new("deno", &["test", &junit], Reads::Xml);
            vec![step.add_some("--filter", name).add_some("", path)]
        }
        Runner::Bun => {
            let junit = format!("--reporter-outfile={}", report("bun.xml"));
            let step = Step::new("bun", &["test", "--reporter=junit", &junit], Reads::Xml);
            vec![step.add_some("--test-name-pattern", joined).add_some("", path)]
        }
        Runner::Dotnet => {
            let folder = reports.to_string_lossy();
            let step = Step::new("dotnet", &["test"], Reads::Xml);
            let step = step.add_some("", path.filter(|path| path.ends_with("proj") || path.contains(".sln")));
            let step = step.add(&["--logger", "trx", "--results-directory", &folder]);
            let class = path.filter(|path| path.ends_with(".cs")).map(stem);
            let filter = name.map(str::to_owned).or(class).map(|name| format!("FullyQualifiedName~{name}"));
            vec![step.add_some("--filter", filter.as_deref())]
        }
        Runner::Maven => vec![maven(part)],
        Runner::Gradle => {
            let program = if project.has("gradlew") { "./gradlew" } else { "gradle" };
            let step = Step::new(
                program,
                // A daemon would outlive the run, and with it a test that hangs. Tests that are up to date would
                // not run; no option for that is known to every version.
                &["cleanTest", "test", "--continue", "--console=plain", "--no-daemon"],
                Reads::XmlIn(&["build/test-results/test"]),
            );
            let class = path.filter(|_| !part.folder).map(|path| format!("*{}", stem(path)));
            let filter = match (class, name) {
                (Some(class), Some(name)) => Some(format!("{class}.{name}")),
                (class, name) => class.or_else(|| name.map(|name| format!("*{name}*"))),
            };
            vec![step.add_some("--tests", filter.as_deref())]
        }
        Runner::Ctest if path.is_some() => return Err(cannot(choice, "the name of a test")),
        Runner::Ctest => ctest(project, pattern, &report("ctest.xml")),
        Runner::Rspec => vec![rspec(project, part, &report("rspec.rb"), &report("events"))],
        Runner::Phpunit => {
            let program = if project.has("vendor/bin/phpunit") { "vendor/bin/phpunit" } else { "phpunit" };
            let step = Step::new(program, &["--log-junit", &report("phpunit.xml")], Reads::Xml);
            vec![step.add_some("--filter", pattern).add_some("", path)]
        }
        Runner::Mix => {
            let formatter = report("mix.exs");
            let step = Step::new(
                "elixir",
                &["-r", &formatter, "-S", "mix", "test", "--formatter", "CoreToolsFormatter"],
                Reads::Events,
            );
            let skip = step.arguments.len();
            let only = name.map(|name| format!("test:{name}"));
            let step = step.add_some("--only", only.as_deref()).add_some("", path);
            vec![step.env("CORE_TOOLS_EVENTS", report("events")).shown_as("mix test", skip)]
        }
        Runner::Zig => vec![whole(choice, Step::new("zig", &["build", "test"], Reads::Exit))?],
        Runner::Swift if path.is_some() => return Err(cannot(choice, "the name of a test")),
        Runner::Swift => vec![Step::new("swift", &["test"], Reads::Exit).add_some("--filter", pattern)],
        Runner::Just => vec![whole(choice, Step::new("just", &["test"], Reads::Exit))?],
        Runner::Make => vec![whole(choice, Step::new("make", &["test"], Reads::Exit))?],
    };
    let reports = reports.to_string_lossy();
    Ok(steps.into_iter().map(|step| step.done(&reports)).collect())
}

/// A step of a runner that runs all or nothing.
fn whole(choice: &Choice, step: Step) -> Result<Step, TestError> {
    if choice.part == Part::default() { Ok(step) } else { Err(cannot(choice, "the project's folder")) }
}

/// The runner of this choice cannot select what was asked for.
pub(super) fn cannot(choice: &Choice, instead: &'static str) -> TestError {
    let Part { path, name, .. } = &choice.part;
    let what = if path.is_empty() { name.clone().unwrap_or_default() } else { path.clone() };
    TestError::CannotSelect { runner: choice.runner, what, instead }
}

/// A regular expression, in any of the runners' dialects, for this text and no other. The `/` is there for those
/// of JavaScript that take `/…/` for an expression with its delimiters.
fn literally(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if r".^$*+?()[]{}|\/".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// The same for `suite > test`, as reports have it, with what the runner has between the titles.
fn titles(name: &str, between: &str) -> String {
    name.split(" > ").map(literally).collect::<Vec<_>>().join(between)
}

/// The name of a file without its extension.
fn stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name).to_owned()
}

fn cargo(choice: &Choice) -> Result<Step, TestError> {
    let step = Step::new(
        "cargo",
        &["test", "--no-fail-fast", "--message-format=json"],
        Reads::Both(Box::new(Libtest::default())),
    );
    let (targets, filter) = cargo::selection(choice)?;
    let mut step = step.add(&targets.iter().map(String::as_str).collect::<Vec<_>>());
    if let Some(filter) = filter {
        step = step.add(&["--", &filter]);
    }
    let skip =
        step.arguments.iter().position(|word| word.starts_with("--message")).map_or(0, |index| index + 1);
    Ok(step.shown_as("cargo test --no-fail-fast", skip))
}

fn nextest(choice: &Choice) -> Result<Vec<Step>, TestError> {
    const ARGUMENTS: [&str; 7] = [
        "nextest",
        "run",
        "--no-fail-fast",
        "--message-format",
        "libtest-json-plus",
        "--message-format-version",
        "0.1",
    ];
    let (targets, filter) = cargo::selection(choice)?;
    let targets: Vec<_> = targets.iter().map(String::as_str).collect();
    let step = Step::new("cargo", &ARGUMENTS, Reads::Stdout(Box::new(Nextest))).add(&targets);
    let one = filter.as_deref().and_then(cargo::nextest_name);
    let step = match &one {
        Some(one) => step.add(&["-E", one]),
        None => step.add_some("", filter.as_deref()),
    };
    let step = step.env("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1");
    let mut steps = vec![step.shown_as("cargo nextest run --no-fail-fast", ARGUMENTS.len())];
    if choice.part.path.is_empty() && one.is_none() {
        // Which nextest does not run.
        let docs = Step::new(
            "cargo",
            &["test", "--doc", "--no-fail-fast"],
            Reads::Both(Box::new(Libtest::default())),
        );
        let docs = Step { documentation: true, ..docs };
        steps.push(match &filter {
            Some(filter) => docs.add(&["--", filter]),
            None => docs,
        });
    }
    Ok(steps)
}

/// Python as the project has it: its local environment, that of its package manager, that which tox has made,
/// else `python3`, which is the one of an active environment. And what a person would type.
fn python(project: &Project) -> (Step, &'static str) {
    const LOCAL: [&str; 3] = [".venv/bin/python", "venv/bin/python", ".venv/Scripts/python.exe"];
    let below = |folder: &Project, paths: &[String]| {
        let found = paths.iter().find(|path| folder.has(path))?;
        Some(folder.0.to_absolute().join(found).to_string_lossy().into_owned())
    };
    let local = LOCAL.map(str::to_owned);
    if let Some(python) = project.upward().find_map(|folder| below(&folder, &local)) {
        return (Step::new(&python, &[], Reads::Events), "python");
    }
    // A workspace has one lock, at its top.
    let has = |name: &str| project.upward().any(|folder| folder.has(name));
    if has("uv.lock") {
        return (Step::new("uv", &["run", "--no-sync", "python"], Reads::Events), "uv run python");
    }
    if has("poetry.lock") {
        return (Step::new("poetry", &["run", "python"], Reads::Events), "poetry run python");
    }
    if project.has("hatch.toml") || project.says("pyproject.toml", "[tool.hatch.envs") {
        return (Step::new("hatch", &["run", "python"], Reads::Events), "hatch run python");
    }
    // Whatever tox would make first takes minutes and the network.
    let made = project.names(".tox").into_iter().filter(|name| name.starts_with("py"));
    let made: Vec<_> = made.map(|name| format!(".tox/{name}/bin/python")).collect();
    if let Some(python) = below(project, &made) {
        return (Step::new(&python, &[], Reads::Events), "python");
    }
    (Step::new("python3", &[], Reads::Events), "python3")
}

fn pytest(project: &Project, part: &Part, report: &impl Fn(&str) -> String) -> Step {
    let (step, shown) = python(project);
    // Its cache is there, for those who ask for it, and the project's own is left alone.
    let cache = format!("cache_dir={}", report("cache"));
    let step = step.add(&[&report("pytest.py"), &report("events"), "-o", &cache]);
    let skip = step.arguments.len();
    let step = step.add(&["-q"]);
    let step = match (part.path.as_str(), part.name.as_deref()) {
        ("", None) => step,
        ("", Some(name)) => step.add(&["-k", name]),
        (path, Some(name)) if !part.folder => step.add(&[&format!("{path}::{name}")]),
        (path, Some(name)) => step.add(&["-k", name, path]),
        (path, None) => step.add(&[path]),
    };
    step.shown_as(&format!("{shown} -m pytest"), skip)
}

/// `node` with a program of the nearest `node_modules` that has it.
fn node_program(project: &Project, program: &str) -> Result<Step, TestError> {
    let path = format!("node_modules/{program}");
    let found = project.upward().find(|folder| folder.has(&path)).unwrap_or_else(|| project.clone());
    let file = found.0.to_absolute().join(&path);
    let shown =
        if found.0.relative() == project.0.relative() { path } else { file.to_string_lossy().into_owned() };
    Ok(Step::new("node", &[&shown], Reads::Events))
}

/// The project's own `rspec`, where it has one: what its gems need is loaded by it.
fn rspec(project: &Project, part: &Part, formatter: &str, events: &str) -> Step {
    let (program, first, shown): (_, &[&str], _) = if project.has("bin/rspec") {
        ("bin/rspec", &[], "bin/rspec")
    } else if project.has("Gemfile.lock") {
        ("bundle", &["exec", "rspec"], "bundle exec rspec")
    } else {
        ("rspec", &[], "rspec")
    };
    // The first of the formatters is for what it prints itself.
    let step = Step::new(program, first, Reads::Events).add(&["--require", formatter]);
    let step = step.add(&["--format", "progress", "--format", "CoreToolsFormatter", "--out", events]);
    let skip = step.arguments.len();
    let path = Some(part.path.as_str()).filter(|path| !path.is_empty());
    step.add_some("--example", part.name.as_deref()).add_some("", path).shown_as(shown, skip)
}

/// What `node --test` would find in a folder; which of its versions take folders differs.
fn node_tests(project: &Project, folder: &str) -> Vec<String> {
    const DEEPEST: usize = 8;
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for name in project.names(&folder) {
            let path = format!("{folder}/{name}");
            if Project(project.0.clone()).0.join(&path).is_ok_and(|path| Project(path).is_folder()) {
                if depth < DEEPEST && name != "node_modules" && !name.starts_with('.') {
                    folders.push((path, depth + 1));
                }
                continue;
            }
            let Some((stem, "js" | "mjs" | "cjs")) = name.rsplit_once('.') else { continue };
            let in_test = folder.split('/').any(|piece| piece == "test");
            let named = stem == "test"
                || stem.starts_with("test-")
                || [".test", "-test", "_test"].iter().any(|end| stem.ends_with(end));
            if in_test || named {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    found
}

fn go(part: &Part) -> Step {
    let step = Step::new("go", &["test", "-json", "-count=1"], Reads::Stdout(Box::new(Go::default())));
    let named = part.name.as_deref().map(go_name);
    let package = match (part.path.as_str(), part.folder) {
        ("", _) => named.and_then(|(package, _)| package).unwrap_or("./...").to_owned(),
        (path, true) => format!("./{path}/..."),
        (path, false) => match path.rsplit_once('/') {
            Some((folder, _)) => format!("./{folder}"),
            None => ".".to_owned(),
        },
    };
    let pattern = named.map(|(package, name)| {
        // One that is not whole may be a part of a name.
        let whole = package.is_some() || name.contains('/');
        let element = |element| if whole { format!("^{}$", literally(element)) } else { literally(element) };
        name.split('/').map(element).collect::<Vec<_>>().join("/")
    });
    step.add_some("-run", pattern.as_deref()).add(&[&package])
}

/// The package, if there is one, and the test of `example.org/package.TestName/subtest`.
pub(super) fn go_name(name: &str) -> (Option<&str>, &str) {
    let begins = [".Test", ".Example", ".Fuzz"].iter().filter_map(|kind| name.find(kind)).min();
    match begins {
        Some(dot) if dot > 0 && !name[..dot].contains(' ') => (Some(&name[..dot]), &name[dot + 1..]),
        _ => (None, name),
    }
}

fn maven(part: &Part) -> Step {
    let program = "mvn";
    let step = Step::new(
        program,
        &["--batch-mode", "--no-transfer-progress", "test"],
        Reads::XmlIn(&["target/surefire-reports"]),
    );
    let class = Some(stem(&part.path)).filter(|_| !part.path.is_empty() && !part.folder);
    let filter = match (class, part.name.as_deref()) {
        (Some(class), Some(name)) => Some(format!("{class}#{name}")),
        (class, name) => class.or_else(|| name.map(str::to_owned)),
    };
    match filter {
        Some(filter) => step.add(&[
            &format!("-Dtest={filter}"),
            "-Dsurefire.failIfNoSpecifiedTests=false",
            "-DfailIfNoTests=false",
        ]),
        None => step,
    }
}

fn ctest(project: &Project, pattern: Option<&str>, report: &str) -> Vec<Step> {
    const FOLDERS: [&str; 4] = ["build", "out", "cmake-build-debug", "_build"];
    let mut steps = Vec::new();
    let folder = if project.has("CTestTestfile.cmake") {
        "."
    } else {
        let built = FOLDERS.into_iter().find(|folder| project.has(&format!("{folder}/CMakeCache.txt")));
        let folder = built.unwrap_or("build");
        // A cache without them is of a configuration that failed.
        let rules = ["Makefile", "build.ninja"].iter().any(|file| project.has(&format!("{folder}/{file}")));
        if built.is_none() || !rules {
            steps.push(Step::new("cmake", &["-S", ".", "-B", folder], Reads::Exit).preparing());
        }
        folder
    };
    steps.push(Step::new("cmake", &["--build", folder], Reads::Exit).preparing());
    let step = Step::new(
        "ctest",
        &["--test-dir", folder, "--output-junit", report, "--output-on-failure"],
        Reads::XmlAfter(Box::new(Ctest)),
    );
    steps.push(step.add_some("-R", pattern));
    steps
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::super::select::choose;
    use super::*;
    use crate::workspace::Workspace;
    use std::fs;
    use tempfile::TempDir;

    /// A project of these files, empty unless `path=text`.
    fn project(files: &str) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files.split_whitespace() {
            let (path, text) = file.split_once('=').unwrap_or((file, ""));
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    /// The command for `test_path` in a project of these files.
    fn command(files: &str, test_path: &str) -> String {
        let folder = project(files);
        let workspace = Workspace::new([folder.path()]).unwrap();
        let choice = choose(&workspace, None, Some(test_path), None).unwrap();
        let steps = steps(&choice, Path::new("/reports")).unwrap();
        let commands: Vec<_> = steps.into_iter().map(|step| step.shown).collect();
        let root = folder.path().canonicalize().unwrap();
        commands.join(" && ").replace(&format!("{}/", root.display()), "")
    }

    #[test]
    fn the_package_manager_runs_the_script_of_a_node_project_that_has_no_known_runner() {
        const SCRIPT: &str = "\"scripts\":{\"test\":\"./check\"}";
        for (files, expected) in [
            ("", "npm test"),
            ("package-lock.json", "npm test"),
            ("pnpm-lock.yaml", "pnpm test"),
            ("yarn.lock", "yarn test"),
            ("package-lock.json yarn.lock", "yarn test"),
        ] {
            assert_eq!(command(&format!("package.json={{{SCRIPT}}} {files}"), ""), expected, "{files}");
        }
        // What the project says itself outranks the lock files.
        let named = format!("package.json={{{SCRIPT},\"packageManager\":\"pnpm@9.1.0\"}} yarn.lock");
        assert_eq!(command(&named, ""), "pnpm test");
        // A package of a workspace has the lock file above it.
        let inner = format!("pnpm-lock.yaml package.json={{}} packages/a/package.json={{{SCRIPT}}}");
        assert_eq!(command(&inner, "packages/a"), "pnpm test");
        // A lock file of bun is a runner too.
        assert_eq!(command("package.json={} bun.lock", ""), "bun test");
    }

    #[test]
    fn a_node_project_is_run_by_what_its_script_names_then_by_what_it_depends_on() {
        let script = |script: &str, dependencies: &str| {
            let package = serde_json::json!({
                "scripts": {"test": script},
                "devDependencies": dependencies.split_whitespace().map(|name| (name, "*")).collect::<std::collections::BTreeMap<_, _>>(),
            });
            let folder = project("");
            fs::write(folder.path().join("package.json"), package.to_string()).unwrap();
            let workspace = Workspace::new([folder.path()]).unwrap();
            choose(&workspace, None, None, None).unwrap().runner.name()
        };
        assert_eq!(script("", "vitest jest mocha ava @playwright/test"), "vitest");
        assert_eq!(script("", "jest mocha"), "jest");
        assert_eq!(script("mocha --exit", "jest mocha"), "mocha");
        assert_eq!(script("", "mocha ava"), "mocha");
        assert_eq!(script("", "ava @playwright/test"), "ava");
        assert_eq!(script("", "@playwright/test"), "playwright");
        assert_eq!(script("", "playwright"), "node");
        assert_eq!(script("playwright test", "vitest @playwright/test"), "playwright");
        assert_eq!(script("node --test", "mocha"), "node");
        assert_eq!(script("./check", ""), "npm");
        assert_eq!(script("", ""), "node");
        for (file, expected) in [
            ("vitest.config.ts", "vitest"),
            ("jest.config.js", "jest"),
            (".mocharc.yml", "mocha"),
            ("playwright.config.ts", "playwright"),
            ("deno.json", "deno"),
            ("bun.lockb", "bun"),
        ] {
            let folder = project(&format!("package.json={{}} {file}"));
            let workspace = Workspace::new([folder.path()]).unwrap();
            assert_eq!(choose(&workspace, None, None, None).unwrap().runner.name(), expected, "{file}");
        }
    }

    #[test]
    fn python_is_that_of_the_project() {
        const HATCH: &str = "pyproject.toml=[tool.hatch.envs.default]";
        for (files, expected) in [
            ("", "python3 -m pytest"),
            (".venv/bin/python uv.lock", "python -m pytest"),
            ("venv/bin/python poetry.lock", "python -m pytest"),
            ("uv.lock poetry.lock", "uv run python -m pytest"),
            ("poetry.lock", "poetry run python -m pytest"),
            (HATCH, "hatch run python -m pytest"),
            ("hatch.toml", "hatch run python -m pytest"),
            ("tox.ini .tox/py312/bin/python", "python -m pytest"),
            ("tox.ini .tox/lint/bin/python", "python3 -m pytest"),
        ] {
            let command = command(&format!("pytest.ini {files}"), "");
            assert_eq!(command, format!("{expected} -q"), "{files}");
        }
        // A member of a workspace has the environment and the lock at its top.
        let member =
            command("uv.lock pyproject.toml members/a/pytest.ini members/a/test_a.py", "members/a/test_a.py");
        assert_eq!(member, "uv run python -m pytest -q test_a.py");
    }

    #[test]
    fn a_path_becomes_what_the_runner_selects_by() {
        for (files, path, expected) in [
            ("Cargo.toml src/lib.rs tests/api.rs", "tests/api.rs", "cargo test --no-fail-fast --test api"),
            ("Cargo.toml src/lib.rs src/a/b.rs", "src/a/b.rs", "cargo test --no-fail-fast --lib -- a::b::"),
            (
                "Cargo.toml src/main.rs",
                "src/main.rs::tests::one",
                "cargo test --no-fail-fast --bins -- tests::one",
            ),
            ("Cargo.toml", "name", "cargo test --no-fail-fast -- name"),
            ("tests/a.bats", "tests/a.bats::one", "bats --formatter tap --timing --filter one tests/a.bats"),
            ("pytest.ini t/test_a.py", "t/test_a.py::test_b", "python3 -m pytest -q t/test_a.py::test_b"),
            ("pytest.ini t/test_a.py", "t", "python3 -m pytest -q t"),
            ("go.mod a/b_test.go", "a/b_test.go::TestC", "go test -json -count=1 -run TestC ./a"),
            ("go.mod a/b_test.go", "a", "go test -json -count=1 ./a/..."),
            (
                "pom.xml src/test/java/d/ATest.java",
                "src/test/java/d/ATest.java::adds",
                "mvn --batch-mode --no-transfer-progress test '-Dtest=ATest#adds' -Dsurefire.failIfNoSpecifiedTests=false -DfailIfNoTests=false",
            ),
            (
                "build.gradle src/test/java/d/ATest.java",
                "src/test/java/d/ATest.java",
                "gradle cleanTest test --continue --console=plain --no-daemon --tests '*ATest'",
            ),
            (".rspec spec/a_spec.rb", "spec/a_spec.rb::adds", "rspec --example adds spec/a_spec.rb"),
            (".rspec Gemfile.lock spec/a_spec.rb", "", "bundle exec rspec"),
            ("phpunit.xml tests/ATest.php", "tests/ATest.php", "phpunit tests/ATest.php"),
            ("mix.exs test/a_test.exs", "test/a_test.exs", "mix test test/a_test.exs"),
            (
                "a.csproj ATests.cs",
                "ATests.cs",
                "dotnet test --logger trx --filter FullyQualifiedName~ATests",
            ),
            ("deno.json a_test.ts package.json={}", "a_test.ts", "deno test a_test.ts"),
        ] {
            assert_eq!(command(files, path), expected, "{files} {path}");
        }
    }

    #[test]
    fn the_originals_order_comes_first_and_the_others_are_named() {
        let all = "Cargo.toml tests/a.bats pytest.ini package.json={} go.mod pom.xml build.gradle CMakeLists.txt \
                   deno.json .rspec phpunit.xml mix.exs build.zig Package.swift justfile=test: Makefile=test:";
        let folder = project(all);
        let workspace = Workspace::new([folder.path()]).unwrap();
        let choice = choose(&workspace, None, None, None).unwrap();
        let names: Vec<_> = std::iter::once(choice.runner).chain(choice.also).map(Runner::name).collect();
        let expected = "cargo bats pytest deno go maven gradle ctest rspec phpunit mix zig swift just make";
        assert_eq!(names.join(" "), expected);
    }
}
