//! The keys: one table for the file, the variables, the flags and what is shown.

use std::ops::RangeInclusive;
use std::path::Path;

use toml::de::DeValue;

use super::error::{ConfigLocation, Error};
use super::setting::{Setting, SettingSource};
use super::setting_value::{SettingValue, describe, split_named};
use super::tables::Config;

/// The start of every environment variable that sets a key.
pub(crate) const VARIABLE_PREFIX: &str = "CORETOOLS_";

/// The key of a role in the file. It is not in [`KEYS`], since roles add up and are never overridden.
pub(super) const ROLE: &str = "role";

/// One line of [`Config::entries`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingEntry {
    /// The key, with its table: `limits.call_timeout_ms`.
    pub key: &'static str,
    /// Its value, as the file would have it.
    pub value: String,
    /// The source of the value.
    pub source: SettingSource,
}

/// The variable by which the filesystem tools that came before took their one root.
pub(super) const BASE_PATH: &str = "FILESYSTEM_TOOLS_BASE_PATH";

/// Every key, with its table.
pub(super) const KEYS: &[&str] = &[
    "roots",
    "toolsets",
    "results",
    "limits.call_timeout_ms",
    "limits.max_timeout_ms",
    "limits.max_concurrent_calls",
    "limits.max_output_bytes",
    "commands.environment",
    "commands.variables",
    "context.catalogue",
    "logs.sources",
    "databases.connections",
    "inspect.target",
    "inspect.allow_signals",
    "traces.folder",
    "redaction.enabled",
    "redaction.environment_values",
    "redaction.variables",
    "policy.file",
    "policy.marker_key",
    "policy.audit",
    "policy.audit_level",
    "policy.audit_when_full",
    "policy.confinement",
    "policy.confinement_level",
    "policy.network",
    "policy.approvers",
    "policy.approval_timeout_ms",
    "http.listen",
    "http.behind_proxy",
    "http.hosts",
    "http.origins",
    "http.tls_certificate",
    "http.tls_key",
    "http.tokens",
    "http.anonymous_role",
    "http.peers",
    "http.metrics_listen",
    "http.max_body_bytes",
    "http.max_connections",
    "http.header_timeout_ms",
    "http.body_timeout_ms",
    "http.drain_ms",
    "http.max_sessions",
    "http.session_idle_ms",
    "http.calls_per_second",
    "http.calls_in_flight",
    "http.queue",
    "http.queue_ms",
    "http.bytes_per_minute",
    "http.processes",
    "http.max_queue",
    "http.max_bytes_per_second",
    "http.max_processes",
    "http.reserved_calls",
    "http.token_usage",
    "http.audit_database",
    "http.lease_database",
    "http.lease_silence_ms",
    "http.public_url",
    "http.jwt_issuer",
    "http.jwt_audience",
    "http.jwt_keys",
    "http.jwt_algorithms",
    "http.jwt_roles",
    "http.jwt_remotes",
    "http.jwt_scope",
    "sessions.state_dir",
    "sessions.agents",
    "sessions.command",
    "sessions.watch",
    "sessions.max_sessions",
    "sessions.max_per_caller",
    "sessions.resume_after_limit",
    "sessions.renew_context",
    "sessions.restart_after_crash",
    "sessions.backoff_base_ms",
    "sessions.backoff_cap_ms",
    "sessions.max_attempts",
    "sessions.log_bytes",
    "sessions.manual_restart_s",
];

/// Returns the setting of a key that is a path, relative to the file it is in or to the folder the server was started
/// in.
pub(super) fn path<'a>(
    config: &'a mut Config,
    key: &str,
) -> Option<&'a mut Setting<Option<std::path::PathBuf>>> {
    match key {
        "policy.file" => Some(&mut config.policy.file),
        "policy.marker_key" => Some(&mut config.policy.marker_key),
        "policy.audit" => Some(&mut config.policy.audit),
        "http.tls_certificate" => Some(&mut config.http.tls_certificate),
        "http.tls_key" => Some(&mut config.http.tls_key),
        "http.tokens" => Some(&mut config.http.tokens),
        "http.token_usage" => Some(&mut config.http.token_usage),
        "context.catalogue" => Some(&mut config.context.catalogue),
        "traces.folder" => Some(&mut config.traces.folder),
        "sessions.state_dir" => Some(&mut config.sessions.state_dir),
        "sessions.agents" => Some(&mut config.sessions.agents),
        _ => None,
    }
}

