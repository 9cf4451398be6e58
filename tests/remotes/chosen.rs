//! Remotes beside the roots: those that a caller chooses by `use_remote`, and those that are roots.

use crate::{Machines, output};
use integration_tests::{Ask, Era, HttpServer, Wire, alive, server, unique_seconds, wait_until_gone};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;

/// A configuration with the remote `box`, which callers may choose, and `closed`, which they may not.
fn text(machines: &Machines) -> String {
    let remote = |name: &str, more: &str| {
        format!(
            "[remotes.{name}]\nconnect = ['{}', 'remote-server']\nroots = ['{}']\n{more}\n",
            server().display(),
            machines.there.path().display()
        )
    };
    remote("box", "choosable = true") + &remote("closed", "")
}

/// A server of its own folder, with this policy and role.
fn command(machines: &Machines, roles: Option<(&str, &str)>) -> Command {
    machines.front.write("remotes.toml", &text(machines));
    let mut command = machines.front.server();
    command.arg("--config").arg(machines.front.join("remotes.toml")).arg("--root").arg(machines.front.path());
    if let Some((policy, role)) = roles {
        machines.front.write("roles.toml", policy);
        command.arg("--policy").arg(machines.front.join("roles.toml")).args(["--role", role]);
    }
    command
}

/// Returns the prefix that `use_remote` gives back.
fn choose(client: &mut impl Ask) -> String {
    let call = json!({"name": "use_remote", "arguments": {"remote": "box"}});
    let answer = client.request("tools/call", call);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let line = text.lines().find_map(|line| line.strip_prefix("prefix: "));
    line.unwrap_or_else(|| panic!("no prefix: {text}")).to_owned()
}

