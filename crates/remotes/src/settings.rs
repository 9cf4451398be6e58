//! [`RemoteSettings`]: one remote, as the configuration or the command line describes it.

use crate::kind::{KindOption, RemoteKind, SHARED_KEYS};
use crate::shown::shown;
use crate::table::{TableError, entries};
use crate::template::Placeholder;
use did_you_mean::nearest;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use toml::de::DeTable;

/// The most remotes of one kind that are made ahead.
const MAX_WARM: usize = 64;

/// One remote: its kind, its target, its roots, and how long it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteSettings {
    /// Its name in the configuration, or the text of the command line.
    pub name: String,
    /// The way to reach it.
    pub kind: RemoteKind,
    /// The target, if the kind takes one.
    pub target: Option<String>,
    /// The folders there that tools may use. Empty: the folder that the server there starts in.
    pub roots: Vec<String>,
    /// The values of the options of the kind.
    pub options: BTreeMap<String, String>,
    /// True if this program is copied there. False by default: it must be there.
    pub copy_binary: bool,
    /// The folder of programs for other architectures, each called as this one with `-` and the architecture.
    pub binaries: Option<PathBuf>,
    /// True if callers may choose it by the tool `use_remote`. False by default.
    pub is_choosable: bool,
    /// The number of them that are made ahead, before anybody calls. 0 by default.
    pub warm: usize,
    /// The time without a call after which the connection ends. None: never.
    pub idle: Option<Duration>,
    /// The time after which what was created is destroyed. None: with this server.
    pub life: Option<Duration>,
    /// The time that `create` and `ready` may take together.
    pub create_timeout: Duration,
    /// The time for which the server there goes on after a connection was lost, with all that runs there. None: it ends.
    pub grace: Option<Duration>,
    /// The time from the start of `connect` to the answer of the server there.
    pub connect_timeout: Duration,
}

/// The reason why a text of the command line names no remote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteNameError {
    /// It is neither the name of a remote nor a kind with a target.
    #[error(
        "there is no remote `{name}`{hint}; give NAME of a [remotes.NAME] in the configuration, or KIND:TARGET[:ROOT]"
    )]
    Unknown {
        /// The text.
        name: String,
        /// The nearest name, or nothing.
        hint: String,
    },
    /// There is no such kind.
    #[error("there is no kind of remotes `{name}`; {hint}")]
    UnknownKind {
        /// The text before the first colon.
        name: String,
        /// The nearest kind, or all kinds.
        hint: String,
    },
    /// The kind does not take this.
    #[error("{0}")]
    Values(String),
    /// A preset cannot be read.
    #[error("the preset `{0}` cannot be read: {1}")]
    Preset(String, TableError),
}

impl RemoteSettings {
    fn new(name: String, kind: RemoteKind) -> Self {
        const MINUTE: Duration = Duration::from_secs(60);
        // A container that nobody uses costs somebody; a connection alone costs nothing.
        let has_lease = kind.has_lease();
        Self {
            name,
            kind,
            target: None,
            roots: Vec::new(),
            options: BTreeMap::new(),
            copy_binary: false,
            binaries: None,
            is_choosable: false,
            warm: 0,
            idle: has_lease.then_some(10 * MINUTE),
            life: has_lease.then_some(8 * 60 * MINUTE),
            create_timeout: 2 * MINUTE,
            grace: None,
            connect_timeout: Duration::from_secs(20),
        }
    }

