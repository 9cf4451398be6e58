//! The limits of one caller, and what they leave to another.

use crate::SOON;
use integration_tests::{Era, Http, HttpServer, Project, Reply, alive, unique_seconds, wait_until};
use serde_json::json;
use std::time::{Duration, Instant};

fn server(config: &str, project: &Project, outside: &Project) -> HttpServer {
    let path = outside.join("coretools.toml");
    std::fs::write(&path, config).unwrap();
    let audit = outside.join("audit.jsonl");
    HttpServer::start(project, &["--config", path.to_str().unwrap(), "--audit", audit.to_str().unwrap()])
}

#[test]
fn beyond_its_rate_a_caller_is_told_when_to_come_again_and_another_is_served() {
    let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
    let server = server("", &project, &outside);
    let eager = server.token("eager", "dev", &["--calls-per-second", "2"]);
    let other = server.token("other", "dev", &[]);
    for era in Era::BOTH {
        let mut client = Http::silent(server.address(), Some(&eager), Era::Modern);
        let replies: Vec<Reply> = (0..40).map(|_| client.reply("tools/list", json!({}))).collect();
        let refused: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 429).collect();
        assert!(refused.len() > 10, "{era:?}: {} of 40 were refused", refused.len());
        let wait: u64 = refused[0].header("retry-after").unwrap().parse().unwrap();
        assert!(wait >= 1);
        assert!(
            refused[0].message()["error"]["message"].as_str().unwrap().contains("2 requests in a second")
        );
        server.connect(&other, era).text("read_file", json!({"path": "a.txt"}));
        wait_until(SOON, "it may again", || client.reply("tools/list", json!({})).status == 200);
    }
    let audit = std::fs::read_to_string(outside.join("audit.jsonl")).unwrap();
    assert!(audit.contains("\"principal\":\"eager\"") && audit.contains("http: rate"), "{audit}");
}

/// A prompt or a resource counts by the tools that it calls.
#[test]
fn prompts_resources_and_suggestions_count_among_the_calls_of_their_caller() {
    let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
    let server = server("[http]\ncalls_in_flight = 1\nqueue = 0\n", &project, &outside);
    let (busy, quiet) = (server.token("busy", "dev", &[]), server.token("quiet", "dev", &[]));
    let requests = [
        ("prompts/get", json!({"name": "work_as_dev"}), "not run"),
        ("prompts/get", json!({"name": "fix_test", "arguments": {"test": "x"}}), "1 calls running"),
        ("resources/read", json!({"uri": "coretools://context"}), "not run"),
    ];
    let seconds = unique_seconds();
    let call = json!({"name": "run_command", "arguments": {"command": ["sleep", seconds]}});
    let running = server.connect(&busy, Era::Modern).begin("tools/call", call);
    wait_until(SOON, "it runs", || alive(&seconds).len() == 1);
    for era in Era::BOTH {
        for (method, params, reason) in &requests {
            let reply = server.connect(&busy, era).reply(method, params.clone());
            let error = reply.message()["error"]["message"].as_str().unwrap_or_default().to_owned();
            assert!(error.contains(reason), "{era:?} {method}: {reply:?}");
            let served = server.connect(&quiet, era).reply(method, params.clone());
            assert!(served.message()["result"].is_object(), "{era:?} {method}: {served:?}");
        }
        // The list of commands needs no place, so its resource needs none.
        let reply =
            server.connect(&busy, era).reply("resources/read", json!({"uri": "coretools://commands"}));
        assert!(reply.message()["result"].is_object(), "{era:?}: {reply:?}");
    }
    drop(running);
}

#[test]
fn calls_wait_for_a_place_and_a_line_has_an_end() {
    let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
    let server = server("[http]\ncalls_in_flight = 2\nqueue = 2\nqueue_ms = 60000\n", &project, &outside);
    let (busy, quiet) = (server.token("busy", "dev", &[]), server.token("quiet", "dev", &[]));
    let seconds = unique_seconds();
    let mut client = server.connect(&busy, Era::Modern);
    let call = json!({"name": "run_command", "arguments": {"command": ["sleep", seconds]}});
    let running: Vec<_> = (0..2).map(|_| client.begin("tools/call", call.clone())).collect();
    wait_until(SOON, "they run", || alive(&seconds).len() == 2);
    let read = json!({"name": "read_file", "arguments": {"path": "a.txt"}});
    let mut waiting: Vec<_> = (0..5).map(|_| client.begin("tools/call", read.clone())).collect();
    let mut refused = 0;
    wait_until(SOON, "those for whom there is no room in the line are turned away", || {
        waiting.retain_mut(|stream| {
            stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            if stream.peek(&mut [0]).is_err() {
                return true;
            }
            stream.set_read_timeout(Some(SOON)).unwrap();
            let reply = Reply::try_from(stream).unwrap();
            assert_eq!(reply.status, 429, "{reply:?}");
            refused += 1;
            false
        });
        refused == 3
    });
    assert_eq!(alive(&seconds).len(), 2);
    // What needs no place is served, and so is another.
    client.call("list_commands", json!({}));
    let began = Instant::now();
    server.connect(&quiet, Era::Modern).text("read_file", json!({"path": "a.txt"}));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    drop(running);
    for stream in &mut waiting {
        stream.set_read_timeout(Some(SOON)).unwrap();
        assert_eq!(Reply::try_from(stream).unwrap().message()["result"]["isError"], false);
    }
}

