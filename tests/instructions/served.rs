//! The instructions that the built server takes for a start and for calls.

use crate::valgrind::CountedProgram;
use integration_tests::{Project, Wire, server};
use serde_json::{Value, json};
use std::time::Duration;

/// The calls of one run.
pub(crate) const CALLS: u32 = 21;

/// The entries of the folder that is listed.
const ENTRIES: usize = 200;

/// The time for one answer. Under valgrind a start takes seconds, and on a loaded machine many times as long.
const PATIENCE: Duration = Duration::from_secs(300);

/// A tool and its arguments.
pub(crate) type CountedCall = (&'static str, &'static str);

pub(crate) const READ: CountedCall = ("read_file", r#"{"path": "small.txt"}"#);
pub(crate) const LIST: CountedCall = ("list_directory", r#"{"path": "many"}"#);

/// Counts a start: `initialize` and `tools/list`.
pub(crate) fn start() -> u64 {
    serve(|_| {})
}

/// Counts a start and [`CALLS`] calls.
pub(crate) fn calls((tool, arguments): CountedCall) -> u64 {
    let arguments: Value = serde_json::from_str(arguments).expect("arguments are JSON");
    serve(|wire| {
        for _ in 0..CALLS {
            wire.text(tool, arguments.clone());
        }
    })
}

fn serve(call: impl FnOnce(&mut Wire)) -> u64 {
    let project = Project::with([("small.txt", "0123456789abcdef0123456789abcde\n".repeat(34).as_str())]);
    for entry in 0..ENTRIES {
        project.write(&format!("many/file_{entry:03}.txt"), "");
    }
    let counted = CountedProgram::new();
    let mut command = counted.command(server());
    command.current_dir(project.path());
    let mut wire = Wire::start(command).patience(PATIENCE);
    let client = json!({"name": "test", "version": "1"});
    wire.request(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
    );
    wire.notify("notifications/initialized", json!({}));
    let list = wire.request("tools/list", json!({}));
    assert!(list["result"]["tools"].as_array().is_some_and(|tools| !tools.is_empty()), "{list}");
    call(&mut wire);
    wire.close_input();
    let (status, _) = wire.wait(PATIENCE);
    assert!(status.success(), "{status}");
    counted.count()
}
