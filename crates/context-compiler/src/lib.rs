//! The documents a role needs, in one deterministic order.

pub mod cache;
pub mod catalogue;
pub mod code;
pub mod count;
pub mod source;
