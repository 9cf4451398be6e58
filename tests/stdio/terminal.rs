//! The command line as a person at a terminal sees it.

use integration_tests::{Project, server};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

/// Where a stream of the program goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    Terminal,
    Pipe,
}

/// The output of a program as somebody saw it on a terminal of 80 columns.
struct Seen {
    /// Every byte that came to the terminal.
    terminal: String,
    /// Standard output, where it is a pipe.
    piped: String,
    code: Option<i32>,
}

/// Runs the server with standard input and error on a terminal, and standard output where `stdout` says.
fn run(project: &Project, arguments: &[&str], stdout: Stream, variables: &[(&str, &str)]) -> Seen {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let side = || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
    let mut command: Command = project.server_as(server());
    command.args(arguments).env("TERM", "xterm").env_remove("NO_COLOR").stdin(side()).stderr(side());
    command.stdout(if stdout == Stream::Terminal { side() } else { Stdio::piped() });
    command.envs(variables.iter().copied());
    let mut child = command.spawn().unwrap();
    // The child alone holds its side now, so that its end is the end of what can be read.
    drop(command);
    let reader = std::thread::spawn(move || {
        let (mut terminal, mut bytes) = (File::from(terminal), Vec::new());
        // A terminal whose other side is closed is an error on Linux, after all that was written.
        let _ = terminal.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
    });
    let mut piped = String::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut piped).unwrap();
    }
    let code = child.wait().unwrap().code();
    Seen { terminal: reader.join().unwrap(), piped, code }
}

const STEPS: &str =
    r#"{"command": ["sh", "-c", "for i in 1 2 3 4 5 6; do echo step $i; sleep 0.3; done; exit 3"]}"#;

#[test]
fn without_arguments_it_says_what_it_is_and_what_to_type() {
    let seen = run(&Project::empty(), &[], Stream::Terminal, &[]);
    assert_eq!(seen.code, Some(0), "{}", seen.terminal);
    for words in ["Model Context Protocol", "print-config claude --write", "call TOOL --help", "doctor"] {
        assert!(seen.terminal.contains(words), "{words}: {}", seen.terminal);
    }
}

#[test]
fn a_running_call_shows_its_output_as_it_comes_and_leaves_the_answer_alone() {
    let seen = run(&Project::empty(), &["call", "run_command", STEPS], Stream::Terminal, &[]);
    assert_eq!(seen.code, Some(1), "{}", seen.terminal);
    let (live, answer) = seen.terminal.rsplit_once("\u{1b}[J").expect("something was drawn and erased");
    assert!(live.contains("\u{1b}[2mstep 1\u{1b}[0m") && live.contains("run_command  1 s"), "{live:?}");
    // The lines of before are drawn anew, and not below themselves.
    assert!(live.contains("\u{1b}[2A\r\u{1b}[J") || live.contains("\u{1b}[3A\r\u{1b}[J"), "{live:?}");
    assert!(answer.starts_with("\u{1b}[31mexit code 3"), "{answer:?}");
    for step in 1..=6 {
        assert!(answer.contains(&format!("\nstep {step}\n")), "{answer:?}");
    }
}

#[test]
fn a_running_call_shows_the_tests_that_are_done() {
    let test = "@test \"one\" { sleep 1; }\n@test \"two\" { sleep 1; }\n";
    let project = Project::with([("tests/some.bats", test)]);
    if integration_tests::require(which("bats"), "no bats; install it: apt install bats").is_none() {
        return;
    }
    let seen = run(&project, &["call", "run_test_suite"], Stream::Pipe, &[]);
    assert_eq!(seen.code, Some(0), "{}{}", seen.terminal, seen.piped);
    assert!(seen.terminal.contains("tests done, 0 failed"), "{:?}", seen.terminal);
    assert!(!seen.piped.contains('\u{1b}'), "{}", seen.piped);
}

fn which(program: &str) -> Option<()> {
    Command::new(program).arg("--version").stdout(Stdio::null()).status().ok().map(drop)
}

#[test]
fn a_pipe_gets_the_answer_without_colours_and_failed_answers_too() {
    let project = Project::empty();
    let seen = run(&project, &["call", "run_command", STEPS], Stream::Pipe, &[]);
    assert_eq!(seen.code, Some(1));
    assert!(seen.piped.starts_with("exit code 3") && !seen.piped.contains('\u{1b}'), "{:?}", seen.piped);
    assert!(seen.terminal.contains("step 1"), "the progress is still seen: {:?}", seen.terminal);
    let output = project.server().args(["call", "run_command", STEPS]).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(1), 0), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), seen.piped.lines().count());
}

#[test]
fn no_color_and_a_terminal_that_only_prints_are_respected() {
    let project = Project::empty();
    let plain = run(&project, &["doctor"], Stream::Terminal, &[("NO_COLOR", "1")]);
    assert!(
        plain.terminal.contains("ok      ") && !plain.terminal.contains('\u{1b}'),
        "{:?}",
        plain.terminal
    );
    let coloured = run(&project, &["doctor"], Stream::Terminal, &[]);
    assert!(coloured.terminal.contains("\u{1b}[32mok"), "{:?}", coloured.terminal);
    let dumb = run(&project, &["call", "run_command", STEPS], Stream::Terminal, &[("TERM", "dumb")]);
    assert!(
        dumb.terminal.starts_with("exit code 3") && !dumb.terminal.contains('\u{1b}'),
        "{:?}",
        dumb.terminal
    );
}

#[test]
fn a_person_is_told_where_a_configuration_goes_and_a_program_gets_it_alone() {
    let project = Project::empty();
    let seen = run(&project, &["print-config", "cursor"], Stream::Pipe, &[("HOME", "/home/user")]);
    assert!(
        seen.terminal.contains("/home/user/.cursor/mcp.json") && seen.terminal.contains("--write"),
        "{}",
        seen.terminal
    );
    serde_json::from_str::<serde_json::Value>(&seen.piped).expect("nothing but JSON");
    let output = project.server().args(["print-config", "cursor"]).output().unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), seen.piped);
}
