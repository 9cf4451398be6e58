//! HTTP/1.1: the heads of requests and responses, and their bodies.

mod body;
mod fields;
mod head;
#[cfg(feature = "credentials")]
mod response;

pub(crate) use body::copy_body;
#[cfg(feature = "credentials")]
pub(crate) use body::{BodyReader, write_piece};
pub(crate) use head::{BodyFraming, HeadError, read_head};
#[cfg(feature = "credentials")]
pub(crate) use head::{HttpVersion, RequestHead};
#[cfg(feature = "credentials")]
pub(crate) use response::read_response_head;
