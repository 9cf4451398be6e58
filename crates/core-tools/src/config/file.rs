//! Finding and reading the file. The one place outside the workspace that opens a path: the operator's, or one
//! of a fixed name, and never a path that a client gave.

#![allow(clippy::disallowed_methods, reason = "the configuration is read before there is a workspace")]

use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Error, Place};
use super::{Config, FILE_NAME, Search, Source, keys};
use crate::nearest::nearest;

/// A larger file is a mistake.
const MAX_BYTES: u64 = 1 << 20;

/// How the file came to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It was found beside the project.
    Found,
    /// The operator named it.
    Named,
}

/// The file that `search` leads to.
pub(super) fn locate(search: Search<'_>) -> Result<Option<(PathBuf, Trust)>, Error> {
    match search {
        Search::Nowhere => Ok(None),
        Search::File(path) => Ok(Some((absolute(path)?, Trust::Named))),
        Search::Upward(folder) => {
            let folder = absolute(folder)?;
            let mut paths = folder.ancestors().map(|folder| folder.join(FILE_NAME));
            Ok(paths.find(|path| path.is_file()).map(|path| (path, Trust::Found)))
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Reads the file at `path` into `config`.
pub(super) fn apply(config: &mut Config, path: &Path, trust: Trust) -> Result<(), Error> {
    let text = read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let file = File { path, text: &text };
    let table = DeTable::parse(&text).map_err(|error| Error::Syntax {
        place: file.place(&error.span().unwrap_or_default()),
        message: error.message().replace('\n', ", "),
    })?;
    file.apply(config, table.get_ref(), "")?;
    if trust == Trust::Found {
        file.keeps_redaction(config, table.get_ref())?;
    }
    let folder = path.parent().unwrap_or(path);
    for root in config.roots.value.iter_mut().filter(|_| matches!(config.roots.source, Source::File { .. })) {
        let whole = tidy(&folder.join(&*root));
        // Where a link inside leads is looked at as well; a folder that is not there is the workspace's affair.
        let real = whole.canonicalize().unwrap_or_else(|_| whole.clone());
        if trust == Trust::Found && !real.starts_with(folder) {
            let place = match table.get_ref().get("roots") {
                Some(value) => file.place(&value.span()),
                None => file.place(&(0..0)),
            };
            return Err(Error::RootOutside { place, root: root.clone() });
        }
        *root = whole;
    }
    Ok(())
}

fn read(path: &Path) -> io::Result<String> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    if metadata.len() > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 MiB"));
    }
    std::fs::read_to_string(path)
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

impl File<'_> {
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
            let value = table.get("redaction").and_then(|table| table.get_ref().get(name));
            return Err(Error::Value {
                place: self.place(&value.map(Spanned::span).unwrap_or_default()),
                key: format!("redaction.{name}"),
                expected: "true in a file that was not named with --config".to_owned(),
                found: "false".to_owned(),
            });
        }
        Ok(())
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
