//! The reading side in a process: handles of its global object and of the functions of `reader.js`.

use super::super::Error;
use super::super::cdp::{self, Session};
use super::super::target::Process;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// What is kept in the process as long as the connection is.
const KEPT: &str = "coretools";
/// How long a function of `reader.js` may take: a second for a million keys, and more on a busy machine.
const WORKS_FOR: std::time::Duration = std::time::Duration::from_secs(20);
/// What belongs to one reading.
pub(super) const READING: &str = "coretools-reading";

/// The functions that `reader.js` takes, in its order, and the name that each has.
const BUILT_IN: [(&str, &str); 17] = [
    ("Reflect.ownKeys", "ownKeys"),
    ("Reflect.getOwnPropertyDescriptor", "getOwnPropertyDescriptor"),
    ("Reflect.getPrototypeOf", "getPrototypeOf"),
    ("Reflect.defineProperty", "defineProperty"),
    ("Reflect.setPrototypeOf", "setPrototypeOf"),
    ("Reflect.apply", "apply"),
    ("Map", "Map"),
    ("Map.prototype.get", "get"),
    ("Map.prototype.set", "set"),
    ("Map.prototype.has", "has"),
    ("Map.prototype.entries", "entries"),
    ("Reflect.getPrototypeOf(new Map().entries()).next", "next"),
    ("Set.prototype.values", "values"),
    ("Reflect.getPrototypeOf(new Set().values()).next", "next"),
    ("Date.prototype.getTime", "getTime"),
    ("Function.prototype.toString", "toString"),
    ("String.prototype.includes", "includes"),
];

/// A value of the process, as the protocol mirrors it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Remote {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) subtype: Option<String>,
    pub(super) class_name: Option<String>,
    pub(super) value: Option<Value>,
    pub(super) unserializable_value: Option<String>,
    pub(super) description: Option<String>,
    pub(super) object_id: Option<String>,
}

/// A property, as the protocol describes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) value: Option<Remote>,
}

/// What is there instead of a value.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all of them are values")]
pub(super) enum Content {
    Value(Remote),
    Getter,
    /// Without a getter.
    Setter,
    /// Not mirrored: the inspector would run code of the application to name it.
    Trap,
}

impl Content {
    /// From what `reader.js` says of a property.
    fn new(kind: &Remote, value: Remote) -> Option<Self> {
        match kind.value.as_ref().and_then(Value::as_u64) {
            Some(1) => Some(Self::Value(value)),
            Some(2) => Some(Self::Getter),
            Some(3) => Some(Self::Setter),
            Some(4) => Some(Self::Trap),
            _ => None,
        }
    }
}

/// Members of an object: how many it has, and the first of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    pub(super) total: f64,
    pub(super) members: Vec<(Remote, Content)>,
}

/// One connection, ready to read.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) session: Session,
    /// For answers.
    pub(super) source: String,
    pub(super) global: String,
    /// The object `process`, where there is one.
    pub(super) process: Option<String>,
    /// Follows a path in one call. Not there where proxies cannot be told from within.
    find: Option<String>,
    look: String,
    take: String,
    among: String,
    forget: String,
    /// One reading at a time.
    pub(super) reading: Mutex<()>,
}

impl Reader {
    pub(super) async fn new(session: Session, process: Option<&Process>) -> Result<Self, Error> {
        // A process that wants to end waits for connections to inspectors; this one it tells, and we go.
        let _ = session.call("NodeRuntime.notifyWhenWaitingForDisconnect", json!({"enabled": true})).await;
        let global =
            evaluate(&session, "this").await?.and_then(|this| this.object_id).ok_or(Error::Reader)?;
        let mut arguments = built_in(&session).await?;
        let is_proxy = native(&session, "process.getBuiltinModule('util').types.isProxy").await;
        let is_error = native(&session, "process.getBuiltinModule('util').types.isNativeError").await;
        // Left out is undefined.
        if let (Some(is_proxy), Some(is_error)) = (is_proxy, is_error) {
            arguments.extend([json!({"objectId": is_proxy}), json!({"objectId": is_error})]);
        }
        let made = call(&session, KEPT, &global, include_str!("reader.js"), arguments).await?;
        let made = made.and_then(|made| made.object_id).ok_or(Error::Reader)?;
        let functions = properties(&session, &made).await?;
        let function = |name: &str| {
            let found = functions.iter().find(|property| property.name == name);
            found.and_then(|property| property.value.as_ref()?.object_id.clone())
        };
        let needed = |name: &str| function(name).ok_or(Error::Reader);
        let (look, take) = (needed("look")?, needed("take")?);
        let (among, forget) = (needed("among")?, needed("forget")?);
        let find = function("find");
        let node = evaluate(&session, "process").await?;
        let shown =
            process.map_or_else(|| format!("inspector {}", session.url().authority()), Process::shown);
        Ok(Self {
            source: format!("node: {shown}"),
            global,
            process: node.filter(|node| node.subtype.is_none()).and_then(|node| node.object_id),
            find,
            look,
            take,
            among,
            forget,
            session,
            reading: Mutex::default(),
        })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.session.is_closed()
    }