fn names(client: &mut impl Ask) -> Vec<String> {
    let list = client.request("tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_prefix_in_paths_makes_a_call_there_and_every_other_call_is_made_here() {
    let machines = Machines::with([("a.txt", "there\n"), ("src/b.rs", "fn there() {}\n")]);
    machines.front.write("a.txt", "here\n");
    machines.there.git(&["init", "-q", "-b", "faraway"]);
    for era in Era::BOTH {
        let mut client = Wire::connect(command(&machines, None), era);
        let prefix = choose(&mut client);
        assert_eq!(prefix, format!("box:{}", machines.there.path().display()));
        let there = |path: &str| format!("{prefix}/{path}");
        assert!(client.text("read_file", json!({"path": there("a.txt")})).contains("there"));
        assert!(client.text("read_file", json!({"path": "a.txt"})).contains("here"));
        let two = json!({"paths": [there("a.txt"), there("src/b.rs")]});
        assert!(client.text("read_multiple_files", two).contains("fn there()"));
        assert!(
            client
                .call("search_files", json!({"path": prefix, "pattern": "fn there"}))
                .to_string()
                .contains("b.rs")
        );
        let (report, _) =
            client.outcome("run_command", json!({"command": "pwd", "working_directory": prefix}));
        assert_eq!(report["stdout"].as_str().unwrap().trim(), machines.there.path().to_str().unwrap());
        let (status, failed) = client.outcome("git_status", json!({"repository_path": prefix}));
        assert!(!failed && status.to_string().contains("faraway"), "{status}");
        client.text("write_file", json!({"path": there("new/c.txt"), "content": "c"}));
        assert_eq!(machines.there.read("new/c.txt"), "c");
        // In the calls of a call as well.
        let calls = json!({"calls": [
            {"tool": "read_file", "arguments": {"path": there("a.txt")}},
            {"tool": "read_file", "arguments": {"path": "a.txt"}},
        ]});
        let answer = client.call("call_tools", calls).to_string();
        assert!(answer.contains("there") && answer.contains("here"), "{answer}");
    }
    assert!(!machines.front.join("new").exists());
}

#[test]
fn what_cannot_be_made_on_one_machine_is_refused_and_writes_nothing_here() {
    let machines = Machines::with([("a.txt", "there\n")]);
    machines.front.write("a.txt", "here\n");
    let mut client = Wire::connect(command(&machines, None), Era::Modern);
    let prefix = choose(&mut client);
    let moved = json!({"source": format!("{prefix}/a.txt"), "destination": "b.txt"});
    assert!(client.failure("move_file", moved).contains("`box` and this machine"));
    let patch = format!("--- a/x\n+++ b/{prefix}/a.txt\n@@ -1 +1 @@\n-there\n+patched\n");
    client.failure("apply_patch", json!({"patch": patch}));
    let both = "*** Add File: n.txt\n+x";
    let patch = format!("*** Begin Patch\n*** Delete File: {prefix}/a.txt\n{both}\n*** End Patch\n");
    let error = client.failure("apply_patch", json!({"patch": patch}));
    assert!(error.contains("`box` and this machine"), "{error}");
    for path in ["box:/etc/passwd".to_owned(), format!("{prefix}/../x")] {
        client.failure("read_file", json!({"path": path}));
    }
    let mut left: Vec<String> = std::fs::read_dir(machines.front.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("box") || name == "b.txt" || name == "n.txt")
        .collect();
    left.sort();
    assert_eq!((left, machines.there.read("a.txt")), (vec![], "there\n".to_owned()));
}

#[test]
fn a_patch_changes_files_there() {
    let machines = Machines::with([("a.txt", "there\n"), ("old.txt", "x\n")]);
    machines.front.write("a.txt", "here\n");
    let mut client = Wire::connect(command(&machines, None), Era::Modern);
    let prefix = choose(&mut client);
    let patch = format!(
        "*** Begin Patch\n*** Update File: {prefix}/a.txt\n-there\n+{prefix}/a.txt\n*** Add File: {prefix}/n/b.txt\n+new\n\
         *** Update File: {prefix}/old.txt\n*** Move to: {prefix}/moved.txt\n*** End Patch\n"
    );
    client.text("apply_patch", json!({"patch": patch}));
    let there = ["a.txt", "n/b.txt", "moved.txt"].map(|path| machines.there.read(path));
    assert_eq!(there, [format!("{prefix}/a.txt\n"), "new\n".to_owned(), "x\n".to_owned()]);
    assert!(!machines.there.join("old.txt").exists() && machines.front.read("a.txt") == "here\n");
    let patch = format!("--- a/{prefix}/n/b.txt\n+++ b/{prefix}/n/b.txt\n@@ -1 +1 @@\n-new\n+newer\n");
    client.text("apply_patch", json!({"patch": patch}));
    assert_eq!(machines.there.read("n/b.txt"), "newer\n");
    // The rules of a role for the tools that do a part of a patch hold for a patch there.
    let mut far = Wire::connect(command(&machines, Some((PATCHES, "far"))), Era::Modern);
    let patch = |path: &str| format!("*** Begin Patch\n*** Add File: {prefix}/{path}\n+x\n*** End Patch\n");
    far.text("apply_patch", json!({"patch": patch("src/c.txt")}));
    let error = far.failure("apply_patch", json!({"patch": patch("c.txt")}));
    assert!(error.contains("refused by policy") && !machines.there.join("c.txt").exists(), "{error}");
}

const PATCHES: &str = r#"
version = 1
[roles.far]
allow = ["apply_patch", "write_file", "use_remote"]
[[roles.far.require]]
id = "SRC"
tools = ["write_file"]
write_within = ["src"]
"#;

/// The arguments that say on which machine a call is made.
const PLACES: [&str; 13] = [
    "path",
    "paths",
    "files",
    "source",
    "destination",
    "repository_path",
    "project_path",
    "test_path",
    "working_directory",
    "database",
    "session_id",
    "session",
    "patch",
];

#[test]
fn every_tool_with_a_path_or_an_id_works_there() {
    let machines = Machines::with([]);
    machines
        .front
        .write("remotes.toml", "[remotes.gone]\nconnect = ['false']\nroots = ['/a']\nchoosable = true\n");
    let mut command = machines.front.server();
    command.arg("--config").arg(machines.front.join("remotes.toml")).arg("--root").arg(machines.front.path());
    let mut client = Wire::connect(command, Era::Modern);
    let list = client.request("tools/list", json!({}));
    let (mut tried, mut elsewhere) = (0, Vec::new());
    for tool in list["result"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let Some(properties) = tool["inputSchema"]["properties"].as_object() else { continue };
        let required: Vec<&str> = tool["inputSchema"]["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let value = |name: &str, text: &str| match properties[name]["type"].as_str() {
            Some("integer" | "number") => json!(1000),
            Some("array") => json!([text]),
            _ => match properties[name]["enum"].as_array() {
                Some(values) => values[0].clone(),
                None => json!(text),
            },
        };
        let is_target = ["inspect_state", "capture_trace"].contains(&name);
        for place in properties.keys() {
            let is_place = if is_target { place == "target" } else { PLACES.contains(&place.as_str()) };
            // Names of a revision, a commit and a remote of git.
            if !is_place || (name, place.as_str()) == ("git_restore", "source") {
                continue;
            }
            let text = match place.as_str() {
                "patch" => "*** Begin Patch\n*** Add File: gone:/a\n+x\n*** End Patch\n",
                _ => "gone:/a",
            };
            let mut arguments = serde_json::Map::new();
            for other in &required {
                let other_text = if PLACES.contains(other) { text } else { "x" };
                arguments.insert((*other).to_owned(), value(other, other_text));
            }
            arguments.insert(place.clone(), value(place, text));
            let answer = client.request("tools/call", json!({"name": name, "arguments": arguments}));
            tried += 1;
            if !answer.to_string().contains("remote gone: ") {
                elsewhere.push(format!("{name} {arguments:?}: {answer}"));
            }
        }
    }
    assert!(elsewhere.is_empty() && tried > 60, "{tried} {elsewhere:#?}");
}

#[test]
fn what_runs_there_is_in_the_lists_and_a_session_there_is_reached_by_its_id() {
    let machines = Machines::with([]);
    let (front, there) = (machines.front.path().display(), machines.there.path().display());
    // A state folder of its own, as on another machine.
    let text = format!(
        "[remotes.box]\nconnect = ['env', 'XDG_STATE_HOME={front}/far', '{}', 'remote-server']\nroots = ['{there}']\n\
         choosable = true\n",
        server().display()
    );
    machines.front.write("remotes.toml", &text);
    let mut command = machines.front.server();
    command.arg("--config").arg(machines.front.join("remotes.toml")).arg("--root").arg(machines.front.path());
    let mut client = Wire::connect(command, Era::Modern);
    assert_eq!(client.outcome("list_commands", json!({})).0, json!({"commands": []}));
    let prefix = choose(&mut client);
    let (far, near, agent) = (unique_seconds(), unique_seconds(), unique_seconds());
    let start = |client: &mut Wire, folder: &str, seconds: &str| {
        let arguments = json!({"command": ["sleep", seconds], "working_directory": folder});
        client.outcome("start_command", arguments).0["id"].clone()
    };
    let ids = [start(&mut client, ".", &near), start(&mut client, &prefix, &far)];
    let listed = client.outcome("list_commands", json!({})).0;
    let listed: Vec<Value> =
        listed["commands"].as_array().unwrap().iter().map(|command| command["id"].clone()).collect();
    assert_eq!(listed, ids);
    // Their resource says the same, and each has one.
    let uri = format!("coretools://commands/{}", ids[1]);
    let read = client.request("resources/read", json!({"uri": uri}));
    assert!(read.to_string().contains(&far), "{read}");
    let arguments = json!({"command": ["sleep", agent], "working_directory": prefix});
    let (session, failed) = client.outcome("new_session", arguments);
    assert!(!failed, "{session}");
    let id = session["session_id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("box:"), "{id}");
    let listed = client.text("list_sessions", json!({}));
    assert!(listed.starts_with("1 sessions\n") && listed.contains(&id), "{listed}");
    let log = client.text("logs", json!({"session": id}));
    assert!(log.contains("cursor"), "{log}");
    let error = client.failure("logs", json!({"session": id.trim_start_matches("box:")}));
    assert!(!error.contains("cursor"), "{error}");
    let ended = client.text("end_session", json!({"session_id": id, "grace": 0}));
    assert!(ended.contains(&format!("session_id: {id}")), "{ended}");
    wait_until_gone(&format!("sleep {agent}"), Duration::from_secs(10));
    client.close_input();
    client.wait(Duration::from_secs(10));
    wait_until_gone(&format!("sleep {far}"), Duration::from_secs(10));
}

#[test]
fn the_rules_of_a_role_for_paths_name_every_root_there() {
    let machines = Machines::with([
        ("one/src/a.txt", "first\n"),
        ("data/tmp/b.txt", "second\n"),
        ("data/c.txt", "no\n"),
    ]);
    let there = machines.there.path().display().to_string();
    let text = format!(
        "[remotes.box]\nconnect = ['{}', 'remote-server']\nroots = ['{there}/one', '{there}/data']\nchoosable = true\n",
        server().display()
    );
    let rules = ROLES.replace("[\"src\"]", "[\"src\", \"data:tmp\"]");
    let command = |with_remote: bool| {
        machines.front.write("remotes.toml", &text);
        machines.front.write("roles.toml", &rules);
        let mut command = machines.front.server();
        command.arg("--config").arg(machines.front.join("remotes.toml"));
        command.arg("--policy").arg(machines.front.join("roles.toml")).args(["--role", "far"]);
        match with_remote {
            true => command.args(["--remote", "box"]),
            false => command.arg("--root").arg(machines.front.path()),
        };
        command
    };
    for (with_remote, prefix) in [(true, ""), (false, "box:")] {
        let mut client = Wire::connect(command(with_remote), Era::Modern);
        let path = |path: &str| json!({"path": format!("{prefix}{there}/{path}")});
        assert!(client.text("read_file", path("one/src/a.txt")).contains("first"));
        assert!(client.text("read_file", path("data/tmp/b.txt")).contains("second"));
        let error = client.failure("read_file", path("data/c.txt"));
        assert!(error.contains("refused by policy"), "{error}");
        if with_remote {
            assert!(client.text("read_file", json!({"path": "data:tmp/b.txt"})).contains("second"));
        }
    }
}

#[test]
fn the_id_of_a_background_command_is_enough_to_read_and_stop_it_there() {
    let machines = Machines::with([]);
    let mut client = Wire::connect(command(&machines, None), Era::Modern);
    let prefix = choose(&mut client);
    let (far, near) = (unique_seconds(), unique_seconds());
    let start = |client: &mut Wire, folder: &str, seconds: &str| {
        let line = format!("echo in $PWD; exec sleep {seconds}");
        let arguments = json!({"command": line, "shell": true, "working_directory": folder});
        client.outcome("start_command", arguments).0["id"].as_u64().unwrap()
    };
    let (there, here) = (start(&mut client, &prefix, &far), start(&mut client, ".", &near));
    assert!(there > 1_000_000 && here < 1_000_000, "{there} {here}");
    let read = |client: &mut Wire, id: u64| {
        client.call("read_command_output", json!({"id": id, "wait_ms": 5000})).to_string()
    };
    assert!(read(&mut client, there).contains(machines.there.path().to_str().unwrap()));
    assert!(read(&mut client, here).contains(machines.front.path().to_str().unwrap()));
    client.call("stop_command", json!({"id": there}));
    wait_until_gone(&format!("sleep {far}"), Duration::from_secs(10));
    assert_eq!(alive(&format!("sleep {near}")).len(), 1);
    client.close_input();
    client.wait(Duration::from_secs(5));
    wait_until_gone(&format!("sleep {near}"), Duration::from_secs(10));
}

const ROLES: &str = r#"
version = 1
[roles.far]
allow = ["read_file", "write_file", "use_remote"]
[[roles.far.require]]
id = "SRC"
tools = ["read_file", "write_file"]
read_within = ["src"]
write_within = ["src"]
[roles.near]
allow = ["read_file", "write_file"]
[roles.asked]
allow = ["read_file", "use_remote"]
ask = ["use_remote"]
"#;

#[test]
fn a_role_that_may_not_choose_neither_sees_the_tool_nor_reaches_a_path_there() {
    let machines = Machines::with([("src/a.txt", "there\n"), ("secret.txt", "out\n")]);
    let there = |path: &str| format!("box:{}/{path}", machines.there.path().display());
    let mut near = Wire::connect(command(&machines, Some((ROLES, "near"))), Era::Modern);
    assert!(!names(&mut near).contains(&"use_remote".to_owned()));
    let hidden = near.request("tools/call", json!({"name": "use_remote", "arguments": {"remote": "box"}}));
    assert!(hidden["error"].is_object(), "{hidden}");
    let error = near.failure("read_file", json!({"path": there("src/a.txt")}));
    assert!(error.contains("may not use the remote `box`"), "{error}");
    // A role that may: its rules hold there, before the call by the text and there by the real path. No call of the tool
    // is needed before a prefix that is known.
    let mut far = Wire::connect(command(&machines, Some((ROLES, "far"))), Era::Modern);
    assert!(names(&mut far).contains(&"use_remote".to_owned()));
    assert!(far.text("read_file", json!({"path": there("src/a.txt")})).contains("there"));
    std::os::unix::fs::symlink("../secret.txt", machines.there.join("src/link.txt")).unwrap();
    for path in ["secret.txt", "src/link.txt", "src/../secret.txt"] {
        let error = far.failure("read_file", json!({"path": there(path)}));
        assert!(error.contains("refused by policy: `path`") && !error.contains("out\n"), "{path}: {error}");
    }
    // A remote that nobody may choose is none in paths.
    let closed = format!("closed:{}/src/a.txt", machines.there.path().display());
    let error = far.failure("read_file", json!({"path": closed}));
    assert!(!error.contains("there\n"), "{error}");
    // A person who must be asked was not asked yet.
    let mut asked = Wire::connect(command(&machines, Some((ROLES, "asked"))), Era::Modern);
    let error = asked.failure("read_file", json!({"path": there("src/a.txt")}));
    assert!(error.contains("a person must approve"), "{error}");
}

#[test]
fn every_call_there_is_recorded_and_masked_here() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let machines = Machines::with([("src/key.txt", &*format!("key {secret}\n"))]);
    let audit = machines.front.join("audit.jsonl");
    let mut command = command(&machines, Some((ROLES, "far")));
    command.arg("--audit").arg(&audit);
    let mut client = Wire::connect(command, Era::Modern);
    let prefix = choose(&mut client);
    let text = client.text("read_file", json!({"path": format!("{prefix}/src/key.txt")}));
    assert!(text.contains("[redacted") && !text.contains(secret), "{text}");
    client.failure("read_file", json!({"path": format!("{prefix}/other.txt")}));
    client.close_input();
    client.wait(Duration::from_secs(5));
    let records = std::fs::read_to_string(audit).unwrap();
    let ends: Vec<String> = records
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|record| record["outcome"].is_string())
        .map(|record| format!("{} {} {}", record["tool"], record["decision"], record["outcome"]))
        .collect();
    for end in [
        r#""use_remote" "allowed" "ok""#,
        r#""read_file" "allowed" "ok""#,
        r#""read_file" "refused" "not_run""#,
    ] {
        assert!(ends.iter().any(|found| found == end), "{end} is not in {ends:?}");
    }
}

