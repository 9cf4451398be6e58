//! The reading side in a process: handles of its global object and of the functions of `reader.js`, and calls of those.

use crate::inspect::Error;
use crate::inspect::cdp::{self, CdpSession};
use crate::inspect::target::{Process, TargetError};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// The object group of the handles that live as long as the connection.
const CONNECTION_GROUP: &str = "coretools";
/// The time limit of a function of `reader.js`. It needs a second for a million keys, and more on a busy machine.
const CALL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(20);
/// The object group of the handles of one reading, which are released after it.
pub(super) const READING_GROUP: &str = "coretools-reading";

/// The expressions of the functions that `reader.js` takes, in the order of its parameters, each with the name that the
/// unmodified function has.
const BUILT_IN: [(&str, &str); 19] = [
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
    ("Number.prototype.valueOf", "valueOf"),
    ("Boolean.prototype.valueOf", "valueOf"),
];

/// A value of the process, as the protocol describes it (`Runtime.RemoteObject`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RemoteObject {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) subtype: Option<String>,
    pub(super) class_name: Option<String>,
    pub(super) value: Option<Value>,
    pub(super) unserializable_value: Option<String>,
    pub(super) description: Option<String>,
    pub(super) object_id: Option<String>,
    /// It is a function that has properties.
    #[serde(skip)]
    pub(super) has_members: bool,
}

/// A property, as the protocol describes it (`Runtime.PropertyDescriptor`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PropertyDescriptor {
    pub(super) name: String,
    pub(super) value: Option<RemoteObject>,
}

/// The content of a property.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all of them are values")]
pub(super) enum PropertyContent {
    Value(RemoteObject),
    /// A getter, which is not run.
    Getter,
    /// A setter without a getter.
    Setter,
    /// A value that cannot be described: the inspector would run code of the application to name it.
    Trap,
}

impl PropertyContent {
    /// Converts the kind and value of a property in the form of `reader.js`.
    fn new(kind: &RemoteObject, value: RemoteObject) -> Option<Self> {
        Self::of_kind(kind.number(), value)
    }

    fn of_kind(kind: Option<u64>, value: RemoteObject) -> Option<Self> {
        match kind {
            Some(1) => Some(Self::Value(value)),
            Some(5) => Some(Self::Value(RemoteObject { has_members: true, ..value })),
            Some(2) => Some(Self::Getter),
            Some(3) => Some(Self::Setter),
            Some(4) => Some(Self::Trap),
            _ => None,
        }
    }
}

/// The result of looking up a name in an object.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "it is moved once")]
pub(super) enum PropertyLookup {
    /// The object has the property.
    Own(PropertyContent),
    /// The object does not have it; its prototype may.
    Inherited(RemoteObject),
    /// There is no such property, and no prototype.
    Missing,
}

/// The result of reading the members of an object.
#[derive(Clone, Debug)]
pub(super) enum RemoteObjectRead {
    /// The object was read now.
    ObjectMembers(ObjectMembers),
    /// The object was read before in the same reading, as the object of this index.
    Seen(usize),
}

/// The number of members of an object, and the first of them.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectMembers {
    pub(super) total: f64,
    pub(super) members: Vec<(RemoteObject, PropertyContent)>,
    /// Those of a list, map or set, beside its elements.
    pub(super) properties: Vec<(RemoteObject, PropertyContent)>,
    /// The number of such properties that are left out.
    pub(super) omitted_properties: u64,
    /// The names of the getters of its classes.
    pub(super) getters: Option<String>,
    /// The names of the private fields of its classes.
    pub(super) private_fields: Option<String>,
}

