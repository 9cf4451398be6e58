//! The answer of a tool, and the one exit that every answer leaves by.

use super::answer_media::AnswerMedia;
use super::limits::HostLimits;
use super::prompt_message::{MessageAuthor, MessageContent, PromptMessage};
use super::tool_error::{FailureCause, ToolError};
use crate::redact::Redactor;
use rmcp::model::{CallToolResult, ContentBlock, GetPromptResult, ResourceContents, Role};
use serde::Serialize;
use serde_json::Value;

/// The answer of a tool.
///
/// Most clients show a model either the text or the structured object, and none shows both. So each of
/// them holds everything the model needs, and text-heavy answers have no structured object at all.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    text: Option<String>,
    /// The part of the text that matters.
    kept: KeptPart,
    /// Texts that follow it, each a block of its own.
    more: Vec<String>,
    structured: Option<Value>,
    media: Vec<AnswerMedia>,
    /// The messages of a prompt.
    messages: Vec<PromptMessage>,
    failed: bool,
    /// It is an explanation of why the work was not done.
    is_error: bool,
    cause: FailureCause,
}

/// The longest text of an error. Most that are longer quote the whole of what was wrong.
const MAX_ERROR_BYTES: usize = 16 * 1024;

impl Answer {
    /// An answer that is text and nothing else: file content, listings, diffs, logs.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// Adds another text, which clients get as a block of its own.
    #[must_use]
    pub fn then(mut self, text: impl Into<String>) -> Self {
        self.more.push(text.into());
        self
    }

    /// An answer with the members of an object, one a line: for a few facts that need no schema.
    ///
    /// # Errors
    ///
    /// `value` does not serialise to a JSON object.
    pub fn lines<T: Serialize>(value: &T) -> Result<Self, ToolError> {
        let line = |(key, value): (&String, &Value)| match value {
            Value::String(text) => format!("{key}: {text}"),
            other => format!("{key}: {other}"),
        };
        let answer = Self::structured(value)?;
        let members = answer.structured.as_ref().and_then(Value::as_object);
        Ok(Self::text(members.into_iter().flatten().map(line).collect::<Vec<_>>().join("\n")))
    }

    /// A structured answer, whose text is the same object as JSON.
    ///
    /// # Errors
    ///
    /// `value` does not serialise to a JSON object.
    pub fn structured<T: Serialize>(value: &T) -> Result<Self, ToolError> {
        match serde_json::to_value(value) {
            Ok(value @ Value::Object(_)) => Ok(Self { structured: Some(value), ..Self::default() }),
            Ok(_) => Err(ToolError::new("the answer is not an object")),
            Err(error) => Err(ToolError::from_error(&error)),
        }
    }

    /// A structured answer with a text for people and for clients that show only text. The text must say everything
    /// that the object says.
    ///
    /// # Errors
    ///
    /// `value` does not serialise to a JSON object.
    pub fn report<T: Serialize>(value: &T, text: impl Into<String>) -> Result<Self, ToolError> {
        Ok(Self { text: Some(text.into()), ..Self::structured(value)? })
    }

