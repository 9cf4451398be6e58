//! Stacks and local variables of a Python process, by py-spy where it is installed: `python.threads`, and
//! `local:FILE/name` for a variable of a function that runs.
//!
//! py-spy reads the memory of the process from outside (`--nonblocking`), so that nothing is stopped. If an object
//! changes meanwhile, py-spy may read it half-changed and fail; it is then run again. It does not read globals.

use crate::inspect::Error;
use crate::inspect::advice::python_globals;
use crate::inspect::provider::{Provider, ProviderFuture, StateRequest};
use crate::inspect::py_spy_value;
use crate::inspect::state_value::{ProviderError, StateValue};
use crate::inspect::target::{LanguageRuntime, Process};
use process_runner::{Command, Limits, Runner};
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The time limit of one run of py-spy.
const TIME_LIMIT: Duration = Duration::from_secs(15);
/// The number of times that py-spy is run before the reading fails.
const MAX_ATTEMPTS: u32 = 5;

/// Describes values that py-spy does not read, and the change that makes them readable.
const READABLE: &str = "py-spy reads local variables of functions that run: numbers, texts, lists, tuples and \
                        dictionaries. For a global variable or the attributes of an object: ";
const FUNCTION_NOTE: &str = "the value is that of the innermost function of the file that runs and has this variable; \
                             python.threads shows all, with their functions";

/// Answers `python.*` and `local:FILE/name`.
pub(in crate::inspect) struct PythonProvider {
    /// The runner of py-spy.
    pub(in crate::inspect) runner: Runner,
    /// The folders in which py-spy is looked for: the value of `PATH`.
    pub(in crate::inspect) search_path: Option<OsString>,
}

impl Provider for PythonProvider {
    fn name(&self) -> &'static str {
        "python"
    }

    fn read<'a>(&'a self, request: &'a StateRequest<'a>) -> ProviderFuture<'a> {
        Box::pin(async move {
            let path = request.path();
            let is_python = path.segments.first().is_some_and(|first| first == "python");
            if path.file.is_none() && !is_python {
                return Err(ProviderError::NotAsked("it has only python.* and local:FILE/name"));
            }
            let process = request.process(&[LanguageRuntime::Python]).await?;
            let Some(program) = self.find_program(request) else {
                return Err(ProviderError::NotApplicable(
                    "py-spy is not installed where the server's PATH leads".to_owned(),
                ));
            };
            let failed = |reason: String| Error::Python { process: process.display_name(), reason };
            let mut reason = String::new();
            for _ in 0..MAX_ATTEMPTS {
                let command = Command::new(&program, "/")
                    .args(["dump", "--nonblocking", "--locals", "--json", "--pid", &process.pid.to_string()])
                    .noninteractive()
                    .limits(Limits::default().timeout(TIME_LIMIT).capture(8 << 20));
                let output = self.runner.run(command).await.map_err(|error| failed(error.to_string()))?;
                if let (true, Ok(threads)) =
                    (output.success(), serde_json::from_str::<Value>(&output.stdout_text()))
                {
                    return answer(request, &process, &threads);
                }
                reason = output.stderr_text().trim().chars().take(500).collect();
                // A process that has ended will not be readable at the next attempt either.
                if !process.is_running() {
                    break;
                }
            }
            Err(failed(reason).into())
        })
    }
}

/// Returns the value under the path of `request` in what py-spy shows of the threads.
fn answer(
    request: &StateRequest<'_>,
    process: &Process,
    threads: &Value,
) -> Result<StateValue, ProviderError> {
    let source = format!("python: {}", process.display_name());
    let path = request.path();
    let document = match &path.file {
        Some(file) => Value::Object(variables_in(threads, file)),
        None => json!({"python": {"threads": with_values(threads)}}),
    };
    let mut found = request.json(source, &document).map_err(|error| match error {
        ProviderError::PathNotFound(mut missing) => {
            missing.note = Some(format!("{READABLE}{}", python_globals(process)));
            ProviderError::PathNotFound(missing)
        }
        error => error,
    })?;
    if path.file.is_some() {
        found.notes.push(FUNCTION_NOTE.to_owned());
    }
    Ok(found)
}

/// Returns the local variables of the functions of `file` that run, those of inner functions before those of outer ones.
fn variables_in(threads: &Value, file: &str) -> Map<String, Value> {
    let frames = threads.as_array().into_iter().flatten().flat_map(frames);
    let is_in_file = |frame: &&Value| {
        let name = frame.get("filename").and_then(Value::as_str).unwrap_or_default();
        // A part of a name must not match: `a.py` is not the end of `data.py`.
        name.strip_suffix(file).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    let mut variables = Map::new();
    for (name, value) in frames.filter(is_in_file).flat_map(locals) {
        // The frames come from the inside out, so that the innermost function of a name wins.
        variables.entry(name).or_insert(value);
    }
    variables
}

/// Returns the threads with the values of local variables by name, instead of a list of texts.
fn with_values(threads: &Value) -> Value {
    let mut threads = threads.clone();
    for thread in threads.as_array_mut().into_iter().flatten() {
        let frames = thread.get_mut("frames").and_then(Value::as_array_mut);
        for frame in frames.into_iter().flatten() {
            let locals: Map<String, Value> = locals(frame).collect();
            if let Some(frame) = frame.as_object_mut() {
                frame.insert("locals".to_owned(), locals.into());
            }
        }
    }
    threads
}

/// Returns the frames of a thread.
fn frames(thread: &Value) -> impl Iterator<Item = &Value> {
    thread.get("frames").and_then(Value::as_array).into_iter().flatten()
}

/// Returns the names and values of the local variables of a frame.
fn locals(frame: &Value) -> impl Iterator<Item = (String, Value)> {
    let listed = frame.get("locals").and_then(Value::as_array).into_iter().flatten();
    listed.filter_map(|local| {
        let text = |key| local.get(key).and_then(Value::as_str);
        Some((text("name")?.to_owned(), text("repr").map_or(Value::Null, py_spy_value::parse)))
    })
}

impl PythonProvider {
    /// Finds py-spy. One beneath a root is ignored: anyone who may write there could have replaced it.
    fn find_program(&self, request: &StateRequest<'_>) -> Option<PathBuf> {
        let candidates = which::which_in_global("py-spy", self.search_path.as_ref()).ok()?;
        let is_outside = |path: &PathBuf| {
            path.is_absolute()
                && path.canonicalize().is_ok_and(|real| {
                    !request.workspace.roots().any(|root| real.starts_with(root) || path.starts_with(root))
                })
        };
        candidates.into_iter().find(is_outside)
    }
}
