//! The way of one call: name → visibility → arguments → policy → limits → tool → redaction and bounds.
//!
//! [`Host::call`] is the whole of it, for both transports and the command line; nothing else runs a tool.

mod ask;
mod builder;
mod call;
mod definition;
mod dispatch;
mod error;
#[allow(clippy::module_inception, reason = "the area is called after its one type")]
mod host;
mod inner_calls;
mod leftovers;
mod offers;
mod record;
mod rejected_call;
mod tools;

pub use builder::HostBuilder;
pub use call::resource_limits;
pub use error::{HostError, NoSuchTool};
pub use host::Host;
pub(super) use offers::OfferedNames;
pub(super) use tools::OfferKind;
