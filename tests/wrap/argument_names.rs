//! Names of arguments that some parser takes for the ones that are judged.

use crate::{LEGACY, WrapSetup, setup};
use integration_tests::{Era, Wire};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// A caller that may name one file, in one mode.
const POLICY: &str = r#"
version = 1
external_tools = ["read", "loose", "run", "relay", "secret"]
dispatch = [{ tool = "relay", name = "/tool", arguments = "/with" }]

[roles.reader]
allow = ["read", "loose", "run", "relay"]

[[roles.reader.require]]
id = "docs-only"
tools = ["read"]
arguments = { path = { one_of = ["docs/ok.txt"], optional = true }, "/filter/glob" = { one_of = ["*.md"], optional = true } }

[[roles.reader.require]]
id = "docs-only-loose"
tools = ["loose"]
additional_arguments = true
arguments = { path = { one_of = ["docs/ok.txt"], optional = true } }
"#;

fn reader(flags: &[&str]) -> WrapSetup {
    let properties = json!({
        "path": {"type": "string"},
        "filter": {"$ref": "#/$defs/Filter"},
        "max_count": {"type": "integer"},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
    });
    let filter = json!({"type": "object", "properties": {"glob": {"type": "string"}}});
    let declared = json!({"type": "object", "properties": properties, "$defs": {"Filter": filter}});
    let tool = |name: &str, schema: &Value| json!({"name": name, "inputSchema": schema});
    let free = json!({"type": "object"});
    let tools = [tool("read", &declared), tool("loose", &free), tool("run", &declared), tool("relay", &free)];
    let setup = setup(&[flags, &["--policy", "roles.toml", "--role", "reader"][..]].concat());
    setup.project.write("roles.toml", POLICY);
    setup.offering(&json!(tools))
}

/// Sends a call whose arguments are written as given, and returns the answer.
fn call_written(wire: &mut Wire, era: Era, tool: &str, id: i64, arguments: &str) -> Value {
    let mut params = json!({"name": tool});
    era.fill(&mut params);
    let params = params.to_string();
    let params = params.strip_suffix('}').unwrap();
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params},\"arguments\":{arguments}}}}}\n"
    );
    wire.send_bytes(line.as_bytes());
    wire.answer(id)
}

