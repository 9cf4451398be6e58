//! `read_media_file`: returns an image, audio or PDF file, for a client that can show or play it.

use std::io::Read;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::signature::identify;
use crate::workspace::Workspace;

/// The largest file returned, in bytes. Base64 makes it a third longer.
const MAX_BYTES: u64 = 10 << 20;

/// A media file to read.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReadMediaFile {
    /// Path of the image, audio or PDF file, relative to the first root or absolute.
    pub path: String,
}

impl ReadMediaFile {
    /// An input that reads the file at `path`.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into() }
    }
}

/// The use that a client has for a media file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[non_exhaustive]
pub enum MediaKind {
    /// A picture, to show.
    Image,
    /// A sound, to play.
    Audio,
    /// A PDF document.
    Document,
}

/// A media file and its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct MediaFile {
    /// The file, relative to its root.
    pub path: String,
    /// The kind of media.
    pub media: MediaKind,
    /// Its media type, from its first bytes.
    pub mime_type: String,
    /// Its length in bytes.
    pub size: u64,
    /// Its content in Base64.
    pub data: String,
}

/// Reads an image, audio or PDF file. Its first bytes tell the type; only SVG is recognized by its name.
///
/// # Errors
/// The path, a file of another kind, a file over 10 MiB.
pub fn read_media_file(workspace: &Workspace, input: &ReadMediaFile) -> Result<MediaFile, Error> {
    let path = workspace.locate(&input.path)?;
    let (file, metadata) = path.open_read()?;
    let too_large = |size| Error::TooLarge { path: path.display_path(), size, limit: MAX_BYTES };
    if metadata.size > MAX_BYTES {
        return Err(too_large(metadata.size));
    }
    let mut content = Vec::new();
    // Bounded again: the file may have grown since its size was read.
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(|source| Error::read(path.display_path(), source))?;
    let size = content.len() as u64;
    if size > MAX_BYTES {
        return Err(too_large(size));
    }
    // SVG is XML: no bytes at its start tell it from any other.
    let is_svg = path.relative().extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    let mime = match identify(&content) {
        Some(found) => {
            found.mime.ok_or_else(|| Error::NotMedia { path: path.display_path(), kind: Some(found.noun) })?
        }
        None if is_svg => "image/svg+xml",
        None => return Err(Error::NotMedia { path: path.display_path(), kind: None }),
    };
    let media = match mime.split('/').next() {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        _ => MediaKind::Document,
    };
    Ok(MediaFile {
        path: path.display_path(),
        media,
        mime_type: mime.to_owned(),
        size,
        data: BASE64_STANDARD.encode(content),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ProjectFixture, chain};
    use super::*;

    fn read(project: &ProjectFixture, path: &str) -> Result<MediaFile, String> {
        read_media_file(&project.workspace, &ReadMediaFile::new(path)).map_err(|error| chain(&error))
    }

    #[test]
    fn media_come_in_base64_with_the_type_their_bytes_tell() {
        let project = ProjectFixture::with(&[
            // The name lies.
            ("x.jpg", b"\x89PNG\r\n\x1a\n".to_vec()),
            ("x.svg", b"<svg/>".to_vec()),
            ("x.wav", b"RIFF\0\0\0\0WAVE".to_vec()),
            ("x.pdf", b"%PDF-1.4".to_vec()),
        ]);
        let png = read(&project, "x.jpg").unwrap();
        assert_eq!(
            (png.media, png.mime_type.as_str(), png.data.as_str()),
            (MediaKind::Image, "image/png", "iVBORw0KGgo=")
        );
        assert_eq!(read(&project, "x.svg").unwrap().mime_type, "image/svg+xml");
        assert_eq!(read(&project, "x.wav").unwrap().media, MediaKind::Audio);
        assert_eq!(read(&project, "x.pdf").unwrap().media, MediaKind::Document);
    }

    #[test]
    fn other_files_and_large_ones_are_refused() {
        let project = ProjectFixture::with(&[("x.png", b"text".to_vec()), ("x.zip", b"PK\x03\x04".to_vec())]);
        assert_eq!(
            read(&project, "x.png").unwrap_err(),
            "`x.png` is no image, audio or PDF file; use read_file for text"
        );
        assert!(read(&project, "x.zip").unwrap_err().contains("but a ZIP archive"));
        project.put("big.png", vec![0x89; (10 << 20) + 1]);
        assert_eq!(
            read(&project, "big.png").unwrap_err(),
            "`big.png` has 10485761 bytes, more than the 10485760 this tool takes"
        );
    }
}
