//! [`RemoteKind`]: a way to reach remotes, as argument vectors.

use crate::presets::PRESETS;
use crate::table::{Entry, TableError, entries};
use crate::template::{ArgumentTemplate, CommandTemplate, Placeholder};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::DeTable;

/// The folder of copied programs there, relative to the home folder there.
const DEFAULT_CACHE: &str = ".cache/coretools";

/// A way to reach remotes: the commands that connect to one, and that make, list and destroy it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteKind {
    /// The name: `ssh`. Empty for a kind of one's own.
    pub name: String,
    /// One sentence about it.
    pub description: String,
    /// The meaning of the target, such as `name of the container`. None if the kind takes no target.
    pub target: Option<String>,
    /// The options that it takes.
    pub options: BTreeMap<String, KindOption>,
    pub(crate) commands: KindCommands,
    /// The program there. By default the name of this program.
    pub(crate) binary: Option<ArgumentTemplate>,
    pub(crate) cache: Option<String>,
    /// The variables that its commands get beside those that every program needs. A `*` at the end stands for any ending.
    pub(crate) variables: Vec<String>,
}

/// An option of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindOption {
    /// The meaning of the option.
    pub description: String,
    /// The value that holds if none is given.
    pub default: Option<String>,
}

/// The commands of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KindCommands {
    pub(crate) connect: Option<CommandTemplate>,
    pub(crate) create: Option<CommandTemplate>,
    pub(crate) ready: Option<CommandTemplate>,
    pub(crate) destroy: Option<CommandTemplate>,
    pub(crate) list: Option<CommandTemplate>,
    pub(crate) copy: Option<CommandTemplate>,
    pub(crate) architecture: Option<CommandTemplate>,
}

/// The keys of a kind that a remote of the configuration may have too.
pub(crate) const SHARED_KEYS: [&str; 10] =
    ["connect", "create", "ready", "destroy", "list", "copy", "architecture", "binary", "cache", "variables"];

impl RemoteKind {
    /// Returns the preset of this name.
    ///
    /// # Errors
    /// The text of the preset is wrong, which a test of this crate excludes.
    pub fn preset(name: &str) -> Option<Result<Self, TableError>> {
        PRESETS.iter().find(|(preset, _)| *preset == name).map(|(name, text)| Self::parse(name, text))
    }

    /// Returns the names of all presets.
    pub fn preset_names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// Reads a kind from the text of its file.
    ///
    /// # Errors
    /// The first thing that is wrong in it.
    pub fn parse(name: &str, text: &str) -> Result<Self, TableError> {
        let table = DeTable::parse(text).map_err(|error| {
            TableError::new(error.span().unwrap_or_default(), error.message().replace('\n', ", "))
        })?;
        let mut known = vec!["description", "target", "options"];
        known.extend(SHARED_KEYS);
        let mut kind = Self { name: name.to_owned(), ..Self::default() };
        for entry in entries(table.get_ref(), &known)? {
            match entry.key {
                "description" => kind.description = entry.text()?,
                "target" => kind.target = Some(entry.text()?),
                "options" => kind.options = options(&entry)?,
                _ => kind.set_shared(&entry)?,
            }
        }
        kind.check(table.span().end)?;
        Ok(kind)
    }

    /// Sets a key that a remote of the configuration may have too.
    pub(crate) fn set_shared(&mut self, entry: &Entry<'_, '_>) -> Result<(), TableError> {
        let commands = &mut self.commands;
        match entry.key {
            "connect" => commands.connect = entry.command()?,
            "create" => commands.create = entry.command()?,
            "ready" => commands.ready = entry.command()?,
            "destroy" => commands.destroy = entry.command()?,
            "list" => commands.list = entry.command()?,
            "copy" => commands.copy = entry.command()?,
            "architecture" => commands.architecture = entry.command()?,
            "binary" => self.binary = Some(entry.argument()?),
            "cache" => self.cache = Some(entry.text()?),
            _ => self.variables = entry.texts()?,
        }
        Ok(())
    }

    /// Refuses a kind that cannot connect, or whose commands name what it does not have.
    pub(crate) fn check(&self, at: usize) -> Result<(), TableError> {
        let error = |message: String| Err(TableError::new(at..at, message));
        if self.commands.connect.is_none() {
            return error(
                "`connect` is missing: the command whose standard streams are the channel".to_owned(),
            );
        }
        // Before `create` runs, its name must be known to what ends it.
        if self.commands.create.is_some() && self.commands.destroy.is_none() {
            return error("`create` needs `destroy`, which ends what was created".to_owned());
        }
        for placeholder in self.commands.all().flat_map(CommandTemplate::placeholders) {
            match placeholder {
                Placeholder::Option(name) if !self.options.contains_key(name) => {
                    return error(format!("`{{option.{name}}}` is no option of this kind"));
                }
                Placeholder::Target if self.target.is_none() => {
                    return error("`{target}` is used by a kind that takes no target".to_owned());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns true if something is made for each connection, which must be destroyed in the end.
    pub fn has_lease(&self) -> bool {
        self.commands.destroy.is_some()
    }

    pub(crate) fn cache(&self) -> &str {
        self.cache.as_deref().unwrap_or(DEFAULT_CACHE)
    }
}

impl KindCommands {
    pub(crate) fn all(&self) -> impl Iterator<Item = &CommandTemplate> {
        let Self { connect, create, ready, destroy, list, copy, architecture } = self;
        [connect, create, ready, destroy, list, copy, architecture].into_iter().flatten()
    }
}

fn options(entry: &Entry<'_, '_>) -> Result<BTreeMap<String, KindOption>, TableError> {
    let option = |name: &Spanned<_>, value| {
        let name: &std::borrow::Cow<'_, str> = name.get_ref();
        let mut option = KindOption::default();
        let entry = Entry { key: name, value };
        for entry in entries(entry.table()?, &["description", "default"])? {
            match entry.key {
                "description" => option.description = entry.text()?,
                _ => option.default = Some(entry.text()?),
            }
        }
        Ok((name.to_string(), option))
    };
    entry.table()?.iter().map(|(name, value)| option(name, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_read_and_says_what_it_is() {
        for name in RemoteKind::preset_names() {
            let kind = RemoteKind::preset(name).unwrap().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!kind.description.is_empty() && kind.target.as_deref() != Some(""), "{name}");
            for (option, KindOption { description, .. }) in &kind.options {
                assert!(!description.is_empty(), "{name}: {option}");
            }
        }
    }

    #[test]
    fn what_cannot_be_used_is_an_error_with_its_place() {
        for (text, message) in [
            ("", "`connect` is missing"),
            ("connect = []", "`connect` is missing"),
            ("conect = ['x']", "did you mean `connect`?"),
            ("connect = 'x'", "`connect` must be an array"),
            ("connect = ['x', 1]", "`connect` must be an array"),
            ("connect = ['x', '{nothing}']", "`{nothing}` is no placeholder"),
            ("connect = ['x', '{target}']", "takes no target"),
            ("connect = ['x', '{option.port}']", "`{option.port}` is no option"),
            ("connect = ['x']\ncreate = ['y']", "`create` needs `destroy`"),
            ("connect = ['x']\noptions = { port = { defualt = '1' } }", "did you mean `default`?"),
            ("connect = [", "unclosed array"),
        ] {
            let error = RemoteKind::parse("own", text).expect_err(text);
            assert!(error.message.contains(message), "{text}: {error}");
        }
        let text = "connect = ['x', ['-p', '{option.port}']]\noptions.port.description = 'port'";
        assert!(!RemoteKind::parse("own", text).unwrap().has_lease());
    }
}
