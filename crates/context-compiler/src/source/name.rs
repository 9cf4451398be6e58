//! File names that are not UTF-8.

/// Returns `name` as UTF-8 with each invalid byte written `\xNN`, and true if there were any.
pub fn printable_name(name: &[u8]) -> (String, bool) {
    let mut text = String::with_capacity(name.len());
    let mut has_invalid_bytes = false;
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            has_invalid_bytes = true;
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    (text, has_invalid_bytes)
}
