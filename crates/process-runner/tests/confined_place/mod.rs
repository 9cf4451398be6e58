//! The place in which programs are confined in tests: a root and a temporary folder, which they may use, beside a folder
//! that they may not.

#![allow(dead_code, reason = "each test target uses a part of it")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use process_runner::{Confinement, ConfinementLevel};

/// A folder with a root, a temporary folder and a folder outside both. It is removed when this is dropped.
pub(crate) struct ConfinedPlace {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl ConfinedPlace {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        for name in ["root", "temp", "outside"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        Self { _folder: folder, path }
    }

    /// Returns a place if this system reaches the default level. In CI it must.
    pub(crate) fn at_default_level() -> Option<Self> {
        let status = Confinement::new().status();
        let has_level = status.level >= ConfinementLevel::default();
        skipped_tests::require(has_level.then_some(()), &status.to_string())?;
        Some(Self::new())
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.path.join("root")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.path.join("outside")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a confinement to the root and the temporary folder, without network.
    pub(crate) fn confinement(&self) -> Confinement {
        Confinement::project([self.root()], self.path.join("temp")).network(false)
    }
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Runs a test of this target again, as a user without privileges. The calling test must be run by root.
pub(crate) fn run_as_another_user(test: &str) {
    let setpriv = Path::new("/usr/bin/setpriv");
    let missing = "no setpriv; it is part of util-linux";
    let Some(setpriv) = skipped_tests::require(setpriv.exists().then_some(setpriv), missing) else { return };
    // The user may not enter the folder of the build.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("test");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = std::process::Command::new(setpriv)
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"])
        .arg(&program)
        .args([test, "--exact", "--nocapture"])
        .env("TMPDIR", "/tmp")
        .current_dir("/")
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
