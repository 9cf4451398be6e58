//! Who calls, and what they may: the policy, and the sources of the caller's role.

use crate::settings::{Settings, chain};
use core_tools::config::Setting;
use core_tools::workspace::Workspace;
use role_policy::source::{Evidence, MARKER_NAMES, Marker, MarkerError, Named, Resolved, Sources, resolve};
use role_policy::{Caller, Effects, Loaded, Policy, ToolFacts};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A larger policy is a mistake.
const MAX_POLICY_BYTES: u64 = 4 << 20;

/// The policy that `settings` name, or the one that is built in, for the tools that there are.
///
/// # Errors
/// The file cannot be read, others may write to it, or everything that is wrong in it.
pub fn policy(settings: &Settings, tools: &[ToolFacts<'_>]) -> Result<Loaded, String> {
    match settings.config.policy.file.as_ref() {
        None => {
            let (name, text) = settings.program.policy();
            let loaded = match settings.program.has_own_roles() {
                true => Policy::load(text, name, tools),
                false => Policy::builtin(tools),
            };
            loaded.map_err(|error| error.to_string())
        }
        Some(path) => load(path, tools),
    }
}

/// The policy in the file at `path`.
///
/// # Errors
/// As [`policy`].
pub fn load(path: &Path, tools: &[ToolFacts<'_>]) -> Result<Loaded, String> {
    let text = read(path).map_err(|error| format!("cannot use the policy {}: {error}", path.display()))?;
    Policy::load(&text, &path.display().to_string(), tools).map_err(|error| error.to_string())
}

/// Reads a file that decides what may be done: one of nobody but this user or root, to which no other may write.
///
/// # Errors
/// It is another's, others may write to it, it is no file, or it is larger than 4 MiB.
pub fn read(path: &Path) -> io::Result<String> {
    let file = open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let metadata = file.metadata()?;
        let user = rustix::process::geteuid().as_raw();
        let denied = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        if metadata.uid() != user && metadata.uid() != 0 {
            return denied(format!(
                "it belongs to user {}, and this server runs as user {user}",
                metadata.uid()
            ));
        }
        // A umask of 002 is common where every user has a group of its own, of the same number.
        let others = if metadata.gid() == metadata.uid() { 0o002 } else { 0o022 };
        if metadata.mode() & others != 0 {
            let mode = metadata.mode() & 0o777;
            return denied(format!("others may write to it (mode {mode:03o}; `chmod go-w` ends that)"));
        }
    }
    let mut text = String::new();
    if file.take(MAX_POLICY_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_POLICY_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 4 MiB"));
    }
    Ok(text)
}

/// Refuses exclusions (`not_within`) that do not hold: of links, of roots that are not there, of what has two
/// paths because a root lies in another.
///
/// # Errors
/// Everything that is wrong.
pub fn check_places(
    policy: &Policy,
    caller: &Caller,
    workspace: &Workspace,
    effects: &dyn Effects,
) -> Result<(), String> {
    if !policy.excludes_paths(caller) {
        return Ok(());
    }
    let roots: Vec<&Path> = workspace.roots().collect();
    for root in &roots {
        if let Some(outer) = roots.iter().find(|outer| *outer != root && root.starts_with(outer)) {
            return Err(format!(
                "the root {} lies in the root {}, so that `not_within` could be gone around; give one of them",
                root.display(),
                outer.display()
            ));
        }
    }
    match policy.misplaced(caller, effects) {
        wrong if wrong.is_empty() => Ok(()),
        wrong => Err(wrong.join("\n")),
    }
}

/// Refuses a key that lies in a root: whoever may read there could sign any role.
///
/// # Errors
/// It does.
pub fn check_key(settings: &Settings, workspace: &Workspace) -> Result<(), String> {
    let Some(key) = settings.config.policy.marker_key.as_ref() else { return Ok(()) };
    // One that is not there signs nothing, and the caller is in the minimal role.
    let Ok(real) = key.canonicalize() else { return Ok(()) };
    if workspace.roots().any(|root| real.starts_with(root)) {
        return Err(format!(
            "policy.marker_key {} lies in a root, where tools can read it; keep it elsewhere",
            key.display()
        ));
    }
    // What a confined program may read besides.
    const READABLE: [&str; 8] = ["/usr", "/bin", "/lib", "/lib64", "/etc", "/opt", "/nix", "/dev"];
    if READABLE.iter().any(|folder| real.starts_with(folder)) {
        return Err(format!(
            "policy.marker_key {} lies where programs that tools run can read it; keep it elsewhere",
            key.display()
        ));
    }
    Ok(())
}

/// Opens without waiting: a pipe would wait for somebody to write.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// The caller, from everything that says something of its role. The log tells what each source said.
pub fn caller(settings: &Settings, policy: &Policy) -> Resolved {
    let mut sources = Sources::default();
    let named = settings.config.roles.iter();
    sources.named =
        named.map(|role| Named { source: role.source.to_string(), role: role.value.clone() }).collect();
    sources.command.clone_from(&settings.agent_command);
    sources.marker = marker(settings).transpose();
    match &settings.session {
        None => {}
        Some(Ok(identity)) => sources.named.extend(
            identity
                .roles
                .iter()
                .map(|role| Named { source: "the session's credential".to_owned(), role: role.clone() }),
        ),
        // As with a marker: who shows something that is not good is trusted with nothing.
        Some(Err(why)) => {
            tracing::warn!("the session's credential is not good: {why}");
            let role = policy.minimal_role().to_owned();
            sources
                .named
                .push(Named { source: "the session's credential, which is not good".to_owned(), role });
        }
    }
    let mut resolved = resolve(policy, &sources);
    if let Some(Ok(identity)) = &settings.session {
        resolved.caller = resolved.caller.with_session(identity.session_id.clone());
    }
    for Evidence { source, role, distrust, .. } in &resolved.evidence {
        match distrust {
            Some(why) => tracing::warn!("the role from {source} is not used, and {role} instead: {why}"),
            None => tracing::info!("role {role}, from {source}"),
        }
    }
    resolved
}

/// Whose credential it is: its supervisor is asked, and nobody else would know.
///
/// # Errors
/// Nobody's, or the supervisor cannot be reached.
#[cfg(all(feature = "sessions", unix))]
pub fn session(settings: &Settings, credential: String) -> Result<crate::settings::SessionIdentity, String> {
    use core_tools::sessions::{Client, Request};
    let state = crate::sessions::state_folder(settings)?;
    // Before any runtime there is: it is one question, to the same machine.
    let ask = move || -> Result<_, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let answer = runtime.block_on(Client::new(state).ask(&Request::Identify { credential }));
        serde_json::from_value(answer.map_err(|error| chain(&error))?).map_err(|error| chain(&error))
    };
    std::thread::spawn(ask).join().map_err(|_| "it could not be asked about".to_owned())?
}

