//! A marker file of any content names a role that can be one, or none; and with a key nothing counts that was
//! not signed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use role_policy::source::find_marker;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::SystemTime;

const KEY: &[u8] = b"0123456789abcdef0123456789abcdef";

/// A folder of this process's own.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("fuzz-marker-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("a mode can be set");
        folder
    })
}

fuzz_target!(|input: (&[u8], &[u8])| {
    let (text, session) = input;
    for (name, content) in [("coretools_role", text), ("teleclaude_role", text), ("teleclaude_session_id", session)] {
        let path = folder().join(name);
        fs::write(&path, content).expect("a file can be written");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a mode can be set");
    }
    let now = SystemTime::now();
    if let Ok(Some(marker)) = find_marker(folder(), None, now) {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
        assert!((1..=32).contains(&marker.role.len()) && marker.role.chars().all(fits), "{:?}", marker.role);
        assert!(!marker.signed && text.len() <= 512);
        assert!(marker.session.is_none_or(|session| (1..=128).contains(&session.len())));
    }
    assert!(find_marker(folder(), Some(KEY), now).is_err(), "nobody signed this");
});
