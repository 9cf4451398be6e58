//! `--remote` and `remotes` on the command line and in the configuration.

use crate::{Machines, output};

#[test]
fn a_call_on_the_command_line_is_made_there() {
    let machines = Machines::with([("a.txt", "there\n")]);
    let (code, text, error) = output(machines.command().args(["call", "read_file", r#"{"path": "a.txt"}"#]));
    assert!(code == 0 && text.contains("there"), "{text}{error}");
    let (code, text, _) =
        output(machines.command().args(["call", "run_command", r#"{"command": "uname -a"}"#]));
    assert!(code == 0 && text.contains("Linux"), "{text}");
    let (code, text, _) = output(machines.command().args(["call", "read_file", r#"{"path": "no.txt"}"#]));
    assert!(code == 1 && text.contains("no.txt"), "{text}");
    let (code, text, _) = output(machines.command().arg("tools"));
    assert!(code == 0 && text.contains("read_file"), "{text}");
}

#[test]
fn what_is_wrong_with_a_remote_is_an_error_that_names_the_nearest() {
    let machines = Machines::with([]);
    let text = "[remotes.build-box]\nkind = 'ssh'\ntarget = 'build-box'\nroots = ['/src']\n";
    let unknown_key = "remotes.toml:2:1: remotes.build-box: there is no key `knd`; did you mean `kind`?";
    for (remote, text, words) in [
        ("build-bx", text, "did you mean `build-box`?"),
        ("build-box", "[remotes.build-box]\nknd = 'ssh'", unknown_key),
        ("build-box", "[remotes.build-box]\nkind = 'shh'", "there is no kind of remotes `shh`"),
        ("build-box", "remotes = 3", "`remotes` must be a table"),
        ("sh:", text, "a target is missing"),
        ("nowhere:x", text, "there is no kind of remotes `nowhere`"),
    ] {
        let (code, _, error) = output(machines.configured(remote, text).arg("tools"));
        assert!(code == 2 && error.contains(words), "{words}: {error}");
    }
    let (code, _, error) = output(machines.command().args(["--root", "/tmp", "tools"]));
    assert!(code == 2 && error.contains("--root names a folder of this machine"), "{error}");
    let (code, _, error) = output(machines.command().args(["wrap", "--", "cat"]));
    assert!(code == 2 && error.contains("works on this machine alone"), "{error}");
}

#[test]
fn an_error_repeats_no_long_target() {
    let machines = Machines::with([]);
    let long = "x".repeat(50_000);
    for remote in [format!("sh:{long}"), format!("{long}:x"), long.clone(), format!("sh:exit 3:/{long}")] {
        let mut command = machines.command_by(&remote);
        let (code, text, error) = output(command.args(["call", "read_file", r#"{"path": "a.txt"}"#]));
        let said = text + &error;
        assert!(code != 0 && said.contains("characters)"), "{code}: {}", said.len());
        assert!(said.len() < 4_000, "{} bytes", said.len());
    }
    let (code, _, error) = output(machines.command().args(["--remote-option", &long, "tools"]));
    assert!(code == 2 && error.len() < 2_000, "{code}: {} bytes", error.len());
}

#[test]
fn a_configuration_that_was_found_names_no_remotes() {
    let machines = Machines::with([]);
    machines.front.write("coretools.toml", "[remotes.box]\nconnect = ['touch', '/tmp/x']\n");
    let (code, _, error) = output(machines.front.server().args(["--remote", "box", "tools"]));
    assert!(code == 2 && error.contains("left out of a file that was not named with --config"), "{error}");
}

#[test]
fn the_kinds_are_listed_with_their_options() {
    let machines = Machines::with([]);
    let (code, text, error) = output(machines.front.server().arg("remotes"));
    assert_eq!(code, 0, "{error}");
    for word in ["ssh", "podman", "slurm", "sudo", "--remote-option port=…"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}
