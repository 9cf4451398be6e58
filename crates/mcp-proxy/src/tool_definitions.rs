//! The tools of a server, for questions about a policy without a client.

use super::input_schema::InputSchema;
use super::server_tool::{ServerTool, separate_withheld};
use json_rpc::json::{Json, ParseError};

/// The tools that a server offers, as far as [`Proxy`](super::Proxy) would offer them.
#[derive(Debug)]
pub struct ToolDefinitions(Vec<ServerTool>);

/// A text that is no list of tools.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolDefinitionsError {
    /// It is not JSON.
    #[error("it is not valid JSON: {0}")]
    Json(#[from] ParseError),
    /// It is something else.
    #[error("it is neither the result of `tools/list` nor an array of tools")]
    NoTools,
}

impl ToolDefinitions {
    /// Parses the result of `tools/list`, a response with it, or its array of tools.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(text: &[u8]) -> Result<Self, ToolDefinitionsError> {
        let json = Json::parse(text)?;
        let result = json.as_object().and_then(|response| response.get("result"));
        let list = result.unwrap_or(&json);
        let tools = list.as_object().and_then(|list| list.get("tools")).unwrap_or(list);
        match tools {
            Json::Array(tools) => {
                Ok(Self(separate_withheld(tools.iter().cloned().map(Json::into_owned).collect()).0))
            }
            _ => Err(ToolDefinitionsError::NoTools),
        }
    }

    /// Returns the names of the tools, in the order of the list.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|tool| tool.name.as_str())
    }

    /// Returns the names of the arguments that the schema of a tool declares; none if there is no such tool.
    pub fn declared_arguments(&self, tool: &str) -> Vec<&str> {
        self.schema(tool).map(InputSchema::declared_arguments).unwrap_or_default()
    }

    /// Returns two names in the arguments, an object as JSON, that some parsers take for one name. A call with such
    /// names is refused before the policy judges the call.
    pub fn ambiguous_names(&self, tool: &str, arguments: &[u8]) -> Option<(String, String)> {
        let arguments = Json::parse(arguments).ok()?;
        let found = self.schema(tool)?.ambiguous_names(arguments.as_object()?)?;
        Some((found.first, found.second))
    }

    fn schema(&self, tool: &str) -> Option<InputSchema<'_>> {
        let tool = self.0.iter().find(|known| known.name == tool)?;
        InputSchema::of(&tool.definition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_each_form_that_it_is_recorded_in() {
        let tool = r#"{"name": "read", "inputSchema": {"type": "object", "properties": {"path": {}}}}"#;
        for text in [
            format!("[{tool}]"),
            format!("{{\"tools\": [{tool}]}}"),
            format!("{{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {{\"tools\": [{tool}]}}}}"),
        ] {
            let tools = ToolDefinitions::parse(text.as_bytes()).expect(&text);
            assert_eq!(tools.names().collect::<Vec<_>>(), ["read"]);
            assert_eq!(tools.declared_arguments("read"), ["path"]);
            let ambiguous = tools.ambiguous_names("read", br#"{"path": 1, "PATH": 2}"#);
            assert_eq!(ambiguous, Some(("path".to_owned(), "PATH".to_owned())));
            assert!(tools.declared_arguments("write").is_empty());
        }
        for text in ["{}", "[", "7"] {
            assert!(ToolDefinitions::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
