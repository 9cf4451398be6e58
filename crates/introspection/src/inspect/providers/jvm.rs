//! The diagnostic output of a Java virtual machine: `jvm.threads`, `jvm.properties`, `jvm.heap`.

use crate::inspect::Error;
use crate::inspect::advice::java_fields;
use crate::inspect::jvm::AttachedJvm;
use crate::inspect::provider::{Provider, ProviderFuture, StateRequest};
use crate::inspect::state_value::ProviderError;
use crate::inspect::target::LanguageRuntime;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The time limit of one command.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Answers `jvm.*`.
#[derive(Debug)]
pub(in crate::inspect) struct JvmProvider;

/// The members of `jvm`, each with its diagnostic command. The histogram of classes includes unreachable objects (`-all`):
/// without them the machine would first collect garbage, which stops the application.
const MEMBERS: [(&str, &str); 7] = [
    ("version", "VM.version"),
    ("uptime", "VM.uptime"),
    ("flags", "VM.flags"),
    ("properties", "VM.system_properties"),
    ("heap", "GC.heap_info"),
    ("threads", "Thread.print"),
    ("classes", "GC.class_histogram -all"),
];

impl Provider for JvmProvider {
    fn name(&self) -> &'static str {
        "jvm"
    }

    fn read<'a>(&'a self, request: &'a StateRequest<'a>) -> ProviderFuture<'a> {
        Box::pin(async move {
            let path = request.path();
            if path.file.is_some() || path.segments.first().is_none_or(|first| first != "jvm") {
                return Err(ProviderError::NotAsked("it has only jvm.*"));
            }
            let process = request.process(&[LanguageRuntime::Jvm]).await?;
            let source = format!("jvm: {}", process.display_name());
            let requested = path.segments.get(1).map(String::as_str);
            let is_requested = |name: &str| match requested {
                Some(requested) => requested == name,
                // The large ones only by name.
                None => name != "classes" && name != "properties",
            };
            let failed = |source| Error::Jvm { process: process.display_name(), source };
            process.check_not_stopped().map_err(Error::from)?;
            let jvm = AttachedJvm::attach(&process, request.may_signal).await.map_err(failed)?;
            let mut document = Map::new();
            for (name, command) in MEMBERS {
                document.insert(
                    name.to_owned(),
                    // Members that were not asked for are listed, so that an answer for `jvm` shows what else there is.
                    match is_requested(name) {
                        true => parse_output(name, &jvm.command(command, TIME_LIMIT).await.map_err(failed)?),
                        false => "ask for it by name".into(),
                    },
                );
            }
            request.json(source, &json!({"jvm": document})).map_err(|error| match error {
                ProviderError::PathNotFound(mut missing) => {
                    missing.note =
                        Some(format!("no field of an object is read here: {}", java_fields(&process)));
                    ProviderError::PathNotFound(missing)
                }
                error => error,
            })
        })
    }
}

/// Converts the output of a command to the member `name`.
fn parse_output(name: &str, output: &str) -> Value {
    match name {
        "properties" => properties(output),
        "threads" => threads(output),
        "classes" => classes(output),
        "flags" => output.split_ascii_whitespace().filter(|word| word.starts_with('-')).collect(),
        _ => output.trim().into(),
    }
}

/// Parses `name=value` lines in the escapes of `Properties.store`.
fn properties(output: &str) -> Value {
    let lines = output.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(split_property);
    pairs.map(|(name, value)| (unescape(name), Value::from(unescape(value)))).collect()
}

/// Splits a line at its first `=` without a backslash before it.
fn split_property(line: &str) -> Option<(&str, &str)> {
    let mut is_escaped = false;
    let end = line.find(|c| {
        let is_end = c == '=' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    })?;
    Some((line.get(..end)?, line.get(end + 1..)?))
}

