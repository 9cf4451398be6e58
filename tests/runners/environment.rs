//! The part of the server's environment that a runner gets: what it would get in a terminal.

use crate::support::SampleProject;
use integration_tests::{Era, Wire};
use serde_json::json;
use std::collections::BTreeMap;

/// The variables that the runner of `sample` was started with, but for the one that tells its processes.
fn variables(sample: &SampleProject) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(sample.path().join("environment")).unwrap();
    let variables = text.split('\0').filter_map(|variable| variable.split_once('='));
    let told = variables.filter(|(name, _)| !name.starts_with("PROCESS_RUNNER_RUN_"));
    told.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A project whose tests write down their environment.
fn recording() -> Option<SampleProject> {
    let sample = SampleProject::empty("node")?;
    sample.write("package.json", "{\"scripts\":{\"test\":\"node --test\"}}").write(
        "a.test.js",
        "require('node:test').test('a', () => {
            const all = Object.entries(process.env).map(([name, value]) => `${name}=${value}`);
            require('fs').writeFileSync('environment', all.join('\\0'));
        });\n",
    );
    Some(sample)
}

#[test]
fn nothing_of_the_cargo_that_runs_us_reaches_a_runner() {
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "run by cargo, which sets it");
    let Some(sample) = recording() else { return };
    assert!(sample.run("", "").is_success());
    let variables = variables(&sample);
    // Of the toolchain's own settings those stay that the user has made.
    let stays = |name: &str| {
        ["CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_INCREMENTAL", "RUSTUP_HOME"].contains(&name)
            || name.starts_with("RUSTUP_")
            || name.starts_with("CARGO_TERM_")
            || name.starts_with("CARGO_NET_")
            || name.starts_with("CARGO_REGISTRIES_")
            || name.starts_with("CARGO_HTTP_")
    };
    let leaked: Vec<_> = variables
        .keys()
        .filter(|name| ["CARGO", "RUST", "NEXTEST", "CORETOOLS_"].iter().any(|ours| name.starts_with(ours)))
        .filter(|name| !stays(name))
        .collect();
    assert!(leaked.is_empty(), "{leaked:?}");
    assert!(variables.contains_key("PATH") && variables.contains_key("HOME"));
}

#[test]
fn the_settings_of_the_server_do_not_reach_a_runner_and_those_of_the_user_do() {
    let Some(sample) = recording() else { return };
    let mut server = std::process::Command::new(integration_tests::server());
    server.current_dir(sample.path());
    for name in ["CORETOOLS_LOG", "CORETOOLS_RESULTS"] {
        server.env_remove(name);
    }
    server.env("FILESYSTEM_TOOLS_BASE_PATH", sample.path());
    let ours = [
        ("RUST_LOG", "debug"),
        ("CORETOOLS_ROLE", "orchestrator"),
        ("CARGO_MANIFEST_DIR", "/"),
        ("CARGO_BIN_EXE_server", "/server"),
        ("CARGO_CFG_UNIX", ""),
        ("CARGO_FEATURE_DEFAULT", "1"),
        ("CARGO_PKG_SOMETHING", "new"),
        ("GIT_DIR", "/elsewhere"),
        ("GIT_INDEX_FILE", "/elsewhere/index"),
        ("GIT_WORK_TREE", "/"),
        ("MAKELEVEL", "2"),
        ("MFLAGS", "-k"),
        ("BATS_ROOT", "/bats"),
        ("PYTEST_XDIST_WORKER", "gw0"),
    ];
    server.envs(ours);
    server.env("RUSTFLAGS", "-C debuginfo=0").env("DATABASE_HOST", "localhost");
    let mut wire = Wire::connect(server, Era::Modern);
    let result = wire.call("run_tests", json!({}));
    assert_eq!(result["isError"], false, "{result}");
    let variables = variables(&sample);
    for name in ours.iter().map(|(name, _)| *name).chain(["FILESYSTEM_TOOLS_BASE_PATH"]) {
        assert!(!variables.contains_key(name), "{name}");
    }
    assert_eq!(variables["RUSTFLAGS"], "-C debuginfo=0");
    assert_eq!(variables["DATABASE_HOST"], "localhost");
}
