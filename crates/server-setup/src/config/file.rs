//! Finding and reading the file. The one place outside the workspace that opens a path: the operator's, or one
//! of a fixed name, and never a path that a client gave.

#![allow(clippy::disallowed_methods, reason = "the configuration is read before there is a workspace")]

use std::fs::File as Handle;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use process_runner::ConfinementLevel;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigLocation, Error};
use super::keys::{self, ROLE};
use super::setting::{Setting, SettingSource};
use super::setting_value::{ConfinementMode, EnvironmentMode, describe};
use super::tables::Config;
use did_you_mean::nearest;

/// The name of the file that is looked for.
pub const FILE_NAME: &str = "coretools.toml";

/// The table of remotes, whose keys are names.
const REMOTES: &str = "remotes";

/// The largest file that is read. A larger one is a mistake.
const MAX_BYTES: u64 = 1 << 20;

/// A configuration file that was read.
#[derive(Debug)]
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    text: String,
    origin: FileOrigin,
}

/// The way in which the file was chosen, which decides what it may set.
#[derive(Debug, PartialEq, Eq)]
enum FileOrigin {
    /// It was found in this folder or above it: it may come from a stranger, and may only narrow.
    Discovered(PathBuf),
    /// The operator named it, and it may set every key.
    Named,
}

/// Reads the file at `path`, which the operator named.
pub(super) fn read_named(path: &Path) -> Result<ConfigFile, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    // Without links: by this path the file is kept from tools, and relative paths in it begin at its folder.
    let path = path.canonicalize().map_err(failed)?;
    // Checked first, since opening a FIFO waits until somebody writes to it.
    check_file(&path.metadata().map_err(failed)?).map_err(failed)?;
    let text = Handle::open(&path).and_then(read).map_err(failed)?;
    Ok(ConfigFile { path, text, origin: FileOrigin::Named })
}

/// Finds and reads the nearest file in `start` or a folder above it. A `start` that does not exist has none: the
/// workspace reports the missing folder.
pub(super) fn discover(start: &Path) -> Result<Option<ConfigFile>, Error> {
    let Ok(start) = start.canonicalize() else { return Ok(None) };
    let mut paths = start.ancestors().map(|folder| folder.join(FILE_NAME));
    // A link counts too, even one that leads nowhere: it is refused below, and not passed over for a file further
    // up.
    let Some(path) = paths.find(|path| path.symlink_metadata().is_ok()) else { return Ok(None) };
    let text = trusted_file::open_no_follow(&path)
        .and_then(|file| Ok(read(file)?))
        .map_err(|source| Error::Untrusted { path: path.clone(), source })?;
    Ok(Some(ConfigFile { path, text, origin: FileOrigin::Discovered(start) }))
}

fn check_file(metadata: &std::fs::Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"))
}

fn read(file: Handle) -> io::Result<String> {
    let mut text = String::new();
    if file.take(MAX_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 MiB"));
    }
    Ok(text)
}

/// Applies what `text` says to `config`.
pub(super) fn apply(config: &mut Config, text: &ConfigFile) -> Result<(), Error> {
    let file = FileText { path: &text.path, text: &text.text };
    let table = file.table()?;
    file.apply(config, &table, "")?;
    // Before variables and flags are applied, which may set anything, so only the file's own values are judged.
    if text.origin != FileOrigin::Named {
        file.check_redaction(config, &table)?;
        file.check_databases(config, &table)?;
        file.check_inspection(config, &table)?;
        file.check_limits(config, &table)?;
        file.check_policy(config, &table)?;
        file.check_http(&table)?;
        file.check_sessions(&table)?;
        // Their commands would run as this user.
        file.check_absent(&table, REMOTES)?;
    }
    let folder = text.path.parent().unwrap_or(&text.path);
    for folders in [&mut config.roots, &mut config.sessions.watch] {
        folders.value.iter_mut().for_each(|path| *path = normalize(&folder.join(&*path)));
    }
    Ok(())
}