    /// Reads `[remotes.NAME]`, whose content is `table` at `span`.
    ///
    /// # Errors
    /// The first thing that is wrong in it.
    pub fn parse(name: &str, table: &DeTable<'_>, span: &Range<usize>) -> Result<Self, TableError> {
        let error = |message: String| TableError::new(span.start..span.start, message);
        if !is_name(name) {
            let expected = "1 to 32 of a-z, 0-9 and `-`, and does not begin with `-`";
            return Err(error(format!("`{}` is no name of a remote, which has {expected}", shown(name))));
        }
        let mut known =
            vec!["kind", "target", "roots", "options", "copy_binary", "binaries", "choosable", "warm"];
        known.extend(["idle_s", "life_s", "create_timeout_s", "connect_timeout_s", "grace_s"]);
        known.extend(SHARED_KEYS);
        let entries = entries(table, &known)?;
        let kind = match entries.iter().find(|entry| entry.key == "kind") {
            None => None,
            Some(entry) => {
                let kind = entry.text()?;
                Some(preset(&kind).map_err(|error| entry.refused(&error.to_string()))?)
            }
        };
        let is_own = kind.is_none();
        let mut remote = Self::new(name.to_owned(), kind.unwrap_or_default());
        for entry in &entries {
            let time = || entry.seconds()?.ok_or_else(|| entry.refused("it must be at least 1 second"));
            match entry.key {
                "kind" => {}
                "target" => remote.target = Some(entry.text()?),
                "roots" => remote.roots = entry.texts()?,
                "options" => remote.options = entry.text_table()?,
                "copy_binary" => remote.copy_binary = entry.bool()?,
                "binaries" => remote.binaries = Some(entry.text()?.into()),
                "choosable" => remote.is_choosable = entry.bool()?,
                "warm" => remote.warm = entry.number(MAX_WARM)?,
                "idle_s" => remote.idle = entry.seconds()?,
                "grace_s" => remote.grace = entry.seconds()?,
                "life_s" => remote.life = entry.seconds()?,
                "create_timeout_s" => remote.create_timeout = time()?,
                "connect_timeout_s" => remote.connect_timeout = time()?,
                _ => remote.kind.set_shared(entry)?,
            }
        }
        if is_own {
            // A kind of one's own declares nothing: it takes what it is given.
            remote.kind.target = remote.target.is_some().then(|| "target".to_owned());
            let names = remote.options.keys().cloned();
            remote.kind.options = names.map(|name| (name, KindOption::default())).collect();
        }
        remote.kind.check(span.start)?;
        remote.check().map_err(|problem| error(problem.to_string()))?;
        if remote.grace.is_some() && remote.kind.has_lease() && remote.kind.commands.create.is_none() {
            return Err(error("`grace_s` needs a kind that does not create with the connection".to_owned()));
        }
        if is_own
            && remote.warm > 0
            && remote
                .kind
                .commands
                .all()
                .any(|command| command.placeholders().any(|placeholder| *placeholder == Placeholder::Caller))
        {
            return Err(error(
                "`warm` makes remotes before their callers are known, and a command has `{caller}`"
                    .to_owned(),
            ));
        }
        if remote.is_choosable && !remote.roots.first().is_some_and(|root| root.starts_with('/')) {
            return Err(error("`choosable` needs `roots`, the first of which begins with `/`".to_owned()));
        }
        Ok(remote)
    }

    /// Finds the remote and the root that `text` names: `NAME:ROOT` with one of `configured`, or `KIND:TARGET:ROOT`.
    /// Returns `None` for a text that has not this form, which is a folder of this machine.
    ///
    /// # Errors
    /// As [`named`](Self::named).
    pub fn root(text: &str, configured: &[Self]) -> Option<Result<Self, RemoteNameError>> {
        let (name, root) = text.rsplit_once(':').filter(|(_, root)| is_root(root))?;
        if let Some(remote) = configured.iter().find(|remote| remote.name == name) {
            let remote = Self { roots: vec![root.to_owned()], ..remote.clone() };
            return Some(remote.check().map(|()| remote));
        }
        let is_kind = |kind: &str| RemoteKind::preset_names().any(|preset| preset == kind);
        name.split_once(':').filter(|(kind, _)| is_kind(kind))?;
        Some(Self::named(text, BTreeMap::new(), configured))
    }

    /// Returns the name before the colon of paths on this remote: the name in the configuration, or `KIND:TARGET`.
    pub fn path_name(&self) -> String {
        let root = self.roots.first().map(|root| format!(":{root}"));
        match root.and_then(|root| self.name.strip_suffix(&root).map(str::to_owned)) {
            Some(name) => name,
            None => self.name.clone(),
        }
    }

    /// Finds the remote that `text` names: one of `configured`, or `KIND:TARGET[:ROOT]`. The root begins with `/` or
    /// `~/` and stands behind the last colon.
    ///
    /// # Errors
    /// There is no such remote or kind, or the kind does not take these values.
    pub fn named(
        text: &str,
        options: BTreeMap<String, String>,
        configured: &[Self],
    ) -> Result<Self, RemoteNameError> {
        if let Some(remote) = configured.iter().find(|remote| remote.name == text) {
            let mut remote = remote.clone();
            remote.options.extend(options);
            remote.check()?;
            return Ok(remote);
        }
        let Some((kind, rest)) = text.split_once(':') else {
            let near = nearest(text, configured.iter().map(|remote| remote.name.as_str()));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(RemoteNameError::Unknown { name: shown(text), hint });
        };
        let mut remote = Self::new(text.to_owned(), preset(kind)?);
        // The last colon separates the root, because a target may contain colons itself, as an IPv6 address does.
        let (target, root) = match rest.rsplit_once(':') {
            Some((target, root)) if is_root(root) => (target, Some(root)),
            _ => (rest, None),
        };
        remote.target = (!target.is_empty()).then(|| target.to_owned());
        remote.roots = root.map(str::to_owned).into_iter().collect();
        remote.options = options;
        remote.check()?;
        Ok(remote)
    }

    /// Returns the name as messages show it: [`name`](Self::name), which may be long, by its beginning.
    pub fn label(&self) -> String {
        shown(&self.name)
    }

