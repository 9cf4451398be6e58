//! What a role may see and call, decided in one place.
//!
//! Roles are data, in a file that tests itself. A server describes each of its tools once ([`ToolFacts`]),
//! asks [`Policy::sees`] when it lists them, and hands each call to [`Policy::authorize`]. The answer is an
//! [`Authorized`] call, a value that only `authorize` can make. A dispatcher that takes nothing else cannot
//! run an unchecked call:
//!
//! ```
//! use role_policy::{Authorized, Call, Caller, Effect, Lexical, Policy, Refusal, ToolFacts};
//! use serde_json::{Value, json};
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
//! let write_file = ToolFacts {
//!     name: "write_file",
//!     toolset: "filesystem",
//!     read_only: false,
//!     destructive: true,
//!     open_world: false,
//!     effects: &[Effect::Writes("path")],
//! };
//! let read_file = ToolFacts { name: "read_file", read_only: true, destructive: false, ..write_file };
//! let policy = Policy::load(file, "roles.toml", &[read_file, write_file])?.policy;
//!
//! let caller = Caller::new("writer");
//! let call = |path: &str| match json!({ "path": path }) {
//!     Value::Object(arguments) => Call::new("write_file", arguments),
//!     _ => unreachable!(),
//! };
//! let allowed = policy.authorize(&caller, &write_file, call("docs/plan.md"), &Lexical)?;
//! assert_eq!(dispatch(allowed), "write_file runs");
//!
//! let refused = policy.authorize(&caller, &write_file, call("src/lib.rs"), &Lexical).unwrap_err();
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
//! Rules judge effects and not text: paths by where they lead ([`Effects::resolve_path`]), commands by the
//! program that would start ([`Effects::resolve_program`]). What holds for paths also goes along with the
//! call ([`Authorized::scope`]), to be held up against what is really opened.
//!
//! There are no rules that forbid some arguments, and no lists of forbidden commands: such a list is as good
//! as its longest gap. What a role may do is named.

mod builtin;
mod caller;
mod decision;
mod effects;
mod load;
mod policy;
mod problem;
#[cfg(all(feature = "proxy", unix))]
pub mod proxy;
mod read;
mod rule;
pub mod source;
mod tool;

pub use builtin::BUILTIN;
pub use caller::Caller;
pub use decision::{Access, Authorized, Decision, Refusal, Scope};
pub use effects::{Effects, Lexical};
pub use load::Loaded;
pub use policy::{Explanation, Policy, RoleLimits, Says, Step};
pub use problem::{LoadError, Problem, Severity};
pub use tool::{Call, Effect, ToolFacts};
