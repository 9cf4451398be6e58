//! The limits of each caller and of all callers together, so that no caller can use up the share of another.

pub(crate) mod account;
pub(crate) mod admission;
pub(crate) mod caller_limits;
mod shared_capacity;
