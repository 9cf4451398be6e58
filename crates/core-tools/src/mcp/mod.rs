//! The tools over the Model Context Protocol.
//!
//! The only folder of the workspace's libraries that names rmcp. Each toolset is one file here that
//! converts, calls one function of its area, and answers; [`Host`] owns the way of every call, and
//! [`Connection`] is what a transport serves.
//!
//! ```
//! use core_tools::mcp::{Answer, CallContext, Host, Tool, ToolError, Toolset};
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
//! let greet = Tool::new("greet", "Greet", "Greets somebody by name.", |input: Greet, _: CallContext| async move {
//!     Ok(Answer::text(format!("Hello, {}!", input.name)))
//! });
//! let host = Host::builder(Policy::allow_all(), Redactor::new(Default::default())?)
//!     .toolset(Toolset::new("manners", [greet]))
//!     .build()?;
//!
//! let context = CallContext::new(Caller::new("orchestrator"), Default::default());
//! let arguments = serde_json::json!({"name": "Ada"}).as_object().cloned().unwrap_or_default();
//! let answer = host.call("greet", arguments, context).await?;
//! assert_eq!(answer.to_text(), "Hello, Ada!");
//! # Ok(())
//! # }
//! ```

mod answer;
mod answer_media;
mod approval;
mod argument_text;
mod arguments;
mod audit;
mod availability;
mod background_process;
#[cfg(feature = "ci")]
mod background_resources;
mod call_context;
mod call_result;
mod call_tasks;
mod call_tools;
mod client_log;
mod client_notices;
mod client_requests;
mod client_roots;
#[cfg(any(feature = "context", feature = "testing"))]
mod completers;
mod completion;
mod connection;
mod deadline_owner;
pub mod discovery;
mod effects;
mod errors;
#[cfg(feature = "testing")]
mod fix_test;
mod forwarding;
mod found_tools;
mod handler;
mod header_parameters;
mod host;
mod interned_name;
#[cfg(feature = "testing")]
mod last_test_runs;
mod limits;
mod list_changes;
mod log_level;
mod mentions;
mod message_queue;
mod observer;
mod offer_parts;
mod paused_calls;
mod permits;
mod presets;
mod progress;
mod progress_notifications;
mod prompt;
mod prompt_message;
mod rate_limiter;
mod reference;
mod remote_effects;
mod requested_offer;
mod resource;
#[cfg(feature = "context")]
mod role_context;
mod routing;
mod running_call;
mod schema;
mod schema_file;
mod search_hints;
mod selection;
mod stored_schemas;
mod task_use;
mod tool;
mod tool_caller;
mod tool_directory;
mod tool_error;
mod tool_hooks;
mod tool_ranking;
mod toolset;
mod uri_template;
mod watch_start;

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

pub use answer::Answer;
pub use answer_media::AnswerMedia;
pub use approval::{ApprovalOptions, Approvers, OperatorAccess};
/// The queue of questions that wait for a person, and its parts.
pub use approvals::{
    ApprovalAnswer, ApprovalFolder, ApprovalQuestion, ApprovalQueue, ApprovalVerdict, Error as ApprovalError,
    FolderQuestion, PendingQuestion, shown_text,
};
pub use arguments::InvalidArguments;
pub use audit::{
    Audit, AuditEntry, AuditFailureMode, AuditFileHealth, AuditLevel, CallDecision, CallRecord, CallTargets,
    Outcome, summarize_arguments,
};
pub use availability::Availability;
pub use background_process::BackgroundProcess;
pub use call_context::CallContext;
pub use call_result::InvalidCallResult;
pub use client_log::ClientLog;
pub use client_notices::ClientNotices;
pub use client_requests::{ClientCapability, ClientRequestError, ClientRequests};
pub use completion::{Completer, CompletionRequest};
pub use connection::{Connection, RequestContext};
pub use effects::{WorkspaceEffects, workspace_within};
pub use forwarding::{CallForwarder, ForwardedCall};
pub use host::{Host, HostBuilder, HostError, NoSuchTool, resource_limits};
pub use limits::HostLimits;
pub use log_level::LogLevel;
pub use observer::CallObserver;
pub use permits::{
    CallAdmission, CallPermit, CallPermits, InnerCallPermits, NoPermit, Permit, PermitRelease,
    ProcessPermits, ResourceClass,
};
pub use presets::PRESETS;
pub use progress::{ProgressEvent, ProgressReporter};
pub use prompt::Prompt;
pub use prompt_message::{MessageAuthor, PromptMessage};
pub use remote_effects::RemoteEffects;
pub use requested_offer::RequestedOffer;
pub use resource::Resource;
/// The effect of an argument of a tool: the paths, programs or roles that it reaches, declared for policies to judge.
pub use role_policy::Effect;
/// The token bucket behind every limit of so many in a span of time.
pub use role_policy::TokenBucket;
pub use routing::{COMMAND_IDS, CallRoutes, RoutedEffects};
#[doc(hidden)]
pub use schema_file::{schemas_of, stored_schemas};
pub use selection::{ToolSelection, UnknownSelection};
pub use tool::Tool;
pub use tool_error::ToolError;
pub use toolset::{PreparedCall, Toolset};
