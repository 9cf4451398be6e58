//! Reading the file, the variables and the flags into a [`Config`], the later over the earlier.

use std::path::{Path, PathBuf};

use super::error::Error;
use super::file::{self, FILE_NAME};
use super::flags::SettingFlags;
use super::keys::{self, SettingEntry, VARIABLE_PREFIX};
use super::setting::{Setting, SettingSource};
use super::tables::Config;

impl Config {
    /// Reads the file, then `variables` (the whole environment: only those with our prefix, and
    /// `FILESYSTEM_TOOLS_BASE_PATH` as a root, count), then `flags`.
    ///
    /// Relative roots are relative to the file in the file, and to `folder` in variables and flags.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its place, what was expected, and the nearest valid key.
    pub fn load(
        folder: &Path,
        variables: impl IntoIterator<Item = (String, String)>,
        flags: &SettingFlags,
    ) -> Result<Self, Error> {
        let mut variables: Vec<(String, String)> = variables.into_iter().collect();
        // The environment has no order of its own, and warnings should come in the same order each time.
        variables.sort();
        let mut config = Self::default();
        // Variables and flags are applied twice: the first time for the root in which the file is looked for, and
        // again over what the file says.
        config.apply_given(folder, &variables, flags)?;
        let file = match &flags.config {
            Some(path) => Some(file::read_named(&folder.join(path))?),
            None => file::discover(config.roots.first().map_or(folder, PathBuf::as_path))?,
        };
        if let Some(file) = file {
            // Begun anew, since the file ranks below what was applied.
            config = Self::default();
            file::apply(&mut config, &file)?;
            config.apply_given(folder, &variables, flags)?;
            file::check_roots(&config, &file)?;
            config.file = Some(file.path);
        }
        if config.limits.call_timeout_ms.source == SettingSource::Default {
            // A default gives way to a maximum that was set lower. Only two values that were both set can contradict.
            let max_timeout_ms = *config.limits.max_timeout_ms;
            config.limits.call_timeout_ms.value = config.limits.call_timeout_ms.value.min(max_timeout_ms);
        }
        if *config.limits.call_timeout_ms > *config.limits.max_timeout_ms {
            return Err(Error::Contradiction {
                first: describe_setting("limits.call_timeout_ms", &config.limits.call_timeout_ms),
                second: describe_setting("limits.max_timeout_ms", &config.limits.max_timeout_ms),
            });
        }
        Ok(config)
    }

    /// Applies variables and then flags, which both override the file.
    fn apply_given(
        &mut self,
        folder: &Path,
        variables: &[(String, String)],
        flags: &SettingFlags,
    ) -> Result<(), Error> {
        self.apply_variables(folder, variables)?;
        self.apply_flags(folder, flags)
    }

    fn apply_variables(&mut self, folder: &Path, variables: &[(String, String)]) -> Result<(), Error> {
        /// Variables with our prefix that are flags of the binaries, or tell of the session that they run in.
        const NOT_KEYS: [&str; 5] = ["CONFIG", "LOG", "AGENT_COMMAND", "SESSION_ID", "SESSION_TOKEN"];
        if let Some((name, path)) = variables.iter().find(|(name, _)| name == keys::BASE_PATH) {
            keys::set_text(self, "roots", path, folder, SettingSource::Variable(name.clone()))?;
        }
        for (name, value) in variables {
            let Some(rest) = name.strip_prefix(VARIABLE_PREFIX) else { continue };
            if let Some(key) = keys::by_variable(rest) {
                keys::set_text(self, key, value, folder, SettingSource::Variable(name.clone()))?;
            } else if rest == "ROLE" {
                let source = SettingSource::Variable(name.clone());
                self.roles.push(Setting { value: value.clone(), source });
            } else if !NOT_KEYS.contains(&rest) {
                let all: Vec<String> = keys::KEYS.iter().map(|key| keys::variable(key)).collect();
                let near = did_you_mean::nearest(name, all.iter().map(String::as_str));
                let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                self.warnings.push(format!("environment variable {name} names no key of {FILE_NAME}{hint}"));
            }
        }
        Ok(())
    }

    fn apply_flags(&mut self, folder: &Path, flags: &SettingFlags) -> Result<(), Error> {
        if !flags.roots.is_empty() {
            let roots = flags.roots.iter().map(|root| folder.join(root)).collect();
            self.roots = Setting { value: roots, source: SettingSource::Flag("--root") };
        }
        if let Some(role) = &flags.role {
            self.roles.push(Setting { value: role.clone(), source: SettingSource::Flag("--role") });
        }
        for (setting, flag, path) in [
            (&mut self.policy.file, "--policy", &flags.policy),
            (&mut self.policy.audit, "--audit", &flags.audit),
        ] {
            if let Some(path) = path {
                *setting = Setting { value: Some(folder.join(path)), source: SettingSource::Flag(flag) };
            }
        }
        for (key, flag, text) in
            [("toolsets", "--toolsets", &flags.toolsets), ("results", "--results", &flags.results)]
        {
            if let Some(text) = text {
                keys::set_text(self, key, text, folder, SettingSource::Flag(flag))?;
            }
        }
        for (key, flag, text) in &flags.others {
            keys::set_text(self, key, text, folder, SettingSource::Flag(flag))?;
        }
        Ok(())
    }

    /// Returns every key with its value and source, in the order of the documentation.
    pub fn entries(&self) -> Vec<SettingEntry> {
        keys::KEYS.iter().filter_map(|key| keys::show(self, key)).collect()
    }
}

fn describe_setting(key: &str, setting: &Setting<u64>) -> String {
    format!("`{key}` is {} ({})", setting.value, setting.source)
}
