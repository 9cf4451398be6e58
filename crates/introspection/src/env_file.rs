//! The `.env` files of a project: the variables that its application is started with.

use std::io::Read;
use std::path::{Path, PathBuf};
use workspace::Workspace;

/// The files, in the order in which they are read; a later one does not replace a variable of an earlier one.
const ENV_FILES: [&str; 3] = [".env", ".env.local", ".env.development"];
/// The most that is read of a settings file, in bytes.
const MAX_SETTINGS_BYTES: u64 = 64 << 10;

/// A variable of a `.env` file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EnvFileVariable {
    pub(crate) name: String,
    pub(crate) value: String,
    /// The file, as messages show it.
    pub(crate) file: String,
    /// The root that it lies in, from which a relative path in it starts.
    pub(crate) root: PathBuf,
}

/// Returns the variables of the `.env` files in all roots. A file that is missing or may not be read has none; of a root's
/// variables with one name, the first counts.
pub(crate) fn read_env_files(workspace: &Workspace) -> Vec<EnvFileVariable> {
    let mut variables: Vec<EnvFileVariable> = Vec::new();
    for root in workspace.roots() {
        for name in ENV_FILES {
            let path = root.join(name);
            let Some(text) = read_settings_file(workspace, &path) else { continue };
            let file = workspace.locate(&path).map_or_else(|_| name.to_owned(), |path| path.display_path());
            for (name, value) in text.lines().filter_map(parse_line) {
                if !variables.iter().any(|known| known.name == name && known.root == root) {
                    variables.push(EnvFileVariable {
                        name,
                        value,
                        file: file.clone(),
                        root: root.to_owned(),
                    });
                }
            }
        }
    }
    variables
}

/// Returns the beginning of a settings file; `None` where it is missing, not text, or may not be read.
pub(crate) fn read_settings_file(workspace: &Workspace, path: &Path) -> Option<String> {
    let (file, _) = workspace.locate(path).ok()?.open_read().ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_SETTINGS_BYTES).read_to_end(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

/// Reads `NAME=value`, with or without `export` and quotes. A comment may follow an unquoted value.
fn parse_line(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return None;
    }
    let quoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.split(*quote).next());
    let value = quoted.unwrap_or_else(|| value.split(" #").next().unwrap_or_default().trim_end());
    Some((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_with_quotes_comments_and_export() {
        for (line, expected) in [
            ("A=1", Some(("A", "1"))),
            ("export A = \"b c\" # d", Some(("A", "b c"))),
            ("A='x#y'", Some(("A", "x#y"))),
            ("A=x#y # z", Some(("A", "x#y"))),
            ("A=", Some(("A", ""))),
            ("# A=1", None),
            ("no assignment", None),
        ] {
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(parse_line(line), expected, "{line}");
        }
    }
}
