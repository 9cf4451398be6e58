//! [`ClientStream`]: the connection of a client, as every protocol reads it.

use tokio::io::BufReader;
use tokio::net::TcpStream;

/// A client's connection, of which the first bytes can be looked at.
pub(crate) type ClientStream = BufReader<TcpStream>;
