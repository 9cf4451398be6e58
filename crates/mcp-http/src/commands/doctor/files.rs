//! Checks of files: their owners, their modes, and whether this user can use them.
#![allow(clippy::disallowed_methods, reason = "the files are the operator's; no client names them")]

use error_causes::chain;
use server_setup::finding::{DoctorFinding, broken, ok};
use server_setup::settings::Settings;
use server_setup::trusted_text;
use std::path::Path;

/// Checks the roots and each file that the configuration names.
pub(super) fn check(settings: &Settings) -> Vec<DoctorFinding> {
    let mut findings: Vec<DoctorFinding> = settings.roots.iter().map(|root| self::root(root)).collect();
    let (policy, http) = (&settings.config.policy, &settings.config.http);
    let keys = http.jwt_keys.as_deref().filter(|place| !place.contains("://")).map(Path::new);
    for (what, path) in [("policy", policy.file.value.as_deref()), ("jwt", keys)] {
        if let Some(path) = path
            && let Err(error) = trusted_text::read(path)
        {
            findings.push(broken(
                what,
                format!("{}: {}", path.display(), chain(&error)),
                "correct its owner and mode",
            ));
        }
    }
    if let Some(key) = http.tls_key.as_deref() {
        findings.extend(private(key));
    }
    findings.extend(policy.audit.as_deref().map(audit));
    findings
}

fn root(path: &Path) -> DoctorFinding {
    let remedy = "make it, and give it to the user of the server, or name another with --root";
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => match may_write(path) {
            true => ok("root", path.display().to_string()),
            false => broken("root", format!("{}: this user may not write to it", path.display()), remedy),
        },
        Ok(_) => broken("root", format!("{} is no folder", path.display()), remedy),
        Err(error) => broken("root", format!("{}: {error}", path.display()), remedy),
    }
}

/// Checks that nobody else can read the key of the certificate.
fn private(path: &Path) -> Option<DoctorFinding> {
    use std::os::unix::fs::MetadataExt;
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) => {
            return Some(broken("tls", format!("{}: {error}", path.display()), "correct http.tls_key"));
        }
    };
    // Only the bits of everybody count: a group may share the key with the program that renews the certificate.
    (metadata.mode() & 0o007 != 0).then(|| {
        let mode = metadata.mode() & 0o777;
        broken("tls", format!("everybody can read the key {} (mode {mode:o})", path.display()), "chmod 0600")
    })
}

/// Checks that the audit can be written.
fn audit(path: &Path) -> DoctorFinding {
    let shown = path.display();
    match std::fs::File::open(path) {
        Ok(file) => match trusted_file::check(&file, trusted_file::OthersAccess::MayRead) {
            Ok(()) if may_write(path) => ok("audit", shown.to_string()),
            Ok(()) => broken(
                "audit",
                format!("{shown}: this user may not write to it"),
                "chown it to the server's user",
            ),
            Err(error) => {
                broken("audit", format!("{shown}: {}", chain(&error)), "correct its owner and mode")
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(Path::new("/"));
            match folder.is_dir() && may_write(folder) {
                true => ok("audit", format!("{shown} will be made")),
                false => broken(
                    "audit",
                    format!(
                        "{shown}: this user cannot make it, as {} is missing or not writable",
                        folder.display()
                    ),
                    "make the folder for the server's user; LogsDirectory= of the unit does when it starts",
                ),
            }
        }
        Err(error) => broken("audit", format!("{shown}: {error}"), "run doctor as the user of the server"),
    }
}

fn may_write(path: &Path) -> bool {
    // The system call also knows of read-only file systems and access control lists, which the mode does not show.
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}