    /// A picture, a sound or a document, and a line about it.
    pub fn media(media: AnswerMedia, text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), media: vec![media], ..Self::default() }
    }

    /// Adds a picture, a sound or a document.
    #[must_use]
    pub fn with_media(mut self, media: Option<AnswerMedia>) -> Self {
        self.media.extend(media);
        self
    }

    /// An answer that reports `error`.
    pub fn error(error: &ToolError) -> Self {
        let (text, cause) = (Some(error.message().to_owned()), error.cause());
        Self { text, failed: true, is_error: true, cause, ..Self::default() }
    }

    /// The messages of a prompt.
    pub(crate) fn messages(messages: Vec<PromptMessage>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Returns the cause of a failure.
    pub(crate) fn cause(&self) -> FailureCause {
        self.cause
    }

    /// An answer that another server has sent: the text of each block, the object, and whether the work failed.
    pub(crate) fn received(
        texts: Vec<String>,
        structured: Option<Value>,
        media: Vec<AnswerMedia>,
        failed: bool,
    ) -> Self {
        let mut texts = texts.into_iter();
        let mut answer =
            Self { text: texts.next(), more: texts.collect(), structured, media, failed, ..Self::default() };
        answer.is_error =
            failed && answer.structured.is_none() && answer.more.is_empty() && answer.media.is_empty();
        if answer.structured.is_some() {
            // A text that only repeats the object was cut to be sent beside it, and is not what an answer as text needs.
            let without_text = Self { text: None, ..answer.clone() };
            if without_text.text_beside_object() == answer.text.as_deref().unwrap_or_default() {
                answer = without_text;
            }
        }
        answer
    }

    /// Changes the structured object, if there is one. Without a text of its own the answer says the same in both.
    #[must_use]
    pub(super) fn with_object(mut self, change: impl FnOnce(&mut Value)) -> Self {
        if let Some(object) = &mut self.structured {
            change(object);
        }
        self
    }

    /// Changes the first text, if there is one.
    #[must_use]
    pub(super) fn with_text(mut self, change: impl FnOnce(&str) -> String) -> Self {
        self.text = self.text.map(|text| change(&text));
        self
    }

    /// Returns the text that is sent beside the object.
    fn text_beside_object(&self) -> String {
        let mut text = Self { more: Vec::new(), ..self.clone() }.to_text();
        truncate_to(&mut text, MAX_TEXT_BESIDE_OBJECT_BYTES, "; structuredContent has all of it", self.kept);
        text
    }

    /// Keeps more of the text's beginning than of its end where it is too long.
    #[must_use]
    #[cfg(feature = "testing")]
    pub(crate) fn keeping_beginning(mut self) -> Self {
        self.kept = KeptPart::Beginning;
        self
    }

    /// Adds the connections that were refused to the programs of the call: as the member `refused_connections` of the
    /// object, if there is one, and as text.
    #[cfg(feature = "ci")]
    #[must_use]
    pub(crate) fn with_refused_connections(mut self, refused: &[String]) -> Self {
        if refused.is_empty() {
            return self;
        }
        if let Some(Value::Object(members)) = &mut self.structured {
            members.insert("refused_connections".to_owned(), refused.into());
        }
        let text = format!("refused connections: {}", refused.join("; "));
        match &mut self.text {
            // The text of an error is one block. An object without a text of its own holds the member already.
            Some(own) if self.is_error => {
                own.push('\n');
                own.push_str(&text);
            }
            Some(own) => {
                let separator = if own.is_empty() || own.ends_with('\n') { "" } else { "\n" };
                self.more.push(separator.to_owned() + &text);
            }
            None => {}
        }
        self
    }

    /// Marks the answer as work that failed, if `failed`.
    #[must_use]
    pub fn failed_if(mut self, failed: bool) -> Self {
        self.failed |= failed;
        self
    }

    /// Returns true if the work failed.
    pub fn is_failed(&self) -> bool {
        self.failed
    }

    /// Returns true if the work was not done: the answer explains why.
    pub(crate) fn is_error(&self) -> bool {
        self.is_error
    }

    /// Returns the structured object, if there is one.
    pub fn as_structured(&self) -> Option<&Value> {
        self.structured.as_ref()
    }

    /// Iterates over the texts of the answer, each a block of its own.
    #[cfg_attr(not(feature = "context"), allow(dead_code, reason = "only a context has several"))]
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.text.iter().chain(&self.more).map(String::as_str)
    }

    /// Writes the whole answer as text.
    pub fn to_text(&self) -> String {
        match (&self.text, &self.structured) {
            (Some(text), _) if self.more.is_empty() => text.clone(),
            (Some(text), _) => format!("{text}{}", self.more.concat()),
            (None, Some(value)) => value.to_string(),
            (None, None) => String::new(),
        }
    }

    /// Returns true if a picture, a sound or a document is in it.
    pub(crate) fn has_media(&self) -> bool {
        !self.media.is_empty()
    }

    /// Writes the whole answer as text of at most `max_bytes`.
    pub(crate) fn into_text_within(self, max_bytes: usize) -> String {
        let mut text = self.to_text();
        truncate_to(&mut text, max_bytes, "", self.kept);
        text
    }

    /// Returns about how many bytes it has.
    pub(crate) fn size_bytes(&self) -> usize {
        let message = |message: &PromptMessage| match &message.content {
            MessageContent::Text(text) => text.len(),
            MessageContent::Media(media) => media.size_bytes(),
        };
        self.text.as_ref().map_or(0, String::len)
            + self.more.iter().map(String::len).sum::<usize>()
            + self.structured.as_ref().map_or(0, text_bytes)
            + self.media.iter().map(AnswerMedia::size_bytes).sum::<usize>()
            + self.messages.iter().map(message).sum::<usize>()
    }

    /// Masks secrets and then cuts what is too long, in this order: a secret that was cut in two would not be recognised.
    /// Every answer passes here on its way out, once.
    pub(crate) fn finalize(mut self, redactor: &Redactor, limits: &HostLimits, format: AnswerFormat) -> Self {
        let max_bytes = match self.is_error {
            true => limits.max_answer_bytes.min(MAX_ERROR_BYTES),
            false => limits.max_answer_bytes,
        };
        if format == AnswerFormat::TextOnly && self.structured.is_some() {
            // Before the bounds: an object that is not sent need not fit.
            self.text = Some(self.to_text());
            self.structured = None;
        }
        for text in self.text.iter_mut().chain(&mut self.more) {
            if let std::borrow::Cow::Owned(masked) = redactor.redact(text) {
                *text = masked;
            }
            truncate_to(text, max_bytes, "", self.kept);
        }
        if let Some(value) = &mut self.structured {
            redactor.redact_json(value);
            // The work is done, and how it ended must arrive: its long texts are shortened until it fits.
            // Halved until it fits: JSON escapes characters, so the length is known only once the object is written.
            let mut longest = max_bytes;
            while value.to_string().len() > max_bytes && longest > 64 {
                longest /= 2;
                shorten(value, longest);
            }
        }
        let mut media: usize = self.media.iter_mut().map(|media| media.mask(redactor)).sum();
        for message in &mut self.messages {
            match &mut message.content {
                MessageContent::Text(text) => {
                    if let std::borrow::Cow::Owned(masked) = redactor.redact(text) {
                        *text = masked;
                    }
                    truncate_to(text, max_bytes, "", self.kept);
                }
                MessageContent::Media(content) => media += content.mask(redactor),
            }
        }
        if media > max_bytes {
            return Self::error(&ToolError::new(format!(
                "the file makes an answer of {media} bytes, and this server sends at most {max_bytes}"
            )));
        }
        self
    }

    /// Converts the answer to the protocol's type, for a client that takes structured objects.
    pub fn into_call_result(self) -> CallToolResult {
        self.into_result(AnswerFormat::Structured)
    }

    /// Converts the answer to the protocol's type.
    pub(crate) fn into_result(mut self, format: AnswerFormat) -> CallToolResult {
        let mut content = Vec::with_capacity(1 + self.media.len());
        let structured = match format {
            AnswerFormat::Structured => self.structured.clone(),
            AnswerFormat::TextOnly => None,
        };
        let more = std::mem::take(&mut self.more);
        let mut text = self.to_text();
        if structured.is_some() {
            // The object holds everything: the text beside it is for clients that ignore the object, and
            // no big text is sent twice.
            let note = "; structuredContent has all of it";
            truncate_to(&mut text, MAX_TEXT_BESIDE_OBJECT_BYTES, note, self.kept);
        }
        // A result has at least one block, so an empty text is left out beside media only.
        if !text.is_empty() || self.media.is_empty() {
            content.push(ContentBlock::text(text));
        }
        content.extend(more.into_iter().map(ContentBlock::text));
        content.extend(self.media.into_iter().map(AnswerMedia::into_content));
        let mut result = CallToolResult::success(content);
        result.structured_content = structured;
        result.is_error = Some(self.failed);
        result
    }

    /// Converts the answer to the messages of a prompt.
    pub(crate) fn into_prompt_result(self) -> GetPromptResult {
        let message = |message: PromptMessage| {
            let role = match message.author {
                MessageAuthor::User => Role::User,
                MessageAuthor::Assistant => Role::Assistant,
            };
            let content = match message.content {
                MessageContent::Text(text) => ContentBlock::text(text),
                MessageContent::Media(media) => media.into_content(),
            };
            rmcp::model::PromptMessage::new(role, content)
        };
        GetPromptResult::new(self.messages.into_iter().map(message).collect())
    }

    /// Converts the answer to the contents of the resource at `uri`: its documents, or else its text.
    pub(crate) fn into_resource_contents(self, uri: &str, mime_type: &str) -> Vec<ResourceContents> {
        if self.media.is_empty() {
            return vec![ResourceContents::text(self.to_text(), uri).with_mime_type(mime_type)];
        }
        let contents = |media| match media {
            AnswerMedia::Image { data, mime_type }
            | AnswerMedia::Audio { data, mime_type }
            | AnswerMedia::Document { data, mime_type, .. } => {
                ResourceContents::blob(data, uri).with_mime_type(mime_type)
            }
            AnswerMedia::Resource { uri, mime_type, text } => {
                ResourceContents::text(text, uri).with_mime_type(mime_type)
            }
        };
        self.media.into_iter().map(contents).collect()
    }
}

