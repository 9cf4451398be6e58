//! The real program, up to the point where it serves.
#![allow(clippy::disallowed_methods, reason = "the tests start the program from outside")]
#![allow(clippy::expect_used, reason = "a helper that fails fails its test")]

use std::process::{Command, Output, Stdio};

fn server(folder: &tempfile::TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-stdio"));
    command.current_dir(folder.path()).stdin(Stdio::null()).env_remove("FILESYSTEM_TOOLS_BASE_PATH");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CORETOOLS_") {
            command.env_remove(name);
        }
    }
    command
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn refused(command: &mut Command, reason: &str) {
    let Output { status, stdout, stderr } = command.output().expect("it can be started");
    assert_eq!(status.code(), Some(2), "{command:?}: {}", text(&stderr));
    assert!(stdout.is_empty() && text(&stderr).contains(reason), "{command:?}: {}", text(&stderr));
}

#[test]
fn the_variable_names_the_configuration_and_the_flag_wins() {
    let folder = folder();
    for name in ["variable", "flag"] {
        std::fs::write(folder.path().join(name), format!("toolsets = \"no-such-{name}\"\n")).unwrap();
    }
    refused(server(&folder).arg("tools").env("CORETOOLS_CONFIG", "variable"), "no-such-variable");
    refused(
        server(&folder).args(["tools", "--config", "flag"]).env("CORETOOLS_CONFIG", "variable"),
        "no-such-flag",
    );
    refused(server(&folder).arg("tools").env("CORETOOLS_CONFIG", "missing"), "missing");
}

#[test]
fn the_variable_sets_the_level_of_the_log_and_the_flag_wins() {
    let folder = folder();
    refused(server(&folder).arg("tools").env("CORETOOLS_LOG", "loud"), "loud");
    let warned = |command: &mut Command| {
        let output = command.arg("tools").env("CORETOOLS_UNKNOWN", "1").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        text(&output.stderr).contains("CORETOOLS_UNKNOWN")
    };
    assert!(warned(&mut server(&folder)));
    assert!(!warned(server(&folder).env("CORETOOLS_LOG", "error")));
    assert!(warned(server(&folder).env("CORETOOLS_LOG", "error").args(["--log", "warn"])));
}

#[test]
fn a_role_counts_for_every_subcommand_and_one_that_is_not_declared_is_the_minimal_one() {
    let folder = folder();
    let tools = |role: &str| {
        let output = server(&folder).arg("tools").env("CORETOOLS_ROLE", role).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        (text(&output.stdout), text(&output.stderr))
    };
    let (listed, said) = tools("worker");
    assert!(listed.contains("write_file") && said.is_empty(), "{said}");
    for role in ["", "Worker", "unheard-of"] {
        let (listed, said) = tools(role);
        assert!(!listed.contains("write_file") && listed.contains("get_diagnostics"), "{role}: {listed}");
        assert!(said.contains("is not used, and minimal instead"), "{said}");
    }
    let call = ["call", "--role", "readonly", "write_file", r#"{"path": "x", "content": "y"}"#];
    refused(server(&folder).args(call), "no tool is called `write_file`");
}

#[test]
fn a_choice_of_no_tools_is_an_error() {
    let folder = folder();
    for list in ["", " , ", ","] {
        refused(server(&folder).args(["tools", "--toolsets", list]), "--toolsets");
    }
    refused(server(&folder).arg("tools").env("CORETOOLS_TOOLSETS", ""), "CORETOOLS_TOOLSETS");
}

#[test]
fn the_tools_cannot_make_the_configuration_that_the_next_start_would_find() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("deep")).unwrap();
    for path in ["coretools.toml", "CORETOOLS.TOML", "deep/coretools.toml"] {
        let arguments = format!(r#"{{"path": "{path}", "content": "roots = []"}}"#);
        let output = server(&folder).args(["call", "write_file", &arguments]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output.stdout).contains("protected"), "{output:?}");
        assert!(!folder.path().join(path).exists());
    }
}

#[test]
fn the_preset_minimal_has_as_many_tools_as_the_help_says() {
    let folder = folder();
    let listed = server(&folder).args(["tools", "--toolsets", "minimal"]).output().unwrap();
    assert!(text(&listed.stdout).contains("\n6 tools;"), "{listed:?}");
    let help = server(&folder).arg("--help").output().unwrap();
    assert!(text(&help.stdout).contains("offer six tools only"), "{help:?}");
}

#[test]
fn the_printed_configuration_carries_the_level_of_the_log() {
    let folder = folder();
    let output = server(&folder).args(["--log", "debug", "print-config", "claude"]).output().unwrap();
    let config: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let arguments = &config["mcpServers"]["coretools"]["args"];
    assert_eq!(*arguments, serde_json::json!(["--log", "debug"]), "{output:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_fault() {
    let folder = folder();
    for arguments in [&["completions", "bash"][..], &["tools", "--json"], &["print-config", "codex"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = server(&folder).args(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure_that_is_said() {
    let folder = folder();
    for arguments in [
        &["tools"][..],
        &["completions", "bash"],
        &["print-config", "claude"],
        &["call", "list_directory"],
        &["call", "list_directory", "--json"],
        &["doctor"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = server(&folder).args(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        assert!(text(&output.stderr).contains("cannot write to standard output"), "{output:?}");
    }
}
