//! Variables of a module, by the scopes of a function that was made there.
//!
//! A module's variables are reachable from nothing but its functions. So its script is looked for among those that the
//! engine has, functions of it among those that live, and their scopes are read. The search stops the process for one
//! garbage collection. Variables that no function uses are not kept by the engine and cannot be found.

use super::super::Error;
use super::super::path::StatePath;
use super::super::provider::{Missing, Passed};
use super::super::tree::MOST_KEYS;
use super::reader::{Reader, Remote};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Functions whose scopes are read.
const MOST_FUNCTIONS: usize = 300;
/// Beyond this heap the search would stop the process for too long.
const MOST_HEAP: f64 = 1024.0 * 1024.0 * 1024.0;

/// The scope of `file` that has the first name of `path`, as something to follow it from, and how much of it led there.
pub(super) async fn root(reader: &Reader, file: &str, path: &StatePath) -> Result<(String, usize), Passed> {
    let failed = |why: String| Passed::Failed(Error::Local { file: file.to_owned(), why });
    let (urls, ids, source) = script(reader, file).await?;
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
    let usage = reader.session.call("Runtime.getHeapUsage", json!({})).await.map_err(Error::from)?;
    if usage.get("usedSize").and_then(Value::as_f64).is_some_and(|used| used > MOST_HEAP) {
        return Err(failed(
            "the process has more than 1 GiB of objects; the search would stop it for too long".to_owned(),
        ));
    }
    let mut seen = BTreeSet::new();
    for function in functions(reader, &source).await? {
        let internals = reader.internals(&function).await?;
        let internal = |name: &str| {
            internals
                .iter()
                .find(|property| property.name == name)
                .and_then(|property| property.value.clone())
        };
        let script = internal("[[FunctionLocation]]").and_then(|place| place.value);
        let script = script.as_ref().and_then(|place| place.get("scriptId")?.as_str());
        let (true, Some(scopes)) = (
            script.is_some_and(|script| ids.contains(script)),
            internal("[[Scopes]]").and_then(|scopes| scopes.object_id),
        ) else {
            continue;
        };
        // The outermost first: that of the module, unless it is global.
        let mut scopes: Vec<Remote> =
            reader.properties(&scopes).await?.into_iter().filter_map(|property| property.value).collect();
        scopes.retain(|scope| scope.description.as_deref() != Some("Global") && scope.object_id.is_some());
        for scope in scopes.iter().rev() {
            // The list holds wrappers, of the engine's own making.
            const VARIABLES: &str = "function(){return this.object}";
            let wrapper = scope.object_id.as_deref().unwrap_or_default();
            let Some(scope) = reader.run(wrapper, VARIABLES, Vec::new()).await? else { continue };
            let Some(id) = scope.object_id.clone() else { continue };
            let first = path.segments.first().map(String::as_str).unwrap_or_default();
            if reader.look(&id, first, 1).await?.is_ok() {
                return Ok((id, 0));
            }
            if let Ok(taken) = reader.take(&scope, MOST_KEYS, 200, true).await? {
                let names = taken.members.iter().filter_map(|(key, _)| key.value.as_ref()?.as_str());
                seen.extend(names.map(str::to_owned));
            }
        }
    }
    Err(Passed::Missing(Box::new(Missing {
        source: reader.source.clone(),
        resolved: format!("local:{file}"),
        failed_at: path.segments.first().cloned().unwrap_or_default(),
        keys: seen.into_iter().take(MOST_KEYS).collect(),
        note: Some("only variables that a living function of the file uses can be found".to_owned()),
    })))
}

/// The scripts that were loaded from `file`: their URLs, their ids, and the text of one.
async fn script(reader: &Reader, file: &str) -> Result<(BTreeSet<String>, BTreeSet<String>, String), Error> {
    let session = &reader.session;
    let mut events = session.events();
    // Before anything: a `debugger` statement must not stop the process.
    session.call("Debugger.setSkipAllPauses", json!({"skip": true})).await?;
    let enabling = session.call("Debugger.enable", json!({}));
    tokio::pin!(enabling);
    let (mut urls, mut ids) = (BTreeSet::new(), BTreeSet::new());
    let mut take = |event: super::super::cdp::Event| {
        let text = |name: &str| event.params.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let url = text("url");
        let is_it = url.strip_suffix(file).is_some_and(|before| before.is_empty() || before.ends_with('/'));
        if event.method == "Debugger.scriptParsed" && is_it {
            urls.insert(url);
            ids.insert(text("scriptId"));
        }
    };
    let enabled = loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Some(event) => take(event),
                None => break enabling.await,
            },
            enabled = &mut enabling => break enabled,
        }
    };
    while let Ok(event) = events.try_recv() {
        take(event);
    }
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
    Ok((urls, ids, source))
}

/// Living functions whose text stands in `source`.
async fn functions(reader: &Reader, source: &str) -> Result<Vec<String>, Error> {
    const ANY: &str = "function(){return function(){}}";
    let any = reader
        .run(&reader.global, ANY, Vec::new())
        .await?
        .and_then(|any| any.object_id)
        .ok_or(Error::Reader)?;
    let internals = reader.internals(&any).await?;
    let prototype = internals.into_iter().find(|property| property.name == "[[Prototype]]");
    let prototype = prototype.and_then(|property| property.value?.object_id).ok_or(Error::Reader)?;
    let params = json!({"prototypeObjectId": prototype, "objectGroup": super::reader::READING});
    let answer = reader
        .session
        .call_within("Runtime.queryObjects", params, std::time::Duration::from_secs(20))
        .await?;
    let all = answer.pointer("/objects/objectId").and_then(Value::as_str).ok_or(Error::Reader)?.to_owned();
    reader.among(&all, source, MOST_FUNCTIONS).await
}