/// Returns the setting of a key that is a list of folders, relative in the same way.
pub(super) fn folders<'a>(
    config: &'a mut Config,
    key: &str,
) -> Option<&'a mut Setting<Vec<std::path::PathBuf>>> {
    match key {
        "roots" => Some(&mut config.roots),
        "sessions.watch" => Some(&mut config.sessions.watch),
        _ => None,
    }
}

/// Returns the name of the environment variable that sets `key`.
pub(super) fn variable(key: &str) -> String {
    format!("{VARIABLE_PREFIX}{}", key.replace('.', "_").to_ascii_uppercase())
}

/// Returns the key whose variable is the prefix followed by `rest`.
// By comparing whole names: `_` stands for `.` and for itself, so a variable cannot be turned back into its key.
pub(super) fn by_variable(rest: &str) -> Option<&'static str> {
    KEYS.iter().copied().find(|key| variable(key).strip_prefix(VARIABLE_PREFIX) == Some(rest))
}

/// An operation on the setting of one key, whatever the type of its value.
// A trait, since a closure cannot be generic over that type.
trait SettingVisitor {
    type Result;
    fn visit<T: SettingValue>(self, setting: &mut Setting<T>, allowed: AllowedValues<T>) -> Self::Result;
}

/// The values of the right type that a key takes, with a description of them for messages.
struct AllowedValues<T> {
    check: Box<dyn Fn(&T) -> bool>,
    expected: String,
}

/// The description of the names that `commands.variables` takes.
const VARIABLES: &str = "a list of names of variables, which may end in `*`";

/// Returns true if `name` is that of a variable, or the beginning of one and a `*`.
fn is_variable(name: &str) -> bool {
    let name = name.strip_suffix('*').unwrap_or(name);
    !name.is_empty() && !name.contains(['=', '\0', '*'])
}

