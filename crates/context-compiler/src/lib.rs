//! The documents a role needs, in one deterministic order.

pub mod catalogue;
pub mod count;
pub mod source;
