//! Reading the settings of a server from flags, environment and configuration.

use crate::broad_root::BroadRoot;
use crate::config::{Config, SettingFlags, VARIABLE_PREFIX};
use crate::error::Error;
#[cfg(all(feature = "sessions", unix))]
use crate::narrowing::roots_of_session;
use crate::program::Program;
#[cfg(all(feature = "remotes", unix))]
use crate::remote::{self, ChosenParts, ChosenRemotes};
#[cfg(all(feature = "sessions", unix))]
use crate::session_identity;
use crate::settings::Settings;
#[cfg(all(feature = "remotes", unix))]
use crate::setup;
use core_tools::redact::{self, Redactor};
#[cfg(all(feature = "sessions", unix))]
use core_tools::sessions::CREDENTIAL_VARIABLE;
use process_runner::SecretValues;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
#[cfg(all(any(feature = "sessions", feature = "remotes"), unix))]
use std::sync::Arc;

/// Reads environment and configuration, beneath `flags`. `agent_command` is the command that the agent was started
/// with, where it is known.
///
/// # Errors
/// The configuration cannot be used, or a session may use none of the roots.
pub fn read(
    program: Program,
    flags: &SettingFlags,
    agent_command: Option<String>,
) -> Result<Settings, Error> {
    let folder = std::env::current_dir().map_err(Error::CurrentFolder)?;
    let folder = program.default_root(folder);
    let variables = variables(std::env::vars_os())?;
    let (flags, remote_roots) = split_roots(flags);
    let config = Config::load(&folder, variables.iter().cloned(), &flags)?;
    let broad_root = if config.roots.is_empty() { BroadRoot::of(&folder) } else { None };
    let roots = if config.roots.is_empty() { vec![folder] } else { config.roots.to_vec() };
    #[allow(unused_mut, reason = "sessions and remotes are for Unix alone, and not for every server")]
    let mut settings = combined(program, config, roots, broad_root, &variables)?;
    settings.agent_command = agent_command;
    apply_remote(&mut settings, &flags)?;
    apply_remote_roots(&mut settings, &remote_roots)?;
    #[cfg(all(feature = "sessions", unix))]
    if let Some(credential) = std::env::var_os(CREDENTIAL_VARIABLE) {
        let session = session_identity::ask_supervisor(&settings, credential.to_string_lossy().into_owned());
        if let Ok(session) = &session
            && !session.roots.is_empty()
        {
            settings.roots = roots_of_session(&settings.roots, &session.roots)?;
        }
        settings.session = Some(session.map_err(Arc::new));
    }
    Ok(settings)
}

/// Returns the settings of a server with this configuration and these roots, whatever the environment says.
///
/// # Errors
/// The redactor cannot be built.
#[cfg(all(feature = "remotes", unix))]
pub(crate) fn with_config(
    program: Program,
    config: Config,
    roots: Vec<PathBuf>,
    broad_root: Option<BroadRoot>,
) -> Result<Settings, Error> {
    // Only for the values that are masked.
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect::<Vec<_>>();
    combined(program, config, roots, broad_root, &variables)
}

fn combined(
    program: Program,
    mut config: Config,
    roots: Vec<PathBuf>,
    broad_root: Option<BroadRoot>,
    variables: &[(String, String)],
) -> Result<Settings, Error> {
    let values = secret_values(&mut config, variables);
    // The runner hides these values before it cuts output: the redactor would not find half of one.
    let secrets =
        if *config.redaction.enabled { SecretValues::new(&values) } else { SecretValues::default() };
    let redaction = redact::RedactionOptions::default().enabled(*config.redaction.enabled).values(values);
    let redactor = Redactor::new(redaction)?;
    let temporary_folder = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    Ok(Settings {
        program,
        config,
        roots,
        broad_root,
        redactor,
        secrets,
        temporary_folder,
        agent_command: None,
        session: None,
        policy_text: None,
        operator_limit: None,
        asked_by: None,
        #[cfg(all(feature = "remotes", unix))]
        remote: None,
        #[cfg(all(feature = "remotes", unix))]
        chosen_remotes: None,
        #[cfg(all(feature = "remotes", unix))]
        warm_remotes: remotes::WarmRemotes::default(),
        #[cfg(all(feature = "remotes", unix))]
        leases: Arc::default(),
        first_command_id: 0,
        withheld: Vec::new(),
    })
}

