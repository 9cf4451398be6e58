//! Arguments that say in another form what a tool takes: a last line instead of a number of lines, seconds instead of
//! milliseconds, arguments beside a program.

use super::coerce::{as_boolean, as_integer};
use super::describe::{given, member_path};
use super::faults::ArgumentFaults;
use super::synonyms::{ArgumentKeyMeaning, meaning, snake_case};
use super::units::{as_seconds, milliseconds};
use serde_json::{Map, Value, json};

type Properties = Map<String, Value>;

/// The object that is rewritten, and what its tool takes.
struct Rewrite<'a> {
    properties: &'a Properties,
    object: Map<String, Value>,
    path: &'a str,
    faults: &'a mut ArgumentFaults,
}

/// Rewrites the members of `object` that no property has under any name and that mean one thing all the same.
pub(super) fn rewrite(
    properties: &Properties,
    object: Map<String, Value>,
    path: &str,
    faults: &mut ArgumentFaults,
) -> Map<String, Value> {
    // Nearly every call: all keys are those of the list.
    if properties.is_empty() || object.keys().all(|key| properties.contains_key(key)) {
        return object;
    }
    let mut rewrite = Rewrite { properties, object, path, faults };
    rewrite.line_range();
    rewrite.program_arguments();
    rewrite.seconds();
    rewrite.recursion();
    rewrite.case();
    rewrite.literal();
    rewrite.append();
    rewrite.line_numbers();
    rewrite.object
}

/// The first line of a range, as editors' tools call it.
const FIRST_LINE: [&str; 6] =
    ["start_line", "line_start", "from_line", "first_line", "begin_line", "start_line_one_indexed"];
/// The last line of a range.
const LAST_LINE: [&str; 5] =
    ["end_line", "line_end", "to_line", "last_line", "end_line_one_indexed_inclusive"];

