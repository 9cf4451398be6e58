//! Masking of private keys of which a hunk contains only a part.
//!
//! A redactor recognises a key in PEM armour by its first and last line. A hunk of a change in the middle of a key has
//! neither, so the file itself is searched for them.

use crate::changes::ChangedFile;
use crate::load::FileLoader;
use crate::source::SourceReadError;
use std::borrow::Cow;

/// The end of the first and of the last line of a private key in PEM armour.
const ARMOUR: &str = "PRIVATE KEY-----";
/// The shortest line that is taken for one of a key where no other line of a key precedes it, in bytes.
const MIN_KEY_LINE_BYTES: usize = 16;
/// The largest file that is searched for armour. A larger one is treated as if it contained some.
const MAX_SEARCHED_BYTES: u64 = 4 * 1024 * 1024;

/// Returns the hunks of a file with the lines of private keys masked, and the number of lines masked. Nothing is masked
/// unless the file, or a removed line, has the armour of a key.
pub(super) fn mask_key_lines<'h>(
    loader: &FileLoader<'_>,
    file: &ChangedFile,
    hunks: &'h str,
) -> (Cow<'h, str>, usize) {
    // Every line of a hunk begins with a sign.
    let content = |line: &'h str| line.get(1..).unwrap_or_default();
    // The cheap test first: most hunks have no such line, and then no file is read.
    let may_have_key = hunks.lines().any(|line| is_base64(content(line), MIN_KEY_LINE_BYTES));
    if !may_have_key || !(hunks.contains(ARMOUR) || file_has_armour(loader, file)) {
        return (Cow::Borrowed(hunks), 0);
    }
    let mut text = String::with_capacity(hunks.len());
    let (mut masked, mut in_key) = (0, false);
    for line in hunks.split_inclusive('\n') {
        // The last line of a key can be short, so a line after a line of a key counts whatever its length.
        let min_bytes = if in_key { 1 } else { MIN_KEY_LINE_BYTES };
        in_key = !line.starts_with("@@") && is_base64(content(line), min_bytes);
        if in_key {
            masked += 1;
            text.push_str(line.get(..1).unwrap_or_default());
            text.push_str("[redacted: a line of a key]\n");
        } else {
            text.push_str(line);
        }
    }
    (Cow::Owned(text), masked)
}

fn file_has_armour(loader: &FileLoader<'_>, file: &ChangedFile) -> bool {
    match loader.tree.read(&file.path, MAX_SEARCHED_BYTES) {
        Ok(content) => content.bytes.windows(ARMOUR.len()).any(|window| window == ARMOUR.as_bytes()),
        // Fail closed: what was not searched may have a key.
        Err(SourceReadError::TooLarge { .. }) => true,
        Err(_) => false,
    }
}

/// Returns true for a line of at least `min_bytes` that could be base64.
fn is_base64(line: &str, min_bytes: usize) -> bool {
    let line = line.trim();
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    line.len() >= min_bytes && line.bytes().all(base64)
}
