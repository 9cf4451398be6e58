//! Advice for a process in which nothing was found: which of its state can be read, and the one change that shows more.

use super::target::{InspectTarget, LanguageRuntime, Process};

/// The change that makes the state of any application readable.
const PUBLISH: &str =
    "let it write its state as JSON to .app-state.json (STATE_PATH), or serve it as JSON (STATE_URL)";

/// Returns what can be read of `process`, which the request is about if it is known, and what to change.
pub(super) fn advice(process: Option<&Process>, target: Option<&InspectTarget>) -> String {
    let Some(process) = process else {
        return format!(
            "start the app so that it can be inspected: node --inspect=127.0.0.1:0 app.js; deno run --inspect=127.0.0.1:0; \
             or {PUBLISH}, as Go's expvar does"
        );
    };
    let name = process.display_name();
    let subject = match target {
        Some(InspectTarget::Port(port)) => format!("on port {port} listens {name}"),
        _ => format!("the process is {name}"),
    };
    format!("{subject}: {}", of_runtime(process.runtime))
}

fn of_runtime(runtime: LanguageRuntime) -> String {
    match runtime {
        LanguageRuntime::Node | LanguageRuntime::Deno => format!(
            "no inspector is open in it; start it with --inspect=127.0.0.1:0, and name it by pid:N, by the port of its \
             inspector or by that of the application; or {PUBLISH}"
        ),
        LanguageRuntime::Python => format!(
            "of Python, python.threads shows the stacks with their local variables, and local:FILE/name a variable of a \
             function that runs; for a global variable or an attribute {PUBLISH}"
        ),
        LanguageRuntime::Jvm => format!(
            "of Java, jvm.threads, jvm.heap, jvm.classes, jvm.properties, jvm.flags and jvm.version are read, and no field \
             of an object; for a field {PUBLISH}, as an actuator endpoint or Jolokia does for an MBean"
        ),
        LanguageRuntime::Go => format!(
            "of Go, the variables that it publishes are read: add import _ \"expvar\" and serve http.DefaultServeMux on \
             127.0.0.1; or {PUBLISH}"
        ),
        LanguageRuntime::Native => {
            format!(
                "of a native program, process.status, process.env and process.listens are read; for more {PUBLISH}"
            )
        }
    }
}
