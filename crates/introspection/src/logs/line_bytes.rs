//! Removes what stands around or within the text of a line: white space in front, and colours.

/// Returns `line` from its first byte that is neither white space, zero nor a byte order mark.
pub(super) fn trim_start(line: &[u8]) -> &[u8] {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let nothing = line.iter().take_while(|byte| **byte == 0 || byte.is_ascii_whitespace()).count();
    line.get(nothing..).unwrap_or_default()
}

/// Returns `line` without ANSI sequences (ECMA-48 CSI), or `None` if it has none.
pub(super) fn without_colour(line: &[u8]) -> Option<Vec<u8>> {
    memchr::memchr(0x1b, line)?;
    let mut plain = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = memchr::memmem::find(rest, b"\x1b[") {
        plain.extend_from_slice(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + 2..).unwrap_or_default();
        let parameters = rest.iter().take_while(|byte| matches!(byte, 0x20..=0x3f)).count();
        let known = matches!(rest.get(parameters), Some(0x40..=0x7e));
        rest = rest.get(parameters + usize::from(known)..).unwrap_or_default();
    }
    plain.extend_from_slice(rest);
    Some(plain)
}
