//! The policy: which one is used, whether it fits the server, and what happens when its file changes.

use std::path::{Path, PathBuf};

use core_tools::workspace::Workspace;
use role_policy::{Caller, EffectResolver, LoadedPolicy, Policy, ToolFacts};

use crate::error::Error;
use crate::file_stamp::file_stamp;
use crate::settings::Settings;
use crate::trusted_text::{TrackedText, read, repaired, tracked};
use error_causes::chain;

/// Loads the policy that `settings` name, or else the built-in one, for these tools.
///
/// # Errors
/// The file cannot be read, others may write to it, or everything that is wrong in it.
pub fn configured(settings: &Settings, tools: &[ToolFacts<'_>]) -> Result<LoadedPolicy, Error> {
    if let Some(text) = &settings.policy_text {
        return Ok(Policy::load(text, "the policy of the server in front", tools)?);
    }
    of_this_machine(settings, settings.config.policy.file.as_deref(), tools)
}

/// Loads the policy in `file`, or else the built-in one.
fn of_this_machine(
    settings: &Settings,
    file: Option<&Path>,
    tools: &[ToolFacts<'_>],
) -> Result<LoadedPolicy, Error> {
    match file {
        None => {
            let (name, text) = settings.program.policy();
            let loaded = match settings.program.has_own_roles() {
                true => Policy::load(text, name, tools),
                false => Policy::builtin(tools),
            };
            Ok(loaded?)
        }
        Some(path) => load(path, tools),
    }
}

/// Narrows the policy by what the operator of this far end allows. The text that the server in front has sent decides
/// nothing about that.
///
/// # Errors
/// As [`configured`], or the policy of the operator has not the role.
pub(crate) fn narrowed_by_operator(
    mut loaded: LoadedPolicy,
    settings: &Settings,
    tools: &[ToolFacts<'_>],
) -> Result<LoadedPolicy, Error> {
    let Some(limit) = &settings.operator_limit else { return Ok(loaded) };
    let mut own = of_this_machine(settings, limit.policy.as_deref(), tools)?;
    loaded.warnings.append(&mut own.warnings);
    let policy = match &limit.role {
        None => own.policy,
        Some(role) if own.policy.declares(role) => own.policy.for_role(role.as_str()),
        Some(role) => return Err(Error::NoSuchRole { role: role.clone() }),
    };
    loaded.policy = loaded.policy.narrowed_by(&policy);
    Ok(loaded)
}

/// Loads the policy as [`configured`] does, for a server that starts. The built-in one is not checked again for the tools
/// of the library, with which a test checks it.
///
/// # Errors
/// As [`configured`].
pub fn at_start(settings: &Settings, tools: &[ToolFacts<'_>]) -> Result<LoadedPolicy, Error> {
    let program = &settings.program;
    let has_own_text = settings.policy_text.is_some() || settings.config.policy.file.is_some();
    if has_own_text || program.has_own_roles() || program.own_toolset.is_some() {
        return configured(settings, tools);
    }
    Ok(Policy::builtin_unchecked(tools)?)
}

/// Loads the policy in the file at `path`.
///
/// # Errors
/// As [`configured`].
pub fn load(path: &Path, tools: &[ToolFacts<'_>]) -> Result<LoadedPolicy, Error> {
    let text =
        read(path).map_err(|source| Error::File { role: "the policy", path: path.to_owned(), source })?;
    Ok(Policy::load(&text, &path.display().to_string(), tools)?)
}

/// Refuses exclusions (`not_within`) that do not hold: they name links or missing roots, or a root lies in another, so
/// that a file has two paths.
///
/// # Errors
/// All exclusions that do not hold, one on each line.
pub fn check_exclusions(
    policy: &Policy,
    caller: &Caller,
    workspace: &Workspace,
    effects: &dyn EffectResolver,
) -> Result<(), Error> {
    // Links and nested roots give a file a second path, which only a rule that forbids one can be evaded by.
    if !policy.excludes_paths(caller) {
        return Ok(());
    }
    let roots: Vec<&Path> = workspace.roots().collect();
    for root in &roots {
        if let Some(outer) = roots.iter().find(|outer| *outer != root && root.starts_with(outer)) {
            return Err(Error::NestedRoots { inner: root.to_path_buf(), outer: outer.to_path_buf() });
        }
    }
    match policy.unresolved_exclusions(caller, effects) {
        wrong if wrong.is_empty() => Ok(()),
        wrong => Err(Error::UnresolvedExclusions(wrong)),
    }
}

/// Calls `apply` with the policy in the file at `path` each time that the file changes. A policy that cannot be used is
/// logged, and the one before stays. `check` refuses one that does not fit the server.
///
/// A file that others could write is not trusted: its policy can only narrow the one before. If it cannot be used at all,
/// nobody may call anything until a new file is in its place.
pub async fn watch(
    path: PathBuf,
    tools: Vec<ToolFacts<'static>>,
    check: impl Fn(&Policy) -> Result<(), Error>,
    mut apply: impl FnMut(Policy),
) {
    let compile = |text: &str, path: &Path| {
        let loaded = Policy::load(text, &path.display().to_string(), &tools)?;
        check(&loaded.policy)?;
        Ok::<_, Error>(loaded)
    };
    /// The time between two looks at the file.
    // Polled, since a notification is lost if an editor replaces the file, and network file systems send none.
    const INTERVAL: std::time::Duration = std::time::Duration::from_millis(500);
    let mut file = tracked(path);
    // What changed while the server started counts as well.
    let mut last_stamp = file_stamp(file.path());
    let mut trusted = None;
    if let Ok(TrackedText::Trusted(text)) = file.read()
        && let Ok(loaded) = compile(&text, file.path())
    {
        trusted = Some(loaded.policy.clone());
        apply(loaded.policy);
    }
    let mut ticks = tokio::time::interval(INTERVAL);
    // After a suspend one look is enough.
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let now = file_stamp(file.path());
        if now == last_stamp {
            continue;
        }
        last_stamp = now;
        let read = file.read();
        let path = file.path();
        match read {
            Ok(TrackedText::Trusted(text)) => match compile(&text, path) {
                Ok(loaded) => {
                    loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
                    tracing::warn!("the policy {} was read again and holds from now on", path.display());
                    trusted = Some(loaded.policy.clone());
                    apply(loaded.policy);
                }
                Err(error) => log_unused(&error),
            },
            Ok(TrackedText::Unchanged { cause, is_repaired }) => {
                tracing::warn!(
                    "the policy {} holds as before, since its text is the same: {cause}{}",
                    path.display(),
                    repaired(is_repaired)
                );
                // A text between the two may have narrowed it.
                trusted.clone().into_iter().for_each(&mut apply);
            }
            Ok(TrackedText::Distrusted { text, cause, is_repaired }) => {
                let narrowed = match (compile(&text, path), &trusted) {
                    (Ok(loaded), Some(trusted)) => {
                        tracing::error!(
                            "the policy {} was changed and is not trusted: {cause}{}. What it takes away holds, and \
                             what it adds does not; put a new file in its place",
                            path.display(),
                            repaired(is_repaired)
                        );
                        Some(trusted.narrowed_by(&loaded.policy))
                    }
                    (Err(error), _) => {
                        tracing::error!(
                            "the policy {} was changed, is not trusted ({cause}{}) and cannot be used: {}. Nobody may \
                             call anything until a new file is in its place",
                            path.display(),
                            repaired(is_repaired),
                            one_line(&chain(&error))
                        );
                        nothing(&tools)
                    }
                    (Ok(_), None) => nothing(&tools),
                };
                narrowed.into_iter().for_each(&mut apply);
            }
            Err(source) => {
                log_unused(&Error::File { role: "the policy", path: path.to_owned(), source });
            }
        }
    }
}

/// Returns a policy that allows nothing.
fn nothing(tools: &[ToolFacts<'_>]) -> Option<Policy> {
    // Without a role every caller has the minimal one, which sees nothing.
    Policy::load("version = 1", "no policy", tools)
        .inspect_err(|error| tracing::error!("the policy that allows nothing cannot be used: {error}"))
        .map(|loaded| loaded.policy)
        .ok()
}

fn log_unused(error: &Error) {
    tracing::error!("the changed policy is not used, and the one before stays: {}", one_line(&chain(error)));
}

/// Joins the lines of a message: a log record is one line.
fn one_line(error: &str) -> String {
    error.replace('\n', "; ")
}
