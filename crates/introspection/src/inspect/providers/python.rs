//! Stacks and local variables of a Python process, by py-spy where it is installed: `python.threads`.
//!
//! py-spy reads the memory of the process from outside (`--nonblocking`), so that nothing is stopped. If an object
//! changes meanwhile, py-spy may read it half-changed and fail; it is then run again. It does not read globals.

use crate::inspect::Error;
use crate::inspect::finding::ProviderError;
use crate::inspect::provider::{Provider, ProviderFuture, StateRequest};
use crate::inspect::target::LanguageRuntime;
use process_runner::{Command, Limits, Runner};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The time limit of one run of py-spy.
const TIME_LIMIT: Duration = Duration::from_secs(15);
/// The number of times that py-spy is run before the reading fails.
const MAX_ATTEMPTS: u32 = 5;

/// Answers `python.*`.
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
            if path.file.is_some() || path.segments.first().is_none_or(|first| first != "python") {
                return Err(ProviderError::NotApplicable("it has only python.*".to_owned()));
            }
            let process = request.process(&[LanguageRuntime::Python])?;
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
                    return request.json(
                        format!("python: {}", process.display_name()),
                        &json!({"python": {"threads": threads}}),
                    );
                }
                reason = output.stderr_text().trim().chars().take(500).collect();
                if !process.is_running() {
                    break;
                }
            }
            Err(failed(reason).into())
        })
    }
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
