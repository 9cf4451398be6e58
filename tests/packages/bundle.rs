//! The bundle for clients that install by a click (MCPB), and the archives.

use crate::{TARGET, VERSION, is_the_server, json_of, package, package_of, packager, small, succeed};
use integration_tests::Project;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A word of the manifest, as a client fills it in.
fn filled(word: &Value, manifest: &Value, bundle: &Path, root: &Path) -> String {
    let mut word = word.as_str().unwrap().replace("${__dirname}", bundle.to_str().unwrap());
    for (name, setting) in manifest["user_config"].as_object().unwrap() {
        let value = setting["default"].as_str().unwrap_or_else(|| root.to_str().unwrap());
        word = word.replace(&format!("${{user_config.{name}}}"), value);
    }
    assert!(!word.contains("${"), "{word}");
    word
}

#[test]
fn the_bundle_is_one_that_its_own_tool_takes_and_starts_the_server() {
    let Some(mcpb) = packager("node_modules/@anthropic-ai/mcpb/dist/cli/cli.js") else { return };
    let folder = tempfile::tempdir().unwrap();
    let packed = &package("mcpb", folder.path(), &[])[0];
    let bundle = folder.path().join("unpacked");
    succeed(Command::new("node").arg(&mcpb).arg("unpack").args([packed, &bundle]));
    succeed(Command::new("node").arg(&mcpb).arg("validate").arg(bundle.join("manifest.json")));
    let manifest = json_of(&bundle.join("manifest.json"));
    assert_eq!(manifest["version"], VERSION);
    assert_eq!(manifest["compatibility"]["platforms"], serde_json::json!(["linux"]));
    let server = &manifest["server"];
    assert!(bundle.join(server["entry_point"].as_str().unwrap()).is_file());
    is_the_server(&|project: &Project| {
        let fill = |word: &Value| filled(word, &manifest, &bundle, project.path());
        let config = &server["mcp_config"];
        let mut command = project.server_as(Path::new(&fill(&config["command"])));
        command.args(config["args"].as_array().unwrap().iter().map(fill));
        command
    });
}

#[test]
fn an_archive_holds_the_programs_their_manual_completions_and_licenses_in_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let archive = &package("archive", folder.path(), &[])[0];
    let output = succeed(Command::new("tar").args(["--list", "--verbose", "--gzip", "--file"]).arg(archive));
    let listed = String::from_utf8(output.stdout).unwrap();
    let files: BTreeSet<&str> = listed.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    let inside = format!("coretools-{VERSION}-{TARGET}/");
    assert!(files.iter().all(|file| file.starts_with(&inside)), "{files:?}");
    for file in [
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "CHANGELOG.md",
        "man/man1/mcp-stdio.1",
        "man/man1/mcp-http-token-new.1",
        "completions/fish/mcp-http.fish",
        "completions/zsh/_mcp-stdio",
        "completions/powershell/mcp-stdio.ps1",
    ] {
        assert!(files.contains(format!("{inside}{file}").as_str()), "{file} is missing: {files:?}");
    }
    let unpacked = folder.path().join("unpacked");
    std::fs::create_dir(&unpacked).unwrap();
    succeed(
        Command::new("tar").arg("--extract").arg("--file").arg(archive).arg("--directory").arg(&unpacked),
    );
    for program in ["mcp-stdio", "mcp-http"] {
        let output = succeed(Command::new(unpacked.join(&inside).join(program)).arg("--version"));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{program} {VERSION}\n"));
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let programs = small(folder.path());
    for kind in ["npm", "wheel", "mcpb"] {
        let made = |place: &str| {
            let out = folder.path().join(place);
            std::fs::read(&package_of(&programs, kind, &out, &[])[0]).unwrap()
        };
        assert_eq!(made("once"), made("again"), "{kind}");
    }
}
