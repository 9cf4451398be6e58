//! The definitions that matches stand in.

use crate::workspace::ConfinedPath;

/// The definitions of a file with matches.
pub(super) struct FileSymbols {
    #[cfg(feature = "context")]
    definitions: crate::filesystem::outline::EnclosingDefinitions,
}

#[cfg(feature = "context")]
impl FileSymbols {
    /// Returns the definitions of the file with this sort key below `start`; none if it cannot be read or parsed.
    pub(super) fn of(start: &ConfinedPath, key: &[u8], shown: &str) -> Self {
        use crate::filesystem::outline::EnclosingDefinitions;
        use crate::filesystem::walk::relative_path;
        let path = if key.is_empty() { Ok(start.clone()) } else { start.join(&relative_path(key)) };
        let text = path.ok().and_then(|path| read(&path)).unwrap_or_default();
        Self { definitions: EnclosingDefinitions::new(shown, &text) }
    }

    /// Returns the first line and the signature of the innermost definition around a line.
    pub(super) fn of_line(&self, line: u64) -> Option<(u64, String)> {
        self.definitions.of_line(line)
    }
}

/// Reads a file as far as it is parsed.
#[cfg(feature = "context")]
fn read(path: &ConfinedPath) -> Option<String> {
    use std::io::Read;
    /// A larger file is generated.
    const MAX_BYTES: u64 = 1 << 20;
    let (file, _) = path.open_read().ok()?;
    let mut content = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut content).ok()?;
    Some(String::from_utf8_lossy(&content).into_owned())
}

#[cfg(not(feature = "context"))]
impl FileSymbols {
    /// Returns nothing: the grammars are not linked.
    pub(super) fn of(_: &ConfinedPath, _: &[u8], _: &str) -> Self {
        Self {}
    }

    /// Returns nothing.
    pub(super) fn of_line(&self, _: u64) -> Option<(u64, String)> {
        None
    }
}