impl ObjectMembers {
    /// Adds a member in the form of `reader.js`.
    fn push(&mut self, key: &RemoteObject, kind: Option<u64>, value: RemoteObject) {
        match kind {
            Some(20) => self.omitted_properties = value.number().unwrap_or_default(),
            Some(21) => self.getters = value.text(),
            Some(22) => self.private_fields = value.text(),
            Some(beside @ 11..) => self.properties.extend(
                PropertyContent::of_kind(Some(beside - 10), value).map(|content| (key.clone(), content)),
            ),
            kind => {
                self.members
                    .extend(PropertyContent::of_kind(kind, value).map(|content| (key.clone(), content)));
            }
        }
    }
}

/// A connection with the functions of `reader.js` in the process.
#[derive(Debug)]
pub(super) struct RemoteReader {
    pub(super) session: CdpSession,
    /// The source of the values, as answers name it.
    pub(super) source: String,
    /// The global object.
    pub(super) global: String,
    /// The object `process`, where there is one.
    pub(super) process: Option<String>,
    /// Follows a path in one call. `None` if the process has no function that recognises proxies.
    find_function: Option<String>,
    look_function: String,
    take_function: String,
    among_function: String,
    forget_function: String,
    /// The process behind the inspector, where it is known.
    inspected: Option<Process>,
    /// Held during a reading: `reader.js` remembers the objects of one reading at a time.
    pub(super) reading: Mutex<()>,
}

impl RemoteReader {
    /// Prepares the process behind `session` for reading.
    pub(super) async fn new(session: CdpSession, process: Option<&Process>) -> Result<Self, Error> {
        // A process that wants to end waits until its inspectors disconnect. With this it tells us, and we do.
        let _ = session.call("NodeRuntime.notifyWhenWaitingForDisconnect", json!({"enabled": true})).await;
        let global = evaluate(&session, "this")
            .await?
            .and_then(|this| this.object_id)
            .ok_or(Error::BuiltInsReplaced)?;
        let mut arguments = built_in(&session).await?;
        let is_proxy = find_native(&session, "process.getBuiltinModule('util').types.isProxy").await;
        let is_error = find_native(&session, "process.getBuiltinModule('util').types.isNativeError").await;
        // Left out they are undefined in `reader.js`, which then does without.
        if let (Some(is_proxy), Some(is_error)) = (is_proxy, is_error) {
            arguments.extend([json!({"objectId": is_proxy}), json!({"objectId": is_error})]);
        }
        let functions =
            call(&session, CONNECTION_GROUP, &global, include_str!("reader.js"), arguments).await?;
        let functions = functions.and_then(|functions| functions.object_id).ok_or(Error::BuiltInsReplaced)?;
        let functions = properties(&session, &functions).await?;
        let function = |name: &str| {
            let found = functions.iter().find(|property| property.name == name);
            found.and_then(|property| property.value.as_ref()?.object_id.clone())
        };
        let required = |name: &str| function(name).ok_or(Error::BuiltInsReplaced);
        let node = evaluate(&session, "process").await?;
        let process_name =
            process.map_or_else(|| format!("inspector {}", session.url().authority()), Process::display_name);
        Ok(Self {
            source: format!("node: {process_name}"),
            global,
            process: node.filter(|node| node.subtype.is_none()).and_then(|node| node.object_id),
            find_function: function("find"),
            look_function: required("look")?,
            take_function: required("take")?,
            among_function: required("among")?,
            forget_function: required("forget")?,
            session,
            inspected: process.cloned(),
            reading: Mutex::default(),
        })
    }

    /// Checks that the process is not stopped, so that it may answer.
    pub(super) fn check_not_stopped(&self) -> Result<(), TargetError> {
        self.inspected.as_ref().map_or(Ok(()), Process::check_not_stopped)
    }

    pub(super) fn is_open(&self) -> bool {
        !self.session.is_closed()
    }

    /// Follows a path in one call. `None` if anything on the way is out of the ordinary, such as a proxy or getter.
    pub(super) async fn find(
        &self,
        from: &str,
        path: &[Value],
        max_chars: usize,
    ) -> Result<Option<RemoteObject>, Error> {
        let Some(find) = &self.find_function else { return Ok(None) };
        const FIND: &str = "function(f,p,n){return f(this,p,n)}";
        let arguments = vec![json!({"objectId": find}), json!({"value": path}), json!({"value": max_chars})];
        call(&self.session, READING_GROUP, from, FIND, arguments).await
    }

