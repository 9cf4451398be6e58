//! Finding and reading the file. The one place outside the workspace that opens a path: the operator's, or one
//! of a fixed name, and never a path that a client gave.

#![allow(clippy::disallowed_methods, reason = "the configuration is read before there is a workspace")]

use std::fs::File as Handle;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Error, Place};
use super::{Config, ConfinementMode, FILE_NAME, ROLE, Setting, Source, keys};
use crate::nearest::nearest;

/// A larger file is a mistake.
const MAX_BYTES: u64 = 1 << 20;

/// A file that was read.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) path: PathBuf,
    text: String,
    trust: Trust,
}

/// How the file came to be read.
#[derive(Debug, PartialEq, Eq)]
enum Trust {
    /// It was found in this folder or above it.
    Found(PathBuf),
    /// The operator named it.
    Named,
}

/// The file at `path`, which the operator named.
pub(super) fn named(path: &Path) -> Result<Text, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let path = path.canonicalize().map_err(failed)?;
    // Opening a pipe would wait for somebody to write.
    check_file(&path.metadata().map_err(failed)?).map_err(failed)?;
    let text = Handle::open(&path).and_then(read).map_err(failed)?;
    Ok(Text { path, text, trust: Trust::Named })
}

/// The nearest file in `start` or a folder above it. No such folder has none: that it is missing is the
/// workspace's affair.
pub(super) fn found(start: &Path) -> Result<Option<Text>, Error> {
    let Ok(start) = start.canonicalize() else { return Ok(None) };
    let mut paths = start.ancestors().map(|folder| folder.join(FILE_NAME));
    let Some(path) = paths.find(|path| path.symlink_metadata().is_ok()) else { return Ok(None) };
    let text =
        open_found(&path).and_then(read).map_err(|source| Error::Untrusted { path: path.clone(), source })?;
    Ok(Some(Text { path, text, trust: Trust::Found(start) }))
}

