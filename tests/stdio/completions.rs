//! Completion scripts, asked in the shells that they are for.

use integration_tests::{Project, require};
use std::process::{Command, Stdio};

/// Returns what `shell` prints for a script, with the completion script of the server in `$1`. Nothing where there is no
/// such shell.
fn completed(project: &Project, shell: &str, program: &str) -> Option<Vec<String>> {
    let there = Command::new(shell).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    require(there.ok(), &format!("no {shell}; install it: apt install {shell}"))?;
    let script = project.server().args(["--policy", "roles.toml", "completions", shell]).output().unwrap();
    assert!(script.status.success() && script.stderr.is_empty(), "{script:?}");
    project.write("script", &String::from_utf8(script.stdout).unwrap());
    let mut command = Command::new(shell);
    command.args(["-c", program]).env("HOME", project.path()).current_dir(project.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.stderr.is_empty(), "{output:?}");
    Some(said.lines().map(str::to_owned).collect())
}

/// A project with a role of its own.
fn project() -> Project {
    let roles = "version = 1\nmissing_role = \"gardener\"\n[roles.minimal]\nallow = []\n[roles.gardener]\nallow = [\"*\"]\n";
    Project::with([("roles.toml", roles)])
}

/// Command lines, and a word that completes each.
const LINES: [(&str, &str); 5] = [
    ("mcp-stdio call read_mu", "read_multiple_files"),
    ("mcp-stdio policy check --tool write_f", "write_file"),
    ("mcp-stdio tools --role gar", "gardener"),
    ("mcp-stdio print-config winds", "windsurf"),
    ("mcp-stdio print-config cursor --wri", "--write"),
];

#[test]
fn bash_completes_tools_roles_clients_and_options() {
    let project = project();
    let asked: Vec<_> = LINES
        .iter()
        .map(|(line, _)| {
            format!(
                "COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMPREPLY=()\n\
                 $complete mcp-stdio \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\necho \"${{COMPREPLY[@]}}\""
            )
        })
        .collect();
    let program = format!(
        "source ./script\ncomplete=$(complete -p mcp-stdio | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n{}",
        asked.join("\n")
    );
    let Some(said) = completed(&project, "bash", &program) else { return };
    assert_eq!(said, LINES.map(|(_, word)| word));
}

#[test]
fn fish_completes_tools_roles_clients_and_options() {
    let project = project();
    let asked: Vec<_> = LINES.iter().map(|(line, _)| format!("complete -C '{line}' | head -n 1")).collect();
    let Some(said) = completed(&project, "fish", &format!("source ./script\n{}", asked.join("\n"))) else {
        return;
    };
    let words: Vec<_> = said.iter().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(words, LINES.map(|(_, word)| word));
}

#[test]
fn zsh_takes_the_script_and_it_has_the_words() {
    let project = project();
    let program = "autoload -Uz compinit && compinit -u -d ./dump && source ./script && whence -w _mcp-stdio";
    let Some(said) = completed(&project, "zsh", program) else { return };
    assert_eq!(said, ["_mcp-stdio: function"]);
    let script = project.read("script");
    for word in ["read_multiple_files", "gardener", "windsurf", "--write"] {
        assert!(script.contains(word), "{word}");
    }
}