    /// What the path leads to in one call; nothing where it is out of the ordinary.
    pub(super) async fn find(
        &self,
        from: &str,
        path: &[String],
        most: usize,
    ) -> Result<Option<Remote>, Error> {
        let Some(find) = &self.find else { return Ok(None) };
        const FIND: &str = "function(f,p,n){return f(this,p,n)}";
        let arguments = vec![json!({"objectId": find}), json!({"value": path}), json!({"value": most})];
        call(&self.session, READING, from, FIND, arguments).await
    }

    /// What an object has under `name`: itself, or the prototype to look further in, or nothing.
    pub(super) async fn look(
        &self,
        object: &str,
        name: &str,
        most: usize,
    ) -> Result<Result<Content, Option<Remote>>, Error> {
        const LOOK: &str = "function(f,k,n){return f(this,k,n)}";
        let arguments = vec![json!({"objectId": &self.look}), json!({"value": name}), json!({"value": most})];
        let seen = call(&self.session, READING, object, LOOK, arguments).await?;
        let mut seen = self.list(seen).await?.into_iter().map(|(_, value)| value);
        let (Some(kind), Some(value)) = (seen.next(), seen.next()) else { return Ok(Err(None)) };
        Ok(match Content::new(&kind, value.clone()) {
            Some(content) => Ok(content),
            None => Err(value.object_id.is_some().then_some(value)),
        })
    }

    /// The members of an object. The number of the object where it was taken before.
    pub(super) async fn take(
        &self,
        object: &Remote,
        count: usize,
        most: usize,
        fresh: bool,
    ) -> Result<Result<Taken, usize>, Error> {
        const TAKE: &str = "function(f,t,l,c,n,r){return f(this,t,l,c,n,r)}";
        let id = object.object_id.as_deref().unwrap_or_default();
        let arguments = vec![
            json!({"objectId": &self.take}),
            json!({"value": object.subtype.as_deref().unwrap_or_default()}),
            json!({"value": object.length()}),
            json!({"value": count}),
            json!({"value": most}),
            json!({"value": fresh}),
        ];
        let taken = call(&self.session, READING, id, TAKE, arguments).await?.ok_or(Error::Reader)?;
        if let Some(before) = taken.value.as_ref().and_then(Value::as_u64) {
            return Ok(Err(usize::try_from(before).unwrap_or(usize::MAX)));
        }
        let mut result = Taken::default();
        let (mut key, mut kind) = (Remote::default(), Remote::default());
        for (place, value) in self.list(Some(taken)).await? {
            match place {
                0 => result.total = value.value.as_ref().and_then(Value::as_f64).unwrap_or(f64::NAN),
                place if place % 3 == 1 => key = value,
                place if place % 3 == 2 => kind = value,
                _ => result.members.extend(Content::new(&kind, value).map(|content| (key.clone(), content))),
            }
        }
        Ok(Ok(result))
    }

    /// What stands in a list of `reader.js`.
    async fn list(&self, list: Option<Remote>) -> Result<Vec<(usize, Remote)>, Error> {
        let id = list.and_then(|list| list.object_id).ok_or(Error::Reader)?;
        let properties = properties(&self.session, &id).await?.into_iter();
        let mut list: Vec<_> =
            properties.filter_map(|property| Some((property.name.parse().ok()?, property.value?))).collect();
        list.sort_by_key(|(place, _)| *place);
        Ok(list)
    }

    /// Own properties and, behind them, what the engine keeps of an object, such as `[[Scopes]]`.
    pub(super) async fn internals(&self, id: &str) -> Result<Vec<Property>, Error> {
        let params = json!({"objectId": id, "ownProperties": true, "generatePreview": false});
        let answer = self.session.call("Runtime.getProperties", params).await?;
        Ok(parse(answer.get("internalProperties").cloned().unwrap_or_else(|| json!([]))))
    }

    /// Properties as the protocol has them, for objects that are the engine's own.
    pub(super) async fn properties(&self, id: &str) -> Result<Vec<Property>, Error> {
        properties(&self.session, id).await
    }

    /// Runs a function of ours on an object.
    pub(super) async fn run(
        &self,
        object: &str,
        function: &str,
        arguments: Vec<Value>,
    ) -> Result<Option<Remote>, Error> {
        call(&self.session, READING, object, function, arguments).await
    }

    /// Those of a list of functions whose text stands in `source`.
    pub(super) async fn among(&self, list: &str, source: &str, most: usize) -> Result<Vec<String>, Error> {
        const AMONG: &str = "function(f,s,n){return f(this,s,n)}";
        let arguments =
            vec![json!({"objectId": &self.among}), json!({"value": source}), json!({"value": most})];
        let found = call(&self.session, READING, list, AMONG, arguments).await?;
        let found = self.list(found).await?.into_iter();
        Ok(found.filter_map(|(_, function)| function.object_id).collect())
    }

    /// Lets go of everything that a reading held in the process.
    pub(super) async fn release(&self) {
        let forget = json!([{"objectId": &self.forget}]);
        let forget = json!({"functionDeclaration": "function(f){f()}", "objectId": &self.global, "arguments": forget, "silent": true});
        let (_, _) = tokio::join!(
            self.session.call("Runtime.callFunctionOn", forget),
            self.session.call("Runtime.releaseObjectGroup", json!({"objectGroup": READING})),
        );
    }