#[test]
fn without_a_remote_to_choose_or_where_the_selection_leaves_it_out_there_is_no_tool() {
    let machines = Machines::with([("a.txt", "there\n")]);
    let mut plain = Wire::connect(machines.front.server(), Era::Modern);
    assert!(!names(&mut plain).contains(&"use_remote".to_owned()));
    let mut command = command(&machines, None);
    command.args(["--toolsets", "filesystem"]);
    let mut chosen = Wire::connect(command, Era::Modern);
    assert!(!names(&mut chosen).contains(&"use_remote".to_owned()));
    let path = format!("box:{}/a.txt", machines.there.path().display());
    let error = chosen.failure("read_file", json!({"path": path}));
    assert!(!error.contains("there\n"), "{error}");
}

#[test]
fn a_remote_is_a_root_beside_a_folder_here_or_alone() {
    let machines = Machines::with([("a.txt", "there\n")]);
    machines.front.write("a.txt", "here\n");
    machines.front.write("remotes.toml", &text(&machines));
    let there = machines.there.path().display().to_string();
    let with_roots = |roots: &[&str]| {
        let mut command = machines.front.server();
        command.arg("--config").arg(machines.front.join("remotes.toml"));
        for root in roots {
            command.args(["--root", root]);
        }
        command
    };
    let front = machines.front.path().display().to_string();
    let own = format!("sh:exec {} remote-server:{there}", server().display());
    for root in [format!("closed:{there}"), own] {
        let mut both = Wire::connect(with_roots(&[&front, &root]), Era::Modern);
        assert!(both.text("read_file", json!({"path": "a.txt"})).contains("here"));
        assert!(both.text("read_file", json!({"path": format!("{root}/a.txt")})).contains("there"), "{root}");
        let mut alone = Wire::connect(with_roots(&[&root]), Era::Modern);
        assert!(alone.text("read_file", json!({"path": "a.txt"})).contains("there"), "{root}");
    }
    let (code, _, error) = output(with_roots(&["nowhere:/x"]).arg("tools"));
    assert!(code == 2 && error.contains("no such folder here, and no remote of that name"), "{error}");
    let (code, _, error) = output(with_roots(&[&format!("box:{there}")]).args(["policy", "lint"]));
    assert!(code == 2 && error.contains("works on this machine alone"), "{error}");
}

