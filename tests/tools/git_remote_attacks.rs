//! Remotes that lead where they may not, and configurations that name programs for a connection.

use crate::git::{connect, hook, repository};
use crate::git_remotes::with_remote;
use integration_tests::{Era, Project, Wire};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

const TOOLS: [&str; 3] = ["git_fetch", "git_pull", "git_push"];

/// A program outside the project that leaves a mark with its arguments and fails.
fn trap(folder: &Path, name: &str) -> (String, PathBuf) {
    let (script, marker) = (folder.join(name), folder.join(format!("{name}.ran")));
    std::fs::write(&script, format!("#!/bin/sh\necho \"$*\" >> {}\nexit 1\n", marker.display())).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    (script.to_str().unwrap().to_owned(), marker)
}

/// A server whose user has this configuration.
fn connect_as_user(project: &Project, config: &str) -> (Wire, Project) {
    let home = Project::with([(".gitconfig", config)]);
    let mut command = project.server();
    command.env("HOME", home.path()).env_remove("XDG_CONFIG_HOME");
    (Wire::connect(command, Era::Modern), home)
}

/// A server that asks every request for a password.
fn asks_for_password() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
                    _ => break,
                }
            }
            let answer = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\n\
                Content-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}/x.git")
}

#[test]
fn a_remote_outside_the_roots_or_behind_a_program_is_refused() {
    let (project, mut wire) = with_remote();
    let (secret, _) = repository();
    let outside = secret.path().canonicalize().unwrap();
    let traps = tempfile::tempdir().unwrap();
    let (script, marker) = trap(traps.path(), "evil.sh");
    std::os::unix::fs::symlink(&outside, project.join("link")).unwrap();
    for (url, words) in [
        (outside.display().to_string(), "outside the allowed roots"),
        (format!("file://{}", outside.display()), "outside the allowed roots"),
        ("../nowhere".to_owned(), "outside the allowed roots"),
        ("./link".to_owned(), "outside the allowed roots"),
        ("./missing.git".to_owned(), "nothing at this path"),
        ("./sub".to_owned(), "it is no repository"),
        (format!("ext::{script}"), "would run a program"),
        ("fd::7".to_owned(), "would run a program"),
        ("evil://host/x".to_owned(), "would run a program"),
        ("file://host/x".to_owned(), "absolute path"),
    ] {
        project.git(&["config", "remote.origin.url", &url]);
        for tool in TOOLS {
            let said = wire.failure(tool, json!({}));
            assert!(said.contains(words), "{tool} {url}: {said}");
            assert!(!marker.exists(), "{tool} {url}");
        }
    }
    // The same behind an address that looks harmless, and for the one of pushes alone.
    project.git(&["config", "remote.origin.url", "https://host.example/x"]);
    project.git(&["config", "protocol.ext.allow", "always"]);
    project.git(&["config", &format!("url.ext::{script} .insteadOf"), "https://host.example/"]);
    for tool in TOOLS {
        let said = wire.failure(tool, json!({}));
        assert!(said.contains("would run a program") && !marker.exists(), "{tool}: {said}");
    }
    project.git(&["config", "remote.origin.url", "./remote.git"]);
    project.git(&["config", "remote.origin.pushurl", outside.to_str().unwrap()]);
    wire.text("git_fetch", json!({}));
    assert!(wire.failure("git_push", json!({})).contains("outside the allowed roots"));
}

#[test]
fn a_remote_or_a_branch_is_a_name_and_nothing_else() {
    let (project, mut wire) = with_remote();
    let traps = tempfile::tempdir().unwrap();
    let (script, marker) = trap(traps.path(), "evil.sh");
    for remote in [
        format!("ext::{script}"),
        format!("--upload-pack={script}"),
        format!("--receive-pack={script}"),
        "./remote.git".to_owned(),
        "https://host.example/x".to_owned(),
        ".".to_owned(),
        String::new(),
        "--all".to_owned(),
    ] {
        for tool in TOOLS {
            let said = wire.failure(tool, json!({"remote": remote}));
            assert!(said.contains("no remote is called"), "{tool} {remote}: {said}");
        }
    }
    let head = project.git(&["rev-parse", "HEAD"]);
    for branch in ["+main", "main:main", ":main", "--all", "a..b", "refs/heads/*", "@{-1}", "", "a b", "x^"] {
        for (tool, parameter) in [
            ("git_fetch", "branch"),
            ("git_pull", "branch"),
            ("git_push", "branch"),
            ("git_push", "remote_branch"),
        ] {
            wire.failure(tool, json!({parameter: branch}));
        }
        wire.failure("git_push", json!({"tags": [branch]}));
    }
    assert!(!marker.exists());
    assert_eq!(
        project.git_in("remote.git", &["for-each-ref", "--format=%(refname) %(objectname)"]),
        format!("refs/heads/main {head}")
    );
}

