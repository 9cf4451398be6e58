//! Processes by the name of their program or script: `process:gunicorn`, `process:server.js`, `process:Main`.

use super::proc;
use super::target::{LanguageRuntime, Process, TargetError};
use std::path::Path;
use workspace::Workspace;

/// The maximum number of processes that an error lists.
const MAX_LISTED: usize = 10;

/// Returns the one process of our user whose program or script is named `name`. With `within`, only processes beneath that
/// workspace are considered.
///
/// # Errors
/// No process has the name, or several have it, which are listed: none of them is guessed.
pub(crate) fn find(name: &str, within: Option<&Workspace>) -> Result<Process, TargetError> {
    if !cfg!(target_os = "linux") {
        return Err(TargetError::Unsupported);
    }
    let candidates = proc::pids().into_iter().filter(|pid| may_be_named(*pid, name));
    let mut found: Vec<Process> = candidates
        .filter_map(|pid| Process::find(pid).ok()?.within(within, String::new).ok())
        .filter(|process| !process.is_server() && names(process).any(|known| known == name))
        .collect();
    if found.len() > 1 {
        let listed: Vec<String> = found.iter().take(MAX_LISTED).map(Process::display_name).collect();
        return Err(TargetError::SeveralNamed {
            name: name.to_owned(),
            count: found.len(),
            listed: listed.join(", "),
        });
    }
    found.pop().ok_or_else(|| TargetError::NotNamed(name.to_owned()))
}

/// Returns true if the name occurs in the command line or in the path of the program. It spares all other processes the
/// detection of their runtime, which reads their programs.
fn may_be_named(pid: u32, name: &str) -> bool {
    let contains = |text: &str| text.contains(name);
    proc::link(pid, "exe").is_ok_and(|path| contains(&path.to_string_lossy()))
        || proc::strings(pid, "cmdline").is_ok_and(|command| command.iter().any(|word| contains(word)))
}

/// Returns the names of a process: the name and path of its program, its first word, and the name and path of its script.
fn names(process: &Process) -> impl Iterator<Item = String> {
    let exe = process.exe.as_ref().map(|path| path.to_string_lossy().into_owned());
    // The kernel adds this to the link of a program that was replaced, as by an update, while it runs.
    let exe = exe.map(|path| path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned());
    let first = process.command.first().cloned();
    // A process may rename itself: `gunicorn: master [shop:app]`.
    let title = first.as_ref().and_then(|word| Some(word.split_once(':')?.0.to_owned()));
    let script = script(process.runtime, &process.command).map(str::to_owned);
    let words = [exe, first, title, script].into_iter().flatten();
    words.flat_map(|word| {
        let file = Path::new(&word).file_name().map(|file| file.to_string_lossy().into_owned());
        [Some(word), file].into_iter().flatten()
    })
}

/// Returns the script, module or main class of an interpreter's command line. `None` for a program without one, and for
/// code that stands on the command line itself.
fn script(runtime: LanguageRuntime, command: &[String]) -> Option<&str> {
    /// Options whose value is the next word.
    const WITH_VALUE: [&str; 17] = [
        "-r",
        "--require",
        "--import",
        "--loader",
        "--experimental-loader",
        "-C",
        "--conditions",
        "--env-file",
        "-W",
        "-X",
        "-cp",
        "-classpath",
        "--class-path",
        "-p",
        "--module-path",
        "--add-modules",
        "-I",
    ];
    let interpreter = command.first()?.rsplit('/').next().unwrap_or_default();
    let is_interpreter = runtime != LanguageRuntime::Native && runtime != LanguageRuntime::Go
        || ["sh", "bash", "dash", "zsh", "ruby", "perl", "php", "bun", "lua"].contains(&interpreter);
    if !is_interpreter {
        return None;
    }
    let mut words = command.iter().skip(1).map(String::as_str);
    while let Some(word) = words.next() {
        match (runtime, word) {
            (LanguageRuntime::Python, "-m") | (LanguageRuntime::Jvm, "-jar" | "-m" | "--module") => {
                return words.next();
            }
            (LanguageRuntime::Deno, "run" | "serve") => {}
            // Code follows, and no name.
            (LanguageRuntime::Jvm, _) if !word.starts_with('-') => return Some(word),
            (_, "-c" | "-e" | "--eval" | "--print") => return None,
            (LanguageRuntime::Node, "-p") => return None,
            (_, option) if WITH_VALUE.contains(&option) => {
                words.next();
            }
            (_, option) if option.starts_with('-') => {}
            (_, script) => return Some(script),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_found_behind_the_options_of_its_interpreter() {
        use LanguageRuntime::{Deno, Go, Jvm, Native, Node, Python};
        for (runtime, command, expected) in [
            (Node, "node --inspect=127.0.0.1:0 -r ./a.js server.js --port 1", Some("server.js")),
            (Node, "node -e code", None),
            (Node, "node --import tsx src/main.ts", Some("src/main.ts")),
            (Python, "python3 /venv/bin/gunicorn -w 2 app:app", Some("/venv/bin/gunicorn")),
            (Python, "python3 -W error -m http.server 8000", Some("http.server")),
            (Python, "python3 -c code", None),
            (Deno, "deno run --allow-net main.ts", Some("main.ts")),
            (Jvm, "java -cp a.jar -Xmx1g com.shop.Main x", Some("com.shop.Main")),
            (Jvm, "java -jar target/shop.jar", Some("target/shop.jar")),
            (Native, "bash ./run.sh -x", Some("./run.sh")),
            (Native, "bash -c code", None),
            (Native, "/usr/sbin/nginx conf", None),
            (Go, "./shop serve", None),
        ] {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(script(runtime, &words), expected, "{command}");
        }
    }
}
