//! Python, by py-spy.

use crate::app::{InspectedApp, program, source};
use crate::{answer, serve};
use integration_tests::{Project, require};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

fn py_spy() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin/py-spy");
    let own = own.is_file().then(|| own.canonicalize().unwrap());
    require(
        own,
        "no py-spy in .venv; `.ci/run tools` installs it: .venv/bin/pip install -r tests/python/requirements.txt",
    )
}

#[test]
fn stacks_and_local_variables_are_read() {
    let (Some(python), Some(py_spy)) = (program("python3"), py_spy()) else { return };
    let project = Project::empty();
    let mut command = Command::new(python);
    command.arg(source("app.py"));
    let app = InspectedApp::start(&project, command);
    assert_eq!(app.line(), "ready");
    let path = format!("{}:{}", py_spy.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut wire = serve(&project, &[("PATH", &path)]);
    let threads = answer(&mut wire, json!({"path": "python.threads", "depth": 6}));
    let frames = threads["value"][0]["frames"].as_array().unwrap();
    let frame = frames.iter().find(|frame| frame["name"] == "handle").unwrap_or_else(|| panic!("{threads}"));
    let local = |name: &str| {
        let locals = frame["locals"].as_array().unwrap();
        locals.iter().find(|local| local["name"] == name).unwrap_or_else(|| panic!("{frame}"))["repr"].clone()
    };
    assert_eq!(local("order_number"), "4711");
    assert!(local("customer").as_str().unwrap().contains("ada"));
    assert!(threads["source"].as_str().unwrap().starts_with("python: python "), "{threads}");
}

#[test]
fn a_py_spy_beneath_a_root_is_not_run() {
    let Some(python) = program("python3") else { return };
    let project = Project::with([("bin/py-spy", "#!/bin/sh\ntouch ran\n")]);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.join("bin/py-spy"), mode).unwrap();
    let mut command = Command::new(python);
    command.arg(source("app.py"));
    let app = InspectedApp::start(&project, command);
    assert_eq!(app.line(), "ready");
    let path = project.join("bin").display().to_string();
    let mut wire = serve(&project, &[("PATH", &path)]);
    let said = crate::said(&mut wire, json!({"path": "python.threads"}));
    assert!(said.contains("py-spy is not installed"), "{said}");
    assert!(!project.join("ran").exists());
}