    /// Refuses values that the kind does not take, and those that could be read as an option of a program.
    fn check(&self) -> Result<(), RemoteNameError> {
        let error = |message: String| Err(RemoteNameError::Values(message));
        match (&self.kind.target, &self.target) {
            (Some(meaning), None) => return error(format!("a target is missing: the {meaning}")),
            (None, Some(_)) => return error(format!("the kind `{}` takes no target", self.kind.name)),
            _ => {}
        }
        for name in self.options.keys() {
            if !self.kind.options.contains_key(name) {
                let names: Vec<&str> = self.kind.options.keys().map(String::as_str).collect();
                let hint = match nearest(name, names.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if names.is_empty() => "it takes none".to_owned(),
                    None => format!("it takes {}", names.join(", ")),
                };
                return error(format!(
                    "the kind `{}` has no option `{}`; {hint}",
                    self.kind.name,
                    shown(name)
                ));
            }
        }
        let named = self.options.iter().map(|(name, value)| (name.as_str(), value));
        for (name, value) in self.target.iter().map(|target| ("target", target)).chain(named) {
            // `ssh` and other programs would take a value with a dash in front for an option, which may run a command.
            if value.is_empty() || value.starts_with('-') || value.contains(char::is_control) {
                return error(format!(
                    "`{}` must not be empty, begin with `-` or hold control characters",
                    shown(name)
                ));
            }
        }
        for root in &self.roots {
            if !is_root(root) || root.contains(char::is_control) {
                return error(format!(
                    "the root `{}` must begin with `/` or `~/`",
                    shown(root).escape_debug()
                ));
            }
        }
        Ok(())
    }
}

fn preset(name: &str) -> Result<RemoteKind, RemoteNameError> {
    match RemoteKind::preset(name) {
        Some(Ok(kind)) => Ok(kind),
        Some(Err(error)) => Err(RemoteNameError::Preset(name.to_owned(), error)),
        None => {
            let hint = match nearest(name, RemoteKind::preset_names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", RemoteKind::preset_names().collect::<Vec<_>>().join(", ")),
            };
            Err(RemoteNameError::UnknownKind { name: shown(name), hint })
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=32).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(is_name_byte)
}

fn is_root(text: &str) -> bool {
    text.starts_with('/') || text == "~" || text.starts_with("~/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Result<RemoteSettings, String> {
        RemoteSettings::named(text, BTreeMap::new(), &[]).map_err(|error| error.to_string())
    }

    fn parse(text: &str) -> Result<RemoteSettings, String> {
        let table = DeTable::parse(text).unwrap();
        RemoteSettings::parse("box", table.get_ref(), &(0..0)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_text_names_a_kind_a_target_and_a_root() {
        for (text, target, roots) in [
            ("sh:exec a", "exec a", &[][..]),
            ("sh:a:/src", "a", &["/src"]),
            ("sh:user@host:2222", "user@host:2222", &[]),
            ("sh:image:tag:~/app", "image:tag", &["~/app"]),
            ("sh:a:/b:/c", "a:/b", &["/c"]),
        ] {
            let remote = named(text).unwrap();
            assert_eq!(
                (remote.target.as_deref(), &*remote.roots),
                (Some(target), &roots.iter().map(ToString::to_string).collect::<Vec<_>>()[..]),
                "{text}"
            );
        }
    }

    #[test]
    fn what_a_kind_does_not_take_is_an_error() {
        for (text, message) in [
            ("box", "there is no remote `box`"),
            ("shh:x", "did you mean `ssh`?"),
            ("sh:", "a target is missing: the command line"),
            ("sh:-oProxyCommand=x", "must not be empty, begin with `-`"),
            ("sh:a\nb", "control characters"),
        ] {
            let error = named(text).expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
        let options = BTreeMap::from([("port".to_owned(), "1".to_owned())]);
        let error = RemoteSettings::named("sh:x", options, &[]).unwrap_err().to_string();
        assert!(error.contains("has no option `port`; it takes none"), "{error}");
    }

    #[test]
    fn a_table_is_a_kind_of_its_own_or_changes_a_preset() {
        let own = parse("connect = ['ssh', ['-p', '{option.port}'], '{target}']\ntarget = 'h'\noptions = { port = '22' }\nroots = ['/src']\nidle_s = 5").unwrap();
        assert_eq!(
            (own.idle, own.roots[0].as_str(), own.kind.has_lease()),
            (Some(Duration::from_secs(5)), "/src", false)
        );
        let changed = parse("kind = 'sh'\ntarget = 'x'\ndestroy = ['y']\nlife_s = 0").unwrap();
        assert!(changed.kind.has_lease() && changed.life.is_none());
        for (text, message) in [
            ("", "`connect` is missing"),
            ("kind = 'shell'\ntarget = 'x'", "there is no kind of remotes `shell`"),
            ("connect = ['x', '{option.port}']", "`{option.port}` is no option"),
            ("connect = ['x']\nroots = ['src']", "must begin with `/` or `~/`"),
            ("connect = ['x']\nconnect_timeout_s = 0", "at least 1 second"),
            ("connect = ['x']\nidle_s = -1", "whole seconds"),
            ("connect = ['x']\noptions = { a = '' }", "must not be empty"),
            ("connect = ['x']\ntargt = 'a'", "did you mean `target`?"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
        let table = DeTable::parse("connect = ['x']").unwrap();
        assert!(RemoteSettings::parse("Box", table.get_ref(), &(0..0)).is_err());
    }
}
