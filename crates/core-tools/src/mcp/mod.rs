//! The tools over the Model Context Protocol.
//!
//! The only folder of the workspace's libraries that names rmcp. Each toolset is one file here that
//! converts, calls one function of its area, and answers; [`Host`] owns the way of every call, and
//! [`Connection`] is what a transport serves.
//!
//! ```
//! use core_tools::mcp::{Answer, Context, Host, Tool, ToolError, Toolset};
//! use core_tools::redact::Redactor;
//! use role_policy::{Caller, Policy};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Greet {
//!     /// Whom to greet
//!     name: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let greet = Tool::new("greet", "Greet", "Greets somebody by name.", |input: Greet, _: Context| async move {
//!     Ok(Answer::text(format!("Hello, {}!", input.name)))
//! });
//! let host = Host::builder(Policy::allow_all(), Redactor::new(Default::default())?)
//!     .toolset(Toolset { name: "manners", tools: vec![greet] })
//!     .build()?;
//!
//! let context = Context::new(Caller::new("orchestrator"), Default::default());
//! let arguments = serde_json::json!({"name": "Ada"}).as_object().cloned().unwrap_or_default();
//! let answer = host.call("greet", arguments, context).await?;
//! assert_eq!(answer.to_text(), "Hello, Ada!");
//! # Ok(())
//! # }
//! ```

mod answer;
mod arguments;
mod audit;
mod effects;
mod errors;
mod handler;
mod host;
mod limits;
mod meter;
mod progress;
mod reference;
mod schema;
mod selection;
mod tool;

#[cfg(feature = "ci")]
pub mod ci;
#[cfg(feature = "context")]
pub mod context;
#[cfg(feature = "filesystem")]
pub mod filesystem;
#[cfg(feature = "git")]
pub mod git;
#[cfg(feature = "introspection")]
pub mod introspection;
#[cfg(all(feature = "sessions", unix))]
pub mod sessions;
#[cfg(feature = "testing")]
pub mod testing;

pub use answer::{Answer, Media, ToolError};
pub use arguments::InvalidArguments;
pub use audit::{Audit, Outcome, Record, WhenFull};
pub use effects::WorkspaceEffects;
pub use handler::{Connection, Visitor};
pub use host::{Context, Host, HostBuilder, HostError, NoSuchTool, Observer};
pub use limits::{Held, Limits, Needs, Programs};
pub use progress::Progress;
/// What an argument of a tool reaches; a tool declares it for policies to judge.
pub use role_policy::Effect;
pub use selection::{PRESETS, Selection};
pub use tool::{Left, Prepared, Tool, Toolset};
