//! [`Config`] and its tables, with the default of every key.

use role_policy::NetworkAccess;
use std::fmt;
use std::path::PathBuf;

use process_runner::ConfinementLevel;

use super::http::HttpTable;
use super::setting::{Setting, SettingSource};
use super::setting_value::{
    ApproversSetting, AuditDetail, AuditWhenFull, ConfinementMode, EnvironmentMode, ResultFormat, ToolPreset,
    Toolsets, split_named,
};

/// The configuration of a server. The documentation of the [module](super) explains each key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The file that was read, if there was one. It must not be writable by tools.
    pub file: Option<PathBuf>,
    /// Folders that tools may use. Empty: the folder the server was started in.
    pub roots: Setting<Vec<PathBuf>>,
    /// The tools that are offered. The preset `standard` by default.
    pub toolsets: Setting<Toolsets>,
    /// The form of results. `auto` by default.
    pub results: Setting<ResultFormat>,
    /// Every role that was named, each with its source. All of them hold; none is overridden.
    pub roles: Vec<Setting<String>>,
    /// `[limits]`
    pub limits: LimitsTable,
    /// `[policy]`
    pub policy: PolicyTable,
    /// `[commands]`
    pub commands: CommandsTable,
    /// `[context]`
    pub context: ContextTable,
    /// `[logs]`
    pub logs: LogsTable,
    /// `[databases]`
    pub databases: DatabasesTable,
    /// `[inspect]`
    pub inspect: InspectTable,
    /// `[traces]`
    pub traces: TracesTable,
    /// `[sessions]`
    pub sessions: SessionsTable,
    /// `[redaction]`
    pub redaction: RedactionTable,
    /// `[http]`
    pub http: HttpTable,
    /// `[remotes.NAME]`, in the order of the file.
    #[cfg(all(feature = "remotes", unix))]
    pub remotes: Vec<remotes::RemoteSettings>,
    /// Probable mistakes, for the log and the doctor: variables with our prefix that name no key.
    pub warnings: Vec<String>,
}

/// `[limits]`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LimitsTable {
    /// The time that a call may take which asks for none of its own, in milliseconds: 1 to 86,400,000 (a day);
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
#[non_exhaustive]
pub struct PolicyTable {
    /// The policy file. None, the default: the built-in roles.
    pub file: Setting<Option<PathBuf>>,
    /// The key with which markers must be signed. None by default.
    pub marker_key: Setting<Option<PathBuf>>,
    /// The file in which calls are recorded. None by default.
    pub audit: Setting<Option<PathBuf>>,
    /// The part of the arguments that is recorded. `auto` by default: targets over HTTP, else names.
    pub audit_level: Setting<AuditDetail>,
    /// The treatment of calls while the audit cannot be written. They run by default.
    pub audit_when_full: Setting<AuditWhenFull>,
    /// The confinement of programs. `auto` by default.
    pub confinement: Setting<ConfinementMode>,
    /// The layers of the confinement. `namespaces` by default.
    pub confinement_level: Setting<ConfinementLevel>,
    /// The network that programs may reach, whatever the role. All of it by default.
    pub network: Setting<NetworkAccess>,
    /// The persons who may approve a call that the policy asks about. `auto` by default: the client's user, else the
    /// operator.
    pub approvers: Setting<ApproversSetting>,
    /// The time that a call waits for an approval: 1 to 86,400,000; 300,000 by default.
    pub approval_timeout_ms: Setting<u64>,
}

/// `[context]`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ContextTable {
    /// A file beneath a root, of roles and layout beside the built-in ones. None by default.
    pub catalogue: Setting<Option<PathBuf>>,
}

/// `[logs]`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogsTable {
    /// Logs by name, each `name=path or glob`, beneath the roots. None by default.
    pub sources: Setting<Vec<String>>,
}

impl LogsTable {
    /// Returns name and path of each source.
    pub fn sources(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.sources.iter().filter_map(|source| split_named(source))
    }
}

/// `[databases]`
#[derive(Clone)]
#[non_exhaustive]
pub struct DatabasesTable {
    /// Databases by name, each `name=` and the path of a SQLite file, a URL, or `$` and the name of an environment
    /// variable that holds one of them. None by default.
    pub connections: Setting<Vec<String>>,
}

impl DatabasesTable {
    /// Returns name and address of each. The addresses may hold passwords: they must not be shown.
    pub fn connections(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.connections.iter().filter_map(|connection| split_named(connection))
    }
}

