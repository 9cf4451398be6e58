//! Variables of a module, through the scopes of a function that was created there.
//!
//! A module's variables are reachable only from its functions. So this finds the script among those that the engine has
//! loaded, the script's functions among all living functions, and reads their scopes. The search stops the process for one
//! garbage collection. Variables that no function uses are not kept by the engine and cannot be found.

use super::reader::{PropertyLookup, RemoteObject, RemoteObjectRead, RemoteReader};
use crate::inspect::Error;
use crate::inspect::path::StatePath;
use crate::inspect::state_value::{PathNotFound, ProviderError};
use crate::inspect::tree::{MAX_KEY_CHARS, MAX_KEYS};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The most functions whose scopes are read.
const MAX_FUNCTIONS: usize = 300;
/// The limit of the heap, in bytes: with a larger one the search would stop the process for too long.
const MAX_HEAP_BYTES: f64 = 1024.0 * 1024.0 * 1024.0;

/// Returns the handle of the scope of `file` that has the first name of `path`.
pub(super) async fn find_scope(
    reader: &RemoteReader,
    file: &str,
    path: &StatePath,
) -> Result<String, ProviderError> {
    let failed =
        |reason: String| ProviderError::Failed(Error::ModuleVariables { file: file.to_owned(), reason });
    let LoadedScripts { urls, ids, source } = find_scripts(reader, file).await?;
    if urls.len() > 1 {
        let urls: Vec<_> = urls.into_iter().take(10).collect();
        return Err(failed(format!(
            "several files are loaded under this name, give more of the path: {}",
            urls.join(", ")
        )));
    }
    if ids.is_empty() {
        return Err(failed("the process has loaded no such file".to_owned()));
    }
    // Before the search, which stops the process for a garbage collection of the whole heap.
    let usage = reader.session.call("Runtime.getHeapUsage", json!({})).await.map_err(Error::from)?;
    if usage.get("usedSize").and_then(Value::as_f64).is_some_and(|used| used > MAX_HEAP_BYTES) {
        return Err(failed(
            "the process has more than 1 GiB of objects; the search would stop it for too long".to_owned(),
        ));
    }
    let mut seen_names = BTreeSet::new();
    for function in find_functions(reader, &source).await? {
        let internals = reader.internals(&function).await?;
        let internal = |name: &str| {
            internals
                .iter()
                .find(|property| property.name == name)
                .and_then(|property| property.value.clone())
        };
        let script = internal("[[FunctionLocation]]").and_then(|location| location.value);
        let script = script.as_ref().and_then(|location| location.get("scriptId")?.as_str());
        let (true, Some(scopes)) = (
            script.is_some_and(|script| ids.contains(script)),
            internal("[[Scopes]]").and_then(|scopes| scopes.object_id),
        ) else {
            continue;
        };
        // The outermost scope first: that of the module. The global one is not searched.
        let mut scopes: Vec<RemoteObject> =
            reader.properties(&scopes).await?.into_iter().filter_map(|property| property.value).collect();
        scopes.retain(|scope| scope.description.as_deref() != Some("Global") && scope.object_id.is_some());
        for scope in scopes.iter().rev() {
            // The list holds wrappers of the engine's own making, so reading a member runs no code of the application.
            const VARIABLES: &str = "function(){return this.object}";
            let wrapper = scope.object_id.as_deref().unwrap_or_default();
            let Some(scope) = reader.run(wrapper, VARIABLES, Vec::new()).await? else { continue };
            let Some(id) = scope.object_id.clone() else { continue };
            let first = path.segments.first().map(String::as_str).unwrap_or_default();
            if matches!(reader.look_up(&id, &first.into(), 1).await?, PropertyLookup::Own(_)) {
                return Ok(id);
            }
            if let RemoteObjectRead::ObjectMembers(members) =
                reader.read_members(&scope, MAX_KEYS, MAX_KEY_CHARS, true).await?
            {
                let names = members.members.iter().filter_map(|(key, _)| key.value.as_ref()?.as_str());
                seen_names.extend(names.map(str::to_owned));
            }
        }
    }
    Err(ProviderError::PathNotFound(Box::new(PathNotFound {
        source: reader.source.clone(),
        resolved: format!("local:{file}"),
        failed_at: path.segments.first().cloned().unwrap_or_default(),
        total: seen_names.len() as u64,
        keys: seen_names.into_iter().take(MAX_KEYS).collect(),
        note: Some("only variables that a living function of the file uses can be found".to_owned()),
    })))
}