/// Parts the roots of the flags: what has the form of a root on a remote, and is no folder here, is one there.
fn split_roots(flags: &SettingFlags) -> (SettingFlags, Vec<String>) {
    let (there, here): (Vec<PathBuf>, Vec<PathBuf>) =
        flags.roots.iter().cloned().partition(|root| is_remote_root(root));
    let remote_roots = there.into_iter().filter_map(|root| root.into_os_string().into_string().ok());
    (SettingFlags { roots: here, ..flags.clone() }, remote_roots.collect())
}

/// Returns true for a root of the flags that is on a remote: `NAME:/FOLDER` or `KIND:TARGET:/FOLDER`, unless it is the path
/// of a folder here.
pub fn is_remote_root(root: &Path) -> bool {
    let is_there = |root: &str| root.starts_with('/') || root == "~" || root.starts_with("~/");
    let has_form = match root.to_str().and_then(|text| text.rsplit_once(':')) {
        Some((name, there)) => is_there(there) && !name.is_empty() && !name.starts_with(['/', '.', '~']),
        None => false,
    };
    cfg!(all(feature = "remotes", unix)) && has_form && !root.exists()
}

/// Finds the remotes that are roots. Without a root of this machine, relative paths begin in the first of them.
#[cfg(all(feature = "remotes", unix))]
fn apply_remote_roots(settings: &mut Settings, texts: &[String]) -> Result<(), Error> {
    let configured = &settings.config.remotes;
    let root = |text: &String| match remotes::RemoteSettings::root(text, configured) {
        Some(found) => found.map_err(Error::RemoteRoot),
        None => Err(Error::NoSuchRoot { root: text.chars().take(MAX_SHOWN_CHARS).collect() }),
    };
    let mut roots = texts.iter().map(root).collect::<Result<Vec<_>, _>>()?;
    if !roots.is_empty() && settings.remote.is_some() {
        return Err(Error::RootWithRemote);
    }
    if !roots.is_empty() && settings.config.roots.is_empty() {
        settings.remote = Some(roots.remove(0));
        settings.broad_root = None;
    }
    // Without those that are being made here.
    let base = Arc::new(settings.clone());
    let (for_runner, for_request, for_options) = (Arc::clone(&base), Arc::clone(&base), base);
    let parts = ChosenParts {
        selection: setup::selection(settings),
        warm: settings.warm_remotes.clone(),
        runner: Box::new(move |max_remotes| remote::runner(&for_runner, max_remotes)),
        request: Box::new(move |settings, caller| remote::open_request(&for_request, settings, caller)),
        options: Box::new(move |runner, slug| remote::remote_options(&for_options, runner, slug)),
    };
    settings.chosen_remotes = ChosenRemotes::new(roots, &settings.config.remotes, parts);
    Ok(())
}

/// Does nothing, as this program is built without remotes and has no roots on any.
#[cfg(not(all(feature = "remotes", unix)))]
fn apply_remote_roots(_: &mut Settings, _: &[String]) -> Result<(), Error> {
    Ok(())
}

/// The most characters of a text of the command line that an error repeats.
#[cfg(all(feature = "remotes", unix))]
const MAX_SHOWN_CHARS: usize = 200;

/// Finds the remote that the flags name.
#[cfg(all(feature = "remotes", unix))]
fn apply_remote(settings: &mut Settings, flags: &SettingFlags) -> Result<(), Error> {
    let Some(name) = &flags.remote else {
        return match flags.remote_options.first() {
            Some(option) => {
                Err(Error::RemoteOption { option: option.chars().take(MAX_SHOWN_CHARS).collect() })
            }
            None => Ok(()),
        };
    };
    if !flags.roots.is_empty() {
        return Err(Error::RootWithRemote);
    }
    let option = |option: &String| match option.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(Error::RemoteOption { option: option.chars().take(MAX_SHOWN_CHARS).collect() }),
    };
    let options = flags.remote_options.iter().map(option).collect::<Result<_, _>>()?;
    settings.remote = Some(remotes::RemoteSettings::named(name, options, &settings.config.remotes)?);
    // The folder that this server was started in is not served.
    settings.broad_root = None;
    Ok(())
}

