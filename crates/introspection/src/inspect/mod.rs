//! The state of the application, of any language, read from outside: never by running its code, and never stopping it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use introspection::inspect::{InspectState, Inspector};
//! use workspace::Workspace;
//! use std::sync::Arc;
//!
//! let workspace = Workspace::new([folder.path()])?;
//! workspace.locate(".app-state.json")?.write(br#"{"cart": {"items": [{"name": "tea", "apiKey": "abc"}]}}"#)?;
//!
//! let inspector = Inspector::new(Arc::new(workspace));
//! let request = InspectState::new("cart.items[0]");
//! let answer = inspector.inspect(&request, &Default::default()).await?;
//! assert_eq!(answer.value, serde_json::json!({"name": "tea", "apiKey": "[masked]"}));
//! assert_eq!(answer.source.as_deref(), Some("file: .app-state.json"));
//! # Ok(())
//! # }
//! ```
//!
//! # Sources
//!
//! [`Provider`]s are asked in turn, and the first that has a value under the path answers. The answer names those that
//! were tried before, with their reasons. [`Inspector::provider`] adds your own in front.
//!
//! | provider | source | paths |
//! |---|---|---|
//! | `file` | a JSON file that the application writes: `STATE_PATH`, `.app-state.json` | any |
//! | `http` | a JSON document that it serves: `STATE_URL` | any |
//! | `node` | Node.js and Deno, by the inspector | any, `local:FILE/name` |
//! | `proc` | `/proc` of a process | `process.*` |
//! | `jvm` | a Java virtual machine, by its attach socket | `jvm.*` |
//! | `python` | Python, by py-spy | `python.*`, `local:FILE/name` |
//! | `expvar` | what a Go program publishes at a port of its own | any |
//! | `server-env` | the server's own environment, where no process is found | `process.env.NAME` |
//!
//! # Bounds
//!
//! Depth 1 to 10 and 3 by default; 50 members of an object; 5,000 values and about 40 KB; 2,000 characters of a text,
//! 20,000 if the path names the text itself. The answer counts what was cut.
//!
//! # Values that JSON has no form for
//!
//! They are answered as marks: `$ref` (the path where the same object stands), `$cut` (not opened: its class and size), `$more`, `$type`,
//! `$map`, `$set`, `$date`, `$bigint`, `$number` (`NaN`, `-0`, `Infinity`), `$undefined`, `$symbol`, `$function`,
//! `$getter` (not run), `$proxy` (not trapped), `$error`, `$regexp`, `$empty` (holes of an array).
//!
//! # Secrets
//!
//! Texts and numbers under a secret-like name are masked. A caller who is
//! [`unrestricted`](Inspector::unrestricted) sees one by asking for its exact path.
//!
//! # Access
//!
//! Processes must belong to the effective user of this process, root included. For a caller who is not unrestricted, their
//! working folder or program must lie where the workspace may be read. Targets are on this machine; only the URL of the
//! settings may lead elsewhere. A process may need a signal to become inspectable: it is sent only if
//! [`allow_signals`](Inspector::allow_signals) is set, for an unrestricted caller, and to a process that is proven to run
//! the runtime in question and has a handler for it.

mod advice;
pub(crate) mod cdp;
mod error;
pub(crate) mod http;
mod inspector;
mod json;
#[cfg(unix)]
pub(crate) mod jvm;
mod mask;
pub(crate) mod named;
mod path;
pub(crate) mod port;
pub(crate) mod proc;
mod provider;
mod providers;
mod py_spy_value;
mod request;
mod response;
mod state_value;
pub(crate) mod target;
mod tree;

pub use cdp::CdpError as InspectorError;
pub use error::Error;
pub use http::HttpGetError as HttpError;
pub use inspector::{Inspector, InvalidStateUrl};
#[cfg(unix)]
pub use jvm::JvmError;
pub use path::{InvalidStatePath, StatePath};
pub use provider::{Provider, ProviderFuture, StateRequest};
pub use request::InspectState;
pub use response::{StateProviderAttempt, StateResponse};
pub use state_value::{PathNotFound, ProviderError, StateValue};
pub use target::{InvalidTarget, SignalError, TargetError};