/// The form in which a client is sent answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerFormat {
    /// Objects as `structuredContent`, with a short text beside them.
    Structured,
    /// Everything as text.
    TextOnly,
}

/// The longest text beside a structured object.
const MAX_TEXT_BESIDE_OBJECT_BYTES: usize = 4096;

/// Returns the bytes of all texts in `value`.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(text_bytes).sum::<usize>() + values.len() * 4,
        Value::Object(members) => members.iter().map(|(key, value)| key.len() + text_bytes(value)).sum(),
        _ => 0,
    }
}

/// Cuts every text in `value` to `longest` bytes, and every list to its first `longest / 64` members.
fn shorten(value: &mut Value, longest: usize) {
    match value {
        Value::String(text) => truncate_middle(text, longest, ""),
        Value::Array(values) => {
            values.truncate((longest / 64).max(1));
            values.iter_mut().for_each(|value| shorten(value, longest));
        }
        Value::Object(members) => members.values_mut().for_each(|value| shorten(value, longest)),
        _ => {}
    }
}

/// Keeps the beginning and the end of `text` and writes between them how much was left out. The end gets three quarters:
/// what went wrong is usually said last.
fn truncate_middle(text: &mut String, limit: usize, note: &str) {
    truncate_to(text, limit, note, KeptPart::End);
}

