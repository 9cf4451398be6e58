//! [`PromptMessage`]: a message of a prompt.

use super::answer_media::AnswerMedia;

/// The author of a message of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageAuthor {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// A message of a prompt.
#[derive(Clone, Debug)]
pub struct PromptMessage {
    pub(super) author: MessageAuthor,
    pub(super) content: MessageContent,
}

/// The content of a message.
#[derive(Clone, Debug)]
pub(super) enum MessageContent {
    Text(String),
    Media(AnswerMedia),
}

impl PromptMessage {
    /// A text of the person.
    pub fn user(text: impl Into<String>) -> Self {
        Self { author: MessageAuthor::User, content: MessageContent::Text(text.into()) }
    }

    /// A text of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { author: MessageAuthor::Assistant, content: MessageContent::Text(text.into()) }
    }

    /// A picture, a sound, a document or a resource that the person hands over.
    pub fn media(media: AnswerMedia) -> Self {
        Self { author: MessageAuthor::User, content: MessageContent::Media(media) }
    }
}