#[test]
fn programs_that_the_repository_names_for_a_connection_are_not_run_and_are_named() {
    let (project, mut wire) = with_remote();
    let traps = tempfile::tempdir().unwrap();
    let (script, marker) = trap(traps.path(), "evil.sh");
    for key in [
        "core.sshCommand",
        "core.askPass",
        "core.gitProxy",
        "core.alternateRefsCommand",
        "core.fsmonitor",
        "credential.helper",
        "credential.http://127.0.0.1.helper",
        "remote.origin.uploadpack",
        "remote.origin.receivepack",
        "uploadpack.packObjectsHook",
    ] {
        project.git(&["config", key, &script]);
    }
    for name in ["reference-transaction", "post-merge", "post-checkout"] {
        hook(&project, name, &format!("echo {name} >> {}", marker.display()));
    }
    let text = wire.text("git_fetch", json!({}));
    assert!(!marker.exists(), "{}", std::fs::read_to_string(&marker).unwrap());
    for key in
        ["core.sshcommand", "credential.helper", "remote.origin.uploadpack", "remote.origin.receivepack"]
    {
        assert!(text.contains(key), "{key}: {text}");
    }
    assert!(text.contains("git config --global"), "{text}");
    wire.text("git_pull", json!({}));
    assert!(!marker.exists(), "{}", std::fs::read_to_string(&marker).unwrap());
    // Hooks run in a push, as in a commit. Nothing else does.
    for name in ["reference-transaction", "post-merge", "post-checkout"] {
        std::fs::remove_file(project.join(".git/hooks").join(name)).unwrap();
    }
    let text = wire.text("git_push", json!({}));
    assert!(text.contains("remote.origin.receivepack"), "{text}");
    for url in ["ssh://host.example/x", &asks_for_password(), "git://127.0.0.1:1/x"] {
        project.git(&["config", "remote.origin.url", url]);
        // No ssh where there is a trap instead of it.
        let mut command = project.server();
        let path = format!("{}:{}", traps.path().display(), std::env::var("PATH").unwrap());
        std::fs::write(traps.path().join("ssh"), "#!/bin/sh\necho no route >&2; exit 255\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(traps.path().join("ssh"), mode).unwrap();
        command.env("HOME", "/nonexistent").env("PATH", path);
        let mut wire = Wire::connect(command, Era::Modern);
        for tool in TOOLS {
            let said = wire.failure(tool, json!({}));
            assert!(!marker.exists(), "{tool} {url}: {}", std::fs::read_to_string(&marker).unwrap());
            assert!(said.contains("core.sshcommand"), "{tool} {url}: {said}");
        }
    }
    project.git(&["config", "remote.origin.url", "./remote.git"]);
    project.git(&["config", "remote.origin.vcs", "evil"]);
    let said = wire.failure("git_fetch", json!({}));
    assert!(said.contains("remote.origin.vcs"), "{said}");
}

#[test]
fn the_users_own_programs_are_run_and_ask_nothing() {
    let (project, _) = with_remote();
    let traps = tempfile::tempdir().unwrap();
    let (evil, evil_marker) = trap(traps.path(), "evil.sh");
    let (ssh, ssh_marker) = trap(traps.path(), "ssh");
    let (helper, helper_marker) = trap(traps.path(), "helper.sh");
    let config = format!("[core]\n\tsshCommand = {ssh} -i key\n[credential]\n\thelper = {helper}\n");
    let (mut wire, _home) = connect_as_user(&project, &config);
    project.git(&["config", "core.sshCommand", &evil]);
    project.git(&["config", "credential.helper", &evil]);
    project.git(&["config", "remote.origin.url", "ssh://host.example/x"]);
    for tool in TOOLS {
        wire.failure(tool, json!({}));
        let arguments = std::fs::read_to_string(&ssh_marker).unwrap();
        assert!(
            arguments.contains("-i key -oBatchMode=yes") && arguments.contains("host.example"),
            "{arguments}"
        );
        std::fs::remove_file(&ssh_marker).unwrap();
    }
    project.git(&["config", "remote.origin.url", &asks_for_password()]);
    for tool in TOOLS {
        let said = wire.failure(tool, json!({}));
        assert!(said.contains("nobody can be asked here: set up a credential helper"), "{tool}: {said}");
        assert!(std::fs::read_to_string(&helper_marker).unwrap().contains("get"), "{tool}");
        std::fs::remove_file(&helper_marker).unwrap();
    }
    assert!(!evil_marker.exists(), "{}", std::fs::read_to_string(&evil_marker).unwrap());
}

#[test]
fn an_unknown_host_key_is_an_error_that_says_what_to_do() {
    let (project, _) = with_remote();
    let traps = tempfile::tempdir().unwrap();
    let ssh = traps.path().join("ssh");
    std::fs::write(&ssh, "#!/bin/sh\necho Host key verification failed. >&2\nexit 255\n").unwrap();
    std::fs::set_permissions(&ssh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (mut wire, _home) = connect_as_user(&project, &format!("[core]\n\tsshCommand = {}\n", ssh.display()));
    project.git(&["config", "remote.origin.url", "git@host.example:x.git"]);
    let said = wire.failure("git_fetch", json!({}));
    assert!(said.contains("connect once in a terminal") && said.contains("git@host.example:x.git"), "{said}");
}

#[test]
fn what_a_remote_is_set_up_to_fetch_or_push_overwrites_no_branch() {
    let (project, mut wire) = with_remote();
    project.git(&["commit", "--quiet", "--allow-empty", "--message=only here"]);
    let head = project.git(&["rev-parse", "HEAD"]);
    project.git(&["switch", "--quiet", "--create", "elsewhere"]);
    project.git(&["config", "--replace-all", "remote.origin.fetch", "+refs/*:refs/*"]);
    project.git(&["config", "remote.origin.mirror", "true"]);
    project.git(&["config", "remote.origin.push", "+refs/heads/*:refs/heads/*"]);
    project.git(&["config", "fetch.prune", "true"]);
    project.git(&["config", "push.followTags", "true"]);
    project.git(&["tag", "--annotate", "--message=mine", "mine"]);
    wire.text("git_fetch", json!({"prune": true, "all_tags": true}));
    assert_eq!(project.git(&["rev-parse", "main"]), head);
    assert_eq!(project.git(&["tag"]), "mine\n");
    wire.text("git_push", json!({}));
    let there = project.git_in("remote.git", &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(there, "refs/heads/elsewhere\nrefs/heads/main\n");
    assert_ne!(project.git_in("remote.git", &["rev-parse", "main"]), head);
}

#[test]
fn a_remote_that_borrows_objects_from_outside_is_refused() {
    let (project, mut wire) = with_remote();
    let (secret, _) = repository();
    let objects = secret.join(".git/objects");
    project.write("remote.git/objects/info/alternates", &format!("{}\n", objects.display()));
    for tool in TOOLS {
        let said = wire.failure(tool, json!({}));
        assert!(said.contains("outside the allowed roots"), "{tool}: {said}");
    }
}

#[test]
fn a_protected_file_is_not_pulled() {
    let (project, _) = with_remote();
    project.write("coretools.toml", "# strict\n");
    project.git(&["add", "coretools.toml"]);
    project.git(&["commit", "--quiet", "--message=strict"]);
    project.git(&["push", "--quiet", "origin", "main"]);
    project.git_in("other", &["pull", "--quiet"]);
    project.write("other/coretools.toml", "# lax\n");
    project.git_in("other", &["commit", "--quiet", "--all", "--message=lax"]);
    project.git_in("other", &["push", "--quiet"]);
    let mut wire = connect(&project, &[]);
    let said = wire.failure("git_pull", json!({}));
    assert!(said.contains("coretools.toml") && said.contains("protected"), "{said}");
    assert_eq!(project.read("coretools.toml"), "# strict\n");
}
