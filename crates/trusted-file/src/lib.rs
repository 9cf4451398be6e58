#![doc = include_str!("../README.md")]
#![allow(
    clippy::disallowed_methods,
    reason = "this crate opens what the operator named, not what a client asked for"
)]

mod access;
mod tracked;

pub use access::{
    Error, OthersAccess, check, check_access, open_append, open_no_follow, read, read_private,
    read_to_repair, with_own_access,
};
pub use tracked::{TrackedFile, TrackedText};