/// Calls `visitor` with the setting of `key`. Returns `None` if there is no such key.
fn visit<V: SettingVisitor>(config: &mut Config, key: &str, visitor: V) -> Option<V::Result> {
    fn any<T: SettingValue>() -> AllowedValues<T> {
        AllowedValues { check: Box::new(|_| true), expected: T::expected() }
    }
    fn within(range: RangeInclusive<u64>, unit: &str) -> AllowedValues<u64> {
        let expected = format!("a whole number{unit} from {} to {}", range.start(), range.end());
        AllowedValues { check: Box::new(move |value| range.contains(value)), expected }
    }
    /// The longest time that a key takes, in milliseconds: a day.
    const MAX_TIME: u64 = 86_400_000;
    // Each table is borrowed on its own, so that the arms of one `match` can borrow different tables.
    let (limits, commands, redaction) = (&mut config.limits, &mut config.commands, &mut config.redaction);
    let http = &mut config.http;
    Some(match key {
        "roots" => visitor.visit(&mut config.roots, any()),
        "toolsets" => visitor.visit(&mut config.toolsets, any()),
        "results" => visitor.visit(&mut config.results, any()),
        "limits.call_timeout_ms" => {
            visitor.visit(&mut limits.call_timeout_ms, within(1..=MAX_TIME, " of milliseconds"))
        }
        "limits.max_timeout_ms" => {
            visitor.visit(&mut limits.max_timeout_ms, within(1..=MAX_TIME, " of milliseconds"))
        }
        "limits.max_concurrent_calls" => {
            visitor.visit(&mut limits.max_concurrent_calls, within(1..=4096, ""))
        }
        "limits.max_output_bytes" => {
            visitor.visit(&mut limits.max_output_bytes, within(1000..=64 << 20, " of bytes"))
        }
        "commands.environment" => visitor.visit(&mut commands.environment, any()),
        "commands.variables" => visitor.visit(
            &mut commands.variables,
            AllowedValues {
                check: Box::new(|names: &Vec<String>| names.iter().all(|name| is_variable(name))),
                expected: VARIABLES.to_owned(),
            },
        ),
        "logs.sources" => visitor.visit(
            &mut config.logs.sources,
            AllowedValues {
                check: Box::new(|sources: &Vec<String>| are_sources(sources)),
                expected: SOURCES.to_owned(),
            },
        ),
        "databases.connections" => visitor.visit(
            &mut config.databases.connections,
            AllowedValues {
                check: Box::new(|connections: &Vec<String>| are_connections(connections)),
                expected: CONNECTIONS.to_owned(),
            },
        ),
        "inspect.target" => visitor.visit(&mut config.inspect.target, any()),
        "inspect.allow_signals" => visitor.visit(&mut config.inspect.allow_signals, any()),
        "context.catalogue" => visitor.visit(&mut config.context.catalogue, any()),
        "traces.folder" => visitor.visit(&mut config.traces.folder, any()),
        "redaction.enabled" => visitor.visit(&mut redaction.enabled, any()),
        "redaction.environment_values" => visitor.visit(&mut redaction.environment_values, any()),
        "redaction.variables" => visitor.visit(&mut redaction.variables, any()),
        "policy.file" => visitor.visit(&mut config.policy.file, any()),
        "policy.marker_key" => visitor.visit(&mut config.policy.marker_key, any()),
        "policy.audit" => visitor.visit(&mut config.policy.audit, any()),
        "policy.audit_level" => visitor.visit(&mut config.policy.audit_level, any()),
        "policy.audit_when_full" => visitor.visit(&mut config.policy.audit_when_full, any()),
        "policy.confinement" => visitor.visit(&mut config.policy.confinement, any()),
        "policy.confinement_level" => visitor.visit(&mut config.policy.confinement_level, any()),
        "policy.network" => visitor.visit(&mut config.policy.network, any()),
        "policy.approvers" => visitor.visit(&mut config.policy.approvers, any()),
        "policy.approval_timeout_ms" => {
            visitor.visit(&mut config.policy.approval_timeout_ms, within(1..=MAX_TIME, " of milliseconds"))
        }
        "http.listen" => visitor.visit(&mut http.listen, any()),
        "http.behind_proxy" => visitor.visit(&mut http.behind_proxy, any()),
        "http.hosts" => visitor.visit(&mut http.hosts, any()),
        "http.origins" => visitor.visit(&mut http.origins, any()),
        "http.tls_certificate" => visitor.visit(&mut http.tls_certificate, any()),
        "http.tls_key" => visitor.visit(&mut http.tls_key, any()),
        "http.tokens" => visitor.visit(&mut http.tokens, any()),
        "http.anonymous_role" => visitor.visit(&mut http.anonymous_role, any()),
        "http.peers" => visitor.visit(&mut http.peers, any()),
        "http.metrics_listen" => visitor.visit(&mut http.metrics_listen, any()),
        "http.max_body_bytes" => {
            visitor.visit(&mut http.max_body_bytes, within(1024..=64 << 20, " of bytes"))
        }
        "http.max_connections" => visitor.visit(&mut http.max_connections, within(1..=1_000_000, "")),
        "http.header_timeout_ms" => {
            visitor.visit(&mut http.header_timeout_ms, within(100..=3_600_000, " of milliseconds"))
        }
        "http.body_timeout_ms" => {
            visitor.visit(&mut http.body_timeout_ms, within(100..=3_600_000, " of milliseconds"))
        }
        "http.drain_ms" => visitor.visit(&mut http.drain_ms, within(0..=3_600_000, " of milliseconds")),
        "http.max_sessions" => visitor.visit(&mut http.max_sessions, within(1..=100_000, "")),
        "http.session_idle_ms" => {
            visitor.visit(&mut http.session_idle_ms, within(1000..=604_800_000, " of milliseconds"))
        }
        "http.calls_per_second" => visitor.visit(&mut http.calls_per_second, within(1..=1_000_000, "")),
        "http.calls_in_flight" => visitor.visit(&mut http.calls_in_flight, within(1..=4096, "")),
        "http.queue" => visitor.visit(&mut http.queue, within(0..=100_000, "")),
        "http.queue_ms" => visitor.visit(&mut http.queue_ms, within(0..=600_000, " of milliseconds")),
        "http.bytes_per_minute" => {
            visitor.visit(&mut http.bytes_per_minute, within(1024..=1 << 50, " of bytes"))
        }
        "http.processes" => visitor.visit(&mut http.processes, within(0..=4096, "")),
        "http.max_queue" => visitor.visit(&mut http.max_queue, within(0..=1_000_000, "")),
        "http.max_bytes_per_second" => {
            visitor.visit(&mut http.max_bytes_per_second, within(1024..=1 << 40, " of bytes"))
        }
        "http.max_processes" => visitor.visit(&mut http.max_processes, within(0..=65_536, "")),
        "http.reserved_calls" => visitor.visit(&mut http.reserved_calls, within(0..=4096, "")),
        "http.token_usage" => visitor.visit(&mut http.token_usage, any()),
        "http.audit_database" => visitor.visit(&mut http.audit_database, any()),
        "http.lease_database" => visitor.visit(&mut http.lease_database, any()),
        "http.lease_silence_ms" => {
            visitor.visit(&mut http.lease_silence_ms, within(15_000..=3_600_000, " of milliseconds"))
        }
        "http.public_url" => visitor.visit(&mut http.public_url, any()),
        "http.jwt_issuer" => visitor.visit(&mut http.jwt_issuer, any()),
        "http.jwt_audience" => visitor.visit(&mut http.jwt_audience, any()),
        "http.jwt_keys" => visitor.visit(&mut http.jwt_keys, any()),
        "http.jwt_algorithms" => visitor.visit(&mut http.jwt_algorithms, any()),
        "http.jwt_roles" => visitor.visit(&mut http.jwt_roles, any()),
        "http.jwt_remotes" => visitor.visit(&mut http.jwt_remotes, any()),
        "http.jwt_scope" => visitor.visit(&mut http.jwt_scope, any()),
        "sessions.state_dir" => visitor.visit(&mut config.sessions.state_dir, any()),
        "sessions.agents" => visitor.visit(&mut config.sessions.agents, any()),
        "sessions.command" => visitor.visit(&mut config.sessions.command, any()),
        "sessions.watch" => visitor.visit(&mut config.sessions.watch, any()),
        "sessions.max_sessions" => visitor.visit(&mut config.sessions.max_sessions, within(1..=10_000, "")),
        "sessions.max_per_caller" => {
            visitor.visit(&mut config.sessions.max_per_caller, within(1..=10_000, ""))
        }
        "sessions.resume_after_limit" => visitor.visit(&mut config.sessions.resume_after_limit, any()),
        "sessions.renew_context" => visitor.visit(&mut config.sessions.renew_context, any()),
        "sessions.restart_after_crash" => visitor.visit(&mut config.sessions.restart_after_crash, any()),
        "sessions.backoff_base_ms" => {
            visitor.visit(&mut config.sessions.backoff_base_ms, within(1..=MAX_TIME, " of milliseconds"))
        }
        "sessions.backoff_cap_ms" => {
            visitor.visit(&mut config.sessions.backoff_cap_ms, within(1..=MAX_TIME, " of milliseconds"))
        }
        "sessions.max_attempts" => visitor.visit(&mut config.sessions.max_attempts, within(0..=1000, "")),
        "sessions.log_bytes" => {
            visitor.visit(&mut config.sessions.log_bytes, within(4096..=1 << 30, " of bytes"))
        }
        "sessions.manual_restart_s" => {
            visitor.visit(&mut config.sessions.manual_restart_s, within(60..=1800, " of seconds"))
        }
        _ => return None,
    })
}

