//! From a path to a value within its bounds.

use super::super::Error;
use super::super::mask::{MASK, is_secret};
use super::super::path::join;
use super::super::provider::{Found, Missing, Passed, Request};
use super::super::tree::{MOST_KEYS, MOST_LEAF, MOST_TEXT, Tree, mark};
use super::locals;
use super::reader::{Content, Reader, Remote, Taken};
use crate::time::civil;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Objects that are asked for at once.
const AT_ONCE: usize = 32;
/// How long objects are opened. A busy process answers each question in milliseconds.
const OPENS_FOR: Duration = Duration::from_secs(8);
/// What is said of a value that may not be named.
const TRAP: &str = "to look at it would run the application's code";
/// Prototypes that are looked through.
const MOST_PROTOTYPES: usize = 64;

/// What the path of `request` names in the process of `reader`.
pub(super) async fn read(reader: &Reader, request: &Request<'_>) -> Result<Found, Passed> {
    let _alone = reader.reading.lock().await;
    let path = request.path();
    let root = match &path.file {
        Some(file) => locals::root(reader, file, path).await,
        None => Ok(match (&reader.process, path.segments.first()) {
            (Some(process), Some(first)) if first == "process" => (process.clone(), 1),
            _ => (reader.global.clone(), 0),
        }),
    };
    let read = match root {
        Ok((root, skip)) => read_from(reader, request, &root, skip).await,
        Err(passed) => Err(passed),
    };
    // Values that were answered whole hold nothing in the process.
    if !matches!(&read, Ok((_, false))) && reader.is_open() {
        reader.release().await;
    }
    read.map(|(found, _)| found)
}

/// The value, and whether the process holds something for us.
async fn read_from(
    reader: &Reader,
    request: &Request<'_>,
    root: &str,
    skip: usize,
) -> Result<(Found, bool), Passed> {
    let path = request.path();
    let names = path.segments.get(skip..).unwrap_or_default();
    let found = reader.find(root, names, MOST_LEAF).await?;
    let fast = found.is_some();
    let content = match found {
        Some(found) => Content::Value(found),
        None => step_by_step(reader, request, root, skip).await?,
    };
    let holds = !fast || matches!(&content, Content::Value(remote) if remote.object_id.is_some());
    let mut walk = Walk { reader, depth: request.depth(), tree: Tree::default(), known: Vec::new() };
    let place = walk.tree.place();
    let asked = Asked { place, depth: 0, secret: request.is_beneath_secret(), path: path.to_string() };
    walk.run(content, asked).await?;
    Ok((Found::of(reader.source.clone(), walk.tree, place), holds))
}

/// Follows the path name by name, to say how far it led.
async fn step_by_step(
    reader: &Reader,
    request: &Request<'_>,
    root: &str,
    skip: usize,
) -> Result<Content, Passed> {
    let path = request.path();
    let global = Remote { kind: "object".to_owned(), object_id: Some(root.to_owned()), ..Remote::default() };
    let mut at = Content::Value(global);
    for (place, name) in path.segments.iter().enumerate().skip(skip) {
        let mut note = None;
        let here = match at {
            Content::Value(here) if here.is("proxy") => {
                note = Some("it is a proxy, which is not looked into: that would run the application's code");
                None
            }
            Content::Value(here) => here.object_id.is_some().then_some(here),
            Content::Trap => {
                note = Some(TRAP);
                None
            }
            Content::Getter | Content::Setter => {
                note = Some("it is a getter, which is not run");
                None
            }
        };
        let next = match &here {
            Some(here) => look(reader, here, name).await?,
            None => None,
        };
        at = match next {
            Some(next) => next,
            None => {
                let keys = match &here {
                    Some(here) => keys(reader, here).await?,
                    None => Vec::new(),
                };
                return Err(Passed::Missing(Box::new(Missing {
                    source: reader.source.clone(),
                    resolved: path.upto(place),
                    failed_at: name.clone(),
                    keys,
                    note: note.map(str::to_owned),
                })));
            }
        };
    }
    Ok(at)
}

