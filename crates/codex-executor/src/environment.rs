//! The variables of a process, as Codex's `shell_environment_policy` selects them.

use crate::protocol::{EnvInherit, ShellEnvironmentPolicy};
use process_runner::{Command, Runner};
use std::collections::BTreeMap;

/// The variables that [`EnvInherit::Core`] keeps.
const CORE: [&str; 9] = ["HOME", "LOGNAME", "PATH", "SHELL", "USER", "USERNAME", "TMPDIR", "TEMP", "TMP"];
/// The names that are left out unless the policy ignores this list.
const DEFAULT_EXCLUDES: [&str; 3] = ["*KEY*", "*SECRET*", "*TOKEN*"];
/// The beginning of the variables of this project, which decide about a role. No client sets them.
const OWN_PREFIX: &str = "CORETOOLS_";

/// Returns `command` with the variables that Codex asks for. The policy only takes away from what the command inherits.
pub(crate) fn with_environment(
    mut command: Command,
    runner: &Runner,
    policy: Option<&ShellEnvironmentPolicy>,
    variables: BTreeMap<String, String>,
) -> Command {
    if let Some(policy) = policy {
        for name in runner.environment_names() {
            if !keeps(policy, &name.to_string_lossy()) {
                command = command.env_remove(name);
            }
        }
        let set = policy.set.iter().filter(|(name, _)| is_included(policy, name) && is_settable(name));
        command = command.envs(set.map(|(name, value)| (name.as_str(), value.as_str())));
    }
    let variables = variables.into_iter().filter(|(name, _)| is_settable(name));
    command.envs(variables)
}

fn is_settable(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(OWN_PREFIX) && !name.contains(['=', '\0'])
}

fn keeps(policy: &ShellEnvironmentPolicy, name: &str) -> bool {
    let matches_any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
    let inherits = match policy.inherit {
        EnvInherit::All => true,
        EnvInherit::Core => CORE.contains(&name),
        EnvInherit::None => false,
    };
    inherits
        && (policy.ignore_default_excludes || !DEFAULT_EXCLUDES.iter().any(|pattern| matches(pattern, name)))
        && !matches_any(&policy.exclude)
        && is_included(policy, name)
}

fn is_included(policy: &ShellEnvironmentPolicy, name: &str) -> bool {
    policy.include_only.is_empty() || policy.include_only.iter().any(|pattern| matches(pattern, name))
}

/// Matches a name with a pattern of `*` and `?`, without regard to case.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().flat_map(char::to_lowercase).collect();
    let name: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    // The position behind the last `*`, and where the name went on for it.
    let mut star: Option<(usize, usize)> = None;
    let (mut at, mut in_name) = (0, 0);
    while in_name < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at + 1, in_name));
                at += 1;
            }
            Some(character) if *character == '?' || *character == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (at, in_name) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|character| *character == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> ShellEnvironmentPolicy {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_policy_takes_away_by_kind_by_secret_and_by_pattern() {
        let all = policy(r#"{"inherit": "all", "ignoreDefaultExcludes": true}"#);
        assert!(keeps(&all, "OPENAI_API_KEY") && keeps(&all, "PATH"));
        let default = policy(r#"{"inherit": "all", "ignoreDefaultExcludes": false, "exclude": ["AWS_*"]}"#);
        for name in ["OPENAI_API_KEY", "my_token", "AWS_REGION"] {
            assert!(!keeps(&default, name), "{name}");
        }
        assert!(keeps(&default, "LANG"));
        let core =
            policy(r#"{"inherit": "core", "ignoreDefaultExcludes": true, "includeOnly": ["P?TH", "home"]}"#);
        assert!(
            keeps(&core, "PATH") && keeps(&core, "HOME") && !keeps(&core, "USER") && !keeps(&core, "LANG")
        );
        let none = policy(r#"{"inherit": "none", "ignoreDefaultExcludes": true}"#);
        assert!(!keeps(&none, "PATH"));
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*b*c", "aXXbYYbZc", true),
            ("a*b", "abx", false),
            ("?", "", false),
            ("A", "ab", false),
            ("*KEY*", "monkey", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_client_sets_no_variable_of_this_project() {
        assert!(
            !is_settable("CORETOOLS_ROLE") && !is_settable("") && !is_settable("A=B") && is_settable("LANG")
        );
    }
}