    /// Looks up `name` in an object, without its prototypes.
    pub(super) async fn look_up(
        &self,
        object: &str,
        name: &Value,
        max_chars: usize,
    ) -> Result<PropertyLookup, Error> {
        const LOOK: &str = "function(f,k,n){return f(this,k,n)}";
        let arguments = vec![
            json!({"objectId": &self.look_function}),
            json!({"value": name}),
            json!({"value": max_chars}),
        ];
        let seen = call(&self.session, READING_GROUP, object, LOOK, arguments).await?;
        let mut seen = self.list(seen).await?.into_iter().map(|(_, value)| value);
        let (Some(kind), Some(value)) = (seen.next(), seen.next()) else {
            return Ok(PropertyLookup::Missing);
        };
        Ok(match PropertyContent::new(&kind, value.clone()) {
            Some(content) => PropertyLookup::Own(content),
            None if value.object_id.is_some() => PropertyLookup::Inherited(value),
            None => PropertyLookup::Missing,
        })
    }

    /// Reads at most `count` members of an object. `is_first` begins a reading, and forgets the objects of the one before.
    pub(super) async fn read_members(
        &self,
        object: &RemoteObject,
        count: usize,
        max_chars: usize,
        is_first: bool,
    ) -> Result<RemoteObjectRead, Error> {
        const TAKE: &str = "function(f,t,l,c,n,r){return f(this,t,l,c,n,r)}";
        let id = object.object_id.as_deref().unwrap_or_default();
        let arguments = vec![
            json!({"objectId": &self.take_function}),
            json!({"value": object.opened_as()}),
            json!({"value": object.length()}),
            json!({"value": count}),
            json!({"value": max_chars}),
            json!({"value": is_first}),
        ];
        let taken =
            call(&self.session, READING_GROUP, id, TAKE, arguments).await?.ok_or(Error::BuiltInsReplaced)?;
        if let Some(index) = taken.value.as_ref().and_then(Value::as_u64) {
            return Ok(RemoteObjectRead::Seen(usize::try_from(index).unwrap_or(usize::MAX)));
        }
        let mut members = ObjectMembers::default();
        let (mut key, mut kind) = (RemoteObject::default(), RemoteObject::default());
        // [total, key, kind, value, key, kind, value, …]
        for (index, value) in self.list(Some(taken)).await? {
            match index {
                0 => members.total = value.value.as_ref().and_then(Value::as_f64).unwrap_or(f64::NAN),
                index if index % 3 == 1 => key = value,
                index if index % 3 == 2 => kind = value,
                _ => members.push(&key, kind.number(), value),
            }
        }
        Ok(RemoteObjectRead::ObjectMembers(members))
    }

    /// Returns the elements of a list of `reader.js`, each with its index.
    async fn list(&self, list: Option<RemoteObject>) -> Result<Vec<(usize, RemoteObject)>, Error> {
        let id = list.and_then(|list| list.object_id).ok_or(Error::BuiltInsReplaced)?;
        let properties = properties(&self.session, &id).await?.into_iter();
        let mut list: Vec<_> =
            properties.filter_map(|property| Some((property.name.parse().ok()?, property.value?))).collect();
        // The protocol does not promise an order.
        list.sort_by_key(|(index, _)| *index);
        Ok(list)
    }

    /// Returns the internal properties of an object, such as `[[Scopes]]`.
    pub(super) async fn internals(&self, id: &str) -> Result<Vec<PropertyDescriptor>, Error> {
        let params = json!({"objectId": id, "ownProperties": true, "generatePreview": false});
        let answer = self.session.call("Runtime.getProperties", params).await?;
        Ok(parse(answer.get("internalProperties").cloned().unwrap_or_else(|| json!([]))))
    }