/// What an object has under `name`, or inherits.
async fn look(reader: &Reader, object: &Remote, name: &str) -> Result<Option<Content>, Error> {
    let mut id = object.object_id.clone().unwrap_or_default();
    for _ in 0..MOST_PROTOTYPES {
        match reader.look(&id, name, MOST_LEAF).await? {
            Ok(content) => return Ok(Some(content)),
            Err(Some(above)) if !above.is("proxy") => id = above.object_id.unwrap_or_default(),
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// The first names of an object.
async fn keys(reader: &Reader, object: &Remote) -> Result<Vec<String>, Error> {
    if object.is("array") || object.is("typedarray") || object.is("set") {
        return Ok(vec![format!("0 to {}", object.length().saturating_sub(1))]);
    }
    let taken = reader.take(object, MOST_KEYS, 200, true).await?;
    Ok(taken.unwrap_or_default().members.iter().map(|(key, _)| name(key)).collect())
}

/// A key as a name.
fn name(key: &Remote) -> String {
    let text = match (&key.value, &key.description) {
        (Some(Value::String(text)), _) => text.clone(),
        (Some(value), _) => value.to_string(),
        (None, Some(description)) => format!("[{description}]"),
        (None, None) => key.unserializable_value.clone().unwrap_or_else(|| key.kind.clone()),
    };
    text.chars().take(MOST_TEXT).collect()
}

/// Where a value goes.
struct Asked {
    place: usize,
    depth: u32,
    secret: bool,
    path: String,
}

struct Walk<'a> {
    reader: &'a Reader,
    depth: u32,
    tree: Tree,
    /// The paths of the objects that were opened, in the order in which the process numbers them.
    known: Vec<String>,
}

impl Walk<'_> {
    async fn run(&mut self, content: Content, asked: Asked) -> Result<(), Error> {
        let started = Instant::now();
        let mut level: Vec<(Remote, Asked)> = Vec::new();
        self.put(content, asked, &mut level);
        let mut fresh = true;
        while !level.is_empty() {
            let mut next = Vec::new();
            let mut waiting = level.into_iter();
            loop {
                let mut batch: Vec<(Remote, Asked)> = waiting.by_ref().take(AT_ONCE).collect();
                if batch.is_empty() {
                    break;
                }
                if self.tree.is_full() || started.elapsed() > OPENS_FOR {
                    for (object, asked) in batch {
                        self.tree.cuts.full += 1;
                        self.tree.mark(asked.place, "cut", title(&object));
                    }
                    continue;
                }
                // The first alone: it begins the counting.
                let rest = if fresh && batch.len() > 1 { batch.split_off(1) } else { Vec::new() };
                for batch in [batch, rest] {
                    let calls =
                        batch.iter().map(|(object, _)| self.reader.take(object, MOST_KEYS, MOST_TEXT, fresh));
                    let taken = futures_util::future::join_all(calls).await;
                    for ((object, asked), taken) in batch.into_iter().zip(taken) {
                        match taken? {
                            Ok(taken) => {
                                self.known.push(asked.path.clone());
                                self.open(&object, taken, asked, &mut next);
                            }
                            Err(before) => {
                                let path = self.known.get(before).cloned().unwrap_or_default();
                                self.tree.mark(asked.place, "ref", path);
                            }
                        }
                    }
                    fresh = false;
                }
            }
            level = next;
        }
        Ok(())
    }

    /// Puts a value in its place, or among those that are opened next.
    fn put(&mut self, content: Content, asked: Asked, next: &mut Vec<(Remote, Asked)>) {
        let place = asked.place;
        let remote = match content {
            Content::Getter => return self.tree.mark(place, "getter", true),
            Content::Setter => return self.tree.mark(place, "setter", true),
            Content::Trap => return self.tree.mark(place, "unread", TRAP),
            Content::Value(remote) => remote,
        };
        let described = || remote.description.clone().unwrap_or_default();
        match (remote.kind.as_str(), remote.subtype.as_deref()) {
            ("string" | "number" | "bigint", _) if asked.secret => {
                self.tree.masked += 1;
                self.tree.set(place, MASK.into());
            }
            ("string", _) => {
                let text = remote.value.as_ref().and_then(Value::as_str).unwrap_or_default();
                let most = if asked.depth == 0 { MOST_LEAF } else { MOST_TEXT };
                let text = self.cut(text, most);
                self.tree.set(place, text.into());
            }
            ("number", _) => match remote.unserializable_value {
                Some(number) => self.tree.mark(place, "number", number),
                None => self.tree.set(place, remote.value.unwrap_or_default()),
            },
            ("boolean", _) | ("object", Some("null")) => {
                self.tree.set(place, remote.value.unwrap_or_default());
            }
            ("undefined", _) => self.tree.mark(place, "undefined", true),
            ("bigint", _) => {
                let digits = remote.unserializable_value.unwrap_or_default();
                self.tree.mark(place, "bigint", digits.trim_end_matches('n'));
            }
            ("symbol", _) => self.tree.mark(place, "symbol", described()),
            ("function", _) => {
                let described = described();
                let line: String = described.lines().next().unwrap_or_default().chars().take(100).collect();
                self.tree.mark(place, "function", line);
            }
            (_, Some("proxy")) => self.tree.mark(place, "proxy", described()),
            (_, Some("regexp")) => {
                let text = self.tree.text(&described(), MOST_TEXT);
                self.tree.mark(place, "regexp", text);
            }
            (_, Some("date")) => next.push((remote, asked)),
            _ if asked.depth >= self.depth => {
                self.tree.cuts.depth += 1;
                self.tree.mark(place, "cut", title(&remote));
            }
            _ => next.push((remote, asked)),
        }
    }

    /// The members of an object, in its place.
    fn open(&mut self, object: &Remote, taken: Taken, asked: Asked, next: &mut Vec<(Remote, Asked)>) {
        let Asked { place, depth, secret, path } = asked;
        let class = object.class_name.as_deref().unwrap_or("Object");
        let all = if taken.total.is_finite() && taken.total > 0.0 { taken.total } else { 0.0 };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count, and none below zero"
        )]
        let mut more = (all as u64).saturating_sub(MOST_KEYS as u64);
        let child =
            |place, name: &str, secret| Asked { place, depth: depth + 1, secret, path: join(&path, name) };
        match object.subtype.as_deref() {
            Some("date") => return self.tree.set(place, date(taken.total)),
            Some("array") => {
                self.tree.list(place);
                let mut at = 0;
                for (key, content) in taken.members {
                    if !self.has_room(&mut more) {
                        continue;
                    }
                    let index = key.value.as_ref().and_then(Value::as_u64).unwrap_or(at);
                    if index > at {
                        let gap = self.tree.element(place);
                        self.tree.mark(gap, "empty", index - at);
                    }
                    at = index + 1;
                    let element = self.tree.element(place);
                    self.put(content, child(element, &index.to_string(), secret), next);
                }
                if more > 0 {
                    let element = self.tree.element(place);
                    self.tree.mark(element, "more", more);
                    self.tree.cuts.keys += more;
                }
                return;
            }
            _ => self.tree.members(place),
        }
        let list = |walk: &mut Self, name: &str| {
            let list = walk.tree.member(place, name);
            walk.tree.list(list);
            list
        };
        match object.subtype.as_deref() {
            Some("map") => {
                let pairs = list(self, "$map");
                for (key, content) in taken.members {
                    if !self.has_room(&mut more) {
                        continue;
                    }
                    let key_name = name(&key);
                    let pair = self.tree.element(pairs);
                    self.tree.list(pair);
                    let (left, right) = (self.tree.element(pair), self.tree.element(pair));
                    self.put(Content::Value(key), child(left, "(key)", false), next);
                    let secret = secret || is_secret(&key_name);
                    self.put(content, child(right, &key_name, secret), next);
                }
            }
            Some(subtype @ ("set" | "typedarray")) => {
                let values = if subtype == "set" {
                    list(self, "$set")
                } else {
                    let class_place = self.tree.member(place, "$type");
                    self.tree.set(class_place, class.into());
                    list(self, "values")
                };
                for (index, (_, content)) in taken.members.into_iter().enumerate() {
                    if !self.has_room(&mut more) {
                        continue;
                    }
                    let element = self.tree.element(values);
                    self.put(content, child(element, &index.to_string(), secret), next);
                }
            }
            subtype => {
                if subtype == Some("error") {
                    let described = object.description.clone().unwrap_or_default();
                    let text = self.tree.text(&described, MOST_TEXT);
                    let error = self.tree.member(place, "$error");
                    self.tree.set(error, text.into());
                } else if class != "Object" || subtype.is_some() {
                    let class_place = self.tree.member(place, "$type");
                    self.tree.set(class_place, class.into());
                }
                for (key, content) in taken.members {
                    if !self.has_room(&mut more) {
                        continue;
                    }
                    let name = name(&key);
                    let member = self.tree.member(place, &name);
                    let secret = secret || is_secret(&name);
                    self.put(content, child(member, &name, secret), next);
                }
            }
        }
        if more > 0 {
            let place = self.tree.member(place, "$more");
            self.tree.set(place, more.into());
            self.tree.cuts.keys += more;
        }
    }

    /// Whether the answer has room for another value. One that it has not is counted, among `more` as well.
    fn has_room(&mut self, more: &mut u64) -> bool {
        let is_full = self.tree.is_full();
        if is_full {
            *more += 1;
            self.tree.cuts.full += 1;
        }
        !is_full
    }

    /// A text as `reader.js` gives it: one that it cut has its length behind the cut.
    fn cut(&mut self, text: &str, most: usize) -> String {
        let mut units = 0;
        let end = text.char_indices().find(|(_, c)| {
            let is_end = units >= most;
            units += c.len_utf16();
            is_end
        });
        match end {
            None => text.to_owned(),
            Some((end, _)) => {
                let (start, all) = text.split_at(end);
                let all = all.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(most);
                self.tree.shortened(start, all)
            }
        }
    }
}

/// What an object is called that is not opened.
fn title(object: &Remote) -> String {
    let described = object.description.as_deref().unwrap_or("Object");
    described.lines().next().unwrap_or_default().chars().take(200).collect()
}

/// `{"$date": …}` of milliseconds since 1970.
fn date(milliseconds: f64) -> Value {
    // The range of a Date in JavaScript.
    if milliseconds.is_nan() || milliseconds.abs() > 8.64e15 {
        return json!({"$date": "Invalid Date"});
    }
    #[allow(clippy::cast_possible_truncation, reason = "it is a whole number in the range")]
    let milliseconds = milliseconds as i64;
    let (days, rest) = (milliseconds.div_euclid(86_400_000), milliseconds.rem_euclid(86_400_000));
    let (year, month, day) = civil(days);
    let (seconds, milliseconds) = (rest / 1000, rest % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    mark(
        "date",
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z"),
    )
}
