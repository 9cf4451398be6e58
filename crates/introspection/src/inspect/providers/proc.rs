//! Facts about a process from `/proc`: `process.status`, `process.env`, `process.listens`.

use crate::inspect::proc::{self, ProcessStatus};
use crate::inspect::provider::{Provider, ProviderFuture, StateRequest};
use crate::inspect::state_value::ProviderError;
use crate::inspect::target::{LanguageRuntime, Process};
use serde_json::{Map, Value, json};

/// Answers `process.*`.
#[derive(Debug)]
pub(in crate::inspect) struct ProcProvider;

impl Provider for ProcProvider {
    fn name(&self) -> &'static str {
        "proc"
    }

    fn read<'a>(&'a self, request: &'a StateRequest<'a>) -> ProviderFuture<'a> {
        const ALL_RUNTIMES: [LanguageRuntime; 6] = [
            LanguageRuntime::Node,
            LanguageRuntime::Deno,
            LanguageRuntime::Jvm,
            LanguageRuntime::Python,
            LanguageRuntime::Go,
            LanguageRuntime::Native,
        ];
        Box::pin(async move {
            if request.path().file.is_some()
                || request.path().segments.first().is_none_or(|first| first != "process")
            {
                return Err(ProviderError::NotAsked("it has only process.*"));
            }
            let process = request.process(&ALL_RUNTIMES).await?;
            // /proc is read on this thread: the kernel answers from memory.
            request.json(format!("proc: {}", process.display_name()), &json!({"process": facts(&process)}))
        })
    }
}

/// Collects all facts. Those that the system does not give are left out.
fn facts(process: &Process) -> Value {
    let pid = process.pid;
    let mut facts = Map::new();
    facts.insert("pid".to_owned(), pid.into());
    facts.insert("runtime".to_owned(), process.runtime.name().into());
    facts.insert("argv".to_owned(), process.command.clone().into());
    for name in ["exe", "cwd"] {
        if let Ok(path) = proc::link(pid, name) {
            facts.insert(name.to_owned(), path.to_string_lossy().into());
        }
    }
    if let Ok(variables) = proc::strings(pid, "environ") {
        let pairs = variables.iter().filter_map(|variable| variable.split_once('='));
        let env: Map<String, Value> = pairs.map(|(name, value)| (name.to_owned(), value.into())).collect();
        facts.insert("env".to_owned(), env.into());
    }
    if let Ok(status) = ProcessStatus::of(pid) {
        let names = [
            "State",
            "PPid",
            "Threads",
            "VmPeak",
            "VmRSS",
            "VmSwap",
            "voluntary_ctxt_switches",
            "nonvoluntary_ctxt_switches",
        ];
        let fields = names.iter().filter_map(|name| Some(((*name).to_owned(), number(status.field(name)?))));
        facts.insert("status".to_owned(), Value::Object(fields.collect()));
    }
    if let Ok(io) = proc::text(pid, "io") {
        let fields = io.lines().filter_map(|line| line.split_once(": "));
        facts.insert(
            "io".to_owned(),
            Value::Object(fields.map(|(name, count)| (name.to_owned(), number(count))).collect()),
        );
    }
    let listens: Vec<String> = proc::listens(pid).iter().map(ToString::to_string).collect();
    facts.insert("listens".to_owned(), listens.into());
    facts.insert("open_files".to_owned(), proc::open_files(pid).into());
    facts.into()
}

/// Converts a text to a number if it is one.
fn number(text: &str) -> Value {
    text.parse::<u64>().map_or_else(|_| text.into(), Value::from)
}
