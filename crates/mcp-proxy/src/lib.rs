//! Puts a role policy in front of any MCP server.
//!
//! [`Proxy::run`] stands between a client on two pipes and any other MCP server, started as a child or reached by URL.
//! The client gets the lists that its role sees, and the answers to the calls that its role may make; everything else
//! is answered as by a server that has nothing else.
//!
//! ```text
//! client ──lines──> message ──> methods ──> authorizer ──> message written again ──queue──> server
//! client <──queue── message written again <── tool list <── pending request, by our id <──lines── server
//! ```
//!
//! # What is promised
//!
//! - **Nothing passes unparsed**, in either direction. A line is parsed strictly ([`json_rpc`]), judged, and written
//!   again; what was judged is what is sent. Unknown members survive, and so do numbers of any length. A method
//!   that is in no table is not forwarded.
//! - **A tool that the caller may not see is a tool that does not exist**: the same code, the same words, in the
//!   same time, without asking the server. Lists are filtered by what *we* asked, whatever their shape.
//! - **The client does not notice that the server was started again.** The proxy repeats the handshake and the
//!   settings. A call that was open is answered at once with an error that says that it may have run; it is never
//!   sent again. While there is no server, the client gets the last known list, and a call waits a bounded time.
//! - **Everything is bounded**: messages (16 MiB, 128 levels, 500,000 values), queues, requests in flight, pages of a
//!   list, the time of a call, the time between two starts.
//! - **It ends with its client**, within a second, and ends every process that the server has started.
//!
//! # What it leaves out
//!
//! What a tool does with allowed arguments is up to the server: a tool that takes the name of another tool as an
//! argument can call that one. Results are passed on unchanged. Unix only.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod authorizer;
mod backoff;
mod error;
#[cfg(feature = "url")]
mod event_reader;
mod input_schema;
mod limits;
mod line_reader;
mod methods;
mod observer;
mod output_queue;
mod pinned_tools;
mod proxy;
mod proxy_approvals;
mod reader_thread;
mod server;
mod server_tool;
mod session;
mod tool_definitions;
#[cfg(feature = "url")]
mod upstream_http;
mod upstream_process;

pub use authorizer::{PolicyHandle, ToolFilter};
pub use error::Error;
pub use limits::McpProxyLimits;
pub use methods::ProtocolArea;
pub use observer::{CallEnd, ObservedCall, ObservedCallOutcome, ProxyDecision, ProxyObserver};
pub use pinned_tools::{PinError, PinFileProblem, PinMode};
pub use proxy::Proxy;
pub use proxy_approvals::ProxyApprovals;
pub use server::Upstream;
pub use tool_definitions::{ToolDefinitions, ToolDefinitionsError};
#[cfg(feature = "url")]
pub use upstream_http::{RemoteError, RemoteServer};
pub use upstream_process::UpstreamCommand;
