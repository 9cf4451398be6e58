//! Recognizes kinds of files by their first bytes.

/// The bytes that [`identify`] and [`binary_kind`] look at. git looks at as many, so that a file is binary here
/// if it is in a diff.
pub(super) const HEAD_BYTES: usize = 8000;

/// The noun of UTF-16 text, for which there is advice of its own.
pub(super) const UTF_16_TEXT: &str = "UTF-16 text";

/// A kind of file that begins with known bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileSignature {
    /// The kind with its article, for a sentence.
    pub(super) noun: &'static str,
    /// Its media type, for those that clients can show or play.
    pub(super) mime: Option<&'static str>,
}

/// A row of [`TABLE`]: offset, bytes, noun, media type.
type SignatureRow = (usize, &'static [u8], &'static str, Option<&'static str>);

/// The known signatures, the more specific first. `ftyp` alone, for one, comes after the brands it may have.
const TABLE: &[SignatureRow] = &[
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image", Some("image/png")),
    (0, b"\xff\xd8\xff", "a JPEG image", Some("image/jpeg")),
    (0, b"GIF87a", "a GIF image", Some("image/gif")),
    (0, b"GIF89a", "a GIF image", Some("image/gif")),
    (8, b"WEBP", "a WebP image", Some("image/webp")),
    (0, b"II*\0", "a TIFF image", Some("image/tiff")),
    (0, b"MM\0*", "a TIFF image", Some("image/tiff")),
    (0, b"\0\0\x01\0", "an icon", Some("image/x-icon")),
    (4, b"ftypavif", "an AVIF image", Some("image/avif")),
    (4, b"ftypheic", "a HEIC image", Some("image/heic")),
    (4, b"ftypM4A ", "an M4A audio file", Some("audio/mp4")),
    (4, b"ftyp", "an MP4 video", None),
    (0, b"ID3", "an MP3 audio file", Some("audio/mpeg")),
    (0, b"\xff\xfb", "an MP3 audio file", Some("audio/mpeg")),
    (0, b"\xff\xf3", "an MP3 audio file", Some("audio/mpeg")),
    (8, b"WAVE", "a WAV audio file", Some("audio/wav")),
    (0, b"fLaC", "a FLAC audio file", Some("audio/flac")),
    (0, b"OggS", "an Ogg audio file", Some("audio/ogg")),
    (0, b"%PDF-", "a PDF document", Some("application/pdf")),
    (0, b"\x7fELF", "an ELF executable", None),
    (0, b"MZ\x90\0", "a Windows executable", None),
    (0, b"\xcf\xfa\xed\xfe", "a Mach-O executable", None),
    (0, b"\0asm", "a WebAssembly module", None),
    (0, b"PK\x03\x04", "a ZIP archive (or an Office, Java or Python package)", None),
    (0, b"\x1f\x8b", "a gzip archive", None),
    (0, b"BZh9", "a bzip2 archive", None),
    (0, b"\xfd7zXZ\0", "an xz archive", None),
    (0, b"\x28\xb5\x2f\xfd", "a Zstandard archive", None),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", None),
    (257, b"ustar", "a tar archive", None),
    (0, b"SQLite format 3\0", "a SQLite database", None),
    (0, b"\xca\xfe\xba\xbe", "a Java class or Mach-O executable", None),
    (0, b"!<arch>\n", "a static library", None),
    (0, b"\xff\xfe", UTF_16_TEXT, None),
    (0, b"\xfe\xff", UTF_16_TEXT, None),
];

/// Returns the kind of file that begins with `head`, if its first bytes tell.
pub(super) fn identify(head: &[u8]) -> Option<FileSignature> {
    TABLE
        .iter()
        .find(|(offset, bytes, ..)| head.get(*offset..).is_some_and(|rest| rest.starts_with(bytes)))
        .filter(|(_, bytes, ..)| {
            // Both are formats of a RIFF container, and a text may well have "WAVE" in this place.
            !matches!(*bytes, b"WEBP" | b"WAVE") || head.starts_with(b"RIFF")
        })
        .map(|&(_, _, noun, mime)| FileSignature { noun, mime })
}

/// Returns true if a file that begins with `head` is for `read_media_file`.
pub(super) fn is_media(head: &[u8]) -> bool {
    identify(head).is_some_and(|signature| signature.mime.is_some())
}

/// Returns the noun for a file that is not text, by its signature or a NUL early on; nothing if it is text.
pub(super) fn binary_kind(head: &[u8]) -> Option<&'static str> {
    let has_nul = memchr::memchr(0, head).is_some();
    match identify(head) {
        // `ID3` and others of ASCII alone may begin a text too; a binary file of that kind has a NUL soon. A PDF
        // may have none, but no text begins with `%PDF-`.
        Some(signature)
            if has_nul || !head.iter().take(5).all(u8::is_ascii) || head.starts_with(b"%PDF-") =>
        {
            Some(signature.noun)
        }
        _ if has_nul => Some("a binary file"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{binary_kind, identify};

    #[test]
    fn known_signatures_are_named() {
        assert_eq!(identify(b"\x89PNG\r\n\x1a\n....").unwrap().mime, Some("image/png"));
        assert_eq!(identify(b"RIFF....WEBPVP8 ").unwrap().mime, Some("image/webp"));
        assert_eq!(binary_kind(b"\x7fELF\x02\x01\x01\0\0"), Some("an ELF executable"));
        assert_eq!(binary_kind(b"%PDF-1.7\n%plain"), Some("a PDF document"));
        assert_eq!(binary_kind(b"\xff\xfeh\0i\0"), Some("UTF-16 text"));
    }

    #[test]
    fn text_that_begins_like_a_signature_is_text() {
        for text in
            ["ID3 tags explained", "GIF89a is a format", "8 bytesWAVE", "OggS", "plain", "", "\u{feff}x"]
        {
            assert_eq!(binary_kind(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_nul_without_a_signature_is_a_binary_file() {
        assert_eq!(binary_kind(b"abc\0def"), Some("a binary file"));
    }
}
