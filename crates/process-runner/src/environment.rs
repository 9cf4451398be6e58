//! The environment variables of a child.

use std::collections::BTreeMap;
#[cfg(unix)]
use std::ffi::CString;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// The variables of this process that a child inherits. [`Command::env`](crate::Command::env) and
/// [`Command::env_remove`](crate::Command::env_remove) change them.
///
/// The [`Runner`](crate::Runner) reads the environment of this process once, when it is built. Reading the environment
/// once is cheaper than reading it for each run, and a library that changes the environment later changes no run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnvPolicy {
    /// All of them.
    #[default]
    Inherit,
    /// None of them.
    Clear,
    /// The variables with these names.
    Allow(Vec<OsString>),
}

/// The environment that a command asks for.
#[derive(Clone, Default)]
pub(crate) struct RequestedEnvironment {
    pub(crate) policy: EnvPolicy,
    /// The variables to set, and with `None` to remove, ordered by name.
    pub(crate) changes: BTreeMap<OsString, Option<OsString>>,
}

/// The environment of this process when it was read, without the withheld variables.
pub(crate) struct InheritedEnv(Vec<InheritedVariable>);

/// One variable of an [`InheritedEnv`].
pub(crate) struct InheritedVariable {
    name: OsString,
    value: OsString,
    /// `NAME=VALUE` as `posix_spawn(3)` takes it, so that a run copies nothing.
    #[cfg(unix)]
    pub(crate) text: CString,
}

/// One variable that the child gets.
pub(crate) enum EnvironmentEntry<'a> {
    Inherited(&'a InheritedVariable),
    Set(&'a OsStr, &'a OsStr),
}

impl InheritedEnv {
    pub(crate) fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.0.iter().map(|variable| variable.name.as_os_str())
    }

    pub(crate) fn value(&self, name: &OsStr) -> Option<&OsStr> {
        self.0.iter().find(|variable| variable.name == name).map(|variable| variable.value.as_os_str())
    }

    /// Reads the environment of this process, without the `withheld` names.
    #[allow(clippy::disallowed_methods, reason = "`Inherit` and `Allow` pass the environment on")]
    pub(crate) fn without(withheld: &[OsString]) -> Self {
        let variable = |(name, value): (OsString, OsString)| {
            Some(InheritedVariable {
                #[cfg(unix)]
                // A NUL cannot occur in an environment that the kernel gave; such a variable is left out.
                text: c_variable(&name, &value).ok()?,
                name,
                value,
            })
        };
        let mut variables: Vec<_> =
            std::env::vars_os().filter(|(name, _)| !withheld.contains(name)).filter_map(variable).collect();
        // Sorted, so that the child's environment does not depend on the order of ours.
        variables.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Self(variables)
    }
}

impl fmt::Debug for InheritedEnv {
    /// Writes the names without the values, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|variable| &variable.name)).finish()
    }
}

/// Returns `NAME=VALUE` as a C string.
#[cfg(unix)]
pub(crate) fn c_variable(name: &OsStr, value: &OsStr) -> Result<CString, std::ffi::NulError> {
    use std::os::unix::ffi::OsStrExt;
    let mut text = Vec::with_capacity(name.len() + value.len() + 2);
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    text.extend_from_slice(value.as_bytes());
    CString::new(text)
}

impl RequestedEnvironment {
    /// Returns the most variables that the child can get.
    #[cfg(unix)]
    pub(crate) fn max_entries(&self, inherited: &InheritedEnv) -> usize {
        inherited.0.len() + self.changes.len()
    }

    /// Returns the variables that the child gets, each once.
    pub(crate) fn entries<'a>(
        &'a self,
        inherited: &'a InheritedEnv,
    ) -> impl Iterator<Item = EnvironmentEntry<'a>> {
        let passes = |variable: &&InheritedVariable| {
            let allowed = match &self.policy {
                EnvPolicy::Inherit => true,
                EnvPolicy::Clear => false,
                EnvPolicy::Allow(names) => names.contains(&variable.name),
            };
            // A variable that the command sets or removes must not come a second time.
            allowed && !self.changes.contains_key(&variable.name)
        };
        let set = self
            .changes
            .iter()
            .filter_map(|(name, value)| Some(EnvironmentEntry::Set(name, value.as_ref()?)));
        inherited.0.iter().filter(passes).map(EnvironmentEntry::Inherited).chain(set)
    }
}

impl<'a> EnvironmentEntry<'a> {
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