#[test]
fn a_caller_that_has_had_its_bytes_waits_for_more() {
    let (project, outside) = (Project::with([("a.txt", &*"a".repeat(60_000))]), Project::empty());
    let server = server("", &project, &outside);
    let token = server.token("ada", "dev", &["--bytes-per-minute", "100000"]);
    let mut client = Http::silent(server.address(), Some(&token), Era::Modern);
    let read = json!({"name": "read_file", "arguments": {"path": "a.txt", "limit": 100_000}});
    let statuses: Vec<u16> = (0..8).map(|_| client.reply("tools/call", read.clone()).status).collect();
    assert!(statuses.contains(&429) && statuses[0] == 200, "{statuses:?}");
}

#[test]
fn one_callers_background_commands_leave_anothers_places_alone() {
    let (project, outside) = (Project::empty(), Project::empty());
    let server = server("", &project, &outside);
    let (greedy, other) =
        (server.token("greedy", "dev", &["--processes", "3"]), server.token("other", "dev", &[]));
    let seconds = unique_seconds();
    let mut client = server.connect(&greedy, Era::Modern);
    for _ in 0..3 {
        client.text("start_command", json!({"command": ["sleep", seconds]}));
    }
    let said = client.failure("start_command", json!({"command": ["sleep", seconds]}));
    assert!(said.contains('3'), "{said}");
    server.connect(&other, Era::Modern).text("start_command", json!({"command": ["sleep", seconds]}));
    assert_eq!(alive(&seconds).len(), 4);
}

