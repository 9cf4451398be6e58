//! Lines of a shell, read here and run by the real bash: bash starts no program that was not found in the line.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(clippy::disallowed_methods, reason = "the tests start the shell that the lines are written for")]
#![cfg(unix)]

mod corpus;
mod quoting;

use agent_hooks::shell::{ShellSurroundings, read};
use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The names that a line of these tests may start, each of which writes itself into a file.
const NAMES: [&str; 7] = ["alpha", "beta", "gamma", "delta", "evil", "cat", "tee"];

/// The programs that are there as they are.
const LAUNCHERS: [&str; 10] =
    ["env", "timeout", "nohup", "nice", "setsid", "xargs", "find", "sh", "bash", "stdbuf"];

/// Makes a folder with the programs of [`NAMES`] and [`LAUNCHERS`] alone.
fn programs(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    for name in NAMES {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\necho {name} >> \"$LOG\"\nexec /bin/cat\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for name in LAUNCHERS {
        let real = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
        symlink(real.into_iter().find(|path| path.exists()).unwrap(), folder.join(name)).unwrap();
    }
}

/// Returns the programs that bash itself starts for `text`, in a folder of its own.
fn started(text: &str, bin: &Path, folder: &Path) -> BTreeSet<String> {
    let (log, work) = (folder.join("log"), folder.join("work"));
    let _ = std::fs::remove_dir_all(&work);
    std::fs::create_dir_all(&work).unwrap();
    symlink(bin, folder.join("bin")).unwrap_or_default();
    std::fs::write(&log, "").unwrap();
    let mut command = Command::new("/bin/bash");
    command
        .args(["-c", text])
        .current_dir(&work)
        .env_clear()
        .env("PATH", bin)
        .env("LOG", &log)
        .stdin(Stdio::null())
        // A pipe, so that what runs in the background is waited for.
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.output().unwrap();
    std::fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect()
}

/// Returns the programs that the reader finds in `text`, or `None` if a judge refuses the line.
fn found(text: &str) -> Option<BTreeSet<String>> {
    let line = read(text, ShellSurroundings::default()).ok()?;
    if line.evaluates_variables {
        return None; // A judge refuses such lines.
    }
    Some(line.programs.iter().map(|program| program.words[0].text.clone()).collect())
}

/// Runs each line by bash. Returns the lines whose programs were not all found, and the number of lines that were read.
fn differences(lines: &[String]) -> (Vec<String>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    programs(&bin);
    let (next, accepted, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let folder = folder.path().join(format!("worker{worker}"));
            std::fs::create_dir(&folder).unwrap();
            let (next, accepted, wrong, bin) = (&next, &accepted, &wrong, &bin);
            scope.spawn(move || {
                while let Some(text) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(found) = found(text) else { continue };
                    accepted.fetch_add(1, Ordering::Relaxed);
                    let ran = started(text, bin, &folder);
                    let missed: Vec<_> = ran.difference(&found).collect();
                    if !missed.is_empty() {
                        let problem = format!("{text}\n    started {missed:?} beside {found:?}");
                        wrong.lock().unwrap().push(problem);
                    }
                }
            });
        }
    });
    (wrong.into_inner().unwrap(), accepted.into_inner())
}

fn has_bash() -> bool {
    let bash = Path::new("/bin/bash");
    skipped_tests::require(bash.exists().then_some(bash), "no bash; apt-get install bash").is_some()
}

#[test]
fn bash_starts_nothing_that_was_not_found_in_the_line() {
    if !has_bash() {
        return;
    }
    let lines: Vec<String> =
        corpus::LINES.iter().chain(quoting::LINES).map(|line| (*line).to_owned()).collect();
    let (wrong, accepted) = differences(&lines);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(accepted > lines.len() / 3, "only {accepted} of {} were read", lines.len());
}

/// Spellings of a name with an index that bash evaluates.
const NAMES_WITH_INDEX: [&str; 9] = [
    "'a[$(evil)]'",
    "\"a[\\$(evil)]\"",
    "a\\[\\$\\(evil\\)\\]",
    "a['$(evil)']",
    "a[\"\\$(evil)\"]",
    "'a['$'\\x24''(evil)]'",
    "'a['\"\\`evil\\`\"']'",
    "'b[a[$(evil)]]'",
    "\"$X\"",
];

/// Places in which bash may evaluate a name. `@` stands for the name.
const PLACES: [&str; 66] = [
    "declare @",
    "declare @=1",
    "declare -a @",
    "declare -g @=1",
    "declare -- @=1",
    "declare +x @=1",
    "declare y=1 @=1",
    "declare > x @=1",
    "typeset @=1",
    "f() { local @=1; }; f",
    "export @=1",
    "export @",
    "readonly @=1",
    "unset @",
    "unset -v @",
    "unset -n @",
    "unset y @",
    "a=(1 2); unset @",
    "builtin unset @",
    "builtin declare @=1",
    "command declare @=1",
    "command export @=1",
    "command unset @",
    "command -p unset @",
    "builtin -- unset @",
    "\\unset @",
    "'declare' @=1",
    "builtin read @ <<< 1",
    "read @ <<< 1",
    "read -r @ <<< 1",
    "read -ra @ <<< 1",
    "read y @ <<< '1 2'",
    "mapfile @ <<< 1",
    "mapfile -t @ <<< 1",
    "printf -v @ x",
    "printf -v@ x",
    "command printf -v @ x",
    "test -v @",
    "test -n a -a -v @",
    "[ -v @ ]",
    "[ ! -v @ ]",
    "[[ -v @ ]]",
    "[[ -v\t@ ]]",
    "[[ ( -v @ ) ]]",
    "[[ @ -eq 1 ]]",
    "[[ @\t-lt 1 ]]",
    "[[ 1 -ge\t@ ]]",
    "[[ a ]]&&[[ 1 -ne @ ]]",
    "let @",
    "let y=1 @=1",
    "((@))",
    "((@=1))",
    "echo $((@))",
    "echo $((1+@))",
    "echo $[@]",
    "for ((@;0;)); do :; done",
    "getopts x @ -x",
    "declare -n r=@; r=1",
    "declare -i v=@",
    "@=1",
    "@+=1",
    "exec {@}>x",
    "y=abc; echo ${y:@}",
    "v=([@]=1)",
    "echo ${v[@]}",
    "RANDOM=@",
];

#[test]
fn no_place_in_which_bash_evaluates_a_name_hides_a_program() {
    if !has_bash() {
        return;
    }
    let spelled = |place: &str, name: &str| format!("X='a[$(evil)]'; {}", place.replace('@', name));
    let lines: Vec<String> = PLACES
        .iter()
        .flat_map(|place| NAMES_WITH_INDEX.iter().map(move |name| spelled(place, name)))
        .collect();
    let (wrong, _) = differences(&lines);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
