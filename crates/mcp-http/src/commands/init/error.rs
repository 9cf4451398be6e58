//! The errors of `mcp-http init`.

use crate::commands::token::TokenError;
use crate::console_output::{OutputError, name};
use crate::net::address::AddressError;
use crate::server::exposure::ExposureError;
use std::path::PathBuf;

/// The reason why nothing, or not everything, was written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InitError {
    #[error("{} is there already, and nothing is overwritten: remove it, or name another folder with --folder", .0.display())]
    Exists(PathBuf),
    #[error("the root {} is no folder; make it first, or name another with --root", .0.display())]
    Root(PathBuf),
    #[error(
        "--listen {0} can be reached from other machines; begin on loopback, and put a proxy with TLS in front"
    )]
    PublicAddress(String),
    #[error(
        "there is no user `{0}`; make it with `useradd --system --home-dir /var/lib/coretools --shell /usr/sbin/nologin {0}`"
    )]
    NoUser(String),
    #[error("cannot read the users of this machine in /etc/passwd")]
    Users(#[source] std::io::Error),
    #[error("cannot give {} to the user `{user}`; run `{name} init` as root, or without --user", .path.display(), name = name())]
    Owner { path: PathBuf, user: String, source: std::io::Error },
    #[error("cannot make the folder {}", .path.display())]
    Folder { path: PathBuf, source: std::io::Error },
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("cannot find out which file this program was started from")]
    Program(#[source] std::io::Error),
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Exposure(#[from] ExposureError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Output(#[from] OutputError),
}