/// Resolves the escapes of `Properties.store`: `\n`, `\:`, and `\u017C` for a UTF-16 unit.
fn unescape(text: &str) -> String {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let escaped = if c == '\\' { rest.next() } else { None };
        let plain = match escaped {
            None => c,
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('f') => '\u{c}',
            Some('u') => {
                let digits = rest.as_str().get(..4).unwrap_or_default();
                if let Ok(unit) = u16::from_str_radix(digits, 16) {
                    rest.nth(3);
                    units.push(unit);
                    continue;
                }
                'u'
            }
            Some(other) => other,
        };
        units.extend(plain.encode_utf16(&mut [0; 2]).iter());
    }
    String::from_utf16_lossy(&units)
}

/// Parses a thread dump: `"main" #1 prio=5 os_prio=0 … in Object.wait()`, its state, and a frame a line.
fn threads(output: &str) -> Value {
    let mut threads: Vec<Value> = Vec::new();
    for line in output.lines() {
        if let Some((name, rest)) = line.strip_prefix('"').and_then(|line| line.rsplit_once("\" ")) {
            threads
                .push(json!({"name": name, "daemon": rest.contains(" daemon "), "state": "", "stack": []}));
        } else if let Some(thread) = threads.last_mut() {
            let line = line.trim();
            if let Some(state) = line.strip_prefix("java.lang.Thread.State: ") {
                thread["state"] = state.into();
            } else if let (true, Value::Array(stack)) =
                (line.starts_with("at ") || line.starts_with("- "), &mut thread["stack"])
            {
                stack.push(line.into());
            }
        }
    }
    threads.into()
}

/// Parses a histogram: `   1:   12345   678901  [B (java.base@17)`: number, instances, bytes, class.
fn classes(output: &str) -> Value {
    let rows = output.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        words.next()?.strip_suffix(':')?.parse::<u64>().ok()?;
        let (instances, bytes) = (words.next()?.parse::<u64>().ok()?, words.next()?.parse::<u64>().ok()?);
        Some(json!({"class": words.next()?, "instances": instances, "bytes": bytes}))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_prints_is_read() {
        let printed = "2026-11-22 00:00:00\nFull thread dump OpenJDK:\n\n\"main\" #1 prio=5 os_prio=0 tid=0x1 nid=0x2 runnable [0x3]\n   java.lang.Thread.State: TIMED_WAITING (sleeping)\n\tat java.lang.Thread.sleep(Native Method)\n\tat Main.main(Main.java:3)\n\n\"a \"b\"\" #9 daemon prio=9\n   java.lang.Thread.State: RUNNABLE\n";
        assert_eq!(
            threads(printed),
            json!([
                {"name": "main", "daemon": false, "state": "TIMED_WAITING (sleeping)",
                 "stack": ["at java.lang.Thread.sleep(Native Method)", "at Main.main(Main.java:3)"]},
                {"name": "a \"b\"", "daemon": true, "state": "RUNNABLE", "stack": []},
            ])
        );
        assert_eq!(
            properties("#Sun Nov 22\njava.home=/usr/lib\nurl=http\\://x\n"),
            json!({"java.home": "/usr/lib", "url": "http://x"})
        );
        // As printed for -Dmy.prop=zażółć -Dbs='a\b:c=d' -D'k e=y'.
        let escaped = "my.prop=za\\u017C\\u00F3\\u0142\\u0107\nline.separator=\\n\nbs=a\\\\b\\:c\\=d\nk\\ e=y\nodd=\\uD83D\\uDE00\\u00\n";
        assert_eq!(
            properties(escaped),
            json!({"my.prop": "zażółć", "line.separator": "\n", "bs": "a\\b:c=d", "k e": "y", "odd": "😀u00"})
        );
        let rows = " num     #instances         #bytes  class name\n---\n   1:    5    240  [B (java.base@17.0.15)\nTotal  5  240\n";
        assert_eq!(classes(rows), json!([{"class": "[B", "instances": 5, "bytes": 240}]));
    }
}
