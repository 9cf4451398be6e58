//! The subcommands that do not serve.

pub(crate) mod health;
pub(crate) mod token;