#[test]
fn each_caller_of_mcp_http_chooses_a_remote_of_its_own_which_ends_with_its_token() {
    let machines = Machines::with([]);
    let made = machines.there.path().display();
    let text = format!(
        "[remotes.box]\nconnect = ['sh', '-c', 'cd \"$0\" && exec {} remote-server', '{made}/{{caller}}']\n\
         create = ['sh', '-c', 'mkdir \"$0\" && echo \"of $1\" > \"$0/whose.txt\"', '{made}/{{caller}}', '{{caller}}']\n\
         destroy = ['rm', '-rf', '{made}/{{caller}}']\nroots = ['{made}']\nchoosable = true\n",
        server().display(),
    );
    machines.front.write("remotes.toml", &text);
    let config = machines.front.join("remotes.toml").display().to_string();
    let served = machines.front.join("served");
    std::fs::create_dir_all(&served).unwrap();
    let served = served.display().to_string();
    let mut http = HttpServer::start(&machines.front, &["--config", &config, "--root", &served]);
    let made = || {
        let mut names: Vec<String> = std::fs::read_dir(machines.there.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    for name in ["ada", "bob"] {
        let token = http.token(name, "orchestrator", &[]);
        let prefix = choose(&mut http.connect(&token, Era::Modern));
        // Another connection, without a session: the prefix holds.
        let mut client = http.connect(&token, Era::Modern);
        let whose = client.text("read_file", json!({"path": format!("{prefix}/{name}/whose.txt")}));
        assert_eq!(whose.trim_end(), format!("of {name}"));
    }
    let readonly = http.token("carol", "readonly", &[]);
    assert!(!names(&mut http.connect(&readonly, Era::Modern)).contains(&"use_remote".to_owned()));
    assert_eq!(made(), ["ada", "bob"]);
    assert!(http.tokens(&["revoke", "ada"]).status.success());
    integration_tests::wait_until(Duration::from_secs(20), "the remote of ada is destroyed", || {
        made() == ["bob"]
    });
    http.signal(rustix::process::Signal::TERM);
    http.wait(Duration::from_secs(25));
    assert_eq!(made(), Vec::<String>::new());
}

#[test]
fn a_choice_that_a_person_has_approved_holds_for_the_calls_that_follow() {
    let machines = Machines::with([("src/a.txt", "there\n")]);
    let command = command(&machines, Some((ROLES, "asked")));
    let mut client = Wire::connect_as(command, Era::Initialize("2025-11-25"), json!({"elicitation": {}}));
    let path = format!("box:{}/src/a.txt", machines.there.path().display());
    assert!(client.failure("read_file", json!({"path": path})).contains("a person must approve"));
    let id = client.ask("tools/call", json!({"name": "use_remote", "arguments": {"remote": "box"}}));
    let question = loop {
        let message = client.receive();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let properties = question["params"]["requestedSchema"]["properties"].as_object().unwrap();
    let content: serde_json::Map<String, Value> = properties
        .iter()
        .filter_map(|(name, schema)| {
            let choices = schema["enum"].as_array()?;
            let allow = choices.iter().find(|value| value.to_string().contains("allow"))?;
            Some((name.clone(), allow.clone()))
        })
        .collect();
    client.send(
        &json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}}),
    );
    let answer = client.answer(id);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert!(client.text("read_file", json!({"path": path})).contains("there"));
}
