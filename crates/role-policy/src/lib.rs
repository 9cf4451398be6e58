//! What a caller may see and call, decided in one place.
//!
//! A server describes each of its tools once ([`ToolFacts`]), asks [`Policy::sees`] when it lists them, and
//! hands each call to [`Policy::authorize`]. The answer is an [`Authorized`] call, a value that only
//! `authorize` can make. A dispatcher that takes nothing else cannot run an unchecked call:
//!
//! ```
//! use role_policy::{Authorized, Call, Caller, Policy, ToolFacts};
//!
//! fn dispatch(call: Authorized<Call>) -> String {
//!     format!("{} runs", call.tool())
//! }
//!
//! let policy = Policy::allow_all();
//! let caller = Caller::new("orchestrator");
//! let facts = ToolFacts { name: "read_file", toolset: "filesystem", read_only: true, destructive: false, open_world: false };
//! let call = Call::new("read_file", serde_json::Map::new());
//! let authorized = policy.authorize(&caller, &facts, call)?;
//! assert_eq!(dispatch(authorized), "read_file runs");
//! # Ok::<(), role_policy::Refusal>(())
//! ```
//!
//! # What it leaves out
//!
//! The only policy so far is [`Policy::allow_all`]: a local server that trusts its one caller. Roles from a
//! file arrive behind the same two functions.

mod authorize;
mod caller;
#[cfg(all(feature = "proxy", unix))]
pub mod proxy;

pub use authorize::{Authorized, Call, Decision, Policy, Refusal, ToolFacts};
pub use caller::Caller;
