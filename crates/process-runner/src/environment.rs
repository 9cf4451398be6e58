//! Which environment variables a child gets.

use std::collections::BTreeMap;
#[cfg(unix)]
use std::ffi::CString;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// Where the child's environment begins, before [`Command::env`](crate::Command::env) and
/// [`Command::env_remove`](crate::Command::env_remove).
///
/// "Ours" is that of this process as it was when the [`Runner`](crate::Runner) was made: reading it once is
/// cheaper than for each run, and a library that changes it later changes no run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnvPolicy {
    /// All of ours.
    #[default]
    Inherit,
    /// Nothing.
    Clear,
    /// Those of ours with these names.
    Allow(Vec<OsString>),
}

/// What a command asks for.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    pub(crate) policy: EnvPolicy,
    /// In the order of their names; `None` removes.
    pub(crate) changes: BTreeMap<OsString, Option<OsString>>,
}

/// The environment of this process, as it was once, without what is withheld.
pub(crate) struct Inherited(Vec<Variable>);

/// One of its variables.
pub(crate) struct Variable {
    name: OsString,
    value: OsString,
    /// Both, as `posix_spawn(3)` wants them, so that a run copies nothing.
    #[cfg(unix)]
    pub(crate) text: CString,
}

/// One that the child gets.
pub(crate) enum Entry<'a> {
    Inherited(&'a Variable),
    Set(&'a OsStr, &'a OsStr),
}

impl Inherited {
    pub(crate) fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.0.iter().map(|variable| variable.name.as_os_str())
    }

    #[allow(clippy::disallowed_methods, reason = "to pass it on is what `Inherit` and `Allow` mean")]
    pub(crate) fn without(withheld: &[OsString]) -> Self {
        let variable = |(name, value): (OsString, OsString)| {
            Some(Variable {
                #[cfg(unix)]
                text: c_variable(&name, &value).ok()?,
                name,
                value,
            })
        };
        let mut variables: Vec<_> =
            std::env::vars_os().filter(|(name, _)| !withheld.contains(name)).filter_map(variable).collect();
        variables.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Self(variables)
    }
}

/// Without the values, which may be secrets.
impl fmt::Debug for Inherited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|variable| &variable.name)).finish()
    }
}

/// `NAME=VALUE`.
#[cfg(unix)]
pub(crate) fn c_variable(name: &OsStr, value: &OsStr) -> Result<CString, std::ffi::NulError> {
    use std::os::unix::ffi::OsStrExt;
    let mut text = Vec::with_capacity(name.len() + value.len() + 2);
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    text.extend_from_slice(value.as_bytes());
    CString::new(text)
}

impl Environment {
    /// How many variables the child gets at most.
    #[cfg(unix)]
    pub(crate) fn longest(&self, inherited: &Inherited) -> usize {
        inherited.0.len() + self.changes.len()
    }

    /// The variables that the child gets, each once.
    pub(crate) fn entries<'a>(&'a self, inherited: &'a Inherited) -> impl Iterator<Item = Entry<'a>> {
        let passes = |variable: &&Variable| {
            let allowed = match &self.policy {
                EnvPolicy::Inherit => true,
                EnvPolicy::Clear => false,
                EnvPolicy::Allow(names) => names.contains(&variable.name),
            };
            allowed && !self.changes.contains_key(&variable.name)
        };
        let set = self.changes.iter().filter_map(|(name, value)| Some(Entry::Set(name, value.as_ref()?)));
        inherited.0.iter().filter(passes).map(Entry::Inherited).chain(set)
    }
}

impl<'a> Entry<'a> {
    pub(crate) fn name(&self) -> &'a OsStr {
        match self {
            Self::Inherited(variable) => &variable.name,
            Self::Set(name, _) => name,
        }
    }

    pub(crate) fn value(&self) -> &'a OsStr {
        match self {
            Self::Inherited(variable) => &variable.value,
            Self::Set(_, value) => value,
        }
    }
}
