//! The packages that clients install by themselves: the plugin for Claude Code, the extension for Gemini CLI, and links for editors.
//! Both clients are real, with an empty home; in place of npx, which would ask the registry, a script starts the server.

use crate::{VERSION, json_of, package, repository, succeed};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use integration_tests::{Project, npm_clients, server};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The words by which each of them starts the server.
fn start() -> Value {
    json!({"command": "npx", "args": ["-y", "coretools-mcp"]})
}

/// A home, a project, and the programs of npm's clients.
struct Desk {
    home: tempfile::TempDir,
    project: Project,
    modules: PathBuf,
}

impl Desk {
    fn with(program: &str) -> Option<Self> {
        let modules = npm_clients(&format!(".bin/{program}"))?;
        let home = tempfile::tempdir().unwrap();
        let npx = home.path().join("bin/npx");
        fs::create_dir_all(npx.parent().unwrap()).unwrap();
        let script = format!("#!/bin/sh\n[ \"$*\" = '-y coretools-mcp' ] && exec '{}'\n", server().display());
        fs::write(&npx, script).unwrap();
        fs::set_permissions(&npx, fs::Permissions::from_mode(0o755)).unwrap();
        Some(Self { home, project: Project::with([("a.txt", "hello\n")]), modules })
    }

    /// Runs a client, which must succeed; both of its streams.
    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let node = repository(".nodes/node_modules/node24/bin");
        let path = format!(
            "{}/bin:{}/.bin:{}:{}",
            self.home.path().display(),
            self.modules.display(),
            node.display(),
            std::env::var("PATH").unwrap()
        );
        let mut command = Command::new("timeout");
        command.args(["--kill-after", "5", "180", program]).args(arguments);
        command.current_dir(self.project.path()).env_clear().env("PATH", path).env("HOME", self.home.path());
        command.env("NO_COLOR", "1").env("TMPDIR", self.home.path());
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            command.env(name, "http://127.0.0.1:9");
        }
        let output = succeed(command.env("NO_PROXY", "127.0.0.1"));
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }
}

#[test]
fn claude_code_takes_the_marketplace_installs_the_plugin_and_connects() {
    let Some(desk) = Desk::with("claude") else { return };
    let root = repository("").canonicalize().unwrap();
    for manifest in [root.clone(), root.join("packaging/claude-plugin")] {
        desk.run("claude", &["plugin", "validate", manifest.to_str().unwrap()]);
    }
    // A copy of what is published: a checkout has gigabytes beside it.
    let copy = desk.home.path().join("checkout");
    for path in [".claude-plugin", "packaging"] {
        fs::create_dir_all(&copy).unwrap();
        succeed(Command::new("cp").arg("-R").arg(root.join(path)).arg(&copy));
    }
    desk.run("claude", &["plugin", "marketplace", "add", copy.to_str().unwrap()]);
    desk.run("claude", &["plugin", "install", "coretools@coretools"]);
    let listed = desk.run("claude", &["mcp", "list"]);
    assert!(listed.contains("npx -y coretools-mcp - ✔ Connected"), "{listed}");
}

#[test]
fn gemini_takes_the_extension_and_connects() {
    let Some(desk) = Desk::with("gemini") else { return };
    let out = desk.home.path().join("dist");
    let packed = &package("gemini-extension", &out, &[])[0];
    let extension = desk.home.path().join("extension");
    fs::create_dir(&extension).unwrap();
    succeed(Command::new("tar").arg("-xzf").arg(packed).current_dir(&extension));
    assert_eq!(json_of(&extension.join("gemini-extension.json"))["version"], VERSION);
    let trusted = json!({
        desk.project.path().to_str().unwrap(): "TRUST_FOLDER",
        extension.to_str().unwrap(): "TRUST_FOLDER",
    });
    fs::create_dir(desk.home.path().join(".gemini")).unwrap();
    fs::write(desk.home.path().join(".gemini/trustedFolders.json"), trusted.to_string()).unwrap();
    let place = extension.to_str().unwrap();
    desk.run("gemini", &["extensions", "validate", place]);
    desk.run("gemini", &["extensions", "install", place, "--consent"]);
    let listed = desk.run("gemini", &["mcp", "list"]);
    assert!(
        listed.contains("✓ coretools (from coretools): npx -y coretools-mcp (stdio) - Connected"),
        "{listed}"
    );
}

/// The parameters of an address, decoded.
fn parameters(address: &str) -> Vec<(String, String)> {
    let decode = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let [first, more @ ..] = rest {
            rest = more;
            match first {
                b'%' => {
                    bytes.push(u8::from_str_radix(std::str::from_utf8(&more[..2]).unwrap(), 16).unwrap());
                    rest = &more[2..];
                }
                byte => bytes.push(*byte),
            }
        }
        String::from_utf8(bytes).unwrap()
    };
    let query = address.split_once('?').expect("parameters").1;
    let pairs = query.split('&').map(|pair| pair.split_once('=').expect("a value"));
    pairs.map(|(name, value)| (decode(name), decode(value))).collect()
}

#[test]
fn the_links_of_the_readme_install_the_server_that_is_packaged() {
    let output = succeed(Command::new("python3").arg(repository("packaging/package.py")).arg("links"));
    let links = String::from_utf8(output.stdout).unwrap();
    let [cursor, vscode] = links.lines().collect::<Vec<_>>()[..] else { panic!("{links}") };
    let readme = fs::read_to_string(repository("README.md")).unwrap();
    for link in [cursor, vscode] {
        assert!(readme.contains(&format!("({link})")), "the README lacks {link}");
    }
    assert!(cursor.starts_with("https://cursor.com/en/install-mcp?"), "{cursor}");
    let [(_, name), (_, config)] = &parameters(cursor)[..] else { panic!("{cursor}") };
    let config: Value = serde_json::from_slice(&STANDARD.decode(config).unwrap()).unwrap();
    assert_eq!((name.as_str(), config), ("coretools", start()));
    assert!(vscode.starts_with("https://insiders.vscode.dev/redirect/mcp/install?"), "{vscode}");
    let [(_, name), (_, config)] = &parameters(vscode)[..] else { panic!("{vscode}") };
    let config: Value = serde_json::from_str(config).unwrap();
    let expected = json!({"type": "stdio", "command": "npx", "args": ["-y", "coretools-mcp"]});
    assert_eq!((name.as_str(), config), ("coretools", expected));
}

#[test]
fn every_manifest_starts_the_package_of_npm() {
    for path in ["packaging/claude-plugin/.mcp.json", "packaging/gemini-extension/gemini-extension.json"] {
        let servers = &json_of(&repository(path))["mcpServers"];
        assert_eq!(servers["coretools"], start(), "{path}");
    }
    let npm = json_of(Path::new(&repository("packaging/npm/package.json")));
    assert_eq!(npm["name"], "coretools-mcp");
}
