//! Confined commands, run for real, and what they can reach.

#![allow(clippy::disallowed_methods, reason = "the tests look at what commands did, with other means")]

use super::{CommandScope, ConfinementPolicy, PrivateTempDir, ToolchainPaths};
use crate::ci::NetworkAccess;
use crate::ci::{
    BackgroundCommands, BackgroundStartContext, BackgroundStatus, CommandReport, CommandText, Commands,
    ReadCommandOutput, RunCommand, ServerFacts, StartCommand, diagnose,
};
use crate::redact::Redactor;
use crate::workspace::Workspace;
use process_runner::{Confinement, ConfinementLevel, SystemCallPermission};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

struct ConfinementFixture {
    folder: tempfile::TempDir,
    root: PathBuf,
    token: PathBuf,
}

impl ConfinementFixture {
    /// Returns `None` where nothing can be confined, and fails in CI, where the kernel must be able to.
    fn new() -> Option<Self> {
        if let Err(why) = Confinement::available() {
            skipped_tests::require(None::<()>, &why.to_string())?;
        }
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        let token = folder.path().join("token");
        fs::write(&token, "sesame").unwrap();
        Some(Self { folder, root, token })
    }

    fn commands(&self) -> Commands {
        let workspace = Arc::new(Workspace::new([&self.root]).unwrap());
        let redactor = Redactor::new(Default::default()).unwrap();
        Commands::new(process_runner::Runner::new(), workspace, redactor)
    }

    fn policy(&self, paths: &ToolchainPaths) -> ConfinementPolicy {
        let workspace = Workspace::new([&self.root]).unwrap();
        ConfinementPolicy::new(&workspace, paths, PrivateTempDir::new_in(self.folder.path()).unwrap())
    }

    fn confined(&self) -> Commands {
        self.commands().confined(self.policy(&ToolchainPaths::default()))
    }

    fn read_token(&self) -> String {
        format!("cat {}", self.token.display())
    }
}

macro_rules! fixture {
    () => {
        match ConfinementFixture::new() {
            Some(fixture) => fixture,
            None => return,
        }
    };
}

/// Returns how often a confinement is the reason in `text`: by Landlock, by what is mounted, or by how.
fn refusals(text: &str) -> usize {
    ["Permission denied", "No such file or directory", "Read-only file system"]
        .map(|reason| text.matches(reason).count())
        .iter()
        .sum()
}

async fn run(commands: &Commands, words: &[&str]) -> CommandReport {
    let mut command = RunCommand::new("");
    command.command = CommandText::Vector(words.iter().map(|word| (*word).to_owned()).collect());
    commands.run(&command, Duration::from_secs(120), &CancellationToken::new(), |_| {}).await.unwrap()
}

async fn sh(commands: &Commands, script: &str) -> CommandReport {
    run(commands, &["sh", "-c", script]).await
}

#[tokio::test]
async fn a_command_reaches_the_roots_and_nothing_else_of_ours() {
    let fixture = fixture!();
    let (free, confined) = (fixture.commands(), fixture.confined());
    assert_eq!(sh(&free, &fixture.read_token()).await.stdout, "sesame");
    let report = sh(&confined, &fixture.read_token()).await;
    assert!(!report.is_success() && refusals(&report.stderr) == 1, "{report:?}");
    assert!(sh(&confined, "echo text > file && cat file").await.is_success());
}

#[tokio::test]
async fn system_calls_that_a_role_names_are_allowed() {
    let fixture = fixture!();
    let script = "python3 -c 'import ctypes; print(ctypes.CDLL(None).ptrace(0, 0, 0, 0))'";
    let confined = fixture.confined();
    assert_eq!(sh(&confined, script).await.stdout, "-1\n");
    let scope = CommandScope { system_calls: vec![SystemCallPermission::Tracing], ..CommandScope::default() };
    assert_eq!(sh(&confined.narrowed(&scope), script).await.stdout, "0\n");
    let policy = fixture.policy(&ToolchainPaths::default()).level(ConfinementLevel::Strict);
    assert_eq!(policy.achieved_level(), ConfinementLevel::Strict);
    assert!(!sh(&fixture.commands().confined(policy), "touch file && chmod 600 file").await.is_success());
}