/// Refuses a remote, as this program is built without remotes.
#[cfg(not(all(feature = "remotes", unix)))]
fn apply_remote(_: &mut Settings, flags: &SettingFlags) -> Result<(), Error> {
    match flags.remote {
        Some(_) => Err(Error::NoRemotes),
        None => Ok(()),
    }
}

/// Returns the default settings of a server of the current folder, without environment and configuration.
///
/// # Errors
/// The current folder cannot be found.
pub fn defaults(program: Program) -> Result<Settings, Error> {
    let folder = std::env::current_dir().map_err(Error::CurrentFolder)?;
    combined(program, Config::default(), vec![folder], None, &[])
}

/// Returns the environment as text.
///
/// # Errors
///
/// One of our own variables is not UTF-8. To go on without it could lift what it was to narrow.
fn variables(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<(String, String)>, Error> {
    let mut variables = Vec::new();
    for (name, value) in environment {
        // A variable of another program that is not UTF-8 can neither configure the server nor be printed whole.
        let Ok(name) = name.into_string() else { continue };
        match value.into_string() {
            Ok(value) => variables.push((name, value)),
            Err(_) if name.starts_with(VARIABLE_PREFIX) || name == "FILESYSTEM_TOOLS_BASE_PATH" => {
                return Err(Error::VariableNotUtf8 { name });
            }
            Err(_) => {}
        }
    }
    Ok(variables)
}

/// Returns the values that `config` has masked. One that is too short for that is a warning in `config`.
fn secret_values(config: &mut Config, variables: &[(String, String)]) -> Vec<String> {
    let mut values = Vec::new();
    if *config.redaction.environment_values {
        values = redact::secret_environment(variables.iter().cloned());
    }
    for (name, value) in variables.iter().filter(|(name, _)| config.redaction.variables.contains(name)) {
        if value.trim().len() < redact::MIN_VALUE_BYTES {
            config.warnings.push(format!(
                "the value of {name}, which redaction.variables names, is NOT masked: it has fewer than {} bytes, \
                 and so short a text is found all over ordinary text",
                redact::MIN_VALUE_BYTES
            ));
        }
        values.push(value.clone());
    }
    values.retain(|value| value.trim().len() >= redact::MIN_VALUE_BYTES);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(variables: &[(String, String)], names: &str) -> Config {
        let names = ("CORETOOLS_REDACTION_VARIABLES".to_owned(), names.to_owned());
        let folder = std::env::temp_dir();
        Config::load(&folder, variables.iter().cloned().chain([names]), &SettingFlags::default()).unwrap()
    }

    #[test]
    fn a_value_too_short_to_be_masked_is_a_warning_that_names_the_variable_and_not_the_value() {
        let variables =
            [("DB_PIN", "4z9!"), ("LONG", "long-enough"), ("PADDED", "  1q2w3e  "), ("OTHER", "x")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut config = configured(&variables, "DB_PIN, LONG, PADDED, UNSET");
        let values = secret_values(&mut config, &variables);
        let warned: Vec<_> = config.warnings.iter().filter_map(|warning| warning.split(',').next()).collect();
        assert_eq!(warned, ["the value of DB_PIN", "the value of PADDED"]);
        assert!(!config.warnings.concat().contains("4z9!") && !config.warnings.concat().contains("1q2w3e"));
        assert_eq!(values, ["long-enough"]);
    }

    #[cfg(unix)]
    #[test]
    fn one_of_our_variables_that_is_no_text_is_an_error_and_anothers_is_not() {
        use std::os::unix::ffi::OsStringExt;
        let with = |name: &str| variables([(name.into(), OsString::from_vec(vec![0xff]))]);
        assert_eq!(with("SOMETHING").unwrap(), []);
        for name in ["CORETOOLS_ROLE", "CORETOOLS_TOOLSETS", "FILESYSTEM_TOOLS_BASE_PATH"] {
            assert!(with(name).unwrap_err().to_string().contains(name));
        }
    }
}
