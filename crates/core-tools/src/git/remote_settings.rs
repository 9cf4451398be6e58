//! The settings of a connection to another repository.
//!
//! The user's and the system's hold. Of those that the repository itself makes, the ones that run a program, or lead a
//! connection and the user's passwords elsewhere, are overridden, or refused where nothing overrides them.

use super::invocation::{ConfigOverrides, GitInvocation};
use super::printed_text::lossy;
use super::programs::{ConfigSetting, config_settings};

/// The treatment of a setting that the repository itself makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SettingTreatment {
    /// It holds.
    Kept,
    /// It has no effect: a variable or an option of each run takes precedence.
    Ignored,
    /// It has no effect: the user's value, or this one, takes precedence.
    Overridden(&'static str),
    /// Nothing takes precedence over it.
    Refused,
}

/// The settings of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GitRemoteSettings {
    overrides: ConfigOverrides,
    /// The keys of the repository that have no effect.
    pub(super) ignored: Vec<String>,
    /// The keys of the repository that nothing takes precedence over.
    pub(super) refused: Vec<String>,
    /// The user's `core.sshCommand`.
    ssh_command: Option<String>,
    /// True if the repository names a proxy command for `git://`.
    has_own_proxy_command: bool,
    /// The refspecs of the remote's `fetch`.
    pub(super) fetch: Vec<String>,
}

/// Splits a key into section, subsection and variable.
fn split_key(key: &str) -> (&str, &str, &str) {
    let (section, rest) = key.split_once('.').unwrap_or((key, ""));
    let (subsection, variable) = rest.rsplit_once('.').unwrap_or(("", rest));
    (section, subsection, variable)
}

/// Returns the treatment of a key of the repository itself, for connections to the remote `name`.
fn treatment(key: &str, name: &str) -> SettingTreatment {
    use SettingTreatment::{Ignored, Kept, Overridden, Refused};
    match split_key(key) {
        ("core", "", "sshcommand" | "askpass" | "gitproxy")
        | ("credential", _, "helper")
        | ("protocol", _, "allow") => Ignored,
        ("core", "", "alternaterefscommand") => Overridden("true"),
        ("remote", remote, variable) if remote == name => match variable {
            "uploadpack" | "receivepack" => Ignored,
            "proxy" => Overridden(""),
            "vcs" => Refused,
            _ => Kept,
        },
        // With them, a connection to a host that the user trusts, and has a password for, could lead to another.
        ("http", _, "proxy" | "cookiefile" | "curloptresolve") => Overridden(""),
        ("http", _, "sslverify") => Overridden("true"),
        ("http", _, "savecookies") => Overridden("false"),
        ("http", _, "delegation") => Overridden("none"),
        ("push", "", "gpgsign") => Overridden("false"),
        ("fetch", "", "bundleuri") => Refused,
        _ => Kept,
    }
}

impl GitRemoteSettings {
    /// Makes the settings for the remote `name` of `git config --null --list --show-scope`.
    pub(super) fn new(listed: &[u8], name: &str) -> Self {
        let all: Vec<_> = config_settings(listed).collect();
        let mut settings = Self::default();
        for own in all.iter().filter(|setting| setting.is_own) {
            settings.take_own(own, &all, name);
        }
        let is_ssh_command =
            |setting: &&ConfigSetting<'_>| !setting.is_own && setting.key == "core.sshcommand";
        settings.ssh_command = all.iter().rev().find(is_ssh_command).and_then(value_text);
        let fetch_key = format!("remote.{name}.fetch");
        settings.fetch =
            all.iter().filter(|setting| setting.key == fetch_key).filter_map(value_text).collect();
        // What is pushed is what the call names, whatever the remote is a mirror of.
        settings.overrides.push((format!("remote.{name}.mirror"), "false".into()));
        settings
    }

    /// Takes note of one setting that the repository itself makes.
    fn take_own(&mut self, own: &ConfigSetting<'_>, all: &[ConfigSetting<'_>], name: &str) {
        match treatment(&own.key, name) {
            SettingTreatment::Kept => return,
            SettingTreatment::Refused => return add(&mut self.refused, &own.key),
            SettingTreatment::Ignored if own.key == "core.gitproxy" => self.has_own_proxy_command = true,
            SettingTreatment::Ignored if own.key.starts_with("credential.") => {
                self.reset_credential_helpers(all);
            }
            SettingTreatment::Ignored => {}
            SettingTreatment::Overridden(default) => {
                let users = all.iter().rev().find(|setting| !setting.is_own && setting.key == own.key);
                let value = users.and_then(value_text).unwrap_or_else(|| default.to_owned());
                self.overrides.push((own.key.clone(), value.into()));
            }
        }
        add(&mut self.ignored, &own.key);
    }

    /// Drops all credential helpers and adds the user's again: an empty value clears the list (git-config(1)).
    fn reset_credential_helpers(&mut self, all: &[ConfigSetting<'_>]) {
        if self.overrides.iter().any(|(key, _)| key == "credential.helper") {
            return;
        }
        self.overrides.push(("credential.helper".to_owned(), "".into()));
        let helpers = all.iter().filter(|setting| {
            let (section, _, variable) = split_key(&setting.key);
            !setting.is_own && section == "credential" && variable == "helper"
        });
        for helper in helpers {
            self.overrides.push((helper.key.clone(), value_text(helper).unwrap_or_default().into()));
        }
    }

    /// Returns `invocation` with these settings.
    pub(super) fn apply<'a>(&self, invocation: GitInvocation<'a>) -> GitInvocation<'a> {
        let invocation = invocation
            .config(&self.overrides)
            .variable("GIT_SSH_COMMAND", batch_mode(self.ssh_command.as_deref()));
        // An empty one is none.
        if self.has_own_proxy_command { invocation.variable("GIT_PROXY_COMMAND", "") } else { invocation }
    }

    /// Returns the refspecs for fetching from the remote `name`: its own, if they write to branches of this remote alone,
    /// and otherwise all its branches.
    pub(super) fn refspecs(&self, name: &str) -> Vec<String> {
        let target = format!(":refs/remotes/{name}/");
        let is_tracking = |refspec: &String| refspec.starts_with('^') || refspec.contains(&target);
        if !self.fetch.is_empty() && self.fetch.iter().all(is_tracking) {
            return self.fetch.clone();
        }
        vec![format!("+refs/heads/*:refs/remotes/{name}/*")]
    }
}