    /// Returns the properties of an object of the engine's own making: for one of the application this could run its code.
    pub(super) async fn properties(&self, id: &str) -> Result<Vec<PropertyDescriptor>, Error> {
        properties(&self.session, id).await
    }

    /// Runs a function of this module on an object.
    pub(super) async fn run(
        &self,
        object: &str,
        function: &str,
        arguments: Vec<Value>,
    ) -> Result<Option<RemoteObject>, Error> {
        call(&self.session, READING_GROUP, object, function, arguments).await
    }

    /// Returns at most `max_count` functions of a list: those whose text is part of `source`.
    pub(super) async fn functions_in(
        &self,
        list: &str,
        source: &str,
        max_count: usize,
    ) -> Result<Vec<String>, Error> {
        const AMONG: &str = "function(f,s,n){return f(this,s,n)}";
        let arguments = vec![
            json!({"objectId": &self.among_function}),
            json!({"value": source}),
            json!({"value": max_count}),
        ];
        let found = call(&self.session, READING_GROUP, list, AMONG, arguments).await?;
        let found = self.list(found).await?.into_iter();
        Ok(found.filter_map(|(_, function)| function.object_id).collect())
    }

    /// Releases everything that a reading holds in the process.
    pub(super) async fn release(&self) {
        let forget = json!([{"objectId": &self.forget_function}]);
        let forget = json!({"functionDeclaration": "function(f){f()}", "objectId": &self.global, "arguments": forget, "silent": true});
        // Sent together, since neither waits for the other. A failure is no error of the reading: the end of the
        // connection releases the handles too.
        let (_, _) = tokio::join!(
            self.session.call("Runtime.callFunctionOn", forget),
            self.session.call("Runtime.releaseObjectGroup", json!({"objectGroup": READING_GROUP})),
        );
    }

    /// Makes the process close its inspector, after this connection is closed.
    pub(super) async fn close_inspector(&self) {
        const CLOSE: &str = "void setTimeout(() => process.getBuiltinModule('inspector').close(), 50)";
        let _ = self.session.call("Runtime.evaluate", json!({"expression": CLOSE, "silent": true})).await;
    }
}

impl RemoteObject {
    /// Returns the number at the end of the description: `Array(3)`, `Map(2)`, `Buffer(5)`.
    pub(super) fn length(&self) -> u64 {
        let description = self.description.as_deref().unwrap_or_default();
        let number = description.strip_suffix(')').and_then(|rest| rest.rsplit_once('('));
        number.and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
    }

    /// Returns the whole number that it is.
    fn number(&self) -> Option<u64> {
        self.value.as_ref().and_then(Value::as_u64)
    }

    /// Returns the text that it is.
    fn text(&self) -> Option<String> {
        self.value.as_ref().and_then(Value::as_str).map(str::to_owned)
    }

    /// Returns the kind of object that `reader.js` is to take it for.
    fn opened_as(&self) -> &str {
        let class = self.class_name.as_deref().filter(|class| matches!(*class, "Number" | "Boolean"));
        self.subtype.as_deref().or(class).unwrap_or_default()
    }

    /// Returns true if the object has this subtype.
    pub(super) fn is(&self, subtype: &str) -> bool {
        self.subtype.as_deref() == Some(subtype)
    }
}

fn parse<T: serde::de::DeserializeOwned + Default>(value: Value) -> T {
    serde_json::from_value(value).unwrap_or_default()
}

/// Returns the result of a call, if it threw nothing.
fn result(answer: &Value) -> Option<RemoteObject> {
    if answer.get("exceptionDetails").is_some() {
        return None;
    }
    serde_json::from_value(answer.get("result")?.clone()).ok()
}

