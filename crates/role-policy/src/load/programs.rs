//! The programs and variables by which an allowed command runs any other one.

/// Returns the reason why a program can run any other program, if it can.
// It only warns: a list like this always has gaps, and an operator may want just this. What a rule allows is decided
// by what it names.
pub(super) fn runs_anything(words: &[String]) -> Option<&'static str> {
    let program = words.first()?;
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    // python3.12 is python.
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let alone = words.len() == 1;
    match name {
        "sh" | "bash" | "zsh" | "dash" | "fish" | "ksh" | "csh" | "tcsh" | "busybox" | "cmd"
        | "powershell" | "pwsh" => Some("it is a shell"),
        "python" | "pypy" | "perl" | "ruby" | "node" | "nodejs" | "deno" | "bun" | "php" | "lua" | "java"
        | "Rscript" | "osascript" | "tclsh" | "awk" | "gawk" | "mawk" | "sed" | "ed" | "vi" | "vim"
        | "nvim" | "emacs" | "gdb" | "lldb" => Some("it interprets programs"),
        "env" | "xargs" | "sudo" | "doas" | "su" | "nice" | "ionice" | "nohup" | "setsid" | "timeout"
        | "time" | "stdbuf" | "strace" | "ltrace" | "watch" | "parallel" | "find" | "chroot" | "unshare"
        | "nsenter" | "ssh" | "docker" | "podman" | "systemd-run" | "at" | "script" | "expect" | "flock"
        | "ld.so" | "ld-linux-x86-64.so" => Some("it starts other programs"),
        "npx" | "uvx" | "pipx" | "bunx" | "dlx" => Some("it fetches and runs packages"),
        "make" | "gmake" | "ninja" | "just" | "cmake" | "mvn" | "gradle" | "gradlew" | "ant" | "bazel"
        | "tox" | "nox" | "pytest" | "vitest" | "jest" | "mocha" | "bats" | "rake" | "mix" => {
            Some("it runs what files of the project say, which whoever may write them decides")
        }
        "cargo" | "go" | "npm" | "pnpm" | "yarn" | "uv" | "poetry" | "pip" | "dotnet" => {
            Some("it builds, and so runs what files of the project say, which whoever may write them decides")
        }
        "git" if alone => Some("its aliases, hooks and options start programs; name the subcommands"),
        // What looks at the work tree or shows differences. The git tools override these settings.
        "git"
            if words.get(1).is_some_and(|word| {
                matches!(
                    word.as_str(),
                    "status"
                        | "diff"
                        | "add"
                        | "commit"
                        | "checkout"
                        | "switch"
                        | "restore"
                        | "reset"
                        | "stash"
                        | "merge"
                        | "rebase"
                        | "log"
                        | "show"
                        | "blame"
                        | "grep"
                )
            }) =>
        {
            Some(
                "a repository's own settings, such as `core.fsmonitor` and `diff.external`, start programs; the git tools \
                 do without them",
            )
        }
        _ => None,
    }
}

/// Returns true if an environment variable can make an allowed program run another one.
pub(super) fn changes_program(variable: &str) -> bool {
    const WHOLE: [&str; 16] = [
        "PATH",
        "BASH_ENV",
        "ENV",
        "IFS",
        "SHELL",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "PERL5OPT",
        "PERL5LIB",
        "RUBYOPT",
        "NODE_OPTIONS",
        "JAVA_TOOL_OPTIONS",
    ];
    // Whole families, such as `LD_PRELOAD`, `GIT_SSH_COMMAND`, `CARGO_BUILD_RUSTC_WRAPPER`: each names a program to
    // start or a library to load.
    const BEGIN: [&str; 7] = ["LD_", "DYLD_", "GIT_", "CARGO_", "RUSTC", "RUSTDOC", "npm_config_"];
    WHOLE.contains(&variable)
        || BEGIN.iter().any(|begin| variable.starts_with(begin))
        || variable.contains('*')
}
