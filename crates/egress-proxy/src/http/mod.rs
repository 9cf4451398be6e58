//! HTTP/1.1: the heads of requests and responses, and their bodies.

mod body;
mod fields;
mod head;
mod message;
#[cfg(feature = "credentials")]
mod response;

pub(crate) use body::copy_body;
#[cfg(feature = "credentials")]
pub(crate) use body::{BodyReader, write_piece};
pub(crate) use head::read_head;
#[cfg(feature = "credentials")]
pub(crate) use head::{HttpVersion, RequestHead};
pub(crate) use message::{BodyFraming, HeadError};
#[cfg(feature = "credentials")]
pub(crate) use response::read_response_head;