/// Evaluates an expression. `None` if it throws, or would have a side effect.
async fn evaluate(session: &CdpSession, expression: &str) -> Result<Option<RemoteObject>, Error> {
    let params = json!({
        "expression": expression, "throwOnSideEffect": true, "silent": true, "objectGroup": CONNECTION_GROUP, "timeout": 2000
    });
    match session.call("Runtime.evaluate", params).await {
        Ok(answer) => Ok(result(&answer)),
        Err(cdp::CdpError::Refused { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Calls a function with `object` as `this`. `None` if it throws.
async fn call(
    session: &CdpSession,
    group: &str,
    object: &str,
    function: &str,
    arguments: Vec<Value>,
) -> Result<Option<RemoteObject>, Error> {
    let params = json!({
        "functionDeclaration": function, "objectId": object, "arguments": arguments, "silent": true, "objectGroup": group
    });
    let answer = session.call_within("Runtime.callFunctionOn", params, CALL_TIMEOUT).await?;
    Ok(result(&answer))
}

/// Returns the own properties of an object.
async fn properties(session: &CdpSession, id: &str) -> Result<Vec<PropertyDescriptor>, Error> {
    let params = json!({"objectId": id, "ownProperties": true, "generatePreview": false});
    let answer = session.call("Runtime.getProperties", params).await?;
    Ok(parse(answer.get("result").cloned().unwrap_or_else(|| json!([]))))
}

/// Returns handles of the built-in functions: those of the main realm if all are unmodified; if the application has replaced
/// one, those of a new realm, which has its own.
async fn built_in(session: &CdpSession) -> Result<Vec<Value>, Error> {
    let names: Vec<&str> = BUILT_IN.iter().map(|(expression, _)| *expression).collect();
    let list = format!("[{}]", names.join(","));
    if let Some(list) = evaluate(session, &list).await?
        && let Some(found) = verify_built_in(session, &list).await?
    {
        return Ok(found);
    }
    // Without `throwOnSideEffect`: a new realm is one. Its functions are verified like the others.
    let expression = format!("process.getBuiltinModule('vm').runInNewContext('{list}')");
    let params =
        json!({"expression": expression, "silent": true, "objectGroup": CONNECTION_GROUP, "timeout": 2000});
    let answer = session.call("Runtime.evaluate", params).await?;
    match result(&answer) {
        Some(list) => verify_built_in(session, &list).await?.ok_or(Error::BuiltInsReplaced),
        None => Err(Error::BuiltInsReplaced),
    }
}

/// Returns the functions of a list if each is the built-in one of its name. The text of a function that is written in
/// JavaScript is its source, and that of a bound function has no name, so the text of a built-in one cannot be forged.
async fn verify_built_in(session: &CdpSession, list: &RemoteObject) -> Result<Option<Vec<Value>>, Error> {
    let Some(id) = &list.object_id else { return Ok(None) };
    let properties = properties(session, id).await?;
    let found = BUILT_IN.iter().enumerate().map(|(index, (_, name))| {
        let index = index.to_string();
        let value = properties.iter().find(|property| property.name == index)?.value.as_ref()?;
        let is_built_in =
            value.description.as_deref() == Some(&format!("function {name}() {{ [native code] }}"));
        is_built_in.then(|| Some(json!({"objectId": value.object_id.as_ref()?})))?
    });
    Ok(found.collect())
}

/// Returns the function of an expression if it is a built-in one without a name.
async fn find_native(session: &CdpSession, expression: &str) -> Option<String> {
    let found = evaluate(session, expression).await.ok()??;
    let (id, description) = (found.object_id?, found.description?);
    // Since Node.js 22 these functions have no name, like a bound function; but that one has an internal property with the
    // function that it is bound to.
    let params = json!({"objectId": id, "ownProperties": true});
    let answer = session.call("Runtime.getProperties", params).await.ok()?;
    let internals: Vec<PropertyDescriptor> = parse(answer.get("internalProperties").cloned()?);
    let is_bound = internals
        .iter()
        .any(|property| property.name.starts_with("[[Target") || property.name.starts_with("[[Bound"));
    (description.contains("[native code]") && found.kind == "function" && !is_bound).then_some(id)
}
