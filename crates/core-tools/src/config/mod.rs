//! `coretools.toml`, the `CORETOOLS_*` environment variables and flags, as one [`Config`].
//!
//! A flag beats a variable, a variable beats the file, the file beats the default, key by key; each value
//! remembers where it came from. Nothing is needed: without any of them every key has its default.
//!
//! ```toml
//! roots = ["."]                  # folders that tools may use; relative to this file
//! toolsets = "full"              # a preset (all, full, edit, introspect, minimal) or a list of toolsets
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
//! environment = "inherit"        # or "minimal": only PATH, HOME and their like reach a command
//!
//! [policy]
//! file = "roles.toml"            # what each role may see and call; the built-in roles where left out
//! marker_key = "marker.key"      # with it a signed marker must name the role
//! audit = "audit.jsonl"          # a line for each call and refusal; none where left out
//! audit_when_full = "count"      # or "refuse": no call runs that cannot be recorded
//! confinement = "auto"           # or "on", "off": whether programs reach only what their caller may
//! network = true                 # whether confined programs may use TCP
//!
//! [context]
//! catalogue = "context.toml"     # roles and layout of compile_context, beneath a root; the built-in ones where left out
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
//! [http]                         # what mcp-http is told: see [`Http`]
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
//! cannot turn redaction off, and it brings no policy. It counts only if it is a regular file (no link) that belongs to the current user
//! or root and that nobody else may write to; any other is an error, since going on without it could lift what
//! the operator meant to narrow. A file that the operator *named* is not bound by any of this.
//!
//! Either file belongs to the protected paths of the workspace ([`Config::file`]), and so does the name
//! ([`FILE_NAME`]), so that no tool can change its own limits.

mod error;
mod file;
mod http;
mod keys;
mod value;

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

pub use error::{Error, Place};
pub use http::Http;
pub use value::{AuditWhenFull, ConfinementMode, EnvironmentMode, Preset, Results, Toolsets};

/// The name of the file that is looked for.
pub const FILE_NAME: &str = "coretools.toml";
/// How variables that belong to us begin.
pub const VARIABLE_PREFIX: &str = "CORETOOLS_";
/// The key of a role in the file.
const ROLE: &str = "role";

/// What the command line said; `None` and empty where it said nothing.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config`: exactly this file, which must exist.
    pub config: Option<PathBuf>,
    /// `--root`, given any number of times.
    pub roots: Vec<PathBuf>,
    /// `--toolsets`, as it was given.
    pub toolsets: Option<String>,
    /// `--results`, as it was given.
    pub results: Option<String>,
    /// `--role`.
    pub role: Option<String>,
    /// `--policy`.
    pub policy: Option<PathBuf>,
    /// `--audit`.
    pub audit: Option<PathBuf>,
    /// Further ones: key, flag, and what was given.
    pub others: Vec<(&'static str, &'static str, String)>,
}

/// A value, and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub source: Source,
}

impl<T> Deref for Setting<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// The file, at this line.
    File {
        /// The file.
        path: PathBuf,
        /// The line of the value, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// How the server is set up. See the [module](self) for what each key means.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file that was read, if there was one. It must not be writable by tools.
    pub file: Option<PathBuf>,
    /// Folders that tools may use. Empty: the folder the server was started in.
    pub roots: Setting<Vec<PathBuf>>,
    /// Which tools are there. The preset `full` by default.
    pub toolsets: Setting<Toolsets>,
    /// Whether results have a structured part. `auto` by default.
    pub results: Setting<Results>,
    /// Every role that was named, each in its place. All of them hold; none is overridden.
    pub roles: Vec<Setting<String>>,
    /// `[limits]`
    pub limits: Limits,
    /// `[policy]`
    pub policy: Policy,
    /// `[commands]`
    pub commands: Commands,
    /// `[context]`
    pub context: Context,
    /// `[logs]`
    pub logs: Logs,
    /// `[databases]`
    pub databases: Databases,
    /// `[inspect]`
    pub inspect: Inspect,
    /// `[traces]`
    pub traces: Traces,
    /// `[sessions]`
    pub sessions: Sessions,
    /// `[redaction]`
    pub redaction: Redaction,
    /// `[http]`
    pub http: Http,
    /// What was probably not meant, for the log and the doctor: variables with our prefix that name no key.
    pub warnings: Vec<String>,
}

