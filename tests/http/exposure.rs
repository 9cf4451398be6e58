//! Configurations with which a server refuses to start, before it serves anybody.

use integration_tests::{Ask, Era, Http, HttpServer, Project, Reply, require};
use serde_json::json;
use std::io::Write;
use std::os::unix::net::UnixStream;

#[test]
fn without_a_way_to_know_anybody_there_is_no_server() {
    let said = HttpServer::refuses(&Project::empty(), &[]);
    assert!(said.contains("token new"), "{said}");
}

#[test]
fn another_address_than_loopback_needs_tokens_and_tls_or_a_proxy() {
    let (project, outside) = (Project::empty(), Project::empty());
    let tokens = outside.join("tokens.toml");
    let tokens = tokens.to_str().unwrap();
    let made = HttpServer::program(&project)
        .args(["--tokens", tokens, "token", "new", "--name", "a", "--role", "dev"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    for (arguments, words) in [
        (vec!["--listen", "0.0.0.0:0", "--anonymous-role", "dev"], "everybody who can connect"),
        (
            vec!["--listen", "127.0.0.1:0", "--anonymous-role", "dev", "--behind-proxy", "127.0.0.1"],
            "a proxy",
        ),
        (vec!["--listen", "0.0.0.0:0", "--peer", "*=dev"], "callers could not be identified"),
        (vec!["--listen", "0.0.0.0:0", "--tokens", tokens], "on their way"),
        (vec!["--listen", "[::]:0", "--tokens", tokens], "on their way"),
        (
            vec!["--listen", "127.0.0.1:0", "--tokens", tokens, "--metrics-listen", "0.0.0.0:0"],
            "not on loopback",
        ),
        (vec!["--listen", "localhost", "--tokens", tokens], "is not an address to listen on"),
        (vec!["--listen", "127.0.0.1:0", "--anonymous-role", "nobody"], "declares no role `nobody`"),
        (vec!["--listen", "127.0.0.1:0", "--tokens", "/nonexistent/tokens"], "/nonexistent/tokens"),
        (vec!["--listen", "127.0.0.1:0", "--tokens", tokens, "--tls-key", tokens], "both"),
    ] {
        let said = HttpServer::refuses(&project, &arguments);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    let inside = project.join("tokens.toml");
    std::fs::copy(tokens, &inside).unwrap();
    let said = HttpServer::refuses(&project, &["--tokens", inside.to_str().unwrap()]);
    assert!(said.contains("lies in a root"), "{said}");
}

#[test]
fn behind_a_proxy_nobody_else_may_connect() {
    let project = Project::empty();
    let server =
        HttpServer::start(&project, &["--listen", "0.0.0.0:0", "--behind-proxy", "10.1.2.3", "--hosts", "x"]);
    let stream = std::net::TcpStream::connect(("127.0.0.1", server.address().port())).unwrap();
    let mut stream = stream;
    let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(Reply::try_from(&mut stream).is_err(), "an answer came");
    let server = HttpServer::start(
        &project,
        &["--listen", "0.0.0.0:0", "--behind-proxy", "127.0.0.0/8", "--hosts", "x"],
    );
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.address().port())).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert_eq!(Reply::try_from(&mut stream).unwrap().status, 200);
}

#[test]
fn nobody_by_name_gets_the_role_that_the_operator_gives_to_everybody() {
    let project = Project::with([("a.txt", "a")]);
    let server = HttpServer::start(&project, &["--anonymous-role", "readonly"]);
    for era in Era::BOTH {
        let mut client = Http::connect(server.address(), None, era);
        assert_eq!(client.text("read_file", json!({"path": "a.txt"})), "a");
        assert!(!client.listed().contains("write_file"));
        // What is presented must hold.
        let mut client = Http::silent(server.address(), Some("ctk_wrong"), era);
        assert_eq!(client.reply("tools/list", json!({})).status, 401);
    }
}

#[test]
fn the_user_behind_a_unix_socket_is_known() {
    let (project, outside) = (Project::with([("a.txt", "a")]), Project::empty());
    let path = outside.join("socket");
    let listen = format!("unix:{}", path.display());
    let uid = rustix::process::geteuid().as_raw();
    let peer = format!("{}=qa,{uid}=readonly", uid + 1);
    let server = HttpServer::start(&project, &["--listen", &listen, "--peer", &peer]);
    let ask = |token: &str| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
        }}})
        .to_string();
        let mut stream = UnixStream::connect(&path).unwrap();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: tools/list\r\nAccept: application/json, text/event-stream\r\n{token}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        // At once: who is refused by the head alone reads no more.
        stream.write_all(request.as_bytes()).unwrap();
        integration_tests::read_reply(&mut stream).unwrap()
    };
    let reply = ask("");
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.body.contains("read_file") && !reply.body.contains("write_file"), "{reply:?}");
    assert_eq!(ask("Authorization: Bearer ctk_x\r\n").status, 401);
    drop(server);
    // Killed, it has left its socket, and the next server takes its place.
    assert!(path.exists());
    let other = format!("{}=qa", uid + 1);
    let mut server = HttpServer::start(&project, &["--listen", &listen, "--peer", &other]);
    assert_eq!(ask("").status, 401);
    server.signal(rustix::process::Signal::TERM);
    assert!(server.wait(crate::SOON).success());
    assert!(!path.exists(), "the socket is left");
}