/// Opens a file that nobody but its owner can have written, and judges what was opened.
#[cfg(unix)]
fn open_found(path: &Path) -> io::Result<Handle> {
    use rustix::fs::{Mode, OFlags};
    use std::os::unix::fs::MetadataExt;
    let denied = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if path.symlink_metadata()?.is_symlink() {
        return denied("it is a symbolic link".to_owned());
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = Handle::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    check_file(&metadata)?;
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user && metadata.uid() != 0 {
        return denied(format!("it belongs to user {}, and this server runs as user {user}", metadata.uid()));
    }
    // A umask of 002 is common where every user has a group of its own, of the same number.
    let others = if metadata.gid() == metadata.uid() { 0o002 } else { 0o022 };
    if metadata.mode() & others != 0 {
        let mode = metadata.mode() & 0o777;
        return denied(format!("others may write to it (mode {mode:03o}; `chmod go-w` ends that)"));
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open_found(path: &Path) -> io::Result<Handle> {
    // Of the name itself: a link is no file.
    check_file(&path.symlink_metadata()?)?;
    Handle::open(path)
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
pub(super) fn apply(config: &mut Config, text: &Text) -> Result<(), Error> {
    let file = File { path: &text.path, text: &text.text };
    let table = file.table()?;
    file.apply(config, &table, "")?;
    if text.trust != Trust::Named {
        file.keeps_redaction(config, &table)?;
        file.keeps_databases(config, &table)?;
        file.keeps_inspection(config, &table)?;
        file.keeps_limits(config, &table)?;
        file.keeps_policy(config, &table)?;
        file.keeps_http(&table)?;
        file.keeps_sessions(&table)?;
    }
    let folder = text.path.parent().unwrap_or(&text.path);
    for folders in [&mut config.roots, &mut config.sessions.watch] {
        folders.value.iter_mut().for_each(|path| *path = tidy(&folder.join(&*path)));
    }
    Ok(())
}

/// Refuses roots that a file which was found may not open, if they are the ones that hold.
pub(super) fn check_roots(config: &Config, text: &Text) -> Result<(), Error> {
    let Trust::Found(start) = &text.trust else { return Ok(()) };
    if !matches!(config.roots.source, Source::File { .. }) {
        return Ok(());
    }
    for root in config.roots.iter() {
        // Where a link inside leads is looked at as well; a folder that is not there is the workspace's affair.
        let real = root.canonicalize().unwrap_or_else(|_| root.clone());
        if !real.starts_with(start) {
            let file = File { path: &text.path, text: &text.text };
            let place = file.place(&span(&file.table()?, "roots"));
            return Err(Error::RootOutside { place, root: root.clone(), start: start.clone() });
        }
    }
    Ok(())
}

/// `path` without `.` and `..`, as text.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    tidy
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl<'a> File<'a> {
    fn table(&self) -> Result<DeTable<'a>, Error> {
        DeTable::parse(self.text).map(Spanned::into_inner).map_err(|error| Error::Syntax {
            place: self.place(&error.span().unwrap_or_default()),
            message: error.message().replace('\n', ", "),
        })
    }

    /// Applies the keys of `table`, whose own name and a full stop are `prefix`.
    fn apply(&self, config: &mut Config, table: &DeTable<'_>, prefix: &str) -> Result<(), Error> {
        // In the order of the file, so that the first thing wrong in it is the one that is told.
        let mut members: Vec<(&Spanned<_>, &Spanned<DeValue<'_>>)> = table.iter().collect();
        members.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in members {
            let key = format!("{prefix}{}", name.get_ref());
            let place = self.place(&value.span());
            if keys::KEYS.contains(&key.as_str()) {
                let line = match place {
                    Place::File { line, .. } => line,
                    _ => 1,
                };
                let source = Source::File { path: self.path.to_owned(), line };
                keys::set_toml(config, &key, value.get_ref(), place, source)?;
                if let Some(Setting { value: Some(path), .. }) = keys::path(config, &key) {
                    *path = tidy(&self.path.parent().unwrap_or(self.path).join(&*path));
                }
            } else if key == ROLE {
                let Some(role) = value.get_ref().as_str() else {
                    let found = super::value::describe(value.get_ref());
                    return Err(Error::Value {
                        place,
                        key,
                        expected: "the name of a role".to_owned(),
                        found,
                    });
                };
                let line = match place {
                    Place::File { line, .. } => line,
                    _ => 1,
                };
                let source = Source::File { path: self.path.to_owned(), line };
                config.roles.push(Setting { value: role.to_owned(), source });
            } else if prefix.is_empty() && is_table(&key) {
                let DeValue::Table(table) = value.get_ref() else {
                    let found = super::value::describe(value.get_ref());
                    return Err(Error::Value { place, key, expected: "a table".to_owned(), found });
                };
                self.apply(config, table, &format!("{key}."))?;
            } else {
                return Err(Error::UnknownKey {
                    place: self.place(&name.span()),
                    hint: hint(&key, prefix),
                    key,
                });
            }
        }
        Ok(())
    }

    /// Refuses a stranger's file that would have secrets shown.
    fn keeps_redaction(&self, config: &Config, table: &DeTable<'_>) -> Result<(), Error> {
        let settings = [
            ("enabled", &config.redaction.enabled),
            ("environment_values", &config.redaction.environment_values),
        ];
        for (name, setting) in settings {
            if **setting || !matches!(setting.source, Source::File { .. }) {
                continue;
            }
            let key = format!("redaction.{name}");
            return Err(Error::Value {
                place: self.place(&span(table, &key)),
                key,
                expected: "true in a file that was not named with --config".to_owned(),
                found: "false".to_owned(),
            });
        }
        Ok(())
    }

    /// Refuses a stranger's file that would have this user log in somewhere: it may name files.
    fn keeps_databases(&self, config: &Config, table: &DeTable<'_>) -> Result<(), Error> {
        let connections = &config.databases.connections;
        let is_file = |place: &str| !place.contains(':') && !place.starts_with('$');
        if !matches!(connections.source, Source::File { .. })
            || config.databases.connections().all(|(_, place)| is_file(&place))
        {
            return Ok(());
        }
        let key = "databases.connections";
        Err(Error::Value {
            place: self.place(&span(table, key)),
            key: key.to_owned(),
            expected: "paths of files in a file that was not named with --config".to_owned(),
            found: "a URL or a variable".to_owned(),
        })
    }

    /// Refuses a stranger's file that would have this user's processes signalled, or others than the project's looked
    /// into: it may name a file.
    fn keeps_inspection(&self, config: &Config, table: &DeTable<'_>) -> Result<(), Error> {
        let inspect = &config.inspect;
        let mine = |source: &Source| matches!(source, Source::File { .. });
        let (key, expected, found) = if mine(&inspect.allow_signals.source) && *inspect.allow_signals {
            ("inspect.allow_signals", "false", "true".to_owned())
        } else if mine(&inspect.target.source)
            && !inspect.target.is_empty()
            && !inspect.target.starts_with("file:")
        {
            ("inspect.target", "file: and a path", format!("{:?}", *inspect.target))
        } else {
            return Ok(());
        };
        Err(Error::Value {
            place: self.place(&span(table, key)),
            key: key.to_owned(),
            expected: format!("{expected} in a file that was not named with --config"),
            found,
        })
    }

    /// Refuses a stranger's file that would have a call take more than it may without the file.
    fn keeps_limits(&self, config: &Config, table: &DeTable<'_>) -> Result<(), Error> {
        let (limits, defaults) = (&config.limits, Config::default().limits);
        let pairs: [(&str, &Setting<u64>, u64); 4] = [
            ("limits.call_timeout_ms", &limits.call_timeout_ms, *defaults.call_timeout_ms),
            ("limits.max_timeout_ms", &limits.max_timeout_ms, *defaults.max_timeout_ms),
            ("limits.max_concurrent_calls", &limits.max_concurrent_calls, *defaults.max_concurrent_calls),
            ("limits.max_output_bytes", &limits.max_output_bytes, *defaults.max_output_bytes),
        ];
        match pairs.into_iter().find(|(_, limit, most)| limit.value > *most) {
            None => Ok(()),
            Some((key, limit, most)) => Err(Error::Value {
                place: self.place(&span(table, key)),
                key: key.to_owned(),
                expected: format!("at most {most}, the default, in a file that was not named with --config"),
                found: limit.value.to_string(),
            }),
        }
    }

    /// Refuses a stranger's file that would judge calls, or have programs run less confined.
    fn keeps_policy(&self, config: &Config, table: &DeTable<'_>) -> Result<(), Error> {
        let policy = &config.policy;
        let mine = |source: &Source| matches!(source, Source::File { .. });
        let wrong = [
            ("policy.file", mine(&policy.file.source), "a policy"),
            ("policy.marker_key", mine(&policy.marker_key.source), "a key"),
            ("policy.audit", mine(&policy.audit.source), "an audit"),
            ("policy.audit_when_full", mine(&policy.audit_when_full.source), "an audit"),
            // Files are made and removed there.
            ("traces.folder", mine(&config.traces.folder.source), "a folder"),
            (
                "policy.confinement",
                mine(&policy.confinement.source) && *policy.confinement != ConfinementMode::On,
                "confinement other than \"on\"",
            ),
        ];
        match wrong.into_iter().find(|(_, wrong, _)| *wrong) {
            None => Ok(()),
            Some((key, _, what)) => Err(Error::Value {
                place: self.place(&span(table, key)),
                key: key.to_owned(),
                expected: "left out of a file that was not named with --config".to_owned(),
                found: what.to_owned(),
            }),
        }
    }

    /// Refuses a stranger's file that would say who may call a server, and from where.
    fn keeps_http(&self, table: &DeTable<'_>) -> Result<(), Error> {
        self.leaves_out(table, "http")
    }

    /// Refuses a stranger's file that would have programs started, and started again, or something kept elsewhere.
    fn keeps_sessions(&self, table: &DeTable<'_>) -> Result<(), Error> {
        self.leaves_out(table, "sessions")
    }

    fn leaves_out(&self, table: &DeTable<'_>, key: &str) -> Result<(), Error> {
        match table.get(key) {
            None => Ok(()),
            Some(found) => Err(Error::Value {
                place: self.place(&found.span()),
                key: key.to_owned(),
                expected: "left out of a file that was not named with --config".to_owned(),
                found: "a table".to_owned(),
            }),
        }
    }

    fn place(&self, span: &Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place::File {
            path: self.path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// Where the value of `key` stands.
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

/// Which key was meant: one of the same table, else one of another, else all of the table are named.
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
