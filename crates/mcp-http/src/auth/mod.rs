//! Authentication: who makes a request, by a token, a JWT or the user behind a Unix socket.

pub(crate) mod authenticator;
pub(crate) mod bearer;
pub(crate) mod error;
mod jwk;
pub(crate) mod jwt;
pub(crate) mod principal;
mod role_rule;
pub(crate) mod token_file;
pub(crate) mod token_usage;
pub(crate) mod tokens;
pub(crate) mod tracked_tokens;
