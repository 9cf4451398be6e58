//! The answers of every route, and who gets them.

use crate::SOON;
use integration_tests::{Ask, Era, Http, HttpServer, Project, exchange, wait_until};
use serde_json::json;

#[test]
fn both_eras_list_and_call_and_progress_is_streamed() {
    let project = Project::with([("a.txt", "hello\n")]);
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    for era in Era::all() {
        let mut client = server.connect(&token, era);
        assert!(client.listed().contains("run_command"), "{era:?}");
        assert_eq!(client.text("read_file", json!({"path": "a.txt"})), "hello\n", "{era:?}");
        let failure = client.failure("read_file", json!({"path": "../x"}));
        assert!(failure.contains("outside"), "{failure}");
        let script = "for i in 1 2 3; do echo step $i; sleep 1; done";
        let params = json!({
            "name": "run_command", "arguments": {"command": ["sh", "-c", script]},
            "_meta": {"progressToken": "p"},
        });
        let reply = client.reply("tools/call", params);
        let messages = reply.messages();
        let steps: Vec<_> =
            messages.iter().filter(|message| message["method"] == "notifications/progress").collect();
        assert!(!steps.is_empty(), "{era:?}: {reply:?}");
        assert!(steps[0]["params"]["message"].as_str().unwrap().starts_with("step"), "{era:?}: {steps:?}");
        assert!(messages.last().unwrap()["result"].is_object(), "{era:?}: {messages:?}");
    }
}

#[test]
fn who_is_not_known_gets_health_and_nothing_else() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    assert_eq!(server.get("/healthz", None).status, 200);
    assert_eq!(server.get("/readyz", None).status, 200);
    for (path, status) in [
        ("/", 404),
        ("/mcp", 401),
        ("/mcp/", 404),
        ("/metrics", 401),
        ("/ui", 401),
        ("/ui/live.js", 401),
        ("/uix", 404),
        ("/sse", 404),
        ("/register", 404),
        ("/authorize", 404),
        ("/token", 404),
        ("/.well-known/oauth-protected-resource", 404),
        ("/.well-known/oauth-protected-resource/mcp", 404),
        ("/.well-known/oauth-authorization-server", 404),
        ("/.well-known/oauth-authorization-server/mcp", 404),
        ("/.well-known/openid-configuration", 404),
        ("/mcp/.well-known/openid-configuration", 404),
        ("/healthz/../mcp", 404),
        ("//mcp", 404),
        ("/MCP", 404),
        ("/healthz?token=x", 200),
        ("/mcp?access_token=x", 401),
    ] {
        let reply = server.get(path, None);
        assert_eq!(reply.status, status, "{path}: {reply:?}");
        // Clients read what they find at these paths as JSON.
        let is_looked_up =
            path.contains("/.well-known/") || ["/register", "/authorize", "/token"].contains(&path);
        assert_eq!(
            is_looked_up,
            reply.header("content-type") == Some("application/json"),
            "{path}: {reply:?}"
        );
        let challenge = reply.header("www-authenticate").unwrap_or_default();
        assert_eq!(challenge.starts_with("Bearer"), status == 401, "{path}: {reply:?}");
    }
    for method in ["PUT", "PATCH", "OPTIONS", "TRACE", "HEAD", "DELETE", "POST", "BREW"] {
        for path in ["/mcp", "/metrics", "/nowhere"] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            if method == "HEAD" {
                continue;
            }
            let reply = exchange(server.address(), request.as_bytes());
            assert!(matches!(reply.status, 401 | 404 | 405), "{method} {path}: {reply:?}");
        }
    }
    // Every method of the protocol, also those that a client may use before it says who it is.
    for era in Era::BOTH {
        let mut stranger = Http::silent(server.address(), None, era);
        for method in ["initialize", "server/discover", "tools/list", "tools/call", "ping", "nonsense"] {
            let reply = stranger.reply(method, json!({}));
            assert_eq!(reply.status, 401, "{method}: {reply:?}");
            assert!(!reply.body.contains("read_file"), "{method}: {reply:?}");
        }
    }
}

