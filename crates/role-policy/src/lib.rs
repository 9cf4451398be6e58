//! What a caller may see and call.