#[tokio::test]
async fn a_background_command_is_confined_too() {
    let fixture = fixture!();
    let background = BackgroundCommands::new(fixture.confined());
    let script = format!("echo text > file; {}", fixture.read_token());
    let command = CommandText::Vector(vec!["sh".into(), "-c".into(), script]);
    let input = StartCommand { command, ..StartCommand::new("") };
    let output_within = async |scope: &CommandScope| {
        let mut context = BackgroundStartContext::new("");
        context.scope = scope.clone();
        let id = background.start(&input, context).await.unwrap().id;
        let read = ReadCommandOutput {
            id,
            cursor: None,
            wait_ms: Some(60_000),
            wait_for_exit: Some(true),
            max_bytes: None,
        };
        let output = background.read(&read, "", &CancellationToken::new()).await.unwrap();
        assert_ne!(output.state.state, BackgroundStatus::Running);
        output.output
    };
    let text = output_within(&CommandScope::default()).await;
    assert_eq!(refusals(&text), 1, "{text}");
    let text = output_within(&CommandScope { write: Some(Vec::new()), ..CommandScope::default() }).await;
    assert_eq!(refusals(&text), 2, "{text}");
}

#[tokio::test]
async fn a_confined_program_has_its_own_terminal() {
    let fixture = fixture!();
    let script = "test -t 0 && echo here && echo tty > /dev/tty && stty size && echo text > file && ls /dev/pts > /dev/null";
    let command = CommandText::Vector(vec!["sh".into(), "-c".into(), script.into()]);
    let input = RunCommand { command, pty: Some(true), ..RunCommand::new("") };
    let report = fixture
        .confined()
        .run(&input, Duration::from_secs(20), &CancellationToken::new(), |_| {})
        .await
        .unwrap();
    assert!(report.stdout.starts_with("here\ntty\n24 80"), "{report:?}");
}

#[tokio::test]
async fn a_narrower_caller_reaches_less_and_never_more() {
    let fixture = fixture!();
    for folder in ["src", "out"] {
        fs::create_dir(fixture.root.join(folder)).unwrap();
    }
    let parent = fixture.folder.path().to_owned();
    let scope = CommandScope {
        read: Some(vec![fixture.root.join("src"), parent]),
        write: Some(vec![fixture.root.join("out")]),
        ..CommandScope::default()
    };
    let confined = fixture.confined();
    let narrow = confined.narrowed(&scope);
    assert!(sh(&narrow, "ls src && echo text > out/file").await.is_success());
    assert!(!sh(&narrow, "echo text > src/file").await.is_success());
    assert!(!sh(&narrow, &fixture.read_token()).await.is_success());
    assert!(sh(&confined, "echo text > src/file").await.is_success(), "the others are as they were");
}

#[tokio::test]
async fn before_it_is_decided_no_command_starts_and_then_all_are_confined_as_decided() {
    let fixture = fixture!();
    let (deferred, decision) = ConfinementPolicy::deferred();
    let commands = fixture.commands().confined(deferred);
    let mut command = RunCommand::new("");
    command.command = CommandText::Vector(vec!["true".into()]);
    let never = CancellationToken::new();
    let limit = Duration::from_secs(120);
    for commands in [&commands, &commands.narrowed(&CommandScope::default())] {
        let refused = commands.run(&command, limit, &never, |_| {}).await;
        assert!(!refused.is_ok_and(|report| report.is_success()));
    }
    assert_eq!(commands.confinement_summary(), "not decided; so no command starts");
    decision.set(fixture.policy(&ToolchainPaths::default()));
    assert!(sh(&commands, "echo text > file && cat file").await.is_success());
    assert!(!sh(&commands, &fixture.read_token()).await.is_success());
    assert!(!sh(&commands.narrowed(&CommandScope::default()), &fixture.read_token()).await.is_success());
    assert!(commands.confinement_summary().contains("Landlock"), "{}", commands.confinement_summary());
}

