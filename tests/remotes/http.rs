//! `mcp-http`: each caller has a remote of its own, by the template that its token names.

use crate::Machines;
use integration_tests::{Era, HttpServer, Project, server, wait_until};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// A server with the template `box`: a folder for each caller, which `create` makes and `destroy` removes.
fn start(machines: &Machines, roles: Option<&str>) -> HttpServer {
    let made = machines.there.path().display();
    let text = format!(
        "[remotes.box]\nconnect = ['sh', '-c', 'cd \"$0\" && exec {program} remote-server', '{made}/{{caller}}']\n\
         create = ['sh', '-c', 'mkdir \"$0\" && echo \"of $1\" > \"$0/whose.txt\"', '{made}/{{caller}}', '{{caller}}']\n\
         destroy = ['rm', '-rf', '{made}/{{caller}}']\n",
        program = server().display(),
    );
    machines.front.write("remotes.toml", &text);
    let config = machines.front.join("remotes.toml").display().to_string();
    let served = machines.front.join("served");
    std::fs::create_dir_all(&served).unwrap();
    let served = served.display().to_string();
    let mut arguments = vec!["--config", &config, "--root", &served];
    let policy = machines.front.join("roles.toml").display().to_string();
    if let Some(roles) = roles {
        machines.front.write("roles.toml", roles);
        arguments.extend(["--policy", &policy]);
    }
    HttpServer::start(&machines.front, &arguments)
}

/// Makes a token for the remote `box`, which the server knows when this returns.
fn token(server: &HttpServer, machines: &Machines, name: &str) -> String {
    let config = machines.front.join("remotes.toml").display().to_string();
    server.token(name, "orchestrator", &["--config", &config, "--remote", "box"])
}

fn made(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn each_caller_works_on_a_remote_of_its_own_which_ends_with_its_token() {
    let machines = Machines { front: Project::empty(), there: Project::empty() };
    let mut server = start(&machines, None);
    let tokens = ["ada", "bob"].map(|name| (name, token(&server, &machines, name)));
    let local = server.token("carol", "orchestrator", &[]);
    for (name, token) in &tokens {
        for era in Era::BOTH {
            let mut client = server.connect(token, era);
            assert_eq!(
                client.text("read_file", json!({"path": "whose.txt"})).trim_end(),
                format!("of {name}")
            );
        }
    }
    assert_eq!(made(machines.there.path()), ["ada", "bob"]);
    // One caller writes, and neither the other nor a caller of this machine sees it.
    server.connect(&tokens[0].1, Era::Modern).text("write_file", json!({"path": "a.txt", "content": "x"}));
    assert!(machines.there.join("ada/a.txt").exists() && !machines.there.join("bob/a.txt").exists());
    let mut carol = server.connect(&local, Era::Modern);
    assert_eq!(carol.call("read_file", json!({"path": "whose.txt"}))["isError"], true);
    let revoked = server.tokens(&["revoke", "ada"]);
    assert!(revoked.status.success());
    wait_until(Duration::from_secs(20), "the remote of the revoked token is destroyed", || {
        made(machines.there.path()) == ["bob"]
    });
    server.signal(rustix::process::Signal::TERM);
    server.wait(Duration::from_secs(25));
    assert_eq!(made(machines.there.path()), Vec::<String>::new());
}

#[test]
fn a_caller_is_told_to_a_remote_by_its_roles_alone() {
    let machines = Machines { front: Project::empty(), there: Project::empty() };
    let server = start(&machines, None);
    let token = token(&server, &machines, "ada");
    let mut client = server.connect(&token, Era::Modern);
    let environment = client.call("run_command", json!({"command": "env"})).to_string();
    assert!(!environment.contains(&token) && !environment.contains("ctk_"), "{environment}");
    // A token with a remote that is not configured is refused when it is made.
    let unknown = server.tokens(&["new", "--name", "x", "--role", "dev", "--remote", "nowhere"]);
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(unknown.status.code() == Some(2) && said.contains("[remotes.nowhere]"), "{said}");
    let listed = String::from_utf8(server.tokens(&["list"]).stdout).unwrap();
    assert!(listed.contains("remote box"), "{listed}");
}

#[test]
fn each_caller_gets_a_warm_remote_that_nobody_has_used() {
    let machines = Machines { front: Project::empty(), there: Project::empty() };
    let made = machines.there.path();
    let text = format!(
        "[remotes.box]\nconnect = ['sh', '-c', 'cd \"$0\" && exec {} remote-server', '{1}/{{lease}}']\n\
         create = ['mkdir', '{1}/{{lease}}']\ndestroy = ['rm', '-rf', '{1}/{{lease}}']\nlist = ['ls', '{1}']\nwarm = 2\n",
        server().display(),
        made.display(),
    );
    machines.front.write("remotes.toml", &text);
    let config = machines.front.join("remotes.toml").display().to_string();
    let served = machines.front.join("served");
    std::fs::create_dir_all(&served).unwrap();
    let arguments = ["--config", &config, "--root", &served.display().to_string()];
    let mut server = HttpServer::start(&machines.front, &arguments);
    let count = |expected: usize| {
        wait_until(Duration::from_secs(20), &format!("{expected} are made"), || {
            std::fs::read_dir(made).unwrap().count() == expected
        });
    };
    count(2);
    let mut folders = Vec::new();
    for (number, name) in ["ada", "bob", "carol"].into_iter().enumerate() {
        let token = token(&server, &machines, name);
        let mut client = server.connect(&token, Era::Modern);
        let folder = client.call("run_command", json!({"command": "pwd"})).to_string();
        assert!(!folders.contains(&folder), "{folder} was given to two callers");
        folders.push(folder);
        // Nothing of another caller is in it.
        let listed = client.text("list_directory", json!({"path": "."}));
        assert!(!listed.contains("mark"), "{listed}");
        client.text("write_file", json!({"path": "mark.txt", "content": name}));
        count(2 + number + 1);
    }
    // What a caller leaves is destroyed, and not made warm again.
    assert!(server.tokens(&["revoke", "ada"]).status.success());
    count(4);
    server.signal(rustix::process::Signal::TERM);
    server.wait(Duration::from_secs(25));
    assert_eq!(std::fs::read_dir(made).unwrap().count(), 0);
}