const SOURCES: &str = "a list of `name=path or glob`";

fn are_sources(sources: &[String]) -> bool {
    sources.iter().all(|source| split_named(source).is_some())
}

const CONNECTIONS: &str = "a list of `name=path, URL or $VARIABLE`";

fn are_connections(connections: &[String]) -> bool {
    connections.iter().all(|connection| split_named(connection).is_some())
}

/// Returns true if the value of the key may contain a password, so that no message shows it.
fn is_secret(key: &str) -> bool {
    matches!(key, "databases.connections" | "http.audit_database")
}

/// The value is not one that its key takes.
struct ValueNotAllowed {
    /// The values that the key takes, in words.
    expected: String,
}

/// Sets `key` to the value that the file has at `location`.
pub(super) fn set_toml(
    config: &mut Config,
    key: &str,
    value: &DeValue<'_>,
    location: ConfigLocation,
    source: SettingSource,
) -> Result<(), Error> {
    struct SetFromToml<'a, 'i>(&'a DeValue<'i>, SettingSource);
    impl SettingVisitor for SetFromToml<'_, '_> {
        type Result = Result<(), ValueNotAllowed>;
        fn visit<T: SettingValue>(self, setting: &mut Setting<T>, allowed: AllowedValues<T>) -> Self::Result {
            match T::from_toml(self.0).filter(|value| (allowed.check)(value)) {
                Some(value) => *setting = Setting { value, source: self.1 },
                None => return Err(ValueNotAllowed { expected: allowed.expected }),
            }
            Ok(())
        }
    }
    match visit(config, key, SetFromToml(value, source)) {
        Some(Err(ValueNotAllowed { expected })) => {
            let found = if is_secret(key) { "another value".to_owned() } else { describe(value) };
            Err(Error::Value { location, key: key.to_owned(), expected, found })
        }
        _ => Ok(()),
    }
}