fn add(keys: &mut Vec<String>, key: &str) {
    if !keys.iter().any(|known| known == key) {
        keys.push(key.to_owned());
    }
}

fn value_text(setting: &ConfigSetting<'_>) -> Option<String> {
    setting.value.map(lossy)
}

/// Returns the command for SSH, which asks nothing: an unknown host key and a missing password are errors. Another program
/// than OpenSSH's may not know its options.
fn batch_mode(users: Option<&str>) -> String {
    let command = users.unwrap_or("ssh");
    let program = command.split_ascii_whitespace().next().unwrap_or_default().trim_matches(['\'', '"']);
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    if matches!(name, "ssh" | "ssh.exe") { format!("{command} -oBatchMode=yes") } else { command.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn settings(entries: &[(&str, &str, &str)]) -> GitRemoteSettings {
        let listed: String =
            entries.iter().map(|(scope, key, value)| format!("{scope}\0{key}\n{value}\0")).collect();
        GitRemoteSettings::new(listed.as_bytes(), "origin")
    }

    fn overridden<'a>(settings: &'a GitRemoteSettings, key: &str) -> Vec<&'a str> {
        settings.overrides.iter().filter(|(known, _)| known == key).map(|(_, value)| value.as_ref()).collect()
    }

    #[test]
    fn programs_that_the_repository_names_are_ignored_and_the_users_hold() {
        let settings = settings(&[
            ("global", "core.sshcommand", "ssh -i key"),
            ("global", "credential.helper", "store"),
            ("system", "credential.https://x.example.helper", "cache"),
            ("command", "core.sshcommand", "false"),
            ("local", "core.sshcommand", "evil"),
            ("local", "credential.https://x.example.helper", "!evil"),
            ("local", "credential.helper", "!evil"),
            ("worktree", "remote.origin.uploadpack", "evil"),
            ("local", "remote.other.vcs", "evil"),
            ("local", "core.gitproxy", "evil"),
            ("local", "protocol.ext.allow", "always"),
        ]);
        assert_eq!(
            settings.ignored,
            [
                "core.sshcommand",
                "credential.https://x.example.helper",
                "credential.helper",
                "remote.origin.uploadpack",
                "core.gitproxy",
                "protocol.ext.allow",
            ]
        );
        assert!(settings.refused.is_empty() && settings.has_own_proxy_command);
        assert_eq!(settings.ssh_command.as_deref(), Some("ssh -i key"));
        // The list is cleared first.
        assert_eq!(overridden(&settings, "credential.helper"), ["", "store"]);
        assert_eq!(overridden(&settings, "credential.https://x.example.helper"), ["cache"]);
    }

    #[test]
    fn what_leads_a_connection_elsewhere_is_overridden_by_the_users_value() {
        let settings = settings(&[
            ("global", "http.proxy", "http://mine"),
            ("local", "http.proxy", "http://evil"),
            ("local", "http.https://x.example/.sslverify", "false"),
            ("local", "http.https://x.example/.extraheader", "Authorization: x"),
            ("local", "remote.origin.vcs", "evil"),
        ]);
        assert_eq!(overridden(&settings, "http.proxy"), ["http://mine"]);
        assert_eq!(overridden(&settings, "http.https://x.example/.sslverify"), ["true"]);
        assert!(overridden(&settings, "http.https://x.example/.extraheader").is_empty());
        assert_eq!(settings.refused, ["remote.origin.vcs"]);
    }

    #[test]
    fn a_refspec_that_writes_elsewhere_than_to_the_remotes_branches_is_not_taken() {
        let of = |refspecs: &[&str]| {
            let entries: Vec<_> =
                refspecs.iter().map(|refspec| ("local", "remote.origin.fetch", *refspec)).collect();
            settings(&entries).refspecs("origin")
        };
        let all = ["+refs/heads/*:refs/remotes/origin/*"];
        assert_eq!(of(&[]), all);
        assert_eq!(of(&["+refs/heads/*:refs/heads/*"]), all);
        assert_eq!(of(&["+refs/*:refs/*"]), all);
        let single = ["+refs/heads/main:refs/remotes/origin/main", "^refs/heads/x"];
        assert_eq!(of(&single), single);
    }

    #[test]
    fn ssh_asks_nothing() {
        assert_eq!(batch_mode(None), "ssh -oBatchMode=yes");
        assert_eq!(batch_mode(Some("/usr/bin/ssh -i k")), "/usr/bin/ssh -i k -oBatchMode=yes");
        assert_eq!(batch_mode(Some("plink -x")), "plink -x");
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>, name in ".{0,5}") {
            GitRemoteSettings::new(&listed, &name).refspecs(&name);
        }

        #[test]
        fn no_key_is_a_panic(key in "[a-z.]{0,20}") {
            treatment(&key, "a.b");
        }
    }
}