#[test]
fn programs_do_not_read_what_the_server_alone_reads() {
    let project = Project::empty();
    // A folder that programs may read, as they may read /etc.
    let home = Project::with([(".rustup/settings.toml", "kept = 1\n")]);
    let (config, settings) = (home.join(".rustup/coretools.toml"), home.join(".rustup/settings.toml"));
    let database = format!("[http]\naudit_database = \"sqlite:{}\"\n", home.join("audit.db").display());
    std::fs::write(&config, database).unwrap();
    let variables = [("HOME", home.path().to_str().unwrap())];
    let server = HttpServer::start_in(&project, &["--config", config.to_str().unwrap()], &variables);
    let mut client = server.connect(&server.token("ada", "dev", &[]), Era::Modern);
    let fenced = client.text("get_diagnostics", json!({})).contains("Landlock ABI");
    if require(fenced.then_some(()), "no Landlock in this kernel").is_none() {
        return;
    }
    let mut read = |file| client.call("run_command", json!({"command": ["cat", file]}));
    assert_eq!(read(&settings)["structuredContent"]["stdout"], "kept = 1\n");
    let denied = read(&config);
    assert_eq!(denied["isError"], true, "{denied}");
    // Behind Landlock it may not be opened; in a mount namespace it is not there.
    let text = denied.to_string();
    assert!(text.contains("Permission denied") || text.contains("No such file"), "{denied}");
}

#[test]
fn a_token_in_a_root_is_made_with_a_note_and_its_folder_too() {
    let (project, outside) = (Project::empty(), Project::empty());
    let make = |file: &std::path::Path| {
        let mut command = project.server_as(integration_tests::http_server());
        command.args([
            "--tokens",
            file.to_str().unwrap(),
            "token",
            "new",
            "--name",
            "ci",
            "--role",
            "worker",
        ]);
        command.output().unwrap()
    };
    let inside = make(&project.join("tokens.toml"));
    let said = String::from_utf8_lossy(&inside.stderr).into_owned();
    assert!(
        inside.status.success() && said.contains("note: a server with this root would not start"),
        "{said}"
    );
    assert!(said.contains("~/.config/mcp-http") && said.contains("--root"), "{said}");
    let elsewhere = make(&outside.join("deep/folder/tokens.toml"));
    let said = String::from_utf8_lossy(&elsewhere.stderr).into_owned();
    assert!(elsewhere.status.success() && !said.contains("note"), "{said}");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(outside.join("deep/folder")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o700);
}
