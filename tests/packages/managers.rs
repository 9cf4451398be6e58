//! The files for package managers that cannot be run here, Homebrew, winget, Nix and cargo-binstall: their syntax, and that
//! they name archives as they are packed.

use crate::{VERSION, package, repository, succeed};
use integration_tests::require;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Archives of a release, with nothing in them.
fn archives(folder: &Path, targets: &[&str], ending: &str) -> Vec<PathBuf> {
    let make = |target: &&str| {
        let path = folder.join(format!("coretools-{VERSION}-{target}{ending}"));
        fs::write(&path, *target).unwrap();
        path
    };
    targets.iter().map(make).collect()
}

/// The SHA-256 of a file, as `sha256sum` computes it.
fn sum(path: &Path) -> String {
    let output = succeed(Command::new("sha256sum").arg(path));
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}

#[test]
fn the_formula_names_each_archive_of_a_release_with_its_sum() {
    let folder = tempfile::tempdir().unwrap();
    let targets = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "aarch64-apple-darwin"];
    let archives = archives(folder.path(), &targets, ".tar.gz");
    let paths: Vec<_> = archives.iter().map(|path| path.to_str().unwrap()).collect();
    let formula = fs::read_to_string(&package("homebrew", folder.path(), &paths)[0]).unwrap();
    for archive in &archives {
        let name = archive.file_name().unwrap().to_str().unwrap();
        let address = format!("https://github.com/owner/name/releases/download/v{VERSION}/{name}");
        assert!(
            formula.contains(&format!("url \"{address}\"\n      sha256 \"{}\"", sum(archive))),
            "{formula}"
        );
    }
    // A platform that was not packed, as its build may fail, is left out.
    assert!(
        !formula.contains("x86_64-apple") && !formula.contains("SHA256") && !formula.contains("OWNER"),
        "{formula}"
    );
    let ruby = Command::new("ruby").arg("-c").arg(folder.path().join("coretools.rb")).output().ok();
    if let Some(output) = require(ruby, "no ruby; install it: apt install ruby") {
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn the_manifests_for_winget_are_yaml_and_name_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    let archives = archives(folder.path(), &["x86_64-pc-windows-msvc"], ".zip");
    let manifests = package("winget", folder.path(), &[archives[0].to_str().unwrap()]);
    assert_eq!(manifests.len(), 3);
    assert!(manifests[0].ends_with(format!("manifests/o/owner/CoreTools/{VERSION}/owner.CoreTools.yaml")));
    let program = "require 'yaml'; require 'json'; puts JSON.generate(ARGV.map { |file| YAML.safe_load(File.read(file)) })";
    let output = Command::new("ruby").args(["-e", program]).args(&manifests).output().ok();
    let Some(output) = require(output, "no ruby; install it: apt install ruby") else { return };
    assert!(output.status.success(), "{output:?}");
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for manifest in read.as_array().unwrap() {
        assert_eq!(manifest["PackageIdentifier"], "owner.CoreTools");
        assert_eq!(manifest["PackageVersion"], VERSION);
    }
    let installer = &read[1]["Installers"][0];
    let address = installer["InstallerUrl"].as_str().unwrap();
    assert!(address.ends_with(archives[0].file_name().unwrap().to_str().unwrap()), "{address}");
    assert_eq!(installer["InstallerSha256"], sum(&archives[0]));
    let nested = read[1]["NestedInstallerFiles"][0]["RelativeFilePath"].as_str().unwrap();
    assert_eq!(nested, format!("coretools-{VERSION}-x86_64-pc-windows-msvc\\mcp-stdio.exe"));
}

#[test]
fn cargo_binstall_finds_the_archives_and_the_programs_in_them() {
    for (krate, program) in [("mcp-stdio", "mcp-stdio"), ("mcp-http", "mcp-http")] {
        let manifest = fs::read_to_string(repository("crates").join(krate).join("Cargo.toml")).unwrap();
        let metadata = manifest.split_once("[package.metadata.binstall]\n").expect("the table").1;
        let value = |key: &str| {
            let line = metadata.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
            line.unwrap_or_else(|| panic!("{key} is missing")).trim_matches('"').to_owned()
        };
        let target = "x86_64-unknown-linux-musl";
        let filled = |text: String| {
            [
                ("{ repo }", "https://github.com/owner/name"),
                ("{ version }", VERSION),
                ("{ target }", target),
                ("{ archive-suffix }", ".tar.gz"),
                ("{ bin }", program),
                ("{ binary-ext }", ""),
            ]
            .iter()
            .fold(text, |text, (mark, value)| text.replace(mark, value))
        };
        assert_eq!(
            filled(value("pkg-url")),
            format!(
                "https://github.com/owner/name/releases/download/v{VERSION}/coretools-{VERSION}-{target}.tar.gz"
            )
        );
        assert_eq!(filled(value("bin-dir")), format!("coretools-{VERSION}-{target}/{program}"));
        assert_eq!(value("pkg-fmt"), "tgz");
    }
}

/// Without Nix: brackets and quotes close, and each path that is named is there.
#[test]
fn the_files_for_nix_are_balanced_and_name_what_is_there() {
    for file in ["package.nix", "flake.nix"] {
        let text = fs::read_to_string(repository("packaging/nix").join(file)).unwrap();
        let code: String = text.lines().map(|line| line.split('#').next().unwrap()).collect();
        for (open, close) in [('{', '}'), ('[', ']'), ('(', ')')] {
            assert_eq!(code.matches(open).count(), code.matches(close).count(), "{file}: {open}");
        }
        assert_eq!(code.matches("''").count() % 2, 0, "{file}");
        for path in text.split("root + \"/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(repository(path).exists(), "{file} names {path}");
        }
    }
}
