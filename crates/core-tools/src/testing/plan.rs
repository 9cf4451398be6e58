//! From a choice to command lines.

use super::parse::{Ctest, Events, Go, Libtest, Lines, Nextest, Nothing, Tap};
use super::runner::Runner;
use super::select::{Choice, Part, TestError};
use crate::ci::package_manager;
use crate::ci::project::Project;
use std::path::Path;

/// A program to run, and where its report will be.
pub(super) struct Step {
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(&'static str, String)>,
    /// The command as a person would type it.
    pub(super) shown: String,
    pub(super) reads: Reads,
    /// It makes the tests, and runs none.
    pub(super) prepares: bool,
}

/// Where the results are.
pub(super) enum Reads {
    /// On standard output.
    Stdout(Box<dyn Lines>),
    /// On both streams, whose order matters.
    Both(Box<dyn Lines>),
    /// In the file `events` of the folder of reports.
    Events,
    /// In XML files of the folder of reports.
    Xml,
    /// The same; on standard output until they are there, which is at the end.
    XmlAfter(Box<dyn Lines>),
    /// In XML files that the run writes to folders of this name.
    XmlIn(&'static [&'static str]),
    /// Nowhere.
    Exit,
}

impl Reads {
    pub(super) fn lines(&mut self) -> Box<dyn Lines> {
        match self {
            Self::Stdout(lines) | Self::Both(lines) | Self::XmlAfter(lines) => {
                std::mem::replace(lines, Box::new(Nothing))
            }
            Self::Events => Box::new(Events),
            _ => Box::new(Nothing),
        }
    }
}

/// The reporters that are written into the folder of reports.
pub(super) const REPORTERS: [(&str, &str); 8] = [
    ("pytest.py", include_str!("reporters/pytest.py")),
    ("node.mjs", include_str!("reporters/node.mjs")),
    ("mocha.cjs", include_str!("reporters/mocha.cjs")),
    ("vitest.mjs", include_str!("reporters/vitest.mjs")),
    ("jest.cjs", include_str!("reporters/jest.cjs")),
    ("playwright.cjs", include_str!("reporters/playwright.cjs")),
    ("rspec.rb", include_str!("reporters/rspec.rb")),
    ("mix.exs", include_str!("reporters/mix.exs")),
];

impl Step {
    fn new(program: &str, arguments: &[&str], reads: Reads) -> Self {
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self {
            shown: String::new(),
            program: program.to_owned(),
            arguments,
            environment: Vec::new(),
            reads,
            prepares: false,
        }
    }

    fn add(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    fn add_some(mut self, option: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.arguments
                .extend([option.to_owned(), value.to_owned()].into_iter().filter(|word| !word.is_empty()));
        }
        self
    }

    fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    fn preparing(mut self) -> Self {
        self.prepares = true;
        self
    }

    /// Shown as `words`, with what follows the first `skip` arguments.
    fn shown_as(mut self, words: &str, skip: usize) -> Self {
        let rest = self.arguments.iter().skip(skip).map(|word| crate::ci::quoted(word).into_owned());
        self.shown = std::iter::once(words.to_owned()).chain(rest).collect::<Vec<_>>().join(" ");
        self
    }

    /// Without what is there for our report.
    fn done(mut self, reports: &str) -> Self {
        const FOR_REPORTS: [&str; 5] =
            ["--reporter", "--reporter-option", "--output-junit", "--log-junit", "--results-directory"];
        if self.shown.is_empty() {
            let ours = |word: &&String| !word.contains(reports) && !FOR_REPORTS.contains(&word.as_str());
            let words = std::iter::once(&self.program).chain(&self.arguments).filter(ours);
            self.shown = words.map(|word| crate::ci::quoted(word)).collect::<Vec<_>>().join(" ");
        }
        self
    }
}

