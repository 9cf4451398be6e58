//! Stacks and local variables of a Python process, by py-spy where it is installed: `python.threads`.
//!
//! It reads the memory of the process from outside (`--nonblocking`), so that nothing is stopped; what changes
//! meanwhile may be torn, and then it is read again. Globals it does not read.

use super::Error;
use super::provider::{Passed, Provider, Reading, Request};
use super::target::Runtime;
use process_runner::{Command, Limits, Runner};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How long a look may take.
const TIME_LIMIT: Duration = Duration::from_secs(15);
/// How often it is tried.
const MOST_TRIES: u32 = 5;

pub(super) struct Python {
    /// What runs it.
    pub(super) runner: Runner,
    /// Where it is looked for: the value of `PATH`.
    pub(super) path: Option<OsString>,
}

impl Provider for Python {
    fn name(&self) -> &'static str {
        "python"
    }

    fn read<'a>(&'a self, request: &'a Request<'a>) -> Reading<'a> {
        Box::pin(async move {
            let path = request.path();
            if path.file.is_some() || path.segments.first().is_none_or(|first| first != "python") {
                return Err(Passed::Nothing("it has only python.*".to_owned()));
            }
            let process = request.process(&[Runtime::Python])?;
            let Some(program) = self.program(request) else {
                return Err(Passed::Nothing(
                    "py-spy is not installed where the server's PATH leads".to_owned(),
                ));
            };
            let failed = |why: String| Error::Python { process: process.shown(), why };
            let mut why = String::new();
            for _ in 0..MOST_TRIES {
                let command = Command::new(&program, "/")
                    .args(["dump", "--nonblocking", "--locals", "--json", "--pid", &process.pid.to_string()])
                    .noninteractive()
                    .limits(Limits::default().timeout(TIME_LIMIT).capture(8 << 20));
                let output = self.runner.run(command).await.map_err(|error| failed(error.to_string()))?;
                if let (true, Ok(threads)) =
                    (output.success(), serde_json::from_str::<Value>(&output.stdout_text()))
                {
                    return request.json(
                        format!("python: {}", process.shown()),
                        &json!({"python": {"threads": threads}}),
                    );
                }
                why = output.stderr_text().trim().chars().take(500).collect();
                if !process.is_there() {
                    break;
                }
            }
            Err(failed(why).into())
        })
    }
}

impl Python {
    /// Not one beneath a root: whoever may write there decides what it is.
    fn program(&self, request: &Request<'_>) -> Option<PathBuf> {
        let found = which::which_in_global("py-spy", self.path.as_ref()).ok()?;
        let outside = |path: &PathBuf| {
            path.is_absolute()
                && path.canonicalize().is_ok_and(|real| {
                    !request.workspace.roots().any(|root| real.starts_with(root) || path.starts_with(root))
                })
        };
        found.into_iter().find(outside)
    }
}
