//! Python, by py-spy.

use crate::app::{InspectedApp, program, source};
use crate::{answer, failure, serve, value};
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
    let mut locals = frame["locals"].clone();
    let many = locals["many"].take();
    assert_eq!(
        locals,
        json!({"order_number": 4711, "customer": {"name": "ada", "password": "[masked]"}, "items": ["tea", "cup"],
            "big": [{"$unread": "a whole number of more than 64 bits, which py-spy does not show"}, "..."], "many": null})
    );
    let many = many.as_array().unwrap();
    assert_eq!(
        (&many[0], many.last().unwrap()),
        (&json!(0), &json!({"$more": "py-spy shows no more elements"}))
    );
    assert!(threads["truncated"]["keys"].as_u64().unwrap() > 0, "{threads}");
    assert!(threads["source"].as_str().unwrap().starts_with("python: python "), "{threads}");

    // A variable by its file and name; a secret by its exact path.
    assert_eq!(value(&mut wire, "local:app.py/customer.name"), "ada");
    assert_eq!(value(&mut wire, "local:app.py/customer.password"), "swordfish");
    assert_eq!(value(&mut wire, "local:app.py/items[1]"), "cup");
    let missing = failure(&mut wire, json!({"path": "local:app.py/CURRENCY"}));
    assert_eq!((&missing["error"], &missing["failed_at"]), (&json!("Path not found"), &json!("CURRENCY")));
    assert!(missing["notes"].to_string().contains(".app-state.json"), "{missing}");
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