#[tokio::test]
async fn temporary_files_lie_in_a_folder_of_the_servers_own_that_goes_with_it() {
    let fixture = fixture!();
    let commands = fixture.confined();
    let report = sh(&commands, "mktemp").await;
    let file = PathBuf::from(report.stdout.trim_end());
    let folder = file.parent().unwrap().to_owned();
    assert!(folder.starts_with(fixture.folder.path()), "{report:?}");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let narrowed = commands.narrowed(&CommandScope::default());
    drop(commands);
    assert!(file.exists(), "somebody still uses it");
    drop(narrowed);
    assert!(!folder.exists());
}

#[tokio::test]
async fn diagnostics_say_what_is_in_force() {
    let fixture = fixture!();
    let facts = ServerFacts {
        name: "n".into(),
        version: "v".into(),
        started: Instant::now(),
        path: None,
        notice: None,
    };
    let confinement = |commands: &Commands| diagnose(commands, &facts, "dev", Vec::new()).confinement;
    assert_eq!(confinement(&fixture.commands()), "off: the server was started without");
    assert_eq!(
        confinement(&fixture.commands().confined(ConfinementPolicy::off("the role is full"))),
        "off: the role is full"
    );
    let text = confinement(&fixture.confined());
    assert!(text.starts_with("level `") && text.contains("Landlock ABI ") && !text.contains("TCP"), "{text}");
    let policy = fixture.policy(&ToolchainPaths::default()).network(&NetworkAccess::None).best_effort(true);
    let text = confinement(&fixture.commands().confined(policy));
    assert!(text.contains("files") && text.contains("TCP") && !text.contains("not enforced"), "{text}");
}

#[test]
fn the_discovered_paths_hold_no_secrets_and_never_the_whole_home() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let all =
        [".cargo/bin", ".cargo/registry", ".ssh", ".config/gh", ".cache/pip", "go/pkg", "other/pkg", "bin"];
    for folder in all {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    for file in [".npmrc", ".cargo/credentials.toml", ".gitconfig", ".netrc", ".git-credentials"] {
        fs::write(home.join(file), "").unwrap();
    }
    let variables = [
        ("PATH", format!("{}:{}:/:bin::/no/such/folder", home.join("bin").display(), home.display())),
        ("GOPATH", home.join("other").display().to_string()),
        ("JAVA_HOME", String::new()),
        ("VIRTUAL_ENV", home.display().to_string()),
        ("XDG_CACHE_HOME", home.join(".cache").display().to_string()),
    ];
    let paths = ToolchainPaths::discover(home, |name| {
        variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| value.into())
    });
    let below = |names: &[&str]| names.iter().map(|name| home.join(name)).collect::<Vec<_>>();
    assert_eq!(paths.read, below(&[".cargo/bin", ".gitconfig", "bin"]));
    assert_eq!(paths.write, below(&[".cargo/registry", "go/pkg", "other/pkg", ".cache/pip"]));
}

/// Uses the real toolchain of the developer, and a dependency of this crate from the cache.
#[tokio::test]
async fn cargo_builds_a_dependency_from_its_cache_with_the_usual_paths() {
    let fixture = fixture!();
    fs::create_dir(fixture.root.join("src")).unwrap();
    let manifest =
        "[package]\nname = \"tiny\"\nedition = \"2021\"\n[workspace]\n[dependencies]\nmemchr = \"2\"\n";
    fs::write(fixture.root.join("Cargo.toml"), manifest).unwrap();
    fs::write(fixture.root.join("src/lib.rs"), "pub use memchr::memchr;").unwrap();
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let paths = ToolchainPaths::discover(&home, |name| std::env::var_os(name));
    let commands = fixture.commands().confined(fixture.policy(&paths).network(&NetworkAccess::None));
    let target = fixture.root.join("target").display().to_string();
    let report = run(&commands, &["cargo", "check", "--offline", "--target-dir", &target]).await;
    assert!(report.is_success() && !report.stderr.contains("denied"), "{report:?}");
    for program in [["git", "--version"], ["python3", "--version"], ["git", "init"], ["git", "status"]] {
        let report = run(&commands, &program).await;
        assert!(report.is_success() && !report.stderr.contains("denied"), "{report:?}");
    }
}