/// The marker in the temporary folder that the session was given.
#[cfg(unix)]
fn marker(settings: &Settings) -> Result<Option<Marker>, MarkerError> {
    use role_policy::source::{find_marker, read_key};
    let key = match settings.config.policy.marker_key.as_ref() {
        Some(path) => Some(read_key(path)?),
        None => None,
    };
    // Only a folder that is surely not there holds no marker. One that cannot be looked into may.
    let there = |folder: &&PathBuf| !folder.is_absolute() || folder.try_exists().unwrap_or(true);
    let shared = |folder: &PathBuf| folder.canonicalize().is_ok_and(|folder| folder.starts_with("/dev/shm"));
    if settings.temporary_folder.as_ref().is_some_and(shared) {
        let why = "its folder lies in /dev/shm, where every program may write".to_owned();
        return Err(MarkerError::Untrusted(why));
    }
    match settings.temporary_folder.as_ref().filter(there) {
        Some(folder) => find_marker(folder, key.as_deref(), std::time::SystemTime::now()),
        // Where there is no folder of the session's own, /tmp is everybody's, and no marker in it counts.
        _ if key.is_some() => Err(MarkerError::Missing),
        _ => Ok(None),
    }
}

#[cfg(not(unix))]
fn marker(settings: &Settings) -> Result<Option<Marker>, MarkerError> {
    match settings.config.policy.marker_key.as_ref() {
        Some(_) => Err(MarkerError::Missing),
        None => Ok(None),
    }
}