/// Sets `key` to the text of a variable or a flag; relative paths are relative to `folder`.
pub(super) fn set_text(
    config: &mut Config,
    key: &str,
    text: &str,
    folder: &Path,
    source: SettingSource,
) -> Result<(), Error> {
    struct SetFromText<'a>(&'a str, SettingSource);
    impl SettingVisitor for SetFromText<'_> {
        type Result = Result<(), ValueNotAllowed>;
        fn visit<T: SettingValue>(self, setting: &mut Setting<T>, allowed: AllowedValues<T>) -> Self::Result {
            match T::from_text(self.0.trim()).filter(|value| (allowed.check)(value)) {
                Some(value) => *setting = Setting { value, source: self.1 },
                None => return Err(ValueNotAllowed { expected: allowed.expected }),
            }
            Ok(())
        }
    }
    let location = match &source {
        SettingSource::Flag(name) => ConfigLocation::Flag(name),
        SettingSource::Variable(name) => ConfigLocation::Variable(name.clone()),
        SettingSource::Default | SettingSource::File { .. } | SettingSource::ServerInFront => {
            ConfigLocation::Variable(variable(key))
        }
    };
    if let Some(Err(ValueNotAllowed { expected })) = visit(config, key, SetFromText(text, source)) {
        let found = match is_secret(key) {
            // The start is enough to recognize the value, which may be of any length.
            true => "another value".to_owned(),
            false => format!("{:?}", text.chars().take(60).collect::<String>()),
        };
        return Err(Error::Value { location, key: key.to_owned(), expected, found });
    }
    if let Some(folders) = folders(config, key) {
        // A path of a variable or a flag is relative to the folder of the process, and never to a file.
        folders.value.iter_mut().for_each(|path| *path = folder.join(&*path));
    }
    if let Some(Setting { value: Some(path), .. }) = path(config, key) {
        *path = folder.join(&*path);
    }
    Ok(())
}

/// Returns `key` with its value and its source.
pub(super) fn show(config: &Config, key: &'static str) -> Option<SettingEntry> {
    struct ShowValue(&'static str);
    impl SettingVisitor for ShowValue {
        type Result = SettingEntry;
        fn visit<T: SettingValue>(self, setting: &mut Setting<T>, _: AllowedValues<T>) -> SettingEntry {
            let value = if is_secret(self.0) { "[not shown]".to_owned() } else { setting.value.to_toml() };
            SettingEntry { key: self.0, value, source: setting.source.clone() }
        }
    }
    // On a copy, since a visitor gets its setting to be changed.
    visit(&mut config.clone(), key, ShowValue(key))
}
