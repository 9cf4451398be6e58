//! Checks of the programs that the tools start.

use core_tools::ci::Toolchain;
use process_runner::{Command, Limits, Runner};
use server_setup::finding::{DoctorFinding, note, ok};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The oldest version of git that has all the commands which the tools use: `git switch` and `git restore`.
const OLDEST_GIT: (u32, u32) = (2, 23);

/// Checks that there is a git, and that it is new enough.
pub(super) fn git(found: &[Toolchain]) -> DoctorFinding {
    let Some(git) = found.iter().find(|tool| tool.name == "git") else {
        return note(
            "git",
            "not found in PATH; the git tools will not work",
            "install git, or start the client where PATH has it",
        );
    };
    let detail = format!("{} ({})", git.version, git.path);
    match version(&git.version) {
        Some(version) if version < OLDEST_GIT => {
            let (major, minor) = OLDEST_GIT;
            note("git", format!("{detail}: too old"), format!("install git {major}.{minor} or newer"))
        }
        Some(_) => ok("git", detail),
        None => {
            note("git", detail, "it does not say its version as git does; put a working git first in PATH")
        }
    }
}

/// Checks the executor that Codex is given, if it is installed: that there is no way around it, and that Codex has the version
/// whose protocol it speaks.
#[cfg(all(feature = "hooks", unix))]
pub(super) async fn codex_environment(runner: &Runner) -> Vec<DoctorFinding> {
    let Some(state) = crate::codex_environment::state() else { return Vec::new() };
    let detail = format!("Codex: {}", state.path.display());
    let mut findings = vec![match state.problem {
        None => ok("executor", detail),
        Some((problem, remedy)) => note("executor", format!("{detail}; {problem}"), remedy),
    }];
    let limits = Limits::default().timeout(Duration::from_secs(20));
    let asked = runner.run(Command::new("codex", "/").arg("--version").limits(limits)).await;
    let said = asked.ok().map(|output| output.stdout.text().trim().to_owned()).unwrap_or_default();
    // `codex-cli 0.169.0`.
    let version = said.split(' ').find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    findings.push(match version {
        Some(version) if version == codex_executor::CODEX_VERSION => {
            ok("executor", format!("Codex {version}, whose protocol it speaks"))
        }
        Some(version) => note(
            "executor",
            format!(
                "Codex {version} may speak differently: the executor was built against {}",
                codex_executor::CODEX_VERSION
            ),
            "try a command and an edit; what is not understood is refused with the reason",
        ),
        None => note(
            "executor",
            "`codex --version` says no version",
            format!("install Codex {}, or have it in PATH", codex_executor::CODEX_VERSION),
        ),
    });
    findings
}

/// Returns the first two numbers of a text such as `git version 2.39.5`.
fn version(text: &str) -> Option<(u32, u32)> {
    let number =
        text.split(' ').find(|word| word.starts_with(|character: char| character.is_ascii_digit()))?;
    let mut parts = number.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// Returns what to do about a program that does not say its version, but `reason`. It may be as it should be, and something
/// that it needs is not.
pub(super) fn repair(program: &str, reason: &str) -> String {
    let lower = reason.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if says(&["could not create home directory", ".rustup"]) {
        return "rustup cannot use its folder below $HOME: give the server a HOME that it may write to, or RUSTUP_HOME \
                with the folder that has the toolchains"
            .to_owned();
    }
    if says(&["no default is configured", "no default toolchain"]) {
        return "this user has no toolchain of rustup: `rustup default stable`, or give the server RUSTUP_HOME with the \
                folder that has some"
            .to_owned();
    }
    if says(&["read-only file system", "permission denied", "no space left"]) {
        return format!("{program} cannot write where it must: give the server a HOME that it may write to");
    }
    format!(
        "run `{program} --version` in a terminal: if it fails there too, install {program} anew, or take it out of PATH"
    )
}

/// Programs that are often installed by a tool which only the login shell knows of.
const PROGRAMS: [&str; 16] = [
    "cargo", "node", "npm", "pnpm", "bun", "deno", "python3", "uv", "poetry", "go", "java", "mvn", "gradle",
    "dotnet", "ruby", "just",
];

/// Looks for programs that a login shell finds and this server does not: a client that was started from a menu has another
/// PATH.
pub(super) async fn login_shell(runner: &Runner) -> Option<DoctorFinding> {
    let shell = std::env::var("SHELL").ok().filter(|shell| Path::new(shell).is_absolute())?;
    // A profile can do anything, such as to ask a question, so it has a limit.
    let limits = Limits::default().timeout(Duration::from_secs(10));
    let command = Command::new(&shell, "/").args(["-l", "-c", "printf '\\n%s\\n' \"$PATH\""]).limits(limits);
    let output = runner.run(command).await.ok()?;
    // The last line with a path: a profile may print something before it.
    let stdout = String::from_utf8_lossy(output.stdout.bytes());
    let shell_path = stdout.lines().rfind(|line| line.contains('/'))?;
    let server_path = std::env::var_os("PATH").unwrap_or_default();
    let find = |path: &std::ffi::OsStr, program: &str| -> Option<PathBuf> {
        std::env::split_paths(path).map(|folder| folder.join(program)).find(|program| program.is_file())
    };
    let missing: Vec<_> = PROGRAMS
        .iter()
        .filter(|program| find(&server_path, program).is_none())
        .filter_map(|program| find(shell_path.as_ref(), program))
        .collect();
    if missing.is_empty() {
        return None;
    }
    let mut folders: Vec<_> = missing.iter().filter_map(|program| program.parent()).collect();
    folders.sort_unstable();
    folders.dedup();
    let list = |paths: Vec<&Path>, between: &str| {
        paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(between)
    };
    Some(note(
        "PATH",
        format!(
            "{} has {}, and this PATH has not",
            shell,
            list(missing.iter().map(PathBuf::as_path).collect(), ", ")
        ),
        format!(
            "start the client from a terminal, or give the server a PATH in the client's configuration (`env`) with {}",
            list(folders, ":")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::{repair, version};

    #[test]
    fn a_program_whose_folder_cannot_be_written_need_not_be_installed_anew() {
        for (reason, remedy) in [
            ("error: could not create home directory: '/home/u/.rustup'", "RUSTUP_HOME"),
            (
                "error: rustup could not choose a version of cargo to run, because one wasn't specified explicitly, and no \
              default is configured.",
                "rustup default stable",
            ),
            ("EROFS: read-only file system, mkdir '/home/u/.npm'", "HOME"),
        ] {
            let said = repair("cargo", reason);
            assert!(said.contains(remedy) && !said.contains("anew"), "{said}");
        }
        assert!(repair("node", "exit code 127").contains("install node anew"));
    }

    #[test]
    fn the_version_of_git_is_read_in_each_form_that_it_has() {
        assert_eq!(version("git version 2.39.5"), Some((2, 39)));
        assert_eq!(version("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(version("git version 2.47.1.windows.2"), Some((2, 47)));
        assert_eq!(version("unusable: no such file"), None);
    }
}
