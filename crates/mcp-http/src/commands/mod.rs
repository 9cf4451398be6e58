//! The subcommands that do not serve.

pub(crate) mod audit;
pub(crate) mod health;
pub(crate) mod token;