/// Applies the keys of a text that `is_allowed` takes to `config`.
#[cfg(all(feature = "remotes", unix))]
pub(super) fn apply_text(
    config: &mut Config,
    path: &Path,
    text: &str,
    is_allowed: impl Fn(&str) -> bool,
) -> Result<(), Error> {
    let file = FileText { path, text };
    let table = file.table()?;
    for (name, value) in &table {
        let keys: Vec<String> = match value.get_ref() {
            DeValue::Table(inner) if !is_allowed(name.get_ref()) => {
                inner.keys().map(|key| format!("{}.{}", name.get_ref(), key.get_ref())).collect()
            }
            _ => vec![name.get_ref().to_string()],
        };
        if let Some(key) = keys.iter().find(|key| !is_allowed(key)) {
            return Err(Error::UnknownKey {
                location: file.location(&name.span()),
                key: key.clone(),
                hint: "; the far end of a remote is told no such thing".to_owned(),
            });
        }
    }
    file.apply(config, &table, "")
}

/// Refuses roots that a file which was found may not open, if they are the ones that hold.
pub(super) fn check_roots(config: &Config, text: &ConfigFile) -> Result<(), Error> {
    let FileOrigin::Discovered(start) = &text.origin else { return Ok(()) };
    if !matches!(config.roots.source, SettingSource::File { .. }) {
        return Ok(());
    }
    for root in config.roots.iter() {
        // With links followed, since one beneath the start may lead out of it. A missing folder is reported when the
        // workspace is opened.
        let real = root.canonicalize().unwrap_or_else(|_| root.clone());
        if !real.starts_with(start) {
            let file = FileText { path: &text.path, text: &text.text };
            let location = file.location(&span(&file.table()?, "roots"));
            return Err(Error::RootOutside { location, root: root.clone(), start: start.clone() });
        }
    }
    Ok(())
}

/// Returns `path` without `.` and `..`, judged as text.
// Not by `canonicalize`, which fails for a path that does not exist yet, such as that of an audit.
pub(super) fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normalized.pop();
            }
            other => normalized.push(other),
        }
    }
    normalized
}

/// The text of a file with its path, for the locations in errors.
pub(super) struct FileText<'a> {
    pub(super) path: &'a Path,
    text: &'a str,
}