/// `[limits]`
#[derive(Clone, Debug)]
pub struct Limits {
    /// What a call may take that asks for no time of its own, in milliseconds: 1 to 86,400,000 (a day);
    /// 120,000 by default.
    pub call_timeout_ms: Setting<u64>,
    /// The most time a call may ask for, in milliseconds: 1 to 86,400,000; 600,000 by default.
    pub max_timeout_ms: Setting<u64>,
    /// Calls that run at once: 1 to 4096; 64 by default.
    pub max_concurrent_calls: Setting<u64>,
    /// The most bytes that one answer may have, whatever was asked for: 1,000 to 67,108,864; 4 MiB by default.
    pub max_output_bytes: Setting<u64>,
}

/// `[policy]`
#[derive(Clone, Debug)]
pub struct Policy {
    /// The policy file. None, the default: the built-in roles.
    pub file: Setting<Option<PathBuf>>,
    /// The key with which markers must be signed. None by default.
    pub marker_key: Setting<Option<PathBuf>>,
    /// The file in which calls are recorded. None by default.
    pub audit: Setting<Option<PathBuf>>,
    /// What happens to calls when that cannot be written. They run by default.
    pub audit_when_full: Setting<AuditWhenFull>,
    /// Whether the programs that are run are confined. `auto` by default.
    pub confinement: Setting<ConfinementMode>,
    /// Whether confined programs may use TCP. True by default.
    pub network: Setting<bool>,
}

/// `[context]`
#[derive(Clone, Debug)]
pub struct Context {
    /// A file beneath a root, of roles and layout beside the built-in ones. None by default.
    pub catalogue: Setting<Option<PathBuf>>,
}

/// `[logs]`
#[derive(Clone, Debug)]
pub struct Logs {
    /// Logs by name, each `name=path or glob`, beneath the roots. None by default.
    pub sources: Setting<Vec<String>>,
}

impl Logs {
    /// Name and path of each source.
    pub fn sources(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.sources.iter().filter_map(|source| named(source))
    }
}

/// `[databases]`
#[derive(Clone)]
pub struct Databases {
    /// Databases by name, each `name=` and the path of a SQLite file, a URL, or `$` and the name of an environment
    /// variable that holds one of them. None by default.
    pub connections: Setting<Vec<String>>,
}

impl Databases {
    /// Name and place of each. Not for anybody's eyes.
    pub fn connections(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.connections.iter().filter_map(|connection| named(connection))
    }
}

impl fmt::Debug for Databases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Databases").finish_non_exhaustive()
    }
}

/// The two sides of `name=what it names`.
fn named(entry: &str) -> Option<(String, String)> {
    let (name, what) = entry.split_once('=')?;
    let (name, what) = (name.trim(), what.trim());
    (!name.is_empty() && !what.is_empty()).then(|| (name.to_owned(), what.to_owned()))
}

/// `[sessions]`
#[derive(Clone, Debug)]
pub struct Sessions {
    /// Where sessions are kept. None, the default: the user's folder for state.
    pub state_dir: Setting<Option<PathBuf>>,
    /// A file of further agents. None by default.
    pub agents: Setting<Option<PathBuf>>,
    /// Program and arguments of a session that names none. Empty by default.
    pub command: Setting<Vec<String>>,
    /// Folders of session files that others write. None by default.
    pub watch: Setting<Vec<PathBuf>>,
    /// Sessions that are not over, at once: 1 to 10,000; 256 by default.
    pub max_sessions: Setting<u64>,
    /// Those of them that one caller of a server for many may have: 1 to 10,000; 16 by default.
    pub max_per_caller: Setting<u64>,
    /// Whether a session waits at a rate limit and is resumed. True by default.
    pub resume_after_limit: Setting<bool>,
    /// Whether one whose context is exhausted goes on as a new one. True by default.
    pub renew_context: Setting<bool>,
    /// Whether one that crashed is started again. True by default.
    pub restart_after_crash: Setting<bool>,
    /// The first wait where nobody said how long, in milliseconds: 1 to 86,400,000; 30,000 by default.
    pub backoff_base_ms: Setting<u64>,
    /// The longest of these waits, in milliseconds: 1 to 86,400,000; 300,000 by default.
    pub backoff_cap_ms: Setting<u64>,
    /// Attempts in a row without success: 0 to 1000; 5 by default.
    pub max_attempts: Setting<u64>,
    /// The most bytes of one file of a log: 4,096 to 1 GiB; 10 MiB by default.
    pub log_bytes: Setting<u64>,
    /// What starting again by hand would take, in seconds: 60 to 1800; 300 by default.
    pub manual_restart_s: Setting<u64>,
}