/// The commands, in their order. `reports` is the folder for reports.
pub(super) fn steps(choice: &Choice, reports: &Path) -> Result<Vec<Step>, TestError> {
    let Choice { runner, project, part, .. } = choice;
    if part.name.as_deref().is_some_and(|name| name.starts_with('-')) || part.path.starts_with('-') {
        return Err(TestError::Option(part.name.clone().unwrap_or_else(|| part.path.clone())));
    }
    let report = |name: &str| reports.join(name).to_string_lossy().into_owned();
    let name = part.name.as_deref();
    let path = Some(part.path.as_str()).filter(|path| !path.is_empty());
    let steps = match runner {
        Runner::Cargo => vec![cargo(project, part)],
        Runner::Nextest => nextest(project, part),
        Runner::Bats => {
            let step = Step::new(
                "bats",
                &["--formatter", "tap13", "--timing"],
                Reads::Stdout(Box::new(Tap::default())),
            );
            let folder =
                if project.has_named("tests", |name| name.ends_with(".bats")) { "tests" } else { "test" };
            let step = step.add_some("--filter", name);
            let step = if part.folder { step.add(&["--recursive"]) } else { step };
            vec![step.add(&[path.unwrap_or(if project.has_named(".", |name| name.ends_with(".bats")) {
                "."
            } else {
                folder
            })])]
        }
        Runner::Pytest => vec![pytest(project, part, &report("pytest.py"), &report("events"))],
        Runner::Vitest => {
            let reporter = format!("--reporter={}", report("vitest.mjs"));
            let step = node_program(project, "vitest/vitest.mjs")?.add(&["run", &reporter]);
            let step = step.add_some("--testNamePattern", name).add_some("", path);
            vec![step.env("CORE_TOOLS_EVENTS", report("events"))]
        }
        Runner::Jest => {
            let reporter = format!("--reporters={}", report("jest.cjs"));
            let step = node_program(project, "jest/bin/jest.js")?.add(&[
                "--ci",
                "--testLocationInResults",
                &reporter,
            ]);
            let step = step.add_some("--testNamePattern", name);
            let by = if part.folder { "" } else { "--runTestsByPath" };
            vec![step.add_some(by, path).env("CORE_TOOLS_EVENTS", report("events"))]
        }
        Runner::Mocha => {
            let output = format!("output={}", report("events"));
            let step = node_program(project, "mocha/bin/mocha.js")?;
            let step = step.add(&["--reporter", &report("mocha.cjs"), "--reporter-option", &output]);
            let step = step.add_some("--grep", name);
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
            let step = step.add_some("--grep", name).add_some("", path);
            vec![step.env("CORE_TOOLS_EVENTS", report("events"))]
        }
        Runner::Node => {
            let reporter = format!("--test-reporter={}", report("node.mjs"));
            let to = format!("--test-reporter-destination={}", report("events"));
            let step = Step::new("node", &["--test", &reporter, &to], Reads::Events);
            let step = step.add_some("--test-name-pattern", name);
            vec![match path {
                Some(folder) if part.folder => {
                    let files = node_tests(project, folder);
                    step.add(&files.iter().map(String::as_str).collect::<Vec<_>>())
                }
                path => step.add_some("", path),
            }]
        }
        Runner::Npm => {
            let step = Step::new(package_manager(project), &["test"], Reads::Exit);
            vec![if path.or(name).is_some() {
                step.add(&["--"]).add_some("", path).add_some("", name)
            } else {
                step
            }]
        }
        Runner::Go => vec![go(part)],
        Runner::Deno => {
            let junit = format!("--junit-path={}", report("deno.xml"));
            let step = Step::new("deno", &["test", &junit], Reads::Xml);
            vec![step.add_some("--filter", name).add_some("", path)]
        }
        Runner::Bun => {
            let junit = format!("--reporter-outfile={}", report("bun.xml"));
            let step = Step::new("bun", &["test", "--reporter=junit", &junit], Reads::Xml);
            vec![step.add_some("--test-name-pattern", name).add_some("", path)]
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
                &["test", "--continue", "--console=plain"],
                Reads::XmlIn(&["build/test-results/test"]),
            );
            let class = path.filter(|_| !part.folder).map(|path| format!("*{}", stem(path)));
            let filter = match (class, name) {
                (Some(class), Some(name)) => Some(format!("{class}.{name}")),
                (class, name) => class.or_else(|| name.map(|name| format!("*{name}*"))),
            };
            vec![step.add_some("--tests", filter.as_deref())]
        }
        Runner::Ctest => ctest(project, part, &report("ctest.xml")),
        Runner::Rspec => vec![rspec(project, part, &report("rspec.rb"), &report("events"))],
        Runner::Phpunit => {
            let program = if project.has("vendor/bin/phpunit") { "vendor/bin/phpunit" } else { "phpunit" };
            let step = Step::new(program, &["--log-junit", &report("phpunit.xml")], Reads::Xml);
            vec![step.add_some("--filter", name).add_some("", path)]
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
        Runner::Swift => vec![Step::new("swift", &["test"], Reads::Exit).add_some("--filter", name)],
        Runner::Just => vec![whole(choice, Step::new("just", &["test"], Reads::Exit))?],
        Runner::Make => vec![whole(choice, Step::new("make", &["test"], Reads::Exit))?],
    };
    let reports = reports.to_string_lossy();
    Ok(steps.into_iter().map(|step| step.done(&reports)).collect())
}

/// A step of a runner that runs all or nothing.
fn whole(choice: &Choice, step: Step) -> Result<Step, TestError> {
    if choice.part == Part::default() {
        return Ok(step);
    }
    let what = choice.part.name.clone().unwrap_or_else(|| choice.part.path.clone());
    Err(TestError::CannotSelect { runner: choice.runner, what, instead: "the project's folder" })
}

/// The name of a file without its extension.
fn stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name).to_owned()
}