impl<'a> FileText<'a> {
    fn table(&self) -> Result<DeTable<'a>, Error> {
        DeTable::parse(self.text).map(Spanned::into_inner).map_err(|error| Error::Syntax {
            location: self.location(&error.span().unwrap_or_default()),
            message: error.message().replace('\n', ", "),
        })
    }

    /// Applies the keys of `table`, whose own name and a full stop are `prefix`.
    fn apply(&self, config: &mut Config, table: &DeTable<'_>, prefix: &str) -> Result<(), Error> {
        // In the order of the file, so that the first mistake in it is the one that is reported.
        let mut members: Vec<(&Spanned<_>, &Spanned<DeValue<'_>>)> = table.iter().collect();
        members.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in members {
            let key = format!("{prefix}{}", name.get_ref());
            let location = self.location(&value.span());
            if keys::KEYS.contains(&key.as_str()) {
                let line = match location {
                    ConfigLocation::File { line, .. } => line,
                    _ => 1,
                };
                let source = SettingSource::File { path: self.path.to_owned(), line };
                keys::set_toml(config, &key, value.get_ref(), location, source)?;
                if let Some(Setting { value: Some(path), .. }) = keys::path(config, &key) {
                    *path = normalize(&self.path.parent().unwrap_or(self.path).join(&*path));
                }
            } else if key == ROLE {
                let Some(role) = value.get_ref().as_str() else {
                    let found = describe(value.get_ref());
                    return Err(Error::Value {
                        location,
                        key,
                        expected: "the name of a role".to_owned(),
                        found,
                    });
                };
                let line = match location {
                    ConfigLocation::File { line, .. } => line,
                    _ => 1,
                };
                let source = SettingSource::File { path: self.path.to_owned(), line };
                config.roles.push(Setting { value: role.to_owned(), source });
            } else if prefix.is_empty() && key == REMOTES {
                self.apply_remotes(config, value)?;
            } else if prefix.is_empty() && is_table(&key) {
                let DeValue::Table(table) = value.get_ref() else {
                    let found = describe(value.get_ref());
                    return Err(Error::Value { location, key, expected: "a table".to_owned(), found });
                };
                self.apply(config, table, &format!("{key}."))?;
            } else {
                return Err(Error::UnknownKey {
                    location: self.location(&name.span()),
                    hint: hint(&key, prefix),
                    key,
                });
            }
        }
        Ok(())
    }

    /// Refuses remotes where this program has none.
    #[cfg(not(all(feature = "remotes", unix)))]
    fn apply_remotes(&self, _: &mut Config, value: &Spanned<DeValue<'_>>) -> Result<(), Error> {
        Err(Error::UnknownKey {
            location: self.location(&value.span()),
            key: REMOTES.to_owned(),
            hint: "; this program is built without remotes".to_owned(),
        })
    }

    /// Refuses a discovered file that turns redaction off.
    fn check_redaction(&self, config: &Config, table: &DeTable<'_>) -> Result<(), Error> {
        let settings = [
            ("enabled", &config.redaction.enabled),
            ("environment_values", &config.redaction.environment_values),
        ];
        for (name, setting) in settings {
            if **setting || !matches!(setting.source, SettingSource::File { .. }) {
                continue;
            }
            let key = format!("redaction.{name}");
            return Err(Error::Value {
                location: self.location(&span(table, &key)),
                key,
                expected: "true in a file that was not named with --config".to_owned(),
                found: "false".to_owned(),
            });
        }
        Ok(())
    }

    /// Refuses a discovered file that would have this user log in somewhere. It may name database files.
    fn check_databases(&self, config: &Config, table: &DeTable<'_>) -> Result<(), Error> {
        let connections = &config.databases.connections;
        // A colon makes it a URL, and the value of a variable may be one.
        let is_file = |address: &str| !address.contains(':') && !address.starts_with('$');
        if !matches!(connections.source, SettingSource::File { .. })
            || config.databases.connections().all(|(_, place)| is_file(&place))
        {
            return Ok(());
        }
        let key = "databases.connections";
        Err(Error::Value {
            location: self.location(&span(table, key)),
            key: key.to_owned(),
            expected: "paths of files in a file that was not named with --config".to_owned(),
            found: "a URL or a variable".to_owned(),
        })
    }

    /// Refuses a discovered file that would have this user's processes signalled, or processes outside the project
    /// inspected. It may name a file.
    fn check_inspection(&self, config: &Config, table: &DeTable<'_>) -> Result<(), Error> {
        let inspect = &config.inspect;
        let is_from_file = |source: &SettingSource| matches!(source, SettingSource::File { .. });
        let (key, expected, found) = if is_from_file(&inspect.allow_signals.source) && *inspect.allow_signals
        {
            ("inspect.allow_signals", "false", "true".to_owned())
        } else if is_from_file(&inspect.target.source)
            && !inspect.target.is_empty()
            && !inspect.target.starts_with("file:")
        {
            ("inspect.target", "file: and a path", format!("{:?}", *inspect.target))
        } else {
            return Ok(());
        };
        Err(Error::Value {
            location: self.location(&span(table, key)),
            key: key.to_owned(),
            expected: format!("{expected} in a file that was not named with --config"),
            found,
        })
    }

    /// Refuses a discovered file that raises a limit above its default.
    fn check_limits(&self, config: &Config, table: &DeTable<'_>) -> Result<(), Error> {
        let (limits, defaults) = (&config.limits, Config::default().limits);
        let pairs: [(&str, &Setting<u64>, u64); 4] = [
            ("limits.call_timeout_ms", &limits.call_timeout_ms, *defaults.call_timeout_ms),
            ("limits.max_timeout_ms", &limits.max_timeout_ms, *defaults.max_timeout_ms),
            ("limits.max_concurrent_calls", &limits.max_concurrent_calls, *defaults.max_concurrent_calls),
            ("limits.max_output_bytes", &limits.max_output_bytes, *defaults.max_output_bytes),
        ];
        match pairs.into_iter().find(|(_, limit, max)| limit.value > *max) {
            None => Ok(()),
            Some((key, limit, max)) => Err(Error::Value {
                location: self.location(&span(table, key)),
                key: key.to_owned(),
                expected: format!("at most {max}, the default, in a file that was not named with --config"),
                found: limit.value.to_string(),
            }),
        }
    }

    /// Refuses a discovered file that sets the policy, or has programs run less confined or with more of the
    /// environment.
    fn check_policy(&self, config: &Config, table: &DeTable<'_>) -> Result<(), Error> {
        let policy = &config.policy;
        let is_from_file = |source: &SettingSource| matches!(source, SettingSource::File { .. });
        let forbidden = [
            ("policy.file", is_from_file(&policy.file.source), "a policy"),
            ("policy.marker_key", is_from_file(&policy.marker_key.source), "a key"),
            ("policy.audit", is_from_file(&policy.audit.source), "an audit"),
            ("policy.audit_level", is_from_file(&policy.audit_level.source), "an audit"),
            ("policy.audit_when_full", is_from_file(&policy.audit_when_full.source), "an audit"),
            (
                "commands.environment",
                is_from_file(&config.commands.environment.source)
                    && *config.commands.environment == EnvironmentMode::Inherit,
                "\"inherit\"",
            ),
            ("commands.variables", is_from_file(&config.commands.variables.source), "variables"),
            ("policy.approvers", is_from_file(&policy.approvers.source), "approvers"),
            // Files are made and removed there.
            ("traces.folder", is_from_file(&config.traces.folder.source), "a folder"),
            (
                "policy.confinement",
                is_from_file(&policy.confinement.source) && *policy.confinement != ConfinementMode::Required,
                "confinement other than \"required\"",
            ),
            (
                "policy.confinement_level",
                is_from_file(&policy.confinement_level.source)
                    && *policy.confinement_level < ConfinementLevel::default(),
                "a level below the default",
            ),
        ];
        match forbidden.into_iter().find(|(_, is_set, _)| *is_set) {
            None => Ok(()),
            Some((key, _, what)) => Err(Error::Value {
                location: self.location(&span(table, key)),
                key: key.to_owned(),
                expected: "left out of a file that was not named with --config".to_owned(),
                found: what.to_owned(),
            }),
        }
    }

    /// Refuses a discovered file that sets who may call a server, and from where.
    fn check_http(&self, table: &DeTable<'_>) -> Result<(), Error> {
        self.check_absent(table, "http")
    }

    /// Refuses a discovered file that would have agents started, or their sessions kept elsewhere.
    fn check_sessions(&self, table: &DeTable<'_>) -> Result<(), Error> {
        self.check_absent(table, "sessions")
    }

    fn check_absent(&self, table: &DeTable<'_>, key: &str) -> Result<(), Error> {
        match table.get(key) {
            None => Ok(()),
            Some(found) => Err(Error::Value {
                location: self.location(&found.span()),
                key: key.to_owned(),
                expected: "left out of a file that was not named with --config".to_owned(),
                found: "a table".to_owned(),
            }),
        }
    }

    pub(super) fn location(&self, span: &Range<usize>) -> ConfigLocation {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ConfigLocation::File {
            path: self.path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// Returns the span of the value of `key`.
fn span(table: &DeTable<'_>, key: &str) -> Range<usize> {
    let value = match key.split_once('.') {
        Some((outer, inner)) => table.get(outer).and_then(|table| table.get_ref().get(inner)),
        None => table.get(key),
    };
    value.map(Spanned::span).unwrap_or_default()
}

fn is_table(name: &str) -> bool {
    tables().any(|table| table == name)
}

fn tables() -> impl Iterator<Item = &'static str> {
    keys::KEYS.iter().filter_map(|key| key.split_once('.').map(|(table, _)| table))
}

/// Returns a hint which key was meant: one of the same table, else one of another, else all keys of the table.
fn hint(key: &str, prefix: &str) -> String {
    let name = key.strip_prefix(prefix).unwrap_or(key);
    let mut here: Vec<&str> = keys::KEYS
        .iter()
        .chain([&ROLE])
        .filter_map(|key| key.strip_prefix(prefix))
        .map(|rest| rest.split('.').next().unwrap_or(rest))
        .collect();
    here.dedup();
    if let Some(near) = nearest(name, here.iter().copied()) {
        return format!("; did you mean `{near}`?");
    }
    let elsewhere = keys::KEYS.iter().copied().find(|key| {
        let last = key.rsplit('.').next().unwrap_or(key);
        nearest(name, [last]).is_some()
    });
    match elsewhere {
        Some(key) => format!("; did you mean `{key}`?"),
        None => format!("; the keys here are {}", here.join(", ")),
    }
}
