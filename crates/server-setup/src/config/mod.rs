//! `coretools.toml`, the `CORETOOLS_*` environment variables and flags, as one [`Config`].
//!
//! A flag beats a variable, a variable beats the file, the file beats the default, key by key; each value
//! remembers where it came from. Nothing is needed: without any of them every key has its default.
//!
//! ```toml
//! roots = ["."]                  # folders that tools may use; relative to this file
//! toolsets = "standard"          # a preset (standard, full, edit, introspect, minimal) or a list of toolsets
//! role = "worker"                # who calls; together with the role from a flag, a variable, a marker
//! results = "auto"               # "text": no structured results, for clients that show only text
//!
//! [limits]
//! call_timeout_ms = 120000       # what a call may take that asks for no time of its own
//! max_timeout_ms = 600000        # the most a call may ask for
//! max_concurrent_calls = 64
//! max_output_bytes = 4194304     # the most that one answer may have, whatever was asked for
//!
//! [commands]
//! environment = "auto"        # or "minimal": only PATH, HOME and their like reach a command
//! variables = []                 # names of further variables that a command gets in a minimal environment
//!
//! [policy]
//! file = "roles.toml"            # what each role may see and call; the built-in roles where left out
//! marker_key = "marker.key"      # with it a signed marker must name the role
//! audit = "audit.jsonl"          # a line for each call and refusal; none where left out
//! audit_level = "auto"           # or "names", "targets", "full": what is recorded of the arguments
//! audit_when_full = "count"      # or "refuse": no call runs that cannot be recorded
//! confinement = "auto"           # or "required", "off": whether programs reach only what their caller may
//! confinement_level = "namespaces"   # or "filesystem", "system_calls", "strict"
//! network = "allow"              # or "none", or { hosts = ["git.example.com"] }: where programs may connect to
//! approvers = "auto"             # or "client", "operator": who approves calls that a role asks about
//! approval_timeout_ms = 300000   # the time that such a call waits; no answer is no
//!
//! [context]
//! catalogue = "context.toml"     # roles and layout of compile_context, beneath a root; the built-in ones by default
//!
//! [logs]
//! sources = []                   # logs by name: "api=logs/api.log", with what was rotated away, or a glob
//!
//! [databases]
//! connections = []               # databases by name: "main=postgres://…", "main=$VARIABLE", "local=data/x.db"
//!
//! [inspect]
//! target = ""                    # what inspect_state looks into: "port:9229", "http://…", "file:…"; found where empty
//! allow_signals = false          # whether a process may be signalled to become inspectable
//!
//! [traces]
//! folder = "/var/lib/traces"     # where capture_trace keeps profiles; $XDG_STATE_HOME/coretools/traces where left out
//!
//! [sessions]
//! state_dir = "…"                # where sessions are kept; $XDG_STATE_HOME/coretools/sessions where left out
//! agents = "agents.toml"         # further agents and what they print; the built-in ones where left out
//! command = []                   # the agent of a session that names none: ["claude"]
//! watch = []                     # folders of session files that others write
//! max_sessions = 256             # that are not over, at once
//! max_per_caller = 16            # those of them that one caller of mcp-http may have
//! resume_after_limit = true      # wait at a rate limit, and resume
//! renew_context = true           # go on in a new session when the context is exhausted
//! restart_after_crash = true
//! backoff_base_ms = 30000        # the first wait where nobody said how long; each further one is twice as long
//! backoff_cap_ms = 300000
//! max_attempts = 5               # in a row, without success
//! log_bytes = 10485760           # of one file of a log; the four before it are kept
//! manual_restart_s = 300         # what starting again by hand would take, for the statistics
//!
//! [redaction]
//! enabled = true
//! environment_values = true      # mask the values of variables whose name says that they are secret
//! variables = []                 # names of further variables whose values are masked
//!
//! [remotes.build-box]            # a remote by its name: see the crate `remotes`
//! kind = "ssh"
//! target = "ci@build-box"
//! roots = ["/src"]
//!
//! [http]                         # what mcp-http is told: see [`HttpTable`]
//! listen = ["127.0.0.1:8717"]
//! ```
//!
//! The variable of a key is `CORETOOLS_` and the key in capitals, with `_` for `.`: `limits.call_timeout_ms`
//! is `CORETOOLS_LIMITS_CALL_TIMEOUT_MS`. Lists are separated by commas, roots as `PATH` is.
//!
//! A role is not overridden but narrowed: whoever is named one in several of these places is in all of them.
//!
//! # Where the file is looked for
//!
//! In the first root that flags and variables name, or else the folder the server was started in, and then in
//! each folder above. `--config` names another.
//!
//! # Trust
//!
//! A file that was *found* came with the project, which may be a stranger's. It can therefore only narrow: its
//! roots must lie beneath the folder in which the search began, its limits may not exceed the defaults, it
//! cannot turn redaction off, and it brings no policy. It counts only if it is a regular file (no link) that belongs to
//! the current user or root and that nobody else may write to; any other is an error, since going on without it could
//! lift what the operator meant to narrow. A file that the operator *named* is not bound by any of this.
//!
//! Either file belongs to the protected paths of the workspace ([`Config::file`]), and so does the name
//! ([`FILE_NAME`]), so that no tool can change its own limits.

mod error;
mod file;
mod flags;
#[cfg(all(feature = "remotes", unix))]
mod forwarded;
mod http;
mod keys;
mod load;
#[cfg(all(feature = "remotes", unix))]
mod remotes;
mod setting;
mod setting_value;
mod tables;

#[cfg(test)]
mod tests;

pub use error::{ConfigLocation, Error};
pub use file::FILE_NAME;
pub use flags::SettingFlags;
pub use http::HttpTable;
pub use keys::SettingEntry;
pub(crate) use keys::VARIABLE_PREFIX;
pub use setting::{Setting, SettingSource};
pub use setting_value::{
    ApproversSetting, AuditDetail, AuditWhenFull, ConfinementMode, EnvironmentMode, ResultFormat, ToolPreset,
    Toolsets,
};
pub use tables::{
    CommandsTable, Config, ContextTable, DatabasesTable, InspectTable, LimitsTable, LogsTable, PolicyTable,
    RedactionTable, SessionsTable, TracesTable,
};