#[test]
fn other_names_and_other_pages_are_refused_on_every_route() {
    let project = Project::empty();
    let server =
        HttpServer::start(&project, &["--hosts", "tools.example", "--origins", "https://app.example"]);
    let token = server.token("ada", "dev", &[]);
    let ask = |path: &str, headers: &str| {
        let request = format!(
            "GET {path} HTTP/1.1\r\n{headers}Authorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        exchange(server.address(), request.as_bytes()).status
    };
    for path in
        ["/healthz", "/readyz", "/metrics", "/mcp", "/nowhere", "/.well-known/oauth-protected-resource"]
    {
        for headers in [
            "Host: evil.example\r\n",
            "Host: localhost.evil.example\r\n",
            "Host: localhost\r\nOrigin: http://evil.example\r\n",
            "Host: localhost\r\nOrigin: null\r\n",
            "Host: tools.example\r\nOrigin: https://app.example.evil.example\r\n",
        ] {
            assert_eq!(ask(path, headers), 403, "{path} {headers:?}");
        }
        for headers in ["", "Host: localhost\r\nHost: evil.example\r\n", "Host: a@localhost\r\n"] {
            assert_eq!(ask(path, headers), 400, "{path} {headers:?}");
        }
    }
    for headers in [
        "Host: localhost\r\n",
        "Host: 127.0.0.1:1234\r\n",
        "Host: [::1]\r\n",
        "Host: tools.example\r\n",
        "Host: localhost\r\nOrigin: http://localhost:3000\r\n",
        "Host: tools.example\r\nOrigin: https://app.example\r\n",
    ] {
        assert_eq!(ask("/healthz", headers), 200, "{headers:?}");
    }
}

#[test]
fn a_role_can_be_narrowed_by_a_header_and_not_widened() {
    let project = Project::with([("a.txt", "a")]);
    let server = HttpServer::start(&project, &[]);
    let (dev, readonly) = (server.token("dev", "dev", &[]), server.token("ro", "readonly", &[]));
    for era in Era::BOTH {
        let names = |token: &str, role: &str| {
            let mut client = server.connect(token, era);
            client.headers = format!("X-CoreTools-Role: {role}\r\n");
            client.listed()
        };
        let plain = server.connect(&readonly, era).listed();
        assert_eq!(names(&dev, "readonly"), plain, "{era:?}");
        assert_eq!(names(&readonly, "orchestrator"), plain, "{era:?}");
        assert_eq!(names(&dev, "no-such-role").len(), 1, "{era:?}");
        let mut twice = server.connect(&readonly, era);
        twice.headers = "X-CoreTools-Role: dev\r\nX-CoreTools-Role: readonly\r\n".to_owned();
        assert_eq!(twice.reply("tools/list", json!({})).status, 400);
    }
}

#[test]
fn a_changed_policy_is_told_to_those_who_listen_and_holds_for_all() {
    let (project, outside) = (Project::empty(), Project::empty());
    let policy = outside.join("roles.toml");
    let roles = |allow: &str| {
        format!("version = 1\n[roles.minimal]\nallow = [\"get_diagnostics\"]\n[roles.t]\nallow = [{allow}]\n")
    };
    let put = |text: String| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(&policy, text).unwrap();
        std::fs::set_permissions(&policy, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    put(roles("\"read_file\""));
    let server = HttpServer::start(&project, &["--policy", policy.to_str().unwrap()]);
    let token = server.token("t", "t", &[]);
    let mut client = server.connect(&token, Era::Modern);
    assert_eq!(client.listed().len(), 1);
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut stream = client.begin("subscriptions/listen", params);
    put(roles("\"read_file\", \"write_file\""));
    wait_until(SOON, "the new policy holds", || client.listed().len() == 2);
    use std::io::Read;
    let mut heard = String::new();
    wait_until(SOON, "the change is told", || {
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).unwrap();
        heard.push_str(&String::from_utf8_lossy(&bytes[..read]));
        heard.contains("notifications/tools/list_changed")
    });
}
