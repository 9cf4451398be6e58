//! Checks of folders, files and ports.
#![allow(
    clippy::disallowed_methods,
    reason = "it looks at the folders that the user named, to say what is wrong with them"
)]

#[cfg(all(feature = "sessions", unix))]
use crate::output::name;
#[cfg(all(feature = "sessions", unix))]
use error_causes::chain;
use server_setup::config::SettingSource;
use server_setup::finding::{DoctorFinding, broken, note, ok};
#[cfg(all(feature = "sessions", unix))]
use server_setup::sessions;
use server_setup::settings::Settings;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use trusted_file::OthersAccess;

/// Checks a root: it has to be a folder that can be listed. One that cannot be written to, or that holds more than a project,
/// is worth a note.
pub(super) fn root(root: &Path) -> Vec<DoctorFinding> {
    let shown = root.display();
    if let Err(error) = std::fs::read_dir(root) {
        let remedy = match error.kind() {
            ErrorKind::NotFound => "make it, or name a folder that is there: --root DIR",
            ErrorKind::NotADirectory => "name the folder that it lies in: --root DIR",
            _ => "let this user read it (`ls -ld` shows who may), or name another: --root DIR",
        };
        return vec![broken("root", format!("{shown}: {error}"), remedy)];
    }
    let mut findings = vec![match write_in(root) {
        Ok(()) => ok("root", format!("{shown}: readable, writable")),
        Err(error) => note(
            "root",
            format!("{shown}: readable, not writable: {error}"),
            "where tools are to change files there, let this user write to it",
        ),
    }];
    let home = std::env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
    // A root may be a link to the home folder.
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let breadth = match (real.parent(), home) {
        (None, _) => Some("the whole file system"),
        (_, Some(home)) if home == real => {
            Some("your whole home folder, keys and settings of other programs included")
        }
        _ => None,
    };
    if let Some(breadth) = breadth {
        findings.push(note(
            "root",
            format!("{shown} is {breadth}: tools may read and change everything in it"),
            "start the server in a project, or name one: --root ~/project",
        ));
    }
    findings
}

/// Creates a file in the folder and removes it again: permissions alone do not tell of read-only file systems and quotas.
fn write_in(root: &Path) -> std::io::Result<()> {
    let path = root.join(format!(".mcp-stdio-doctor-{}", std::process::id()));
    // `create_new`, so that no file of the user is ever opened.
    std::fs::File::options().write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)
}

/// Checks that the rule for files which say what may be done holds for `file`.
pub(super) fn untrusted(file: &Path) -> Option<DoctorFinding> {
    let metadata = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?;
    let error = trusted_file::check_access(&metadata, OthersAccess::GroupMayWrite).err()?;
    let shown = file.display();
    let (problem, remedy) = match error {
        trusted_file::Error::WritableByOthers { mode } => {
            (format!("others may write to it (mode {mode:03o})"), format!("chmod go-w {shown}"))
        }
        error => (error.to_string(), "let it belong to this user or to root".to_owned()),
    };
    Some(note("configuration", format!("{shown}: {problem}"), remedy))
}

/// Checks the folder in which sessions are kept, and the supervisor whose socket is in it.
#[cfg(all(feature = "sessions", unix))]
pub(super) fn state(settings: &Settings) -> Vec<DoctorFinding> {
    use rustix::fs::{Access, access};
    use std::os::unix::fs::MetadataExt;
    let folder = match sessions::state_folder(settings) {
        Ok(folder) => folder,
        Err(error) => return vec![note("state", chain(&error), "only sessions and profiles need it")],
    };
    // A folder that does not exist yet will be created in the nearest one that does.
    let Some(existing) = folder.ancestors().find(|folder| folder.symlink_metadata().is_ok()) else {
        return Vec::new();
    };
    let shown = existing.display();
    let elsewhere = "set sessions.state_dir or XDG_STATE_HOME to a folder of this user; sessions and profiles are kept there";
    let Ok(metadata) = existing.metadata() else {
        return vec![note("state", format!("{shown}: a link to nothing"), elsewhere)];
    };
    if !metadata.is_dir() {
        return vec![note("state", format!("{shown}: not a folder"), elsewhere)];
    }
    if let Err(error) = access(existing, Access::WRITE_OK | Access::EXEC_OK) {
        return vec![note("state", format!("{shown}: not writable: {error}"), elsewhere)];
    }
    if existing != folder {
        return vec![ok("state", format!("{} can be made when it is needed", folder.display()))];
    }
    let (mode, owner) = (metadata.mode() & 0o777, metadata.uid());
    let user = rustix::process::geteuid().as_raw();
    if owner != user {
        return vec![note(
            "state",
            format!("{shown}: belongs to user {owner}, and this is user {user}"),
            elsewhere,
        )];
    }
    let mut findings = vec![match mode & 0o077 {
        0 => ok("state", format!("{shown}: writable, private")),
        _ => note(
            "state",
            format!("{shown}: others may look into it (mode {mode:03o})"),
            format!("chmod 700 {shown}"),
        ),
    }];
    findings.extend(supervisor(&folder.join("socket")));
    findings
}

#[cfg(not(all(feature = "sessions", unix)))]
pub(super) fn state(_: &Settings) -> Vec<DoctorFinding> {
    Vec::new()
}

/// Connects to the socket of the supervisor of sessions.
#[cfg(all(feature = "sessions", unix))]
fn supervisor(socket: &Path) -> Option<DoctorFinding> {
    let shown = socket.display();
    match std::os::unix::net::UnixStream::connect(socket) {
        Ok(_) => Some(ok("sessions", format!("a supervisor answers at {shown}"))),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Some(ok(
            "sessions",
            format!("no supervisor runs; an earlier one left {shown}, and the next takes it over"),
        )),
        Err(error) => Some(note(
            "sessions",
            format!("{shown}: cannot connect: {error}"),
            format!("let this user connect to it; `{} session status` shows if a supervisor runs", name()),
        )),
    }
}

/// Checks that mcp-http could listen at the configured addresses.
pub(super) fn ports(settings: &Settings) -> Vec<DoctorFinding> {
    let listen = &settings.config.http.listen;
    // Whoever configured no address does not use mcp-http.
    if listen.source == SettingSource::Default {
        return Vec::new();
    }
    let addresses = listen.iter().filter(|address| !address.starts_with("unix:"));
    addresses
        // Really bound, and closed at once: only the system knows which ports this user may have.
        .map(|address| match TcpListener::bind(address) {
            Ok(_) => ok("http.listen", format!("{address} is free")),
            Err(error) => {
                let port = address.rsplit(':').next().unwrap_or_default();
                let remedy = match error.kind() {
                    ErrorKind::AddrInUse => format!(
                        "fine if that is mcp-http; otherwise end it (`ss -ltnp sport = :{port}` shows it), or choose another port"
                    ),
                    ErrorKind::PermissionDenied => "choose a port from 1024, with a proxy in front of it".to_owned(),
                    _ => "expected ADDRESS:PORT of this machine, such as 127.0.0.1:8717".to_owned(),
                };
                note("http.listen", format!("{address}: {error}"), remedy)
            }
        })
        .collect()
}