/// The files that decide what tools may do, which no tool may write.
pub fn protected(settings: &Settings) -> Vec<PathBuf> {
    let policy = &settings.config.policy;
    let http = &settings.config.http;
    let named =
        [&policy.file, &policy.marker_key, &policy.audit, &http.tokens, &http.tls_certificate, &http.tls_key]
            .into_iter()
            .filter_map(|file: &Setting<_>| file.value.clone());
    let mut files: Vec<PathBuf> = settings.config.file.iter().cloned().chain(named).collect();
    if let Some(audit) = policy.audit.as_ref() {
        files.extend((1..=core_tools::mcp::Audit::KEPT).map(|number| {
            let mut name = audit.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        }));
    }
    if let Some(folder) = settings.temporary_folder.as_ref().filter(|folder| folder.is_absolute()) {
        files.extend(MARKER_NAMES.iter().map(|name| folder.join(name)));
        files.push(folder.join(role_policy::source::SESSION_MARKER_NAME));
    }
    // A root is known by its path without links.
    let real = |file: &PathBuf| {
        let folder = file.parent()?.canonicalize().ok()?;
        Some(folder.join(file.file_name()?))
    };
    let real: Vec<PathBuf> = files.iter().filter_map(real).collect();
    // One that is named by a link is what the link leads to, for that is what is read.
    let led_to: Vec<PathBuf> = files.iter().filter_map(|file| file.canonicalize().ok()).collect();
    files.extend(real);
    files.extend(led_to);
    files
}

/// The files that the server alone reads. The policy and the key of markers are not among them: the servers of agents in
/// sessions read them too.
pub fn secret(settings: &Settings) -> Vec<PathBuf> {
    let http = &settings.config.http;
    // A database's address has its password in it, unless it is a variable's.
    let has_password = http.audit_database.as_deref().is_some_and(|place| !place.starts_with('$'));
    let config = settings.config.file.clone().filter(|_| has_password);
    config.into_iter().chain(http.tokens.value.clone()).chain(http.tls_key.value.clone()).collect()
}

/// Hands on the policy in the file at `path` each time that it changes. One that cannot be used is told, and
/// the policy before stays.
/// `check` refuses one that does not fit the server.
pub async fn watch(
    path: PathBuf,
    tools: Vec<ToolFacts<'static>>,
    check: impl Fn(&Policy) -> Result<(), String>,
    mut apply: impl FnMut(Policy),
) {
    let load = |path: &Path, tools: &[ToolFacts<'_>]| {
        let loaded = load(path, tools)?;
        check(&loaded.policy)?;
        Ok::<_, String>(loaded)
    };
    /// How soon a change counts.
    const INTERVAL: std::time::Duration = std::time::Duration::from_millis(500);
    // What changed while the server started counts as well.
    let mut seen = stamp(&path);
    if let Ok(loaded) = load(&path, &tools) {
        apply(loaded.policy);
    }
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let now = stamp(&path);
        if now == seen {
            continue;
        }
        seen = now;
        match load(&path, &tools) {
            Ok(loaded) => {
                loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
                tracing::warn!("the policy {} was read again and holds from now on", path.display());
                apply(loaded.policy);
            }
            Err(error) => tracing::error!(
                "the changed policy is not used, and the one before stays: {}",
                chain_text(&error)
            ),
        }
    }
}

fn chain_text(error: &str) -> String {
    error.replace('\n', "; ")
}

/// What changes when a file does.
#[cfg(unix)]
pub type Stamp = (u64, u64, i64, i64, u64);

/// What changes when a file does. A file that cannot be looked at is one that has changed.
#[cfg(unix)]
pub fn stamp(path: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let metadata = path.metadata().ok()?;
    // The time of the last change of any kind, which nobody can set back as they can that of the content.
    Some((metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec(), metadata.len()))
}

/// What changes when a file does.
#[cfg(not(unix))]
pub type Stamp = (std::time::SystemTime, u64);

/// What changes when a file does. A file that cannot be looked at is one that has changed.
#[cfg(not(unix))]
pub fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = path.metadata().ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Opens the audit that `settings` name.
///
/// # Errors
/// It cannot be written, or others may write to it.
pub fn audit(settings: &Settings) -> Result<Option<core_tools::mcp::Audit>, String> {
    use core_tools::config::AuditWhenFull;
    use core_tools::mcp::{Audit, WhenFull};
    let policy = &settings.config.policy;
    let Some(path) = policy.audit.as_ref() else { return Ok(None) };
    let when_full = match *policy.audit_when_full {
        AuditWhenFull::Count => WhenFull::Count,
        AuditWhenFull::Refuse => WhenFull::Refuse,
    };
    Audit::open(path, when_full)
        .map(Some)
        .map_err(|error| format!("cannot write the audit {}: {}", path.display(), chain(&error)))
}