    /// Has the process close its inspector once this connection is gone.
    pub(super) async fn close_inspector(&self) {
        const CLOSE: &str = "void setTimeout(() => process.getBuiltinModule('inspector').close(), 50)";
        let _ = self.session.call("Runtime.evaluate", json!({"expression": CLOSE, "silent": true})).await;
    }
}

impl Remote {
    /// The number at the end of `Array(3)`, `Map(2)`, `Buffer(5)`.
    pub(super) fn length(&self) -> u64 {
        let description = self.description.as_deref().unwrap_or_default();
        let number = description.strip_suffix(')').and_then(|rest| rest.rsplit_once('('));
        number.and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
    }

    pub(super) fn is(&self, subtype: &str) -> bool {
        self.subtype.as_deref() == Some(subtype)
    }
}

fn parse<T: serde::de::DeserializeOwned + Default>(value: Value) -> T {
    serde_json::from_value(value).unwrap_or_default()
}

/// What a call gave, if it threw nothing.
fn result(answer: &Value) -> Option<Remote> {
    if answer.get("exceptionDetails").is_some() {
        return None;
    }
    serde_json::from_value(answer.get("result")?.clone()).ok()
}

/// What an expression gives that has no effect on anything; nothing where it would.
async fn evaluate(session: &Session, expression: &str) -> Result<Option<Remote>, Error> {
    let params = json!({
        "expression": expression, "throwOnSideEffect": true, "silent": true, "objectGroup": KEPT, "timeout": 2000
    });
    match session.call("Runtime.evaluate", params).await {
        Ok(answer) => Ok(result(&answer)),
        Err(cdp::Error::Refused { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What a function gives for `this` and arguments; nothing where it throws.
async fn call(
    session: &Session,
    group: &str,
    object: &str,
    function: &str,
    arguments: Vec<Value>,
) -> Result<Option<Remote>, Error> {
    let params = json!({
        "functionDeclaration": function, "objectId": object, "arguments": arguments, "silent": true, "objectGroup": group
    });
    let answer = session.call_within("Runtime.callFunctionOn", params, WORKS_FOR).await?;
    Ok(result(&answer))
}

async fn properties(session: &Session, id: &str) -> Result<Vec<Property>, Error> {
    let params = json!({"objectId": id, "ownProperties": true, "generatePreview": false});
    let answer = session.call("Runtime.getProperties", params).await?;
    Ok(parse(answer.get("result").cloned().unwrap_or_else(|| json!([]))))
}

/// Handles of the built-in functions. Those of this realm where they are still the engine's; where the application has
/// replaced one, those of a new realm, which has its own.
async fn built_in(session: &Session) -> Result<Vec<Value>, Error> {
    let names: Vec<&str> = BUILT_IN.iter().map(|(expression, _)| *expression).collect();
    let list = format!("[{}]", names.join(","));
    if let Some(list) = evaluate(session, &list).await?
        && let Some(found) = checked(session, &list).await?
    {
        return Ok(found);
    }
    let expression = format!("process.getBuiltinModule('vm').runInNewContext('{list}')");
    let params = json!({"expression": expression, "silent": true, "objectGroup": KEPT, "timeout": 2000});
    let answer = session.call("Runtime.evaluate", params).await?;
    match result(&answer) {
        Some(list) => checked(session, &list).await?.ok_or(Error::Reader),
        None => Err(Error::Reader),
    }
}

/// What a list of functions holds, if each is built in under its name: the text of one that is written in JavaScript
/// is its source, and a bound one has no name.
async fn checked(session: &Session, list: &Remote) -> Result<Option<Vec<Value>>, Error> {
    let Some(id) = &list.object_id else { return Ok(None) };
    let properties = properties(session, id).await?;
    let found = BUILT_IN.iter().enumerate().map(|(place, (_, name))| {
        let place = place.to_string();
        let value = properties.iter().find(|property| property.name == place)?.value.as_ref()?;
        let is_built_in =
            value.description.as_deref() == Some(&format!("function {name}() {{ [native code] }}"));
        is_built_in.then(|| Some(json!({"objectId": value.object_id.as_ref()?})))?
    });
    Ok(found.collect())
}

/// The function of an expression, where there is one that is built in.
async fn native(session: &Session, expression: &str) -> Option<String> {
    let found = evaluate(session, expression).await.ok()??;
    let (id, description) = (found.object_id?, found.description?);
    // From Node.js 22 on it has no name, as a bound function would; but a bound one has what it was bound to.
    let params = json!({"objectId": id, "ownProperties": true});
    let answer = session.call("Runtime.getProperties", params).await.ok()?;
    let internals: Vec<Property> = parse(answer.get("internalProperties").cloned()?);
    let is_bound = internals
        .iter()
        .any(|property| property.name.starts_with("[[Target") || property.name.starts_with("[[Bound"));
    (description.contains("[native code]") && found.kind == "function" && !is_bound).then_some(id)
}