/// How cargo selects a file or a folder: by target, and by the path of a module.
fn cargo_part(project: &Project, part: &Part) -> (Vec<String>, Option<String>) {
    let mut pieces = part.path.split('/');
    let first = pieces.next().unwrap_or_default();
    let rest: Vec<_> = pieces.collect();
    let target = |option: &str| match (rest.first(), rest.len()) {
        // `tests/name.rs`, or `tests/name/main.rs` and its modules.
        (Some(name), 1) if !part.folder => vec![option.to_owned(), stem(name)],
        (Some(name), _) if project.has(&format!("{first}/{name}/main.rs")) => {
            vec![option.to_owned(), (*name).to_owned()]
        }
        // `--tests` would be every target that has tests.
        _ => vec![option.to_owned(), "*".to_owned()],
    };
    match first {
        "tests" => (target("--test"), part.name.clone()),
        "examples" => (target("--example"), part.name.clone()),
        "benches" => (target("--bench"), part.name.clone()),
        "src" => {
            let targets =
                if project.has("src/lib.rs") { vec!["--lib".to_owned()] } else { vec!["--bins".to_owned()] };
            let mut modules: Vec<_> = rest.iter().map(|piece| piece.trim_end_matches(".rs")).collect();
            if matches!(modules.last(), Some(&("lib" | "main" | "mod"))) {
                modules.pop();
            }
            if matches!(modules.first(), Some(&"bin")) {
                return (vec!["--bins".to_owned()], part.name.clone());
            }
            let module = if modules.is_empty() { String::new() } else { format!("{}::", modules.join("::")) };
            let filter = format!("{module}{}", part.name.as_deref().unwrap_or_default());
            (targets, Some(filter).filter(|filter| !filter.is_empty()))
        }
        _ => (Vec::new(), part.name.clone()),
    }
}

fn cargo(project: &Project, part: &Part) -> Step {
    let step = Step::new(
        "cargo",
        &["test", "--no-fail-fast", "--message-format=json"],
        Reads::Both(Box::new(Libtest::default())),
    );
    let (targets, filter) = cargo_part(project, part);
    let mut step = step.add(&targets.iter().map(String::as_str).collect::<Vec<_>>());
    if let Some(filter) = filter {
        step = step.add(&["--", &filter]);
    }
    let skip =
        step.arguments.iter().position(|word| word.starts_with("--message")).map_or(0, |index| index + 1);
    step.shown_as("cargo test --no-fail-fast", skip)
}

fn nextest(project: &Project, part: &Part) -> Vec<Step> {
    const ARGUMENTS: [&str; 7] = [
        "nextest",
        "run",
        "--no-fail-fast",
        "--message-format",
        "libtest-json-plus",
        "--message-format-version",
        "0.1",
    ];
    let (targets, filter) = cargo_part(project, part);
    let targets: Vec<_> = targets.iter().map(String::as_str).collect();
    let step = Step::new("cargo", &ARGUMENTS, Reads::Stdout(Box::new(Nextest))).add(&targets);
    let step = step.add_some("", filter.as_deref()).env("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1");
    let mut steps = vec![step.shown_as("cargo nextest run --no-fail-fast", ARGUMENTS.len())];
    if part.path.is_empty() {
        // Which nextest does not run.
        let docs = Step::new(
            "cargo",
            &["test", "--doc", "--no-fail-fast"],
            Reads::Both(Box::new(Libtest::default())),
        );
        steps.push(match &filter {
            Some(filter) => docs.add(&["--", filter]),
            None => docs,
        });
    }
    steps
}

fn pytest(project: &Project, part: &Part, script: &str, events: &str) -> Step {
    let own = project.upward().find_map(|folder| {
        let python = [".venv/bin/python", "venv/bin/python", ".venv/Scripts/python.exe"];
        let found = python.into_iter().find(|path| folder.has(path))?;
        Some(folder.0.to_absolute().join(found).to_string_lossy().into_owned())
    });
    let shown = own.as_ref().map_or("python3", |_| "python");
    let (step, shown) = match own {
        Some(python) => (Step::new(&python, &[], Reads::Events), shown.to_owned()),
        None if project.has("uv.lock") => {
            (Step::new("uv", &["run", "--no-sync", "python"], Reads::Events), "uv run python".to_owned())
        }
        None if project.has("poetry.lock") => {
            (Step::new("poetry", &["run", "python"], Reads::Events), "poetry run python".to_owned())
        }
        None => (Step::new("python3", &[], Reads::Events), shown.to_owned()),
    };
    let step = step.add(&[script, events]);
    let skip = step.arguments.len();
    let step = step.add(&["-q", "-p", "no:cacheprovider"]);
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
    let package = match (part.path.as_str(), part.folder) {
        ("", _) => "./...".to_owned(),
        (path, true) => format!("./{path}/..."),
        (path, false) => match path.rsplit_once('/') {
            Some((folder, _)) => format!("./{folder}"),
            None => ".".to_owned(),
        },
    };
    step.add_some("-run", part.name.as_deref()).add(&[&package])
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

fn ctest(project: &Project, part: &Part, report: &str) -> Vec<Step> {
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
    steps.push(step.add_some("-R", part.name.as_deref()));
    steps
}
