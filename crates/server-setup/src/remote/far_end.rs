//! The server at the far end of a remote: everything that it may do is told by the server in front.

use crate::broad_root::BroadRoot;
use crate::config::{Config, ConfinementMode, Setting, SettingSource};
use crate::error::Error;
use crate::narrowing::shared_roots;
use crate::program::Program;
use crate::read_settings;
use crate::settings::{OperatorLimit, Settings};
use crate::setup::LocalServer;
use remotes::{OpenAnswer, OpenRequest};
use std::path::{Path, PathBuf};

/// The programs that tools need and that may be missing.
const PROGRAMS: [&str; 3] = ["git", "bash", "sh"];

/// The limits that the operator of the far end sets. What the server in front demands can only be less.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FarEndLimits {
    /// The folders beneath which the roots must lie. Empty: any.
    pub roots: Vec<PathBuf>,
    /// The role whose rights no call may exceed, by the policy of this machine: what the server in front calls by the same
    /// name decides nothing.
    pub role: Option<String>,
    /// The policy file that every call must fit beside the policy of the server in front. None: the built-in policy, if a
    /// role is given.
    pub policy: Option<PathBuf>,
}

impl FarEndLimits {
    /// Limits everything to these folders, this role and this policy file.
    pub fn new(roots: Vec<PathBuf>, role: Option<String>, policy: Option<PathBuf>) -> Self {
        Self { roots, role, policy }
    }

    fn operator_limit(&self) -> Option<OperatorLimit> {
        let is_limited = self.role.is_some() || self.policy.is_some();
        is_limited.then(|| OperatorLimit { policy: self.policy.clone(), role: self.role.clone() })
    }

    /// Refuses a configuration with less protection than this machine has by default, if anything is limited, and has
    /// programs confined to the roots, if these are. Without confinement a program reaches what the limits forbid to tools.
    fn protect(&self, config: &mut Config) -> Result<(), Error> {
        if self.roots.is_empty() && self.operator_limit().is_none() {
            return Ok(());
        }
        let least = Config::default();
        let weaker = |key| Err(Error::WeakerThanAllowed { key });
        if *config.policy.confinement == ConfinementMode::Off {
            return weaker("policy.confinement");
        }
        if *config.policy.confinement_level < *least.policy.confinement_level {
            return weaker("policy.confinement_level");
        }
        if *least.redaction.enabled && !*config.redaction.enabled {
            return weaker("redaction.enabled");
        }
        if !self.roots.is_empty() {
            let source = SettingSource::Flag("--root");
            config.policy.confinement = Setting { value: ConfinementMode::Required, source };
        }
        Ok(())
    }
}

/// Returns the settings that `request` demands, within `limits`. No configuration and no variable of this machine widens
/// them.
///
/// # Errors
/// The request names what is not here, demands more than the limits, or has a key that is no matter of the far end.
pub fn far_end_settings(
    program: Program,
    request: &OpenRequest,
    limits: &FarEndLimits,
) -> Result<Settings, Error> {
    let folder = std::env::current_dir().map_err(Error::CurrentFolder)?;
    // The configuration of this machine is not read: the server in front has decided, and the limits below narrow.
    let mut config = Config::from_forwarded(&request.configuration)?;
    if request.roles.is_empty() {
        return Err(Error::NoRole);
    }
    let role = |role: &String| Setting { value: role.clone(), source: SettingSource::ServerInFront };
    config.roles = request.roles.iter().map(role).collect();
    limits.protect(&mut config)?;
    let named = request.roots.iter().map(|root| absolute(root)).collect::<Result<Vec<_>, _>>()?;
    let (roots, broad_root) = match (named.is_empty(), limits.roots.is_empty()) {
        (true, true) => (vec![folder.clone()], BroadRoot::of(&folder)),
        (true, false) => (limits.roots.iter().map(|root| folder.join(root)).collect(), None),
        (false, true) => (named, None),
        (false, false) => {
            let limits: Vec<PathBuf> =
                limits.roots.iter().filter_map(|root| folder.join(root).canonicalize().ok()).collect();
            // All of them, and no part: the caller would take another folder for the one that it named.
            for root in &named {
                let real = root.canonicalize().ok();
                if real.is_none_or(|real| shared_roots(std::slice::from_ref(root), &limits) != [real]) {
                    return Err(Error::RootNotAllowed { root: root.clone() });
                }
            }
            (named, None)
        }
    };
    config.roots = Setting { value: roots.clone(), source: SettingSource::ServerInFront };
    let mut settings = read_settings::with_config(program, config, roots, broad_root)?;
    settings.policy_text.clone_from(&request.policy);
    settings.operator_limit = limits.operator_limit();
    settings.asked_by = Some("the server in front");
    settings.first_command_id = request.first_command_id;
    Ok(settings)
}

/// Returns the folder of the sessions that outlive their channels: `coretools/far-sessions` in `$XDG_STATE_HOME`, by default
/// `~/.local/state` (XDG Base Directory Specification).
pub fn session_folder() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")));
    Some(state?.join("coretools/far-sessions"))
}

