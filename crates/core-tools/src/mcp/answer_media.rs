//! [`AnswerMedia`]: what an answer or a message has beside text.

use crate::redact::Redactor;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ContentBlock, ResourceContents};

/// A picture, a sound or a document: its bytes in base64, and its media type, such as `image/png`.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the type's own description names the members")]
#[non_exhaustive]
pub enum AnswerMedia {
    /// A picture.
    Image { data: String, mime_type: String },
    /// A sound.
    Audio { data: String, mime_type: String },
    /// Any other file, under the path it was read from.
    Document { data: String, mime_type: String, path: String },
    /// A resource with its text, which is not in base64.
    Resource { uri: String, mime_type: String, text: String },
}

impl AnswerMedia {
    pub(super) fn size_bytes(&self) -> usize {
        match self {
            // The length in base64 counts, because the answer carries the bytes in that form.
            Self::Image { data, .. } | Self::Audio { data, .. } | Self::Document { data, .. } => data.len(),
            Self::Resource { text, .. } => text.len(),
        }
    }

    pub(super) fn into_content(self) -> ContentBlock {
        match self {
            Self::Image { data, mime_type } => ContentBlock::image(data, mime_type),
            Self::Audio { data, mime_type } => ContentBlock::audio(data, mime_type),
            // MCP has no content block for documents. An embedded resource is the nearest, and a resource needs an
            // address.
            Self::Document { data, mime_type, path } => ContentBlock::resource(
                ResourceContents::blob(data, format!("file:{path}")).with_mime_type(mime_type),
            ),
            Self::Resource { uri, mime_type, text } => {
                ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(mime_type))
            }
        }
    }

    /// Masks what is text in it, and returns how many bytes it has.
    pub(super) fn mask(&mut self, redactor: &Redactor) -> usize {
        match self {
            Self::Image { data, mime_type } => {
                // SVG is the one picture that is text.
                if mime_type == "image/svg+xml"
                    && let Some(text) =
                        STANDARD.decode(&*data).ok().and_then(|bytes| String::from_utf8(bytes).ok())
                {
                    *data = STANDARD.encode(redactor.redact(&text).as_bytes());
                }
                data.len()
            }
            Self::Audio { data, .. } => data.len(),
            // Only the path can be masked: a changed byte would break a PDF, which refers to its parts by their
            // offsets.
            Self::Document { data, path, .. } => {
                *path = redactor.redact(path).into_owned();
                data.len()
            }
            Self::Resource { uri, text, .. } => {
                *uri = redactor.redact(uri).into_owned();
                *text = redactor.redact(text).into_owned();
                text.len()
            }
        }
    }
}
