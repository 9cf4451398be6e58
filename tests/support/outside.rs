//! Projects outside the workspace that link its crates, from the checkout or from the packages that crates.io would get.

use crate::Project;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns the folder of the workspace.
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace is there")
}

/// Returns the target folder that the running test was built into.
pub fn target_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own file");
    // target/PROFILE/deps/TEST
    test.ancestors().nth(3).expect("three folders").to_owned()
}

/// Empties a folder at a fixed place beneath the target folder. Because the place never changes, cargo finds there what
/// it built in an earlier run.
pub fn empty_folder(name: &str) -> Project {
    let folder = target_folder().join("scaffold").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("folders can be made");
    Project::at(&folder)
}

/// Runs cargo in the project at `folder`, and returns what it prints. Fails if cargo fails or warns.
///
/// It uses no network, the workspace's lock, profile and target folder: third-party crates with the features that the
/// workspace has chosen are not compiled again.
pub fn cargo_outside(folder: &Path, arguments: &[&str]) -> String {
    std::fs::copy(checkout().join("Cargo.lock"), folder.join("Cargo.lock")).expect("a lock");
    let profile = target_folder().join("scaffold").join(format!("profile-{}.toml", unique_name(folder)));
    std::fs::write(&profile, workspace_profile()).expect("a file can be written");
    let output = crate::cargo()
        .args(arguments)
        .arg("--offline")
        .arg("--config")
        .arg(&profile)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target_folder())
        .output()
        .expect("cargo can be run");
    let _ = std::fs::remove_file(&profile);
    let printed =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "cargo {arguments:?}: {printed}");
    let is_warning = |line: &str| line.starts_with("warning") && !is_about_unused_settings(line);
    assert!(!printed.lines().any(is_warning), "{printed}");
    printed
}

/// Every package is offered as a patch, and the profile names crates: cargo warns of those that the project does not link.
fn is_about_unused_settings(line: &str) -> bool {
    line.contains("was not used in the crate graph")
        || (line.contains("profile package spec") && line.contains("did not match any packages"))
}

/// Two tests of one process may run cargo in two folders at once.
fn unique_name(folder: &Path) -> String {
    let folder = folder.file_name().expect("a folder with a name").to_string_lossy();
    format!("{folder}-{}", std::process::id())
}

/// Returns the tables of the workspace's profile that say how third-party crates are built.
fn workspace_profile() -> String {
    let manifest = std::fs::read_to_string(checkout().join("Cargo.toml")).expect("a manifest");
    let wanted = ["dev", "dev.package.\"*\"", "dev.package.memchr", "dev.package.regex-automata"];
    let tables = manifest.split("\n[profile.").skip(1);
    let tables = tables.filter(|table| wanted.iter().any(|name| table.starts_with(&format!("{name}]"))));
    tables.map(|table| format!("[profile.{table}\n")).collect()
}

/// Returns what `cargo metadata --no-deps` says about the packages of the workspace.
pub fn workspace_packages() -> &'static [Value] {
    static PACKAGES: OnceLock<Vec<Value>> = OnceLock::new();
    PACKAGES.get_or_init(|| {
        let output = crate::cargo()
            .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
            .current_dir(checkout())
            .output()
            .expect("cargo can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        metadata["packages"].as_array().expect("a list").clone()
    })
}

/// A crate of the workspace as crates.io would get it, unpacked.
pub struct UnpackedPackage {
    /// The name of the package.
    pub name: String,
    /// The folder with its manifest.
    pub folder: PathBuf,
}

/// Packages every crate of the workspace that is published, and unpacks the packages at a fixed place beneath the
/// target folder, once in a process. Fails if cargo warns about a package.
pub fn unpacked_packages() -> &'static [UnpackedPackage] {
    static PACKAGES: OnceLock<Vec<UnpackedPackage>> = OnceLock::new();
    PACKAGES.get_or_init(|| {
        let packages = target_folder().join("scaffold/packages");
        let mut cargo = crate::cargo();
        cargo.args(["package", "--offline", "--no-verify", "--allow-dirty", "--quiet", "--target-dir"]);
        cargo.arg(&packages);
        let is_published = |package: &&Value| package["publish"].is_null();
        let published: Vec<&Value> = workspace_packages().iter().filter(is_published).collect();
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        for package in &published {
            cargo.arg("--package").arg(text(&package["name"]));
        }
        let output = cargo.current_dir(checkout()).output().expect("cargo can be run");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && printed.is_empty(), "cargo package: {printed}");

        let unpacked = empty_folder("unpacked");
        let unpack = |package: &&Value| {
            let name = text(&package["name"]);
            let stem = format!("{name}-{}", text(&package["version"]));
            let file = packages.join(format!("package/{stem}.crate"));
            // With new times: cargo gives the files of every package the same old time, and would mistake what it built
            // of an earlier package for this one.
            let status = Command::new("tar").arg("xmzf").arg(&file).current_dir(unpacked.path()).status();
            assert!(status.expect("tar is there").success(), "{}", file.display());
            UnpackedPackage { name, folder: unpacked.join(&stem) }
        };
        published.iter().map(unpack).collect()
    })
}

/// Returns the arguments that make cargo take every crate of the workspace from [`unpacked_packages`] instead of
/// crates.io.
pub fn patch_arguments() -> Vec<String> {
    let patch = |package: &UnpackedPackage| {
        let folder = package.folder.display().to_string();
        ["--config".to_owned(), format!("patch.crates-io.{}.path={folder:?}", package.name)]
    };
    unpacked_packages().iter().flat_map(patch).collect()
}
