//! The error codes that JSON-RPC 2.0 §5.1 defines.

/// The text is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The JSON is not a message.
pub const INVALID_REQUEST: i32 = -32600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters do not fit the method.
pub const INVALID_PARAMS: i32 = -32602;
/// The request could not be carried out.
pub const INTERNAL_ERROR: i32 = -32603;
