//! HTTP/1.1, as far as a proxy needs it: the heads of requests, and where their bodies end.

mod body;
mod head;

pub(crate) use body::copy_body;
pub(crate) use head::{HeadError, RequestHead, RequestTarget, read_head};