#[test]
fn every_call_and_every_refusal_is_a_line_with_its_principal() {
    let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
    let server = server("", &project, &outside);
    let token = server.token("ada", "readonly", &[]);
    for era in Era::BOTH {
        let mut client = server.connect(&token, era);
        client.text("read_file", json!({"path": "a.txt"}));
        client.reply(
            "tools/call",
            json!({"name": "write_file", "arguments": {"path": "x", "content": "secret words"}}),
        );
    }
    server.get("/mcp", None);
    let request = "GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    integration_tests::exchange(server.address(), request.as_bytes());
    let audit = std::fs::read_to_string(outside.join("audit.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> =
        audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |tool: &str, decision: &str| {
        lines
            .iter()
            .filter(|line| line["tool"] == tool && line["decision"] == decision && line["principal"] == "ada")
            .count()
    };
    assert_eq!((count("read_file", "allowed"), count("write_file", "hidden")), (2, 2), "{audit}");
    assert!(lines.iter().any(|line| line["session"].is_string()), "{audit}");
    let strangers: Vec<_> = lines.iter().filter(|line| line["principal"] == "stranger:127.0.0.1").collect();
    assert!(strangers.iter().any(|line| line["rule"] == "http: no_token"), "{audit}");
    assert!(strangers.iter().any(|line| line["rule"] == "http: host"), "{audit}");
    assert!(!audit.contains("secret words"));
}

#[test]
fn a_callers_programs_are_counted_in_calls_and_in_the_background_together() {
    let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
    let server = server("[http]\nqueue_ms = 500\n", &project, &outside);
    let (greedy, other) =
        (server.token("greedy", "dev", &["--processes", "2"]), server.token("other", "dev", &[]));
    let seconds = unique_seconds();
    let sleep = json!({"command": ["sleep", seconds]});
    for era in Era::BOTH {
        let mut client = server.connect(&greedy, era);
        let started = client.call("start_command", sleep.clone());
        let running = client.begin("tools/call", json!({"name": "run_command", "arguments": sleep}));
        wait_until(SOON, "both run", || alive(&seconds).len() == 2);
        for tool in ["run_command", "git_status", "build"] {
            let reply = client.reply("tools/call", json!({"name": tool, "arguments": if tool == "run_command" { sleep.clone() } else { json!({}) }}));
            assert_eq!(reply.status, 429, "{tool}: {reply:?}");
            assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
            let said = reply.message()["error"]["message"].as_str().unwrap().to_owned();
            assert!(said.contains("2 programs at once"), "{tool}: {said}");
        }
        assert!(client.failure("start_command", sleep.clone()).contains("2 programs at once"));
        assert_eq!(alive(&seconds).len(), 2);
        // What runs none is served, and so is another caller.
        client.text("read_file", json!({"path": "a.txt"}));
        server.connect(&other, era).text("run_command", json!({"command": ["echo", "x"]}));
        // Who goes away leaves no place taken.
        drop(running);
        client.call("stop_command", json!({"id": started["structuredContent"]["id"], "grace_ms": 0}));
        wait_until(SOON, "they end", || alive(&seconds).is_empty());
        wait_until(SOON, "both places are free", || {
            let sleep =
                |seconds| json!({"name": "run_command", "arguments": {"command": ["sleep", seconds]}});
            let mut one = client.begin("tools/call", sleep("1"));
            let another = client.reply("tools/call", sleep("0"));
            let one = Reply::try_from(&mut one).unwrap();
            (one.status, another.status) == (200, 200)
        });
    }
}

#[test]
fn one_floods_the_server_with_programs_and_the_other_is_served() {
    let (project, outside) = (Project::empty(), Project::empty());
    let config = "[http]\nprocesses = 3\nmax_processes = 4\nqueue_ms = 60000\n";
    let server = server(config, &project, &outside);
    let [greedy, quiet, third] = ["greedy", "quiet", "third"].map(|name| server.token(name, "dev", &[]));
    let seconds = unique_seconds();
    let mut client = server.connect(&greedy, Era::Modern);
    let sleep = json!({"command": ["sleep", seconds]});
    let call = json!({"name": "run_command", "arguments": sleep});
    let flood: Vec<_> = (0..12).map(|_| client.begin("tools/call", call.clone())).collect();
    wait_until(SOON, "as many run as may", || alive(&seconds).len() == 3);
    let began = Instant::now();
    server.connect(&quiet, Era::Modern).text("run_command", json!({"command": ["echo", "x"]}));
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert_eq!(alive(&seconds).len(), 3);
    // All that the server may run.
    let mut quiet = server.connect(&quiet, Era::Modern);
    quiet.text("start_command", sleep.clone());
    let said = server.connect(&third, Era::Modern).failure("start_command", sleep);
    assert!(said.contains("the server runs all") && said.contains("1000 ms"), "{said}");
    let figures = server.get("/metrics", Some(&greedy)).body;
    assert!(figures.contains("\ncoretools_calls_waiting 9\n"), "{figures}");
    drop(flood);
}

#[test]
fn beyond_the_servers_bytes_the_one_waits_who_has_more_than_its_share() {
    let (project, outside) =
        (Project::with([("a.txt", "a"), ("long.txt", &*"a".repeat(60_000))]), Project::empty());
    let server = server("[http]\nmax_bytes_per_second = 50000\n", &project, &outside);
    let [greedy, quiet] = ["greedy", "quiet"].map(|name| server.token(name, "dev", &[]));
    let mut client = Http::silent(server.address(), Some(&greedy), Era::Modern);
    let mut other = server.connect(&quiet, Era::Modern);
    let read = json!({"name": "read_file", "arguments": {"path": "long.txt", "limit": 100_000}});
    let mut refused = 0;
    wait_until(SOON, "the greedy one is refused", || {
        let reply = client.reply("tools/call", read.clone());
        if reply.status == 429 {
            assert!(reply.message()["error"]["message"].as_str().unwrap().contains("its share"), "{reply:?}");
            assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
            refused += 1;
        }
        other.text("read_file", json!({"path": "a.txt"}));
        refused >= 3
    });
    wait_until(SOON, "it is served again", || client.reply("tools/call", read.clone()).status == 200);
}

#[test]
fn the_calls_that_one_call_makes_take_the_callers_places_and_its_rate() {
    let (project, outside) = (Project::with([("a.txt", "words")]), Project::empty());
    let server = server("[http]\nqueue_ms = 500\n", &project, &outside);
    let (greedy, other) =
        (server.token("greedy", "dev", &["--processes", "1"]), server.token("other", "dev", &[]));
    let seconds = unique_seconds();
    let sleep = json!({"tool": "run_command", "arguments": {"command": ["sleep", seconds]}});
    let read = json!({"tool": "read_file", "arguments": {"path": "a.txt"}});
    for era in Era::BOTH {
        let mut client = server.connect(&greedy, era);
        let several = json!({"name": "call_tools", "arguments": {"calls": [sleep]}});
        let running: Vec<_> = (0..3).map(|_| client.begin("tools/call", several.clone())).collect();
        wait_until(SOON, "one runs", || alive(&seconds).len() == 1);
        // It has the one place, whoever asks for it, and what needs none is served.
        let said = client.failure("call_tools", json!({"calls": [read, sleep, read]}));
        assert!(said.contains("words") && said.contains("==> 2. run_command: failed"), "{said}");
        assert!(said.contains("not run: ") && said.contains("1 programs at once"), "{said}");
        assert_eq!(alive(&seconds).len(), 1);
        let alone = json!({"name": "run_command", "arguments": {"command": ["sleep", seconds]}});
        assert_eq!(client.reply("tools/call", alone).status, 429);
        let echo = json!({"tool": "run_command", "arguments": {"command": ["echo", "x"]}});
        server.connect(&other, era).text("call_tools", json!({"calls": [echo]}));
        // Who goes away leaves no place taken.
        drop(running);
        wait_until(SOON, "it ends", || alive(&seconds).is_empty());
        wait_until(SOON, "the place is free", || {
            client.call("call_tools", json!({"calls": [echo]}))["isError"] == false
        });
    }
    // Calls inside one wait for the rate of their caller.
    let paced = server.token("paced", "dev", &["--calls-per-second", "4"]);
    let mut client = server.connect(&paced, Era::Modern);
    let began = Instant::now();
    let text = client.text("call_tools", json!({"calls": vec![read; 16]}));
    assert_eq!(text.matches("words").count(), 16, "{text}");
    // Eight are saved up at most.
    assert!(began.elapsed() >= Duration::from_millis(1900), "{:?}", began.elapsed());
    let audit = std::fs::read_to_string(outside.join("audit.jsonl")).unwrap();
    let lines = audit.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let reads = lines.filter(|line| line["tool"] == "read_file" && line["principal"] == "paced").count();
    assert_eq!(reads, 16, "{audit}");
}

#[test]
fn what_commands_leave_running_counts_among_their_callers_programs() {
    let (project, outside) = (Project::empty(), Project::empty());
    let server = server("[http]\nprocesses = 2\n", &project, &outside);
    let token = server.token("ada", "dev", &[]);
    let (mut client, seconds) = (server.connect(&token, Era::Modern), unique_seconds());
    let leave = json!({"command": ["sh", "-c", format!("sleep {seconds} < /dev/null > /dev/null 2>&1 &")]});
    for _ in 0..2 {
        let text = client.text("run_command", leave.clone());
        assert!(text.contains("left running"), "{text}");
        // One that goes on, and the command itself.
        let text = client.text("run_command", leave.clone());
        assert!(text.contains("ended, and not left running"), "{text}");
        wait_until(SOON, "only what may go on does", || alive(&seconds).len() == 1);
        let listed = client.call("list_commands", json!({}))["structuredContent"]["commands"].clone();
        let running =
            listed.as_array().unwrap().iter().find(|command| command["state"] == "running").unwrap();
        client.text("stop_command", json!({"id": running["id"]}));
    }
}

/// A program that prints without pause, and has its terminal repeat a character 65,535 times now and then.
const FLOOD: &str = "import os\npiece = b'flood\\r\\n' * 100 + b'x' + b'\\x1b[65535b\\r\\n'\nwhile True:\n    os.write(1, piece)\n";

#[test]
fn terminals_that_are_flooded_hold_up_nobody() {
    let (project, outside) = (Project::with([("a.txt", "a"), ("flood.py", FLOOD)]), Project::empty());
    let server = server("", &project, &outside);
    let (greedy, other) = (server.token("greedy", "dev", &[]), server.token("other", "dev", &[]));
    let mut flooding = server.connect(&greedy, Era::Modern);
    for _ in 0..6 {
        flooding.text("start_command", json!({"command": ["python3", "flood.py"], "pty": true}));
    }
    wait_until(SOON, "the screens are drawn", || {
        flooding.text("read_command_output", json!({"id": 6})).contains("flood")
    });
    let mut client = server.connect(&other, Era::Modern);
    let mut times: Vec<Duration> = (0..15)
        .map(|_| {
            let began = Instant::now();
            assert_eq!(client.text("read_file", json!({"path": "a.txt"})), "a");
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    assert!(times[times.len() / 2] < Duration::from_millis(500), "{times:?}");
    // Its own calls are answered too, and the programs end.
    for id in 1..=6 {
        flooding.text("stop_command", json!({"id": id}));
    }
    let memory = integration_tests::peak_memory_kib(server.pid());
    assert!(memory < 400 * 1024, "{memory} KiB");
}
