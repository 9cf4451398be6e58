//! Decides which tools a role may see and call.
//!
//! Roles are data, in a file that tests itself. A server describes each of its tools once ([`ToolFacts`]),
//! asks [`Policy::sees`] when it lists them, and hands each call to [`Policy::authorize`], or to
//! [`PolicyTool::authorize`] where the policy was loaded for the tool. The answer is an [`Authorized`] call, a value
//! that only these can make. A dispatcher that takes nothing else cannot
//! run an unchecked call:
//!
//! ```
//! use role_policy::{Authorized, Call, Caller, Effect, LexicalResolver, Policy, ToolFacts};
//! use serde_json::Map;
//!
//! fn dispatch(call: Authorized<Call>) -> String {
//!     format!("{} runs", call.tool())
//! }
//!
//! let file = r#"
//!     version = 1
//!     [roles.writer]
//!     allow = ["read_file", "write_file"]
//!     [[roles.writer.require]]
//!     id = "docs-only"
//!     tools = ["write_file"]
//!     write_within = ["docs"]
//!     must_allow = [{ arguments = { path = "docs/today.md" } }]
//!     must_deny = [{ arguments = { path = "docs/../src/main.rs" } }]
//! "#;
//! let write_file = ToolFacts::new("write_file", "filesystem").open_world(false).effects(&[Effect::Writes("path")]);
//! let read_file = ToolFacts::new("read_file", "filesystem").read_only(true).open_world(false);
//! let policy = Policy::load(file, "roles.toml", &[read_file, write_file])?.policy;
//!
//! let caller = Caller::new("writer");
//! let authorize = |path: &str| {
//!     let arguments = Map::from_iter([("path".to_owned(), path.into())]);
//!     policy.tool("write_file")?.authorize(&caller, arguments, &LexicalResolver)
//! };
//! let allowed = authorize("docs/plan.md")?;
//! assert_eq!(dispatch(allowed), "write_file runs");
//!
//! let refused = authorize("src/lib.rs").unwrap_err();
//! assert_eq!(refused.to_string(), "`path`: this role may write only in `docs`, and `src/lib.rs` is elsewhere");
//! // A role that the file does not declare sees nothing.
//! assert!(!policy.sees(&Caller::new("stranger"), &read_file));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How a call is judged
//!
//! 1. Every role of the caller is asked, and each must allow. A role that is not declared is the minimal one.
//! 2. `deny` hides a tool, whatever `allow` says; what nothing allows is hidden. A role has what it extends,
//!    denials included. This alone decides what is listed.
//! 3. Every rule under `require` that speaks of the tool must hold for the arguments. One that cannot be
//!    judged (an argument left out or of another type, a path that cannot be followed) does not hold.
//!
//! 4. A tool that `ask` names, and a rule with `otherwise = "ask"` that does not hold, ask a person:
//!    [`Refusal::Approval`]. Deny beats ask, and ask beats allow. [`Policy::authorize_approved`] takes the answer.
//!
//! Rules judge effects and not text: paths by where they lead ([`EffectResolver::resolve_path`]), commands by the
//! program that would start ([`EffectResolver::resolve_program`]). What holds for paths also goes along with the
//! call ([`Authorized::scope`]), to be held up against what is really opened.
//!
//! There are no rules that forbid some arguments, and no lists of forbidden commands: such a list is as good
//! as its longest gap. What a role may do is named.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod access;
mod approval;
mod area;
mod argument_names;
mod ask;
mod builtin;
mod caller;
mod decision;
mod effect_resolver;
mod explain;
mod known_tool;
mod limits;
mod load;
mod otherwise;
mod patch;
mod path_rule;
mod policy;
mod policy_file;
mod problem;
mod quoted;
mod rule;
mod scope;
pub mod source;
mod system_calls;
mod token_bucket;
mod tool;
mod violation;

pub use access::Access;
pub use approval::{Approval, ApprovalRequest, AskReason, CallFingerprint};
pub use builtin::BUILTIN;
pub use caller::Caller;
pub use decision::{Authorized, Decision, Refusal};
pub use effect_resolver::{EffectResolver, LexicalResolver, PatchedPath, ResolveError};
pub use egress_proxy::{AllowedHosts, CredentialRule, NetworkAccess, NetworkHost, SecretSource};
pub use explain::{ExplainStep, ExplainVerdict, Explanation};
pub use known_tool::PolicyTool;
pub use limits::RoleLimits;
pub use load::LoadedPolicy;
pub use policy::{Policy, ToolAccess};
pub use problem::{LoadError, PolicyProblem, ProblemSeverity};
pub use scope::CallScope;
pub use system_calls::SystemCallGroup;
pub use token_bucket::TokenBucket;
pub use tool::{Call, Effect, PatchParts, ToolFacts};
pub use violation::PathViolation;
