//! Where arguments really lead. Rules judge that, and not the text.

/// Finds out where arguments lead: what a path is once its links are followed, which program a word starts.
///
/// A server implements it over the folders and programs it serves. An error refuses the call: what cannot be
/// judged is not allowed.
pub trait Effects {
    /// Where `path` leads, links followed: `.` for the primary root, `src/lib.rs` beneath it,
    /// `name:src/lib.rs` beneath another root. A path beneath the primary root that begins with such a name is
    /// given with `./` before it. The path need not exist.
    ///
    /// # Errors
    /// In words for the caller: the path leads outside, or cannot be followed.
    fn resolve_path(&self, path: &str) -> Result<String, String>;

    /// Where the name at the end of `path` stands, in the form of [`resolve_path`](Self::resolve_path): links on
    /// the way are followed, and one at the end is not. What removes or moves a name does that there.
    ///
    /// As `resolve_path` where a server has no links.
    ///
    /// # Errors
    /// As `resolve_path`.
    fn resolve_name(&self, path: &str) -> Result<String, String> {
        self.resolve_path(path)
    }

    /// What tells the program that `word` starts from every other one: its absolute path, the folder free of
    /// links.
    ///
    /// # Errors
    /// In words for the caller: there is no such program.
    fn resolve_program(&self, word: &str) -> Result<String, String>;

    /// The words of a command that was given as one line, exactly as it will be run.
    ///
    /// # Errors
    /// In words for the caller: the line cannot be split.
    fn split_command(&self, line: &str) -> Result<Vec<String>, String>;
}

/// Judges text alone, with no file system and no programs: paths are normalised and must stay relative, a
/// program is its own name. For the examples in a policy file, for tests, and for callers whose files lie on
/// another machine.
///
/// ```
/// use role_policy::{Effects, Lexical};
///
/// assert_eq!(Lexical.resolve_path("./src//lib.rs")?, "src/lib.rs");
/// assert_eq!(Lexical.resolve_path("src/../docs")?, "docs");
/// assert!(Lexical.resolve_path("src/../../etc").is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Lexical;

impl Effects for Lexical {
    fn resolve_path(&self, path: &str) -> Result<String, String> {
        if path.is_empty() || path.contains('\0') {
            return Err("it is no path".to_owned());
        }
        // A drive or a UNC path is absolute where there are such.
        if path.starts_with('/') || path.contains('\\') {
            return Err("it is not a relative path".to_owned());
        }
        // The common case costs one allocation and no list of parts.
        let plain = !path.ends_with('/') && !path.contains("//") && !path.split('/').any(is_dots);
        if plain {
            return Ok(path.to_owned());
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or("it leads outside")?;
                }
                name => parts.push(name),
            }
        }
        Ok(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
    }

    fn resolve_program(&self, word: &str) -> Result<String, String> {
        Ok(word.to_owned())
    }

    /// Words are what white space separates. Quotes and backslashes are refused: another would read them
    /// in another way.
    fn split_command(&self, line: &str) -> Result<Vec<String>, String> {
        if line.contains(['"', '\'', '\\']) {
            return Err("it has quotes, which only a server can read; give an array of words".to_owned());
        }
        Ok(line.split_ascii_whitespace().map(str::to_owned).collect())
    }
}

fn is_dots(part: &str) -> bool {
    matches!(part, "." | "..")
}
