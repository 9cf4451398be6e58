//! [`RpcError`]: the error of one request, as the protocol has it.

use error_causes::chain;
use serde_json::{Value, json};
use std::io;

/// The text is not JSON (JSON-RPC 2.0 §5.1).
const PARSE_ERROR: i32 = -32700;
/// The request is refused.
const INVALID_REQUEST: i32 = -32600;
/// There is no such method.
const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters do not fit the method.
const INVALID_PARAMS: i32 = -32602;
/// The request could not be carried out.
const INTERNAL_ERROR: i32 = -32603;
/// Codex's own code for a file that does not exist. Codex creates the folder of a new file when it reads this code.
const NOT_FOUND: i32 = -32004;

/// The error of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RpcError {
    code: i32,
    message: String,
}

impl RpcError {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn parse(message: impl Into<String>) -> Self {
        Self::new(PARSE_ERROR, message)
    }

    /// The request is understood, and is not carried out.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    pub(crate) fn unknown_method(message: impl Into<String>) -> Self {
        Self::new(METHOD_NOT_FOUND, message)
    }

    pub(crate) fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(NOT_FOUND, message)
    }

    /// Returns the answer to the request `id`.
    pub(crate) fn answer(&self, id: &Value) -> Value {
        json!({"id": id, "error": {"code": self.code, "message": self.message}})
    }
}

impl From<workspace::Error> for RpcError {
    fn from(error: workspace::Error) -> Self {
        match &error {
            error if error.is_not_found() => Self::not_found(chain(error)),
            workspace::Error::Io { .. } => Self::failed(chain(&error)),
            _ => Self::refused(chain(&error)),
        }
    }
}

impl From<io::Error> for RpcError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::not_found(error.to_string()),
            _ => Self::failed(error.to_string()),
        }
    }
}
