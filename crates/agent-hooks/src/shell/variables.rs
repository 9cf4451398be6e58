//! The variables of a line: those whose values bash runs or computes, and those that are computed after the line has given
//! them any text.

use super::arithmetic::is_name;
use super::shell_line::VariableValues;
use super::visitor::AssignedValue;
use std::collections::{BTreeMap, BTreeSet};

/// Variables that change how the shell itself reads what follows, whether or not programs inherit them.
const OF_SHELL: [&str; 7] = ["PATH", "IFS", "CDPATH", "GLOBIGNORE", "HOME", "EXECIGNORE", "BASH_XTRACEFD"];

/// Variables whose values the shell runs or opens, or by which it finds other programs than those that are named.
const RUN: [&str; 12] = [
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS4",
    "BASH_CMDS",
    "BASH_ALIASES",
    "BASH_LOADABLES_PATH",
    "SHELLOPTS",
    "BASHOPTS",
    "HISTFILE",
];

/// Variables whose every new value the shell computes.
const COMPUTED: [&str; 12] = [
    "OPTIND",
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "LINENO",
    "HISTCMD",
    "BASHPID",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "UID",
    "EUID",
    "PPID",
];

/// Variables that the shell itself gives other values than numbers.
const TEXTS: [&str; 13] = [
    "_",
    "PWD",
    "OLDPWD",
    "REPLY",
    "OPTARG",
    "MAPFILE",
    "COPROC",
    "DIRSTACK",
    "FUNCNAME",
    "GROUPS",
    "HOSTNAME",
    "PIPESTATUS",
    "READLINE_LINE",
];

/// Returns true if the shell would evaluate a value of this kind when `name` is given it.
pub(super) fn is_evaluated(name: &str, value: &AssignedValue) -> bool {
    // The name of a function that programs inherit is none of a variable.
    RUN.contains(&name) || !is_name(name) || *value != AssignedValue::Number && COMPUTED.contains(&name)
}

/// Returns true if the shell itself uses the variable.
pub(super) fn changes_shell(name: &str) -> bool {
    OF_SHELL.contains(&name) || RUN.contains(&name)
}

/// The values that a line gives to variables, and those that it computes with.
#[derive(Debug, Default)]
pub(super) struct VariableUse {
    texts: BTreeSet<String>,
    lists: BTreeSet<String>,
    declared: BTreeSet<String>,
    computed: BTreeSet<String>,
    values: BTreeMap<String, VariableValues>,
}

impl VariableUse {
    pub(super) fn assign(&mut self, name: &str, value: AssignedValue) {
        let (is_list, is_declared) = (value == AssignedValue::List, value == AssignedValue::DeclaredText);
        for (names, is_one) in [
            (&mut self.texts, value != AssignedValue::Number),
            (&mut self.lists, is_list),
            (&mut self.declared, is_declared),
        ] {
            if is_one {
                names.insert(name.to_owned());
            }
        }
        let value = match value {
            AssignedValue::Number => VariableValues::Number,
            AssignedValue::Words(words) => VariableValues::Words(words),
            _ => VariableValues::Unknown,
        };
        let values = self.values.remove(name).map_or(value.clone(), |values| values.or(value));
        self.values.insert(name.to_owned(), values);
    }

    /// Returns the values that the line gives to each variable.
    pub(super) fn take_values(&mut self) -> BTreeMap<String, VariableValues> {
        std::mem::take(&mut self.values)
    }

    pub(super) fn compute(&mut self, name: &str) {
        self.computed.insert(name.to_owned());
    }

    /// Returns true if a variable is computed that could hold something else than a number, or a list is given a text that
    /// could be the source of another. `inherited` names the variables that are there before the line runs. The order of
    /// the line does not matter: a loop or a function turns it round.
    pub(super) fn evaluates_text(&self, inherited: &[String]) -> bool {
        let computes_text =
            |name: &String| is_given_by_shell(name) || inherited.contains(name) || self.texts.contains(name);
        let is_list = |name: &String| is_given_by_shell(name) || self.lists.contains(name);
        self.computed.iter().any(computes_text) || self.declared.iter().any(is_list)
    }
}

fn is_given_by_shell(name: &str) -> bool {
    TEXTS.contains(&name) || ["BASH_", "COMP_", "READLINE_"].iter().any(|prefix| name.starts_with(prefix))
}