/// Arguments in which some parser reads another value than the rules judge.
const ATTACKS: [(&str, &str); 20] = [
    ("read", r#"{"path":"docs/ok.txt","PATH":"secret.txt"}"#),
    ("read", r#"{"PATH":"secret.txt","path":"docs/ok.txt"}"#),
    ("read", r#"{"PATH":"secret.txt"}"#),
    ("read", r#"{"Path":"secret.txt","env":{}}"#),
    ("read", r#"{"path":"docs/ok.txt","p\u0041th":"secret.txt"}"#),
    ("read", "{\"path\":\"docs/ok.txt\",\"\u{ff50}ath\":\"secret.txt\"}"),
    ("read", r#"{"path":"docs/ok.txt","path\u0000":"secret.txt"}"#),
    ("read", r#"{"path":"docs/ok.txt","pa-th":"secret.txt"}"#),
    ("read", r#"{"filter":{"glob":"*.md","GLOB":"*"}}"#),
    ("read", r#"{"filter":{"Glob":"*"}}"#),
    ("read", r#"{"Filter":{"glob":"*"}}"#),
    ("read", r#"{"file":"secret.txt"}"#),
    ("loose", r#"{"path":"docs/ok.txt","pAth":"secret.txt"}"#),
    ("loose", r#"{"Path":"secret.txt"}"#),
    ("run", r#"{"max_count":1,"maxCount":2}"#),
    ("run", r#"{"filter":{"glob":"*.md","\u0047lob":"*"}}"#),
    ("relay", r#"{"tool":"run","Tool":"secret"}"#),
    ("relay", r#"{"tool":"run","TOOL":"secret","with":{}}"#),
    ("relay", r#"{"tool":"read","with":{"path":"docs/ok.txt"},"With":{"path":"secret.txt"}}"#),
    ("relay", r#"{"tool":"read","with":{"path":"docs/ok.txt","PATH":"secret.txt"}}"#),
];

/// Arguments that every parser reads alike.
const HARMLESS: [(&str, &str); 8] = [
    ("read", r#"{"path": "docs/ok.txt", "max_count": 3}"#),
    ("read", r#"{"env": {"http_proxy": "a", "HTTP_PROXY": "b"}}"#),
    ("read", r#"{"filter": {"glob": "*.md", "other": 1}}"#),
    ("read", "{}"),
    ("loose", r#"{"path": "docs/ok.txt", "extra": {"a": 1, "A": 2}}"#),
    ("run", r#"{"path": "anything", "undeclared": 1}"#),
    ("relay", r#"{"tool": "read", "with": {"path": "docs/ok.txt"}}"#),
    ("relay", r#"{"tool": "run", "with": {"a": 1}}"#),
];

#[test]
fn no_variant_of_an_arguments_name_gets_past_the_rules() {
    for era in Era::BOTH {
        let setup = reader(&[]);
        let mut wire = setup.connect(era);
        for (number, (tool, arguments)) in (1000..).zip(HARMLESS) {
            let answer = call_written(&mut wire, era, tool, number, arguments);
            assert_ne!(answer["result"]["isError"], true, "{tool} {arguments}: {answer}");
            assert!(answer.get("error").is_none(), "{tool} {arguments}: {answer}");
        }
        let sent = setup.asked().len();
        for (number, (tool, arguments)) in (2000..).zip(ATTACKS) {
            let answer = call_written(&mut wire, era, tool, number, arguments);
            assert_eq!(answer["result"]["isError"], true, "{tool} {arguments}: {answer}");
        }
        assert_eq!(setup.asked().len(), sent, "{:?}", setup.asked());
    }
}

#[test]
fn a_refused_name_is_told_with_what_may_be_given() {
    let setup = reader(&[]);
    let mut wire = setup.connect(LEGACY);
    let mut refusal = |arguments: &str| {
        let answer = call_written(&mut wire, LEGACY, "read", 1000, arguments);
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        refusal(r#"{"file":"x"}"#),
        "`file` may not be given: the rules on this tool take only `env`, `filter`, `max_count`, `path`, which it \
         declares or they name"
    );
    assert_eq!(
        refusal(r#"{"PATH":"x"}"#),
        "`PATH` may not be given: the server could take it for `path`, which a rule of this role judges"
    );
    assert_eq!(
        refusal(r#"{"env":{},"Env":{}}"#),
        "`env` and `Env` are one name to some parsers, so the server could read another value than the one that is \
         judged; give one of them"
    );
}

/// Reads JSON objects, one a line, and writes what a server would take for `path` and `filter.glob`.
const READERS: [(&str, &str); 3] = [
    (
        "go",
        r#"package main

import ("bufio"; "encoding/json"; "fmt"; "os")

type arguments struct {
	Path   string `json:"path"`
	Filter struct{ Glob string `json:"glob"` } `json:"filter"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var read arguments
		_ = json.Unmarshal(lines.Bytes(), &read)
		fmt.Printf("%s|%s\n", read.Path, read.Filter.Glob)
	}
}
"#,
    ),
    (
        "python3",
        r#"
import json, sys
for line in sys.stdin:
    read = json.loads(line)
    print(f"{read.get('path', '')}|{(read.get('filter') or {}).get('glob', '')}")
"#,
    ),
    (
        "node",
        r#"
const lines = require("fs").readFileSync(0, "utf8").split("\n").filter(Boolean);
for (const line of lines) {
  const read = JSON.parse(line);
  console.log(`${read.path ?? ""}|${read.filter?.glob ?? ""}`);
}
"#,
    ),
];

/// Returns what the program reads of each line, or `None` where it is not installed.
fn readings(setup: &WrapSetup, program: &str, source: &str, lines: &str) -> Option<Vec<String>> {
    let installed = Command::new(program).arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    skipped_tests::require(installed.ok(), &format!("no {program}"))?;
    let file = if program == "go" { "reader/main.go" } else { "reader/reader.txt" };
    setup.project.write(file, source);
    let mut command = Command::new(program);
    if program == "go" {
        command.arg("run").env("GO111MODULE", "off");
    }
    command.arg(setup.project.join(file)).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program}");
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

/// Spellings of one name: exact, in other letters, in other scripts, with separators.
fn spellings(name: &str) -> Vec<String> {
    let capital = name[..1].to_uppercase() + &name[1..];
    let kelvin = name.replace('k', "\u{212a}").replace('s', "\u{17f}");
    let wide: String = name.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap()).collect();
    vec![name.to_owned(), name.to_uppercase(), capital, kelvin, wide, format!("{name}_"), format!("-{name}")]
}

#[test]
fn what_passes_is_read_alike_by_the_parsers_of_go_python_and_javascript() {
    let setup = reader(&[]);
    let mut wire = setup.connect(LEGACY);
    let mut candidates = Vec::new();
    for one in spellings("path") {
        for other in spellings("path") {
            candidates.push(format!(r#"{{"{one}":"docs/ok.txt","{other}":"secret.txt"}}"#));
            candidates.push(format!(r#"{{"{one}":"docs/ok.txt","max_count":1,"x{other}":"secret.txt"}}"#));
        }
        candidates.push(format!(r#"{{"path":"docs/ok.txt","env":{{"{one}":"secret.txt","path":"x"}}}}"#));
        candidates
            .push(format!(r#"{{"filter":{{"glob":"*.md","x{one}":"secret.txt","{one}":"secret.txt"}}}}"#));
        candidates.push(format!(r#"{{"{one}":"secret.txt"}}"#));
        candidates.push(format!(r#"{{"{one}":"docs/ok.txt"}}"#));
    }
    for outer in spellings("filter") {
        for one in spellings("glob") {
            for other in spellings("glob") {
                candidates.push(format!(r#"{{"{outer}":{{"{one}":"*.md","{other}":"*"}}}}"#));
            }
            candidates.push(format!(r#"{{"{outer}":{{"{one}":"*.md"}}}}"#));
            candidates.push(format!(r#"{{"filter":{{}},"{outer}":{{"{one}":"*"}}}}"#));
        }
    }
    let mut passed = String::new();
    for (number, arguments) in (1000..).zip(&candidates) {
        let answer = call_written(&mut wire, LEGACY, "read", number, arguments);
        if answer.get("error").is_none() && answer["result"]["isError"] != true {
            passed.push_str(arguments);
            passed.push('\n');
        }
    }
    let count = passed.lines().count();
    assert!((2..candidates.len() / 2).contains(&count), "{count} of {} passed", candidates.len());
    for (program, source) in READERS {
        let Some(readings) = readings(&setup, program, source, &passed) else { continue };
        assert_eq!(readings.len(), count, "{program}");
        for (line, read) in passed.lines().zip(readings) {
            let (path, glob) = read.split_once('|').unwrap();
            assert!(["", "docs/ok.txt"].contains(&path), "{program} reads {path} in {line}");
            assert!(["", "*.md"].contains(&glob), "{program} reads {glob} in {line}");
        }
    }
}