impl Rewrite<'_> {
    fn has(&self, property: &str) -> bool {
        self.properties.contains_key(property)
    }

    /// Takes the member that is spelt as one of `words` and that no property has.
    fn take(&mut self, words: &[&str]) -> Option<(String, Value)> {
        let key = self
            .object
            .keys()
            .find(|key| words.contains(&snake_case(key).as_str()) && !self.properties.contains_key(*key))?
            .clone();
        let value = self.object.remove(&key)?;
        Some((key, value))
    }

    /// Takes such a member if its value is a boolean.
    fn take_boolean(&mut self, words: &[&str]) -> Option<(String, bool)> {
        let (key, value) = self.take(words)?;
        match as_boolean(&value) {
            Some(boolean) => Some((key, boolean)),
            None => {
                // The member goes back, so that the check of the schema reports it with its value.
                self.object.insert(key, value);
                None
            }
        }
    }

    fn fault(&mut self, key: &str, fault: &str) {
        self.faults.push(format!("`{}` {fault}", member_path(self.path, key)));
    }

    /// Sets a property that `key` was another form of.
    fn set(&mut self, key: &str, property: &str, value: Value) {
        let is_given = self.object.iter().any(|(other, value)| {
            matches!(meaning(self.properties, other, value), ArgumentKeyMeaning::Property(name, _) if name == property)
        });
        if is_given {
            self.fault(key, &format!("and `{property}` say the same: give `{property}` alone"));
        } else {
            self.object.insert(property.to_owned(), value);
        }
    }

    fn line(&mut self, (key, value): &(String, Value)) -> Option<i64> {
        let line = as_integer(value);
        if line.is_none() {
            self.fault(key, &format!("is {}: expected the number of a line", given(value)));
        }
        line
    }

    /// `start_line` and `end_line`, or `view_range`, for `offset` and `limit`.
    fn line_range(&mut self) {
        if !self.has("offset") || !self.has("limit") {
            return;
        }
        let (mut first, mut last) = (self.take(&FIRST_LINE), self.take(&LAST_LINE));
        if let Some((key, value)) = self.take(&["view_range", "line_range"]) {
            match (value.as_array().map(Vec::as_slice), &first, &last) {
                (Some([start, end]), None, None) => {
                    first = Some((key.clone(), start.clone()));
                    last = Some((key, end.clone()));
                }
                _ => return self.fault(&key, "takes two numbers of lines, and no other range beside it"),
            }
        }
        let start = match &first {
            Some(first) => match self.line(first) {
                Some(start) => Some(start),
                None => return,
            },
            // A last line may stand beside `offset`, which is the tool's own first line.
            None => self.object.get("offset").and_then(as_integer),
        };
        if let (Some((key, _)), Some(start)) = (&first, start) {
            self.set(key, "offset", start.into());
        }
        let Some(last) = last else { return };
        let Some(end) = self.line(&last) else { return };
        let start = start.unwrap_or(1);
        match end {
            // The end of the file, as Anthropic's text editor has it.
            -1 => {}
            end if start >= 1 && end >= start => self.set(&last.0, "limit", (end - start + 1).into()),
            _ => self.fault(
                &last.0,
                &format!("is {end}, and the first line {start}: expected a line from there on"),
            ),
        }
    }

    /// A program in `command` and its arguments in `args`, for `command` alone.
    fn program_arguments(&mut self) {
        if !self.has("command") || self.has("args") {
            return;
        }
        let Some((key, arguments)) = self.take(&["args", "arguments", "argv"]) else { return };
        let command =
            self.object.iter().find_map(|(other, value)| match meaning(self.properties, other, value) {
                ArgumentKeyMeaning::Property("command", _) => Some((other.clone(), value.clone())),
                _ => None,
            });
        let Some((command_key, command)) = command else {
            return self.fault(&key, "stands alone: `command` is an array of the program and its arguments");
        };
        let whole = match (command, arguments) {
            (Value::String(program), Value::Array(arguments))
                // A `command` with blanks is a whole command line, and must not become the name of one program.
                if !program.trim().contains(char::is_whitespace) =>
            {
                Value::Array(std::iter::once(Value::String(program)).chain(arguments).collect())
            }
            (Value::String(line), Value::String(rest)) => Value::String(format!("{line} {rest}")),
            (Value::Array(words), Value::Array(arguments)) => words.into_iter().chain(arguments).collect(),
            (_, Value::Array(none)) if none.is_empty() => return,
            _ => {
                let fault = "does not go with this `command`: give `command` as an array of the program and its \
                             arguments";
                return self.fault(&key, fault);
            }
        };
        self.object.insert(command_key, whole);
    }

    /// `timeout_seconds` for `timeout_ms`, and the same of every time in milliseconds. A bare `timeout` of less than
    /// 1000 may be either, and stays unknown.
    fn seconds(&mut self) {
        let properties = self.properties;
        for property in properties.keys().filter(|name| name.ends_with("_ms")) {
            let stem = property.trim_end_matches("_ms");
            let in_seconds = ["_seconds", "_secs", "_sec", "_s"].map(|unit| format!("{stem}{unit}"));
            let words: Vec<&str> = in_seconds.iter().map(String::as_str).collect();
            if let Some((key, value)) = self.take(&words) {
                match as_seconds(&value).and_then(milliseconds) {
                    Some(time) => self.set(&key, property, time.into()),
                    None => self.fault(&key, &format!("is {}: expected a number of seconds", given(&value))),
                }
            }
            // `time_limit` is another word for the timeout of a call, and for no other time.
            let bare = [stem, "time_limit"];
            if let Some((key, value)) = self.take(&bare[..if stem == "timeout" { 2 } else { 1 }]) {
                // As seconds it would be longer than any limit here.
                match as_integer(&value).filter(|time| *time >= 1000) {
                    Some(time) => self.set(&key, property, time.into()),
                    None => {
                        self.object.insert(key, value);
                    }
                }
            }
        }
    }

    /// `recursive`, for a tool that takes a depth or always goes down.
    fn recursion(&mut self) {
        let deepest = self.properties.get("depth").and_then(|depth| depth.get("maximum")).cloned();
        // A search tool is recognized by its parameters, because only the schema is known here.
        let always = self.has("pattern") && self.has("path");
        if deepest.is_none() && !always {
            return;
        }
        let Some((key, recursive)) = self.take_boolean(&["recursive"]) else { return };
        match (deepest, recursive) {
            (Some(deepest), true) if !self.object.contains_key("depth") => {
                self.object.insert("depth".to_owned(), deepest);
            }
            (Some(_), _) => {}
            (None, true) => {}
            (None, false) => {
                self.fault(&key, "is false: this tool always looks into the folders below as well");
            }
        }
    }

    /// `case_sensitive` and `ignore_case` for `case`.
    fn case(&mut self) {
        if !self.has("case") {
            return;
        }
        let insensitive = match self.take_boolean(&["ignore_case", "case_insensitive", "i"]) {
            Some((key, ignore)) => Some((key, ignore)),
            None => self.take_boolean(&["case_sensitive"]).map(|(key, sensitive)| (key, !sensitive)),
        };
        if let Some((key, insensitive)) = insensitive {
            self.set(&key, "case", json!(if insensitive { "insensitive" } else { "sensitive" }));
        }
    }

    /// `regex: true` for `literal: false`.
    fn literal(&mut self) {
        if self.has("literal")
            && let Some((key, is_regex)) = self.take_boolean(&["regex", "is_regex", "use_regex", "is_regexp"])
        {
            self.set(&key, "literal", (!is_regex).into());
        }
    }

    /// `append: true` for a mode.
    fn append(&mut self) {
        let modes = self.properties.get("mode").and_then(|mode| mode.get("enum")).and_then(Value::as_array);
        if modes.is_some_and(|modes| modes.iter().any(|mode| mode == "append"))
            && let Some((key, append)) = self.take_boolean(&["append"])
            && append
        {
            self.set(&key, "mode", json!("append"));
        }
    }

    /// `-n`, as grep has it: the matches of a search have the numbers of their lines anyway.
    fn line_numbers(&mut self) {
        if self.has("pattern")
            && let Some((key, false)) = self.take_boolean(&["n", "line_numbers", "show_line_numbers"])
        {
            self.fault(&key, "is false: the matches always have the numbers of their lines");
        }
    }
}