/// Returns the answer to the first message: what this machine is, and what it lacks.
pub fn open_answer(server: &LocalServer, version: String) -> OpenAnswer {
    let mut answer = OpenAnswer::new(version);
    answer.roots = server.host.roots().iter().map(|root| root.display().to_string()).collect();
    answer.confinement.clone_from(&server.confinement);
    let path = std::env::var_os("PATH").unwrap_or_default();
    // The programs are looked for and not started, because an answer must not wait for them.
    let is_there = |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    answer.missing = PROGRAMS.into_iter().filter(|program| !is_there(program)).map(str::to_owned).collect();
    answer
}

/// Returns a root of the request. `~` is the home folder of the user there.
fn absolute(root: &str) -> Result<PathBuf, Error> {
    let not_allowed = || Error::RootNotAllowed { root: PathBuf::from(root) };
    match root.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
            let rest = rest.trim_start_matches('/');
            let home = home.ok_or_else(not_allowed)?;
            Ok(if rest.is_empty() { home } else { home.join(rest) })
        }
        _ if Path::new(root).is_absolute() => Ok(PathBuf::from(root)),
        _ => Err(not_allowed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Program = Program::new("mcp-stdio", "1");

    fn request(roots: &[&str]) -> OpenRequest {
        let mut request = OpenRequest::new("1", Config::default().forwarded());
        request.roots = roots.iter().map(ToString::to_string).collect();
        request.roles = vec!["worker".to_owned()];
        request
    }

    #[test]
    fn what_is_told_is_what_holds() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_str().unwrap();
        let mut request = request(&[root]);
        request.configuration =
            "toolsets = \"minimal\"\nlimits.call_timeout_ms = 5\npolicy.network = \"none\"".to_owned();
        request.policy = Some("version = 1".to_owned());
        let settings = far_end_settings(PROGRAM, &request, &FarEndLimits::default()).unwrap();
        assert_eq!(settings.roots, [folder.path()]);
        assert_eq!(*settings.config.limits.call_timeout_ms, 5);
        assert_eq!(settings.config.roles[0].value, "worker");
        assert_eq!(settings.policy_text.as_deref(), Some("version = 1"));
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test makes the folders that the limits name")]
    fn the_limits_of_the_operator_there_hold_whatever_is_demanded() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        for path in [&inside, &outside] {
            std::fs::create_dir(path).unwrap();
        }
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        let limits = FarEndLimits::new(vec![inside.clone()], Some("readonly".to_owned()), None);
        let settings = |root: &Path| far_end_settings(PROGRAM, &request(&[root.to_str().unwrap()]), &limits);
        let allowed = settings(&inside).unwrap();
        assert_eq!(allowed.config.roles[0].value, "worker");
        let expected = OperatorLimit { policy: None, role: Some("readonly".to_owned()) };
        assert_eq!(allowed.operator_limit, Some(expected));
        assert_eq!(*allowed.config.policy.confinement, ConfinementMode::Required);
        for root in
            [outside, inside.join("link"), inside.join("missing"), inside.join(".."), PathBuf::from("/")]
        {
            assert!(matches!(settings(&root), Err(Error::RootNotAllowed { .. })), "{}", root.display());
        }
        assert_eq!(far_end_settings(PROGRAM, &request(&[]), &limits).unwrap().roots, [inside]);
    }

    #[test]
    fn a_limited_far_end_gives_no_protection_up() {
        let folder = tempfile::tempdir().unwrap();
        let limits = [
            FarEndLimits::new(vec![folder.path().to_owned()], None, None),
            FarEndLimits::new(Vec::new(), Some("readonly".to_owned()), None),
        ];
        for weaker in [
            "policy.confinement = \"off\"",
            "policy.confinement_level = \"filesystem\"",
            "redaction.enabled = false",
        ] {
            let mut request = request(&[]);
            request.configuration = weaker.to_owned();
            assert!(far_end_settings(PROGRAM, &request, &FarEndLimits::default()).is_ok(), "{weaker}");
            for limits in &limits {
                let refused = far_end_settings(PROGRAM, &request, limits);
                assert!(matches!(refused, Err(Error::WeakerThanAllowed { .. })), "{weaker}");
            }
        }
    }

    #[test]
    fn a_request_for_what_is_no_matter_of_the_far_end_is_refused() {
        let refused = |change: fn(&mut OpenRequest)| {
            let mut request = request(&[]);
            change(&mut request);
            far_end_settings(PROGRAM, &request, &FarEndLimits::default()).is_err()
        };
        assert!(!refused(|_| {}));
        assert!(refused(|request| request.roles.clear()));
        assert!(refused(|request| request.roots = vec!["relative".to_owned()]));
        assert!(refused(|request| request.roots = vec!["~other/x".to_owned()]));
        assert!(refused(|request| request.configuration = "policy.audit = \"/tmp/x\"".to_owned()));
        assert!(refused(|request| request.configuration = "[http]\nlisten = []".to_owned()));
        assert!(refused(|request| request.configuration = "role = \"orchestrator\"".to_owned()));
        assert!(refused(|request| request.configuration = "toolsets = [".to_owned()));
    }
}
