//! Leases in the database of the audit: servers on several machines find what a killed one has left behind.

use crate::{Machines, servers};
use integration_tests::{Era, HttpServer, Project, server, wait_until};
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Servers with one database, and an engine of files that all of them use.
struct Replicas {
    machines: Machines,
    config: String,
    served: String,
    projects: [Project; 3],
}

impl Replicas {
    fn new(database: &str) -> Self {
        let machines = Machines::with([]);
        let made = machines.there.path().display();
        // What is made for `slow` is never finished.
        let create = "touch \"$0\"; test \"$1\" != slow || sleep 60";
        let text = format!(
            "[http]\naudit_database = \"{database}\"\nlease_database = true\nlease_silence_ms = 15000\n\
             [remotes.box]\nconnect = ['sh', '-c', 'test -e \"$0\" && exec {program} remote-server', '{made}/{{lease}}']\n\
             create = ['sh', '-c', '{create}', '{made}/{{lease}}', '{{caller}}']\ndestroy = ['rm', '-f', '{made}/{{lease}}']\n\
             list = ['ls', '{made}']\nroots = ['{root}']\n",
            program = server().display(),
            root = machines.front.path().display(),
        );
        machines.front.write("remotes.toml", &text);
        machines.front.write("served/a.txt", "served\n");
        let config = machines.front.join("remotes.toml").display().to_string();
        let served = machines.front.join("served").display().to_string();
        Self { machines, config, served, projects: [Project::empty(), Project::empty(), Project::empty()] }
    }

    fn start(&self, index: usize) -> HttpServer {
        HttpServer::start(&self.projects[index], &["--config", &self.config, "--root", &self.served])
    }

    fn token(&self, http: &HttpServer, name: &str) -> String {
        http.token(name, "orchestrator", &["--config", &self.config, "--remote", "box"])
    }

    fn made(&self) -> usize {
        std::fs::read_dir(self.machines.there.path()).unwrap().count()
    }
}

const READ: &str = "read_file";

fn what_a_killed_server_has_left_is_destroyed_by_another_and_nothing_else_is(database: &str) {
    let replicas = Replicas::new(database);
    let path = json!({"path": "served/a.txt"});
    let (mut one, mut two) = (replicas.start(0), replicas.start(1));
    let ada = replicas.token(&one, "ada");
    assert!(one.connect(&ada, Era::Modern).text(READ, path.clone()).contains("served"));
    let bob = replicas.token(&two, "bob");
    let mut bob = two.connect(&bob, Era::Modern);
    assert!(bob.text(READ, path.clone()).contains("served"));
    let slow = replicas.token(&one, "slow");
    let mut slow = one.connect(&slow, Era::Modern);
    let _open = slow.begin("tools/call", json!({"name": READ, "arguments": path.clone()}));
    wait_until(PATIENCE, "three are made", || replicas.made() == 3);
    one.signal(Signal::KILL);
    one.wait(PATIENCE);
    assert_eq!(replicas.made(), 3);
    // Nobody calls the other server meanwhile.
    wait_until(PATIENCE, "those of the killed server are destroyed", || replicas.made() == 1);
    wait_until(PATIENCE, "it says so", || two.log().contains("whose server was killed"));
    // It lives, and its own was never taken.
    assert!(bob.text(READ, path).contains("served"));
    assert_eq!(replicas.made(), 1);
    // A server that ends as usual leaves nothing.
    two.signal(Signal::TERM);
    two.wait(PATIENCE);
    assert_eq!(replicas.made(), 0);
}

#[test]
fn sqlite_has_the_leases_of_all_servers() {
    let folder = Project::empty();
    let location = format!("sqlite:{}", folder.join("audit.db").display());
    what_a_killed_server_has_left_is_destroyed_by_another_and_nothing_else_is(&location);
}

#[test]
fn postgresql_has_the_leases_of_all_servers() {
    let Some(database) = servers::postgres() else { return };
    what_a_killed_server_has_left_is_destroyed_by_another_and_nothing_else_is(&database.url("boss"));
    assert_eq!(database.sql("SELECT count(*) FROM coretools_leases"), "0");
}

#[test]
fn a_server_that_starts_later_finds_what_a_killed_one_has_left_in_the_database() {
    let folder = Project::empty();
    let replicas = Replicas::new(&format!("sqlite:{}", folder.join("audit.db").display()));
    let mut one = replicas.start(0);
    let ada = replicas.token(&one, "ada");
    one.connect(&ada, Era::Modern).text(READ, json!({"path": "served/a.txt"}));
    one.signal(Signal::KILL);
    one.wait(PATIENCE);
    assert_eq!(replicas.made(), 1);
    let _two = replicas.start(1);
    wait_until(PATIENCE, "that of the killed server is destroyed", || replicas.made() == 0);
}

#[test]
fn leases_in_a_database_need_one() {
    let project = Project::empty();
    project.write("remotes.toml", "[http]\nlease_database = true\n");
    let config = project.join("remotes.toml").display().to_string();
    let error = HttpServer::refuses(&project, &["--config", &config]);
    assert!(error.contains("set http.audit_database"), "{error}");
}
