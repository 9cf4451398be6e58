//! The answer in a result that another server has sent.

use super::answer::Answer;
use super::answer_media::AnswerMedia;
use serde_json::{Map, Value};

/// The reason why a result of another server is not passed on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCallResult {
    /// The result has no list of content.
    #[error("`content` is no array")]
    NoContent,
    /// A block of the content is of a shape or kind that no tool here answers with.
    #[error("block {0} of the content is none that a tool here answers with")]
    Block(usize),
    /// The structured content is no object.
    #[error("`structuredContent` is no object")]
    Structured,
    /// The flag of an error is no truth value.
    #[error("`isError` is neither true nor false")]
    IsError,
    /// The result asks something instead of answering.
    #[error("it is not complete")]
    Incomplete,
    /// The result has neither text nor anything else.
    #[error("it is empty")]
    Empty,
}

impl Answer {
    /// Returns the answer that `result`, the result of a `tools/call`, holds. Members that mean nothing here are dropped.
    ///
    /// # Errors
    /// It is not of the shape of a result, or holds what no tool here answers with.
    pub fn from_call_result(mut result: Map<String, Value>) -> Result<Self, InvalidCallResult> {
        match result.get("resultType").map(Value::as_str) {
            None | Some(Some("complete")) => {}
            Some(_) => return Err(InvalidCallResult::Incomplete),
        }
        let failed = match result.get("isError") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(failed)) => *failed,
            Some(_) => return Err(InvalidCallResult::IsError),
        };
        let structured = match result.remove("structuredContent") {
            None | Some(Value::Null) => None,
            Some(object @ Value::Object(_)) => Some(object),
            Some(_) => return Err(InvalidCallResult::Structured),
        };
        let Some(Value::Array(blocks)) = result.remove("content") else {
            return Err(InvalidCallResult::NoContent);
        };
        let (mut texts, mut media) = (Vec::new(), Vec::new());
        for (index, block) in blocks.into_iter().enumerate() {
            match content_block(block).ok_or(InvalidCallResult::Block(index))? {
                ReceivedBlock::Text(text) => texts.push(text),
                ReceivedBlock::Media(found) => media.push(found),
            }
        }
        if texts.is_empty() && media.is_empty() && structured.is_none() {
            return Err(InvalidCallResult::Empty);
        }
        Ok(Self::received(texts, structured, media, failed))
    }
}

/// A block of content.
enum ReceivedBlock {
    Text(String),
    Media(AnswerMedia),
}

fn content_block(block: Value) -> Option<ReceivedBlock> {
    let Value::Object(mut block) = block else { return None };
    let mut text = |name: &str| match block.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    Some(match text("type")?.as_str() {
        "text" => ReceivedBlock::Text(text("text")?),
        "image" => {
            ReceivedBlock::Media(AnswerMedia::Image { data: text("data")?, mime_type: text("mimeType")? })
        }
        "audio" => {
            ReceivedBlock::Media(AnswerMedia::Audio { data: text("data")?, mime_type: text("mimeType")? })
        }
        "resource" => {
            let Some(Value::Object(mut resource)) = block.remove("resource") else { return None };
            let mut text = |name: &str| match resource.remove(name) {
                Some(Value::String(text)) => Some(text),
                _ => None,
            };
            // `AnswerMedia::into_content` writes the path of a document after `file:`. This is the inverse.
            let (uri, mime_type) = (text("uri")?, text("mimeType")?);
            ReceivedBlock::Media(match (text("text"), text("blob")) {
                (Some(text), None) => AnswerMedia::Resource { uri, mime_type, text },
                (None, Some(data)) => {
                    let path = uri.strip_prefix("file:")?.to_owned();
                    AnswerMedia::Document { data, mime_type, path }
                }
                _ => return None,
            })
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::ToolError;
    use serde_json::json;

    fn received(result: &Value) -> Result<Answer, InvalidCallResult> {
        Answer::from_call_result(result.as_object().cloned().unwrap())
    }

    #[test]
    fn an_answer_arrives_as_it_was_sent() {
        let long = "x".repeat(10_000);
        let object = json!({"passed": 3, "output": long});
        let image = AnswerMedia::Image { data: "aGk=".to_owned(), mime_type: "image/png".to_owned() };
        let resource = AnswerMedia::Resource {
            uri: "notes://1".to_owned(),
            mime_type: "text/plain".to_owned(),
            text: "a note".to_owned(),
        };
        let document = AnswerMedia::Document {
            data: "aGk=".to_owned(),
            mime_type: "application/pdf".to_owned(),
            path: "a b.pdf".to_owned(),
        };
        for answer in [
            Answer::text("one").then("two"),
            Answer::text(""),
            Answer::structured(&object).unwrap(),
            Answer::report(&json!({"passed": 3}), "3 passed").unwrap().failed_if(true),
            Answer::error(&ToolError::new("no such file")),
            Answer::media(image, "a picture"),
            Answer::media(document, "a document"),
            Answer::media(resource, "a note"),
        ] {
            let sent = json!(answer.clone().into_call_result());
            let again = received(&sent).unwrap();
            assert_eq!(json!(again.clone().into_call_result()), sent);
            // A client that takes only text gets the whole object too, and no part of the text beside it.
            assert_eq!(again.to_text(), answer.to_text());
        }
    }

    #[test]
    fn what_is_no_answer_of_a_tool_is_refused() {
        let text = json!([{"type": "text", "text": "x"}]);
        for (result, error) in [
            (json!({}), InvalidCallResult::NoContent),
            (json!({"content": "x"}), InvalidCallResult::NoContent),
            (json!({"content": []}), InvalidCallResult::Empty),
            (json!({"content": [{"type": "text", "text": 1}]}), InvalidCallResult::Block(0)),
            (json!({"content": [{"type": "text", "text": "x"}, "y"]}), InvalidCallResult::Block(1)),
            (
                json!({"content": [{"type": "resource_link", "uri": "https://x"}]}),
                InvalidCallResult::Block(0),
            ),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "https://x", "blob": "", "mimeType": "a"}}]}),
                InvalidCallResult::Block(0),
            ),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "x:y", "text": "", "blob": "", "mimeType": "a"}}]}),
                InvalidCallResult::Block(0),
            ),
            (json!({"content": text, "structuredContent": [1]}), InvalidCallResult::Structured),
            (json!({"content": text, "isError": "no"}), InvalidCallResult::IsError),
            (json!({"content": text, "resultType": "input_required"}), InvalidCallResult::Incomplete),
            (json!({"content": text, "resultType": 1}), InvalidCallResult::Incomplete),
        ] {
            assert_eq!(received(&result).unwrap_err(), error, "{result}");
        }
        assert!(received(&json!({"content": text, "resultType": "complete", "_meta": {"x": 1}})).is_ok());
    }
}