/// The part of a text that keeps three quarters of the space where the text is too long.
#[derive(Clone, Copy, Debug, Default)]
enum KeptPart {
    /// The beginning, as of a report that begins with its findings.
    #[cfg(feature = "testing")]
    Beginning,
    /// The end, as of the output of a program.
    #[default]
    End,
}

fn truncate_to(text: &mut String, limit: usize, note: &str, kept: KeptPart) {
    if text.len() <= limit {
        return;
    }
    let quarter = limit / 4;
    let most = limit - quarter - OMISSION_LINE_BYTES.min(quarter);
    let (head, tail) = match kept {
        #[cfg(feature = "testing")]
        KeptPart::Beginning => (most, quarter),
        KeptPart::End => (quarter, most),
    };
    let head = text.floor_char_boundary_at(head);
    let tail = text.len() - text.floor_char_boundary_at(text.len() - tail);
    let omitted = text.len() - head - tail;
    let omission = format!("\n[... {omitted} bytes left out{note} ...]\n");
    text.replace_range(head..text.len() - tail, &omission);
}

/// The space that the line between beginning and end may take.
const OMISSION_LINE_BYTES: usize = 96;

/// Stands in for `str::floor_char_boundary`, which is newer than the oldest supported toolchain.
trait FloorCharBoundary {
    fn floor_char_boundary_at(&self, index: usize) -> usize;
}

impl FloorCharBoundary for str {
    fn floor_char_boundary_at(&self, index: usize) -> usize {
        let mut index = index.min(self.len());
        while !self.is_char_boundary(index) {
            index -= 1;
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_keeps_both_ends_and_counts_what_is_missing() {
        let mut text = format!("begin{}end", "ä".repeat(5_000));
        let length = text.len();
        truncate_middle(&mut text, 1_000, "");
        assert!(text.len() <= 1_000, "{}", text.len());
        assert!(text.starts_with("beginä") && text.ends_with("äend"));
        let omitted: usize =
            text.split("[... ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
        let omission = text.find("\n[...").unwrap()..text.find("...]\n").unwrap() + 5;
        assert_eq!(text.len() - omission.len() + omitted, length);
    }

    #[test]
    fn a_big_structured_answer_is_not_sent_twice() {
        let answer = Answer::structured(&serde_json::json!({"stdout": "x".repeat(100_000)})).unwrap();
        let result = answer.into_result(AnswerFormat::Structured);
        let text = result.content[0].as_text().unwrap().text.len();
        assert!(text <= MAX_TEXT_BESIDE_OBJECT_BYTES, "{text}");
        assert!(result.structured_content.is_some());
    }

    #[cfg(feature = "testing")]
    #[test]
    fn a_report_that_begins_with_its_findings_keeps_more_of_its_beginning() {
        let text = format!("{}{}", "a".repeat(50_000), "z".repeat(50_000));
        let cut = |answer: Answer| {
            let result = answer.into_result(AnswerFormat::Structured);
            let text = result.content[0].as_text().unwrap().text.clone();
            let count = |letter| text.bytes().filter(|byte| *byte == letter).count();
            (count(b'a') > 2_500, count(b'z') > 2_500, text.len() <= MAX_TEXT_BESIDE_OBJECT_BYTES)
        };
        let report = || Answer::report(&serde_json::json!({}), text.clone()).unwrap();
        assert_eq!(cut(report().keeping_beginning()), (true, false, true));
        assert_eq!(cut(report()), (false, true, true));
    }

    #[test]
    fn a_client_that_shows_only_text_gets_all_of_it() {
        let value = serde_json::json!({"stdout": "x".repeat(100_000)});
        let result = Answer::structured(&value).unwrap().into_result(AnswerFormat::TextOnly);
        assert_eq!(result.content[0].as_text().unwrap().text, value.to_string());
        assert_eq!(result.structured_content, None);
    }

    #[test]
    fn an_error_says_its_causes_outermost_first() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot read `a`")]
        struct OuterError(#[source] std::io::Error);
        let error = OuterError(std::io::Error::other("disk on fire"));
        assert_eq!(ToolError::from_error(&error).to_string(), "cannot read `a`: disk on fire");
    }
}
