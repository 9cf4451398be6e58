//! The installer script, and what calls it: the feature for development containers and the action for workflows.

use crate::{TARGET, VERSION, package, package_of, repository, succeed};
use integration_tests::Project;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Programs in place of the real ones, which print what packing asks them for.
fn programs(folder: &Path) -> PathBuf {
    let programs = folder.join("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["mcp-stdio", "mcp-http"] {
        let script = format!(
            "#!/bin/sh\ncase $1 in\n--version) echo {name} {VERSION} ;;\ncompletions) echo \"# $2\" ;;\n\
             man) mkdir -p \"$3\"; echo page > \"$3/{name}.1\"; echo \"$3/{name}.1\" ;;\nesac\n"
        );
        fs::write(programs.join(name), script).unwrap();
        fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    programs
}

/// A folder as a release has it: archives, the installer, and their sums.
fn release(folder: &Path) -> PathBuf {
    let dist = folder.join("dist");
    package_of(&programs(folder), "archive", &dist, &[]);
    package("installer", &dist, &[]);
    sums(&dist);
    dist
}

/// Writes `SHA256SUMS`.
fn sums(dist: &Path) {
    succeed(
        Command::new("sh").args(["-c", "sha256sum -- coretools-*.tar.gz > SHA256SUMS"]).current_dir(dist),
    );
}

/// Runs the installer of a release with an empty home.
fn install(home: &Path, dist: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.arg(dist.join("install.sh")).args(arguments).env("HOME", home).current_dir(home);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let output = succeed(Command::new("find").args([".", "-type", "f"]).current_dir(folder));
    let mut files: Vec<_> = text(&output.stdout).lines().map(str::to_owned).collect();
    files.sort();
    files
}

#[test]
fn the_installer_puts_programs_pages_and_completions_into_place_and_removes_them() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dist = release(folder.path());
    let from = dist.to_str().unwrap();
    // Twice, as for a new version: what runs from the old file goes on.
    for version in [&["--version", VERSION][..], &[]] {
        let arguments = [&["--from", from, "--target", TARGET][..], version].concat();
        let output = install(home.path(), &dist, &arguments);
        let said = text(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert!(said.contains(&format!("installed mcp-stdio {VERSION} in ")), "{said}");
        assert!(said.contains("print-config claude --write") && said.contains("not in PATH"), "{said}");
    }
    let expected = [
        "./.local/bin/mcp-http",
        "./.local/bin/mcp-stdio",
        "./.local/share/bash-completion/completions/mcp-http",
        "./.local/share/bash-completion/completions/mcp-stdio",
        "./.local/share/fish/vendor_completions.d/mcp-http.fish",
        "./.local/share/fish/vendor_completions.d/mcp-stdio.fish",
        "./.local/share/man/man1/mcp-http.1",
        "./.local/share/man/man1/mcp-stdio.1",
        "./.local/share/zsh/site-functions/_mcp-http",
        "./.local/share/zsh/site-functions/_mcp-stdio",
    ];
    assert_eq!(files(home.path()), expected);
    let output = install(home.path(), &dist, &["--uninstall"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(files(home.path()), Vec::<String>::new());
}

#[test]
fn an_archive_that_is_not_the_released_one_is_refused_and_nothing_is_installed() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dist = release(folder.path());
    let from = dist.to_str().unwrap();
    let archive = dist.join(format!("coretools-{VERSION}-{TARGET}.tar.gz"));
    let mut bytes = fs::read(&archive).unwrap();
    bytes.push(0);
    fs::write(&archive, bytes).unwrap();
    for (arguments, why) in [
        (&["--from", from, "--target", TARGET][..], "is damaged or not the released one"),
        (&["--from", from, "--target", "riscv64-none"], "no archive for riscv64-none"),
        (&["--from", from, "--target", TARGET, "--version", "9.9.9"], "no archive of version 9.9.9"),
        (&["--from", "nowhere"], "cannot read nowhere/SHA256SUMS"),
        (&["--form", from], "--form is no option"),
        (&["--from"], "--from needs a value"),
    ] {
        let output = install(home.path(), &dist, arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        assert!(text(&output.stderr).contains(why), "{arguments:?}: {output:?}");
        assert_eq!(files(home.path()), Vec::<String>::new());
    }
    // The script of the sources names no repository; that of a release does.
    let output = Command::new("sh").arg(repository("packaging/install.sh")).output().unwrap();
    assert!(text(&output.stderr).contains("names no repository"), "{output:?}");
    assert!(fs::read_to_string(dist.join("install.sh")).unwrap().contains("repository=owner/name\n"));
}

#[test]
fn the_installer_fetches_an_archive_over_http() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dist = release(folder.path());
    let mut server = Command::new("python3");
    server.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0"]).current_dir(&dist);
    let mut server = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split(['(', ')']).nth(1).expect("its address").trim_end_matches('/').to_owned();
    let output = install(home.path(), &dist, &["--from", &address, "--target", TARGET]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(home.path().join(".local/bin/mcp-stdio").is_file());
}

#[test]
fn from_nothing_to_a_configured_client_are_two_commands() {
    let folder = tempfile::tempdir().unwrap();
    let project = Project::with([("a.txt", "hello\n")]);
    let dist = folder.path().join("dist");
    package("archive", &dist, &[]);
    package("installer", &dist, &[]);
    sums(&dist);
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    let output = install(&home, &dist, &["--from", dist.to_str().unwrap(), "--target", TARGET]);
    assert!(output.status.success(), "{output:?}");
    let program = home.join(".local/bin/mcp-stdio");
    let mut configure = project.server_as(&program);
    configure.args(["print-config", "claude", "--write"]).env("HOME", &home).env_remove("CLAUDE_CONFIG_DIR");
    succeed(&mut configure);
    let config = crate::json_of(&home.join(".claude.json"));
    assert_eq!(
        config["mcpServers"]["coretools"]["command"],
        program.canonicalize().unwrap().to_str().unwrap()
    );
}

#[test]
fn the_feature_for_development_containers_installs_what_its_options_say() {
    let folder = tempfile::tempdir().unwrap();
    let dist = release(folder.path());
    let packed = &package("devcontainer", &dist, &[])[0];
    let unpacked = folder.path().join("feature");
    fs::create_dir(&unpacked).unwrap();
    succeed(Command::new("tar").arg("-xzf").arg(packed).current_dir(&unpacked));
    let manifest = crate::json_of(&unpacked.join("devcontainer-feature.json"));
    assert_eq!((&manifest["id"], &manifest["version"]), (&"coretools".into(), &VERSION.into()));
    let options: Vec<_> = manifest["options"].as_object().unwrap().keys().collect();
    assert_eq!(options, ["version", "from"]);
    let prefix = folder.path().join("prefix");
    let mut install = Command::new("sh");
    install.arg("./install.sh").current_dir(&unpacked);
    // The platform is that of the machine, whose archives are static; here there is one that links glibc.
    let script = fs::read_to_string(unpacked.join("coretools-install.sh")).unwrap();
    fs::write(
        unpacked.join("coretools-install.sh"),
        script.replace("-unknown-linux-musl", "-unknown-linux-gnu"),
    )
    .unwrap();
    install.env("VERSION", VERSION).env("FROM", &dist).env("CORETOOLS_PREFIX", &prefix);
    succeed(&mut install);
    assert!(prefix.join("bin/mcp-stdio").is_file() && prefix.join("share/man/man1/mcp-stdio.1").is_file());
}

#[test]
fn the_action_installs_and_puts_the_programs_into_path() {
    let folder = tempfile::tempdir().unwrap();
    let dist = release(folder.path());
    let action = fs::read_to_string(repository("packaging/action/action.yml")).unwrap();
    let script = action.split_once("      run: |\n").expect("a script").1;
    let script: String =
        script.lines().map(|line| format!("{}\n", line.trim_start_matches("        "))).collect();
    // A copy of the folder, where this machine's archive is the one that links glibc.
    let copy = folder.path().join("packaging/action");
    fs::create_dir_all(&copy).unwrap();
    let installer = fs::read_to_string(repository("packaging/install.sh")).unwrap();
    fs::write(copy.join("../install.sh"), installer.replace("-unknown-linux-musl", "-unknown-linux-gnu"))
        .unwrap();
    let mut run = Command::new("bash");
    run.args(["-e", "-c", &script]).current_dir(folder.path());
    run.env("VERSION", "latest").env("FROM", &dist).env("REPOSITORY", "owner/name");
    run.env("RUNNER_TEMP", folder.path()).env("GITHUB_ACTION_PATH", &copy);
    run.env("GITHUB_PATH", folder.path().join("path")).env("GITHUB_OUTPUT", folder.path().join("output"));
    succeed(&mut run);
    let path = fs::read_to_string(folder.path().join("path")).unwrap();
    assert!(Path::new(path.trim()).join("mcp-stdio").is_file(), "{path}");
    assert_eq!(fs::read_to_string(folder.path().join("output")).unwrap(), format!("version={VERSION}\n"));
}
