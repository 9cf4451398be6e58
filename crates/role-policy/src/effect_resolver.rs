//! Resolves arguments to what they really reach. Rules judge that, and not the text.

/// The reason why an [`EffectResolver`] cannot tell what an argument reaches. The call is refused: what cannot be judged
/// is not allowed. The message is in words for the caller, which can only show it to the model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The text is empty, or has a NUL in it.
    #[error("it is no path")]
    NotAPath,
    /// The path is absolute, or may be on another system.
    #[error("it is not a relative path")]
    NotRelative,
    /// The path has more `..` than folders before them.
    #[error("it leads outside")]
    Outside,
    /// The command line has quotes or backslashes, which two readers would read in two ways.
    #[error("it has quotes, which only a server can read; give an array of words")]
    Quoted,
    /// The text is a patch, and the resolver reads none.
    #[error("the paths in a patch cannot be judged here")]
    Patch,
    /// The error of a resolver of one's own, whose message and source it has.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl ResolveError {
    /// Wraps the error of a resolver of one's own. What it says is shown to the caller.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }
}

/// Resolves the arguments of calls: the path that a link leads to, the program that a word starts.
///
/// A server implements it over the folders and programs it serves. An error refuses the call: what cannot be
/// judged is not allowed.
pub trait EffectResolver {
    /// Returns where `path` leads, links followed: `.` for the primary root, `src/lib.rs` beneath it,
    /// `name:src/lib.rs` beneath another root. A path beneath the primary root that begins with such a name is
    /// given with `./` before it. The path need not exist.
    ///
    /// # Errors
    /// The path leads outside, or cannot be followed.
    fn resolve_path(&self, path: &str) -> Result<String, ResolveError>;

    /// Returns where the name at the end of `path` stands, in the form of [`resolve_path`](Self::resolve_path): links
    /// on the way are followed, and one at the end is not. What removes or moves a name does that there.
    ///
    /// The default is `resolve_path`, which is right for a server without links.
    ///
    /// # Errors
    /// As `resolve_path`.
    fn resolve_name(&self, path: &str) -> Result<String, ResolveError> {
        self.resolve_path(path)
    }

    /// Returns the identity of the program that `word` starts: its absolute path, the folder free of links.
    ///
    /// # Errors
    /// There is no such program, or which one it is depends on something that may still change.
    fn resolve_program(&self, word: &str) -> Result<String, ResolveError>;

    /// Splits a command that was given as one line into words, exactly as it will be run.
    ///
    /// # Errors
    /// The line cannot be split.
    fn split_command(&self, line: &str) -> Result<Vec<String>, ResolveError>;

    /// Returns the paths in the text of a patch, exactly as it will be applied, with the use it makes of each.
    ///
    /// The default refuses, which is right for a server without such a tool.
    ///
    /// # Errors
    /// The text is no patch.
    fn patched_paths(&self, patch: &str) -> Result<Vec<PatchedPath>, ResolveError> {
        let _ = patch;
        Err(ResolveError::Patch)
    }

    /// Returns the words that a command runs as which was given as an array. The default is the same words, which is
    /// wrong for a server that runs anything else: one that splits `["cargo test"]`, for example.
    ///
    /// # Errors
    /// The server would not run it.
    fn vector_words(&self, words: Vec<String>) -> Result<Vec<String>, ResolveError> {
        Ok(words)
    }

    /// Returns the words that run `line` in a shell, exactly as they will be run. The default is `sh -c`.
    ///
    /// # Errors
    /// There is no shell.
    fn shell_words(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        Ok(vec!["sh".to_owned(), "-c".to_owned(), line.to_owned()])
    }
}

/// A path in a patch, with the use that the patch makes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchedPath {
    /// The file is read and written.
    Edited(String),
    /// The file is created, or replaced unread.
    Created(String),
    /// The file is removed.
    Removed(String),
    /// The file goes elsewhere with its content.
    Moved(String),
}

/// Judges text alone, with no file system and no programs: paths are normalised and must stay relative, a
/// program is its own name. For the examples in a policy file, for tests, and for callers whose files lie on
/// another machine.
///
/// ```
/// use role_policy::{EffectResolver, LexicalResolver};
///
/// assert_eq!(LexicalResolver.resolve_path("./src//lib.rs")?, "src/lib.rs");
/// assert_eq!(LexicalResolver.resolve_path("src/../docs")?, "docs");
/// assert!(LexicalResolver.resolve_path("src/../../etc").is_err());
/// # Ok::<(), role_policy::ResolveError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct LexicalResolver;

impl EffectResolver for LexicalResolver {
    fn resolve_path(&self, path: &str) -> Result<String, ResolveError> {
        if path.is_empty() || path.contains('\0') {
            return Err(ResolveError::NotAPath);
        }
        // A drive or a UNC path is absolute where there are such.
        if path.starts_with('/') || path.contains('\\') {
            return Err(ResolveError::NotRelative);
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
                    // Refused and not clamped to the root, as a file system would have followed it out of the root.
                    parts.pop().ok_or(ResolveError::Outside)?;
                }
                name => parts.push(name),
            }
        }
        Ok(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
    }

    fn resolve_program(&self, word: &str) -> Result<String, ResolveError> {
        Ok(word.to_owned())
    }

    /// Splits at white space. Quotes and backslashes are refused, because the server that runs the line could read
    /// them differently.
    fn split_command(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        if line.contains(['"', '\'', '\\']) {
            return Err(ResolveError::Quoted);
        }
        Ok(line.split_ascii_whitespace().map(str::to_owned).collect())
    }
}

fn is_dots(part: &str) -> bool {
    matches!(part, "." | "..")
}