impl fmt::Debug for DatabasesTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the addresses, which may hold passwords.
        f.debug_struct("DatabasesTable").finish_non_exhaustive()
    }
}

/// `[sessions]`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionsTable {
    /// The folder of the sessions. None, the default: the user's folder for state.
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
    /// True if a session waits at a rate limit and is resumed. True by default.
    pub resume_after_limit: Setting<bool>,
    /// True if a session whose context is exhausted goes on as a new one. True by default.
    pub renew_context: Setting<bool>,
    /// True if a session that crashed is started again. True by default.
    pub restart_after_crash: Setting<bool>,
    /// The first wait where nobody said how long, in milliseconds: 1 to 86,400,000; 30,000 by default.
    pub backoff_base_ms: Setting<u64>,
    /// The longest of these waits, in milliseconds: 1 to 86,400,000; 300,000 by default.
    pub backoff_cap_ms: Setting<u64>,
    /// Attempts in a row without success: 0 to 1000; 5 by default.
    pub max_attempts: Setting<u64>,
    /// The most bytes of one file of a log: 4,096 to 1 GiB; 10 MiB by default.
    pub log_bytes: Setting<u64>,
    /// The time that starting again by hand would take, for the statistics, in seconds: 60 to 1800; 300 by default.
    pub manual_restart_s: Setting<u64>,
}

/// `[commands]`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommandsTable {
    /// The part of the server's environment that a command gets. By default all of it where the one caller may do
    /// everything, else what programs need to work.
    pub environment: Setting<EnvironmentMode>,
    /// The names of further variables that a command gets where it does not get all; a `*` at the end stands for any
    /// ending. None by default.
    pub variables: Setting<Vec<String>>,
}

/// `[inspect]`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InspectTable {
    /// The target of calls that name none. Empty, the default: whatever is found under the roots.
    pub target: Setting<String>,
    /// True if a process may be sent the signal that makes it inspectable. False by default.
    pub allow_signals: Setting<bool>,
}

/// `[traces]`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TracesTable {
    /// The folder of the profiles. None, the default: in the user's folder for state.
    pub folder: Setting<Option<PathBuf>>,
}

/// `[redaction]`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedactionTable {
    /// True if secrets are masked in everything that leaves the server. True by default.
    pub enabled: Setting<bool>,
    /// True if the values of secret-like environment variables are masked too. True by default.
    pub environment_values: Setting<bool>,
    /// Names of further variables whose values are masked. None by default.
    pub variables: Setting<Vec<String>>,
}

impl Default for Config {
    fn default() -> Self {
        fn default<T>(value: T) -> Setting<T> {
            Setting { value, source: SettingSource::Default }
        }
        Self {
            file: None,
            roots: default(Vec::new()),
            toolsets: default(Toolsets::Preset(ToolPreset::Standard)),
            results: default(ResultFormat::Auto),
            roles: Vec::new(),
            policy: PolicyTable {
                file: default(None),
                marker_key: default(None),
                audit: default(None),
                audit_level: default(AuditDetail::Auto),
                audit_when_full: default(AuditWhenFull::Count),
                confinement: default(ConfinementMode::Auto),
                confinement_level: default(ConfinementLevel::Namespaces),
                network: default(NetworkAccess::Allow),
                approvers: default(ApproversSetting::Auto),
                approval_timeout_ms: default(300_000),
            },
            limits: LimitsTable {
                call_timeout_ms: default(120_000),
                max_timeout_ms: default(600_000),
                max_concurrent_calls: default(64),
                max_output_bytes: default(4 << 20),
            },
            logs: LogsTable { sources: default(Vec::new()) },
            databases: DatabasesTable { connections: default(Vec::new()) },
            inspect: InspectTable { target: default(String::new()), allow_signals: default(false) },
            context: ContextTable { catalogue: default(None) },
            traces: TracesTable { folder: default(None) },
            commands: CommandsTable {
                environment: default(EnvironmentMode::Auto),
                variables: default(Vec::new()),
            },
            sessions: SessionsTable {
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
            redaction: RedactionTable {
                enabled: default(true),
                environment_values: default(true),
                variables: default(Vec::new()),
            },
            http: HttpTable::default(),
            #[cfg(all(feature = "remotes", unix))]
            remotes: Vec::new(),
            warnings: Vec::new(),
        }
    }
}