/// The scripts that were loaded from one file.
struct LoadedScripts {
    urls: BTreeSet<String>,
    /// A file that is loaded several times, such as by workers, has several.
    ids: BTreeSet<String>,
    /// The text of the script, if it has only one URL.
    source: String,
}

/// Finds the scripts that were loaded from `file`, which may be the end of a path.
async fn find_scripts(reader: &RemoteReader, file: &str) -> Result<LoadedScripts, Error> {
    let session = &reader.session;
    let mut events = session.events();
    // This comes first: once the debugger is enabled, a `debugger` statement would stop the process.
    session.call("Debugger.setSkipAllPauses", json!({"skip": true})).await?;
    // The engine sends an event for each loaded script before it answers. They are received meanwhile, since the queue has
    // room for 1,024 only.
    let enabling = session.call("Debugger.enable", json!({}));
    tokio::pin!(enabling);
    let (mut urls, mut ids) = (BTreeSet::new(), BTreeSet::new());
    let mut record = |event: crate::inspect::cdp::CdpEvent| {
        let text = |name: &str| event.params.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let url = text("url");
        let is_match =
            url.strip_suffix(file).is_some_and(|before| before.is_empty() || before.ends_with('/'));
        if event.method == "Debugger.scriptParsed" && is_match {
            urls.insert(url);
            ids.insert(text("scriptId"));
        }
    };
    let enabled = loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Some(event) => record(event),
                None => break enabling.await,
            },
            enabled = &mut enabling => break enabled,
        }
    };
    // Those that arrived together with the answer.
    while let Ok(event) = events.try_recv() {
        record(event);
    }
    // Before anything else is sent: a full queue of events that nobody receives would block the connection.
    drop(events);
    enabled?;
    let mut source = String::new();
    if urls.len() == 1
        && let Some(id) = ids.last()
    {
        let answer = session.call("Debugger.getScriptSource", json!({"scriptId": id})).await?;
        answer.get("scriptSource").and_then(Value::as_str).unwrap_or_default().clone_into(&mut source);
    }
    session.call("Debugger.disable", json!({})).await?;
    Ok(LoadedScripts { urls, ids, source })
}

/// Finds living functions whose text is part of `source`.
async fn find_functions(reader: &RemoteReader, source: &str) -> Result<Vec<String>, Error> {
    const NEW_FUNCTION: &str = "function(){return function(){}}";
    // `queryObjects` finds objects by their prototype, so it needs that of functions: the internal property of one, since
    // the application may have replaced the visible one.
    let any = reader
        .run(&reader.global, NEW_FUNCTION, Vec::new())
        .await?
        .and_then(|any| any.object_id)
        .ok_or(Error::BuiltInsReplaced)?;
    let internals = reader.internals(&any).await?;
    let prototype = internals.into_iter().find(|property| property.name == "[[Prototype]]");
    let prototype =
        prototype.and_then(|property| property.value?.object_id).ok_or(Error::BuiltInsReplaced)?;
    let params = json!({"prototypeObjectId": prototype, "objectGroup": super::reader::READING_GROUP});
    let answer = reader
        .session
        .call_within("Runtime.queryObjects", params, std::time::Duration::from_secs(20))
        .await?;
    let all = answer
        .pointer("/objects/objectId")
        .and_then(Value::as_str)
        .ok_or(Error::BuiltInsReplaced)?
        .to_owned();
    reader.functions_in(&all, source, MAX_FUNCTIONS).await
}
