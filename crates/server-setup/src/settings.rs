//! What is read from outside: flags, environment and configuration.

#[cfg(all(feature = "sessions", unix))]
use crate::identity;
use crate::program::Program;
use core_tools::config::{Config, Flags, VARIABLE_PREFIX};
use core_tools::redact::{self, Redactor};
#[cfg(all(feature = "sessions", unix))]
use core_tools::sessions::CREDENTIAL_VARIABLE;
use process_runner::Secrets;
use std::ffi::OsString;
use std::path::PathBuf;

/// Everything that is read from outside, read.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server that is set up.
    pub program: Program,
    /// The configuration.
    pub config: Config,
    /// The folders that tools may use.
    pub roots: Vec<PathBuf>,
    /// What masks secrets in everything that leaves.
    pub redactor: Redactor,
    /// Values that must not leave, which the runner hides before any output is cut.
    pub secrets: Secrets,
    /// `$TMPDIR`: a session may have one of its own.
    pub temporary_folder: Option<PathBuf>,
    /// The command that the agent was started with.
    pub agent_command: Option<String>,
    /// The session that this server runs in, or why what it shows of one is not good.
    pub session: Option<Result<SessionIdentity, String>>,
    /// Variables of this process that no program gets: what is meant for the server alone. None, unless it says so.
    pub withheld: Vec<String>,
}

/// What the supervisor of a session says of it.
#[cfg(all(feature = "sessions", unix))]
pub type SessionIdentity = core_tools::sessions::Identity;

/// What would be said of a session, if there were any here.
#[cfg(not(all(feature = "sessions", unix)))]
#[derive(Clone, Debug)]
pub struct SessionIdentity {
    /// Its roles.
    pub roles: Vec<String>,
    /// Its id.
    pub session_id: String,
}

/// Reads environment and configuration, beneath `flags`. `agent_command` is the command that the agent was started
/// with, where it is known.
///
/// # Errors
/// What is wrong, in words.
pub fn read(program: Program, flags: &Flags, agent_command: Option<String>) -> Result<Settings, String> {
    let folder =
        std::env::current_dir().map_err(|error| format!("cannot find the current folder: {error}"))?;
    let folder = program.serves(folder);
    let variables = variables(std::env::vars_os())?;
    let mut config =
        Config::load(&folder, variables.iter().cloned(), flags).map_err(|error| chain(&error))?;
    let roots = if config.roots.is_empty() { vec![folder] } else { config.roots.to_vec() };
    let values = secret_values(&mut config, &variables);
    let secrets = if *config.redaction.enabled { Secrets::new(&values) } else { Secrets::default() };
    let redaction = redact::Options { enabled: *config.redaction.enabled, values };
    let redactor = Redactor::new(redaction).map_err(|error| chain(&error))?;
    let temporary_folder = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    #[allow(unused_mut, reason = "sessions are for Unix alone, and not for every server")]
    let mut settings = Settings {
        program,
        config,
        roots,
        redactor,
        secrets,
        temporary_folder,
        agent_command,
        session: None,
        withheld: Vec::new(),
    };
    #[cfg(all(feature = "sessions", unix))]
    if let Some(credential) = std::env::var_os(CREDENTIAL_VARIABLE) {
        let session = identity::session(&settings, credential.to_string_lossy().into_owned());
        if let Ok(session) = &session
            && !session.roots.is_empty()
        {
            settings.roots = narrowed(&settings.roots, &session.roots)?;
        }
        settings.session = Some(session);
    }
    Ok(settings)
}

/// As [`read`], for a server of the current folder that nothing was said to.
///
/// # Errors
/// What is wrong, in words.
pub fn plain(program: Program) -> Result<Settings, String> {
    let folder =
        std::env::current_dir().map_err(|error| format!("cannot find the current folder: {error}"))?;
    Ok(Settings {
        program,
        config: Config::default(),
        roots: vec![folder],
        redactor: Redactor::new(redact::Options::default()).map_err(|error| chain(&error))?,
        secrets: Secrets::default(),
        temporary_folder: None,
        agent_command: None,
        session: None,
        withheld: Vec::new(),
    })
}

/// What of `roots` lies in `within`.
#[cfg(all(feature = "sessions", unix))]
fn narrowed(roots: &[PathBuf], within: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut narrowed: Vec<PathBuf> = Vec::new();
    for root in roots {
        let Ok(real) = root.canonicalize() else { continue };
        let common = within.iter().filter_map(|outer| match real.starts_with(outer) {
            true => Some(&real),
            false => outer.starts_with(&real).then_some(outer),
        });
        for common in common {
            if !narrowed.contains(common) {
                narrowed.push(common.clone());
            }
        }
    }
    if narrowed.is_empty() {
        let within: Vec<_> = within.iter().map(|root| root.display().to_string()).collect();
        return Err(format!("this session may use {}, and no root lies there", within.join(", ")));
    }
    Ok(narrowed)
}

/// The environment as text.
///
/// # Errors
///
/// Where one of our own variables is no text: to go on without it could lift what it was to narrow.
fn variables(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<(String, String)>, String> {
    let mut variables = Vec::new();
    for (name, value) in environment {
        // Another's variable that is no text can neither configure the server nor be printed whole.
        let Ok(name) = name.into_string() else { continue };
        match value.into_string() {
            Ok(value) => variables.push((name, value)),
            Err(_) if name.starts_with(VARIABLE_PREFIX) || name == "FILESYSTEM_TOOLS_BASE_PATH" => {
                return Err(format!("environment variable {name} is not valid UTF-8"));
            }
            Err(_) => {}
        }
    }
    Ok(variables)
}

/// The values that `config` has masked. One that is too short for that is a warning in `config`.
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

/// An error and everything that led to it.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(variables: &[(String, String)], names: &str) -> Config {
        let names = ("CORETOOLS_REDACTION_VARIABLES".to_owned(), names.to_owned());
        let folder = std::env::temp_dir();
        Config::load(&folder, variables.iter().cloned().chain([names]), &Flags::default()).unwrap()
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
            assert!(with(name).unwrap_err().contains(name));
        }
    }
}
