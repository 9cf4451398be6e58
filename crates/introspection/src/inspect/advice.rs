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
    format!("{subject}: {}", of_runtime(process))
}

/// Returns the change that makes the global variables and attributes of a Python process readable.
pub(super) fn python_globals(process: &Process) -> String {
    let pid = process.pid;
    let debugger = match python_minor_version(process) {
        Some(minor @ 14..) => format!("`python3.{minor} -m pdb -p {pid}` reads them in the running process"),
        _ => "run the program with Python 3.14 or later, where `python3.14 -m pdb -p PID` reads them in the running process"
            .to_owned(),
    };
    format!("{debugger}; or {PUBLISH}")
}

/// Returns the minor version of Python 3 that the name of the program has.
fn python_minor_version(process: &Process) -> Option<u32> {
    let name = process.exe.as_deref()?.file_name()?.to_str()?;
    let digits = name.strip_prefix("python3.")?;
    digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Returns the change that makes the fields of Java objects readable.
pub(super) fn java_fields(process: &Process) -> String {
    format!(
        "`jcmd {} GC.heap_dump /tmp/app.hprof` writes every field to a file; to read them in the running machine, start it \
         with -agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:5005 and attach jdb; or {PUBLISH}, as \
         an actuator endpoint or Jolokia does for an MBean",
        process.pid
    )
}

fn of_runtime(process: &Process) -> String {
    match process.runtime {
        LanguageRuntime::Node | LanguageRuntime::Deno => format!(
            "no inspector is open in it; start it with --inspect=127.0.0.1:0, and name it by pid:N, by the port of its \
             inspector or by that of the application; or {PUBLISH}"
        ),
        LanguageRuntime::Python => format!(
            "of Python, python.threads shows the stacks with their local variables, and local:FILE/name a variable of a \
             function that runs; for a global variable or an attribute: {}",
            python_globals(process)
        ),
        LanguageRuntime::Jvm => format!(
            "of Java, jvm.threads, jvm.heap, jvm.classes, jvm.properties, jvm.flags and jvm.version are read, and no field \
             of an object; for a field: {}",
            java_fields(process)
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