/// `[commands]`
#[derive(Clone, Debug)]
pub struct Commands {
    /// What a command sees of the server's environment: all of it by default.
    pub environment: Setting<EnvironmentMode>,
}

/// `[inspect]`
#[derive(Clone, Debug)]
pub struct Inspect {
    /// What is looked into where a call names no target. Empty, the default: what is found under the roots.
    pub target: Setting<String>,
    /// Whether a process may be sent the signal that makes it inspectable. False by default.
    pub allow_signals: Setting<bool>,
}

/// `[traces]`
#[derive(Clone, Debug)]
pub struct Traces {
    /// Where profiles are kept. None, the default: in the user's folder for state.
    pub folder: Setting<Option<PathBuf>>,
}

/// `[redaction]`
#[derive(Clone, Debug)]
pub struct Redaction {
    /// Whether secrets are masked in what leaves the server. True by default.
    pub enabled: Setting<bool>,
    /// Whether the values of secret-like environment variables are among them. True by default.
    pub environment_values: Setting<bool>,
    /// Names of further variables whose values are masked. None by default.
    pub variables: Setting<Vec<String>>,
}

/// One line of [`Config::entries`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key, with its table: `limits.call_timeout_ms`.
    pub key: &'static str,
    /// Its value, as the file would have it.
    pub value: String,
    /// Where it came from.
    pub source: Source,
}

impl Config {
    /// Reads the file, then `variables` (the whole environment: only those with our prefix, and
    /// `FILESYSTEM_TOOLS_BASE_PATH` as a root, count), then `flags`.
    ///
    /// Relative roots are relative to the file in the file, and to `folder` in variables and flags.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its place, what was expected, and the nearest valid key.
    pub fn load(
        folder: &Path,
        variables: impl IntoIterator<Item = (String, String)>,
        flags: &Flags,
    ) -> Result<Self, Error> {
        let mut variables: Vec<(String, String)> = variables.into_iter().collect();
        variables.sort();
        let mut config = Self::default();
        config.apply_given(folder, &variables, flags)?;
        let file = match &flags.config {
            Some(path) => Some(file::named(&folder.join(path))?),
            None => file::found(config.roots.first().map_or(folder, PathBuf::as_path))?,
        };
        if let Some(file) = file {
            config = Self::default();
            file::apply(&mut config, &file)?;
            config.apply_given(folder, &variables, flags)?;
            file::check_roots(&config, &file)?;
            config.file = Some(file.path);
        }
        if config.limits.call_timeout_ms.source == Source::Default {
            // A default gives way to what was asked for.
            let most = *config.limits.max_timeout_ms;
            config.limits.call_timeout_ms.value = config.limits.call_timeout_ms.value.min(most);
        }
        if *config.limits.call_timeout_ms > *config.limits.max_timeout_ms {
            return Err(Error::Contradiction {
                first: describe("limits.call_timeout_ms", &config.limits.call_timeout_ms),
                second: describe("limits.max_timeout_ms", &config.limits.max_timeout_ms),
            });
        }
        Ok(config)
    }

    /// Applies what does not come from the file.
    fn apply_given(
        &mut self,
        folder: &Path,
        variables: &[(String, String)],
        flags: &Flags,
    ) -> Result<(), Error> {
        self.apply_variables(folder, variables)?;
        self.apply_flags(folder, flags)
    }

