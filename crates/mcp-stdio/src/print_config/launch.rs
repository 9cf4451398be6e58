//! The command line that starts this server again, with the flags that were given.

use crate::cli::GlobalOptions;
use crate::error::Error;
use crate::output::{DEFAULT_NAME, name};
use server_setup::read_settings;
use std::path::Path;

/// The name of the packages that npx and uvx start.
const PACKAGE: &str = "coretools-mcp";

/// Returns the program and its first arguments by which a client starts what `executable` is. A program that npx or uvx has
/// put into its cache may be gone tomorrow, so those are named themselves.
pub(crate) fn program(executable: &Path) -> Result<Vec<String>, Error> {
    let parts: Vec<_> = executable.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    if name() == DEFAULT_NAME {
        if parts.iter().any(|part| part == "_npx") {
            return Ok(["npx", "-y", PACKAGE].map(str::to_owned).to_vec());
        }
        if parts.windows(2).any(|two| two[0] == "uv" && two[1].starts_with("archive-v")) {
            return Ok(["uvx", PACKAGE].map(str::to_owned).to_vec());
        }
    }
    Ok(vec![utf8(executable)?])
}

/// Returns the flags that were given, so that the client starts the same server.
pub(crate) fn arguments(options: &GlobalOptions) -> Result<Vec<String>, Error> {
    let mut arguments = Vec::new();
    for root in &options.roots {
        let root = match root.to_str().filter(|_| read_settings::is_remote_root(root)) {
            Some(remote) => remote.to_owned(),
            None => absolute(root)?,
        };
        arguments.extend(["--root".to_owned(), root]);
    }
    if let Some(toolsets) = &options.toolsets {
        arguments.extend(["--toolsets".to_owned(), toolsets.clone()]);
    }
    if let Some(role) = &options.role {
        arguments.extend(["--role".to_owned(), role.clone()]);
    }
    for (flag, path) in [("--policy", &options.policy), ("--audit", &options.audit)] {
        if let Some(path) = path {
            arguments.extend([flag.to_owned(), absolute(path)?]);
        }
    }
    if let Some(config) = &options.config {
        arguments.extend(["--config".to_owned(), absolute(config)?]);
    }
    #[cfg(all(feature = "remotes", unix))]
    {
        arguments.extend(options.remote.iter().flat_map(|remote| ["--remote".to_owned(), remote.clone()]));
        let remote_options = options.remote_options.iter();
        arguments.extend(remote_options.flat_map(|option| ["--remote-option".to_owned(), option.clone()]));
    }
    if options.text_only {
        arguments.push("--text-only".to_owned());
    }
    if let Some(level) = &options.log {
        arguments.extend(["--log".to_owned(), level.clone()]);
    }
    Ok(arguments)
}

/// Makes a path absolute: a client may start the server in any folder.
fn absolute(path: &Path) -> Result<String, Error> {
    utf8(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

fn utf8(path: &Path) -> Result<String, Error> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Error::Argument(format!("{} is not valid UTF-8, and no client could name it", path.display()))
    })
}

/// Returns a line for a shell that passes `words` to `client`.
pub(super) fn command_line<'a>(client: &str, words: impl IntoIterator<Item = &'a String>) -> String {
    let words: Vec<_> = words.into_iter().map(|word| quoted(word)).collect();
    format!("{client} {}", words.join(" "))
}

/// Quotes a word for a shell: a POSIX one, or on Windows `cmd` and PowerShell.
pub(crate) fn quoted(word: &str) -> String {
    // Not `=` and `~`, which zsh expands at the start of a word.
    let plain = |character: char| character.is_ascii_alphanumeric() || "/._-+:,@".contains(character);
    if cfg!(windows) {
        if !word.is_empty() && word.chars().all(|character| plain(character) || character == '\\') {
            return word.to_owned();
        }
        return format!("\"{word}\"");
    }
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
#[cfg(unix)]
#[allow(clippy::disallowed_methods, reason = "a real shell reads back what was quoted for one")]
mod tests {
    use super::*;

    fn awkward() -> GlobalOptions {
        GlobalOptions {
            roots: vec!["/a b".into(), "/=x~*?[!]{1,2}".into(), "/\u{2028}ключ".into()],
            toolsets: Some("edit, git_log".to_owned()),
            config: Some("/etc/#c.toml".into()),
            text_only: true,
            log: Some("debug".to_owned()),
            ..GlobalOptions::default()
        }
    }

    #[test]
    fn a_shell_reads_back_every_word_of_a_line() {
        let mut words = vec!["/opt/it's \"here\" $HOME `id` \\n & co;/mcp-stdio\n2".to_owned()];
        words.extend(arguments(&awkward()).unwrap());
        let line = command_line("printf '%s\\0'", &words);
        let shell = std::process::Command::new("sh").args(["-c", &line]).output().expect("sh is needed");
        let read = String::from_utf8(shell.stdout).unwrap();
        assert_eq!(read.split_terminator('\0').collect::<Vec<_>>(), words);
    }

    #[test]
    fn every_flag_that_was_given_is_carried_and_none_that_was_not() {
        let carried = arguments(&awkward()).unwrap();
        for flag in ["--root", "--toolsets", "--config", "--text-only", "--log"] {
            assert!(carried.iter().any(|argument| argument == flag), "{flag}");
        }
        assert_eq!(arguments(&GlobalOptions::default()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_program_in_the_cache_of_npx_or_uvx_is_started_by_them() {
        let started = |path: &str| program(Path::new(path)).unwrap().join(" ");
        let npx = "/home/u/.npm/_npx/8a1/node_modules/coretools-mcp-linux-x64/bin/mcp-stdio";
        assert_eq!(started(npx), "npx -y coretools-mcp");
        assert_eq!(started("/home/u/.cache/uv/archive-v0/x1/bin/mcp-stdio"), "uvx coretools-mcp");
        assert_eq!(started("/usr/local/bin/mcp-stdio"), "/usr/local/bin/mcp-stdio");
    }

    #[test]
    fn a_path_that_is_no_text_is_an_error() {
        use std::os::unix::ffi::OsStrExt;
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/opt/\xff/mcp-stdio"));
        assert!(program(path).is_err());
    }
}
