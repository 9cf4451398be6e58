//! The subcommands that do not serve.

pub(crate) mod audit;
pub(crate) mod doctor;
pub(crate) mod health;
pub(crate) mod init;
pub(crate) mod token;