    fn apply_variables(&mut self, folder: &Path, variables: &[(String, String)]) -> Result<(), Error> {
        /// Variables with our prefix that are flags of the binaries, or tell of the session that they run in.
        const FLAGS: [&str; 5] = ["CONFIG", "LOG", "AGENT_COMMAND", "SESSION_ID", "SESSION_TOKEN"];
        if let Some((name, path)) = variables.iter().find(|(name, _)| name == keys::BASE_PATH) {
            keys::set_text(self, "roots", path, folder, Source::Variable(name.clone()))?;
        }
        for (name, value) in variables {
            let Some(rest) = name.strip_prefix(VARIABLE_PREFIX) else { continue };
            if let Some(key) = keys::by_variable(rest) {
                keys::set_text(self, key, value, folder, Source::Variable(name.clone()))?;
            } else if rest == "ROLE" {
                let source = Source::Variable(name.clone());
                self.roles.push(Setting { value: value.clone(), source });
            } else if !FLAGS.contains(&rest) {
                let all: Vec<String> = keys::KEYS.iter().map(|key| keys::variable(key)).collect();
                let near = crate::nearest::nearest(name, all.iter().map(String::as_str));
                let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                self.warnings.push(format!("environment variable {name} names no key of {FILE_NAME}{hint}"));
            }
        }
        Ok(())
    }

    fn apply_flags(&mut self, folder: &Path, flags: &Flags) -> Result<(), Error> {
        if !flags.roots.is_empty() {
            let roots = flags.roots.iter().map(|root| folder.join(root)).collect();
            self.roots = Setting { value: roots, source: Source::Flag("--root") };
        }
        if let Some(role) = &flags.role {
            self.roles.push(Setting { value: role.clone(), source: Source::Flag("--role") });
        }
        for (setting, flag, path) in [
            (&mut self.policy.file, "--policy", &flags.policy),
            (&mut self.policy.audit, "--audit", &flags.audit),
        ] {
            if let Some(path) = path {
                *setting = Setting { value: Some(folder.join(path)), source: Source::Flag(flag) };
            }
        }
        for (key, flag, text) in
            [("toolsets", "--toolsets", &flags.toolsets), ("results", "--results", &flags.results)]
        {
            if let Some(text) = text {
                keys::set_text(self, key, text, folder, Source::Flag(flag))?;
            }
        }
        for (key, flag, text) in &flags.others {
            keys::set_text(self, key, text, folder, Source::Flag(flag))?;
        }
        Ok(())
    }

    /// Every key with its value and where it came from, in the order of the documentation.
    pub fn entries(&self) -> Vec<Entry> {
        keys::KEYS.iter().filter_map(|key| keys::show(self, key)).collect()
    }
}

impl Default for Config {
    fn default() -> Self {
        fn default<T>(value: T) -> Setting<T> {
            Setting { value, source: Source::Default }
        }
        Self {
            file: None,
            roots: default(Vec::new()),
            toolsets: default(Toolsets::Preset(Preset::Full)),
            results: default(Results::Auto),
            roles: Vec::new(),
            policy: Policy {
                file: default(None),
                marker_key: default(None),
                audit: default(None),
                audit_when_full: default(AuditWhenFull::Count),
                confinement: default(ConfinementMode::Auto),
                network: default(true),
            },
            limits: Limits {
                call_timeout_ms: default(120_000),
                max_timeout_ms: default(600_000),
                max_concurrent_calls: default(64),
                max_output_bytes: default(4 << 20),
            },
            logs: Logs { sources: default(Vec::new()) },
            databases: Databases { connections: default(Vec::new()) },
            inspect: Inspect { target: default(String::new()), allow_signals: default(false) },
            context: Context { catalogue: default(None) },
            traces: Traces { folder: default(None) },
            commands: Commands { environment: default(EnvironmentMode::Inherit) },
            sessions: Sessions {
                state_dir: default(None),
                agents: default(None),
                command: default(Vec::new()),
                watch: default(Vec::new()),
                max_sessions: default(256),
                max_per_caller: default(16),
                resume_after_limit: default(true),
                renew_context: default(true),
                restart_after_crash: default(true),
                backoff_base_ms: default(30_000),
                backoff_cap_ms: default(300_000),
                max_attempts: default(5),
                log_bytes: default(10 << 20),
                manual_restart_s: default(300),
            },
            redaction: Redaction {
                enabled: default(true),
                environment_values: default(true),
                variables: default(Vec::new()),
            },
            http: Http::default(),
            warnings: Vec::new(),
        }
    }
}

fn describe(key: &str, setting: &Setting<u64>) -> String {
    format!("`{key}` is {} ({})", setting.value, setting.source)
}
