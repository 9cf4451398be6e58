//! The files that are shipped for running the server: the unit, the images, the manifests, the proxies' configuration.

use crate::SOON;
use integration_tests::{
    Ask, Era, Http, HttpServer, Project, alive, children, contained, require, unique_seconds, unused_port,
    wait_until, wait_until_gone, zombies_of,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(name)
}

fn shipped(name: &str) -> String {
    fs::read_to_string(packaging(name)).unwrap()
}

/// Ends a process with the test.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// --- systemd ---

/// Returns the settings of a unit, in its order.
fn settings(unit: &str) -> Vec<(&str, &str)> {
    let lines = unit.lines().filter(|line| !line.starts_with(['#', '[']));
    lines.filter_map(|line| line.split_once('=')).collect()
}

#[test]
fn the_unit_waits_for_the_drain_and_leaves_programs_confined() {
    let unit = shipped("systemd/mcp-http.service");
    let settings = settings(&unit);
    let value = |name: &str| settings.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    // With control-group, systemd's first signal would reach running programs before the server can let them end.
    assert_eq!(value("KillMode"), Some("mixed"));
    assert_eq!(value("Type"), Some("notify"));
    assert!(value("TimeoutStopSec").unwrap().parse::<u64>().unwrap() > 10 + 5);
    let calls = settings.iter().filter(|(key, _)| *key == "SystemCallFilter").map(|(_, value)| *value);
    let calls: Vec<_> = calls.flat_map(str::split_whitespace).collect();
    for call in ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"] {
        assert!(calls.contains(&call), "{calls:?}");
    }
    // What the configuration beside it needs to write to, and nothing else.
    let config = shipped("coretools.toml");
    assert!(config.contains("roots = [\"/srv/projects\"]") && config.contains("/var/log/coretools/"));
    assert_eq!(value("ReadWritePaths"), Some("/srv/projects"));
    assert_eq!(value("LogsDirectory"), Some("coretools"));
}

#[test]
fn systemd_takes_the_unit_and_finds_it_hardened() {
    let there = Command::new("systemd-analyze").arg("--version").stdout(Stdio::null()).status().is_ok();
    let Some(()) = require(there.then_some(()), "no systemd-analyze") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp-http.service");
    let program = HttpServer::program(&Project::empty()).get_program().to_str().unwrap().to_owned();
    fs::write(&path, shipped("systemd/mcp-http.service").replace("/usr/local/bin/mcp-http", &program))
        .unwrap();
    let analyze = |arguments: &[&str]| {
        let output = Command::new("systemd-analyze").args(arguments).arg(&path).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    let (good, said) = analyze(&["verify"]);
    assert!(good && !said.contains("mcp-http.service"), "{said}");
    // Of 10, where systemd's own services have 2 to 9: 1.7 when this was written.
    let (good, said) = analyze(&["security", "--offline=true", "--threshold=20", "--no-pager"]);
    assert!(good, "{said}");
}

#[test]
fn a_service_manager_is_told_what_the_server_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let name = format!("coretools-test-{}-{}", std::process::id(), unique_seconds());
    let abstract_address = UnixAddress::from_abstract_name(&name).unwrap();
    for (socket, named) in [
        (UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap().to_owned()),
        (UnixDatagram::bind_addr(&abstract_address).unwrap(), format!("@{name}")),
    ] {
        socket.set_read_timeout(Some(SOON)).unwrap();
        let hear = || {
            let mut bytes = [0; 256];
            let length = socket.recv(&mut bytes).unwrap();
            String::from_utf8(bytes[..length].to_vec()).unwrap()
        };
        let project = Project::empty();
        let mut command = HttpServer::program(&project);
        let at = format!("unix:{}", folder.path().join("http").display());
        command.args(["--listen", &at, "--peer", "*=readonly"]).env("NOTIFY_SOCKET", &named);
        let mut server = KillOnDrop(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
        assert_eq!(hear(), "READY=1");
        // It was not said too early.
        assert!(std::os::unix::net::UnixStream::connect(folder.path().join("http")).is_ok());
        kill_process(Pid::from_child(&server.0), Signal::HUP).unwrap();
        let reloading = hear();
        let when = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        assert!(when.parse::<u64>().unwrap() > 0);
        assert_eq!(hear(), "READY=1");
        kill_process(Pid::from_child(&server.0), Signal::TERM).unwrap();
        assert_eq!(hear(), "STOPPING=1");
        assert!(server.0.wait().unwrap().success());
    }
}

// --- the first process of a container ---

/// A server that is the first process of a PID namespace, below an `unshare` that ends as it does.
struct NamespacedServer {
    unshare: KillOnDrop,
    first: u32,
    server: u32,
    address: SocketAddr,
}

impl NamespacedServer {
    fn start(project: &Project) -> Option<Self> {
        let mut command = contained(
            &HttpServer::program(project),
            &["--listen", "127.0.0.1:0", "--anonymous-role", "dev"],
        )?;
        let mut unshare = KillOnDrop(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
        let said = BufReader::new(unshare.0.stderr.take().unwrap()).lines();
        let mut said = said.map(Result::unwrap);
        let address =
            said.find_map(|line| Some(line.split_once("http://")?.1.trim_end_matches("/mcp").parse()));
        let [first] = children(unshare.0.id())[..] else { panic!("unshare has one child") };
        let [server] = children(first)[..] else { panic!("the first process has one child: the server") };
        // Goes on reading, so that the server is never kept from writing.
        std::thread::spawn(move || said.for_each(drop));
        Some(Self { unshare, first, server, address: address.expect("it says where it is").unwrap() })
    }

    fn signal(process: u32, signal: Signal) {
        kill_process(Pid::from_raw(process.try_into().unwrap()).unwrap(), signal).unwrap();
    }
}

#[test]
fn as_the_first_process_of_a_container_it_waits_for_what_has_lost_its_parent() {
    let project = Project::empty();
    let Some(mut contained) = NamespacedServer::start(&project) else { return };
    let seconds = unique_seconds();
    let mut client = Http::connect(contained.address, None, Era::Modern);
    // Of a session of their own, with and without what marks them as the call's.
    let orphans = format!("(setsid sleep {seconds} &); (setsid true &); (env -i setsid sleep 0.1 &)");
    client.text("run_command", json!({"command": ["sh", "-c", orphans]}));
    wait_until_gone(&seconds, SOON);
    wait_until_gone("sleep 0.1", SOON);
    wait_until(SOON, "all are waited for", || {
        zombies_of(contained.first).is_empty() && zombies_of(contained.server).is_empty()
    });
    // Signals are passed on, and so is the exit code.
    NamespacedServer::signal(contained.first, Signal::TERM);
    assert_eq!(contained.unshare.0.wait().unwrap().code(), Some(0));

    let Some(mut contained) = NamespacedServer::start(&project) else { return };
    NamespacedServer::signal(contained.server, Signal::KILL);
    assert_eq!(contained.unshare.0.wait().unwrap().code(), Some(128 + 9));
}

// --- configurations, images, manifests ---

/// YAML as JSON, document by document, by the parser of Ruby's library.
pub(crate) fn yaml(text: &str) -> Option<Vec<Value>> {
    let script = "require 'yaml'; require 'json'; puts JSON.dump(YAML.load_stream(STDIN.read))";
    let child =
        Command::new("ruby").args(["-e", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = require(child.ok(), "no ruby")?;
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "that is no YAML");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn manifest() -> Option<Vec<Value>> {
    yaml(&shipped("kubernetes/coretools.yaml"))
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    documents.iter().find(|document| document["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

#[test]
fn every_shipped_configuration_is_served_and_found_healthy_until_the_end() {
    let Some(documents) = manifest() else { return };
    let in_kubernetes = of_kind(&documents, "ConfigMap")["data"]["coretools.toml"].as_str().unwrap();
    for text in [shipped("coretools.toml"), shipped("docker/coretools.toml"), in_kubernetes.to_owned()] {
        let (project, outside) = (Project::empty(), Project::empty());
        let place = |name: &str| outside.join(name).to_str().unwrap().to_owned();
        for folder in ["etc", "log", "state"] {
            fs::create_dir(outside.join(folder)).unwrap();
        }
        let config = place("etc/coretools.toml");
        let figures = format!("unix:{}", place("figures"));
        // The database of the audit is the cluster's.
        let mut local = text.replace("audit_database = \"$AUDIT_DATABASE\"\n", "");
        for (shipped, local_name) in [
            ("/srv/projects", project.path().to_str().unwrap()),
            ("/var/log/coretools", &place("log")),
            ("/var/lib/coretools", &place("state")),
            ("127.0.0.1:9717", &figures),
            (":8717\"", ":0\""),
        ] {
            local = local.replace(shipped, local_name);
        }
        fs::write(&config, &local).unwrap();
        let health = |more: &[&str]| {
            let mut command = HttpServer::program(&project);
            command.args(["--config", &config]).arg("health").args(more);
            command.output().unwrap()
        };
        assert_eq!(health(&[]).status.code(), Some(1), "there is no server yet");
        // `--listen` would be the test's own.
        let mut server = HttpServer::start(&project, &["--config", &config, "--listen", listened(&local)]);
        for more in [&[][..], &["--alive"]] {
            let output = health(more);
            assert!(output.status.success(), "{text}: {output:?}");
        }
        server.signal(Signal::TERM);
        assert!(server.wait(SOON).success());
        let output = health(&[]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("no answer"), "{output:?}");
    }
}

/// The first address of a configuration.
fn listened(config: &str) -> &str {
    let line = config.lines().find(|line| line.starts_with("listen")).unwrap();
    line.split('"').nth(1).unwrap()
}

#[test]
fn the_image_has_no_root_a_health_check_and_the_oldest_rust_that_builds_the_server() {
    let dockerfile = shipped("docker/Dockerfile").replace("\\\n", " ");
    let cargo = fs::read_to_string(packaging("../crates/mcp-http/Cargo.toml")).unwrap();
    let oldest =
        cargo.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(dockerfile.contains(&format!("FROM rust:{oldest}-")), "the server needs Rust {oldest}");
    let stages: Vec<&str> = dockerfile.split("\nFROM ").skip(1).collect();
    let names: Vec<&str> =
        stages.iter().map(|stage| stage.lines().next().unwrap().split(" AS ").nth(1).unwrap()).collect();
    assert_eq!(names, ["build", "tools", "server"]);
    for stage in &stages[1..] {
        for line in [
            "USER 65532:65532",
            "ENTRYPOINT [\"/usr/local/bin/mcp-http\"]",
            "CMD [\"--config\", \"/etc/coretools/coretools.toml\"]",
        ] {
            assert!(stage.lines().any(|found| found == line), "{line} is missing in {stage}");
        }
        assert!(stage.contains("HEALTHCHECK") && stage.contains("\"health\"]"), "{stage}");
        // It would give the service user every folder on the way too, /etc and /usr among them.
        assert!(!stage.contains("--chown"), "{stage}");
    }
    // What the build copies is all that it needs: the members of the workspace, and what they include.
    let sent = shipped("docker/Dockerfile.dockerignore");
    let root = fs::read_to_string(packaging("../Cargo.toml")).unwrap();
    for member in root.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\",")) {
        let folder = member.split('/').next().unwrap();
        assert!(sent.lines().any(|line| line == format!("!{folder}")), "{member} is not sent");
    }
}

#[test]
fn the_compose_file_names_what_there_is() {
    let Some(documents) = yaml(&shipped("docker/compose.yaml")) else { return };
    let [compose] = &documents[..] else { panic!("{documents:?}") };
    let server = &compose["services"]["mcp-http"];
    let build = &server["build"];
    let dockerfile = packaging("docker").join(build["context"].as_str().unwrap());
    let dockerfile = fs::read_to_string(dockerfile.join(build["dockerfile"].as_str().unwrap())).unwrap();
    assert!(dockerfile.contains(&format!(" AS {}\n", build["target"].as_str().unwrap())));
    // Docker's `tmpfs` is `noexec` unless told otherwise, and builds run what they put there.
    assert!(server["tmpfs"][0].as_str().unwrap().contains("exec"), "{server}");
    let subnet = compose["networks"]["inside"]["ipam"]["config"][0]["subnet"].as_str().unwrap();
    assert!(shipped("docker/coretools.toml").contains(&format!("behind_proxy = [\"{subnet}\"]")));
    for (name, service) in compose["services"].as_object().unwrap() {
        for volume in service["volumes"].as_array().unwrap() {
            let from = volume.as_str().unwrap().split(':').next().unwrap();
            let known = from.starts_with("./") || compose["volumes"].get(from).is_some();
            assert!(known, "{name}: {volume}");
        }
        assert!(service["ports"].is_null() || name == "caddy", "{name} is reached from outside");
    }
}

#[test]
fn the_manifest_agrees_with_itself() {
    let Some(documents) = manifest() else { return };
    for document in &documents {
        for value in [&document["apiVersion"], &document["kind"], &document["metadata"]["name"]] {
            assert!(value.is_string(), "{document}");
        }
    }
    let deployment = &of_kind(&documents, "Deployment")["spec"];
    assert!(deployment["replicas"].as_u64() > Some(1));
    let template = &deployment["template"];
    let labels = template["metadata"]["labels"].as_object().unwrap();
    let service = &of_kind(&documents, "Service")["spec"];
    for selector in [
        &deployment["selector"]["matchLabels"],
        &service["selector"],
        &of_kind(&documents, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        &of_kind(&documents, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ] {
        for (key, value) in selector.as_object().unwrap() {
            assert_eq!(labels.get(key), Some(value), "{selector}");
        }
    }
    let pod = &template["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let [container] = &pod["containers"].as_array().unwrap()[..] else { panic!("{pod}") };
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(service["ports"][0]["targetPort"], container["ports"][0]["name"]);
    let config = of_kind(&documents, "ConfigMap")["data"]["coretools.toml"].as_str().unwrap();
    let variable = container["env"][0]["name"].as_str().unwrap();
    assert!(config.contains(&format!("audit_database = \"${variable}\"\n")), "{config}");
    let volumes: Vec<&str> =
        pod["volumes"].as_array().unwrap().iter().map(|volume| volume["name"].as_str().unwrap()).collect();
    let mounts = container["volumeMounts"].as_array().unwrap();
    for mount in mounts {
        assert!(volumes.contains(&mount["name"].as_str().unwrap()), "{mount}");
    }
    // Every folder of the configuration is mounted, and there is time for what it lets end.
    let config = of_kind(&documents, "ConfigMap")["data"]["coretools.toml"].as_str().unwrap();
    for path in config.split('"').filter(|word| word.starts_with('/')) {
        let mounted = |mount: &Value| path.starts_with(mount["mountPath"].as_str().unwrap());
        assert!(mounts.iter().any(mounted), "{path} is on no volume");
    }
    let drain = config.lines().find_map(|line| line.strip_prefix("drain_ms = ")).unwrap();
    let before = container["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap();
    let needed = before + drain.parse::<u64>().unwrap() / 1000 + 5;
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() >= needed);
    // The program takes what the probes say.
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        let command = container[probe]["exec"]["command"].as_array().unwrap();
        let words: Vec<&str> = command.iter().map(|word| word.as_str().unwrap()).collect();
        assert_eq!(words[0], "/usr/local/bin/mcp-http");
        let output = HttpServer::program(&Project::empty()).args(&words[1..]).arg("--help").output().unwrap();
        assert!(output.status.success(), "{probe}: {output:?}");
    }
}

#[test]
fn programs_do_not_get_the_variables_that_are_the_servers_own() {
    let (project, outside) = (Project::empty(), Project::empty());
    let config = outside.join("coretools.toml");
    // As the manifest says it.
    let settings = "[commands]\nenvironment = \"inherit\"\n[http]\naudit_database = \"$AUDIT_DATABASE\"\n";
    fs::write(&config, settings).unwrap();
    let database = format!("sqlite:{}", outside.join("audit.db").display());
    let variables = [
        ("AUDIT_DATABASE", database.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=collectors"),
        ("OF_NOBODY_ELSE", "passed on"),
    ];
    let server = HttpServer::start_in(&project, &["--config", config.to_str().unwrap()], &variables);
    let mut client = server.connect(&server.token("ada", "orchestrator", &[]), Era::Modern);
    for tool in ["run_command", "start_command", "new_session"] {
        let said = client.text(tool, json!({"command": ["sh", "-c", "env > seen; echo done > seen.done"]}));
        wait_until(SOON, &said, || project.path().join("seen.done").exists());
        let seen = project.read("seen");
        assert!(seen.contains("OF_NOBODY_ELSE=passed on"), "{seen}");
        assert!(!seen.contains("AUDIT_DATABASE") && !seen.contains("OTEL_EXPORTER_OTLP_HEADERS"), "{seen}");
        fs::remove_file(project.path().join("seen.done")).unwrap();
    }
}

// --- proxies ---

/// A proxy in front of two replicas.
struct FrontProxy {
    _proxy: KillOnDrop,
    at: SocketAddr,
    replicas: [HttpServer; 2],
    project: Project,
    token: String,
    _folder: tempfile::TempDir,
}

/// Starts two replicas with the same tokens, and a proxy. `proxy` has a folder, a port and those of the replicas, and
/// says how it is started.
fn front(proxy: impl Fn(&Path, u16, [u16; 2]) -> Command) -> FrontProxy {
    let project = Project::empty();
    let one = HttpServer::start(&project, &[]);
    let tokens = one.home().join("tokens.toml");
    let two = HttpServer::start_with(&project, &[], |home| {
        std::os::unix::fs::symlink(&tokens, home.join("tokens.toml")).unwrap();
    });
    let token = one.token("ada", "dev", &[]);
    wait_until(SOON, "both know the token", || two.get("/mcp", Some(&token)).status != 401);
    let folder = tempfile::tempdir().unwrap();
    let at = SocketAddr::from(([127, 0, 0, 1], unused_port()));
    let ports = [&one, &two].map(|replica| replica.address().port());
    let mut command = proxy(folder.path(), at.port(), ports);
    let mut child = KillOnDrop(command.stdin(Stdio::null()).spawn().unwrap());
    wait_until(SOON, "the proxy is up", || {
        assert!(child.0.try_wait().unwrap().is_none(), "the proxy ended");
        TcpStream::connect(at).is_ok()
    });
    FrontProxy { _proxy: child, at, replicas: [one, two], project, token, _folder: folder }
}

impl FrontProxy {
    fn connect(&self, era: Era) -> Http {
        Http::connect(self.at, Some(&self.token), era)
    }

    /// Returns the number of the replica that answers a client.
    fn serves(&self, client: &mut Http) -> usize {
        let result = client.call("get_diagnostics", json!({}));
        let server = result["structuredContent"]["pid"].as_u64().unwrap();
        let place = self.replicas.iter().position(|replica| u64::from(replica.pid()) == server);
        place.unwrap_or_else(|| panic!("{server} is none of the replicas"))
    }

    /// Checks that the proxy holds nothing back, ends requests whose client has gone, and shows nothing else.
    fn passes_on(&self) {
        for path in ["/", "/metrics", "/healthz", "/readyz", "/mcp/"] {
            let request = format!(
                "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
                self.token
            );
            assert_eq!(integration_tests::exchange(self.at, request.as_bytes()).status, 404, "{path}");
        }
        assert!(!self.connect(Era::Initialize("2025-06-18")).listed().is_empty());
        let mut client = self.connect(Era::Modern);
        self.streams(&mut client);
        self.ends_what_is_left(&mut client);
    }

    /// A replica ends while a client works, and the work goes on.
    fn moves(mut self) {
        let mut client = self.connect(Era::Modern);
        let mut old = self.connect(Era::Initialize("2025-06-18"));
        assert!(!old.listed().is_empty());
        let serving = self.serves(&mut client);
        let write = |client: &mut Http, number: usize| {
            let line = format!("{number}\n");
            client.text("write_file", json!({"path": "work.txt", "content": line, "mode": "append"}));
        };
        (0..10).for_each(|number| write(&mut client, number));
        let long =
            json!({"name": "run_command", "arguments": {"command": ["sh", "-c", "sleep 2; echo done"]}});
        let mut long = client.begin("tools/call", long);
        wait_until(SOON, "it runs", || {
            self.replicas[serving]
                .get("/metrics", Some(&self.token))
                .body
                .contains("coretools_calls_in_flight 1")
        });
        self.replicas[serving].signal(Signal::TERM);
        (10..20).for_each(|number| write(&mut client, number));
        let reply = integration_tests::read_reply(&mut long).unwrap();
        assert!(reply.body.contains("done"), "{reply:?}");
        assert!(self.replicas[serving].wait(SOON).success());
        (20..30).for_each(|number| write(&mut client, number));
        assert_eq!(self.serves(&mut client), 1 - serving);
        let expected: String = (0..30).map(|number| format!("{number}\n")).collect();
        assert_eq!(fs::read_to_string(self.project.join("work.txt")).unwrap(), expected);
        // Its session was in a process, and it is told so in the way that makes it begin another.
        assert_eq!(old.reply("tools/list", json!({})).status, 404);
        assert!(!self.connect(Era::Initialize("2025-06-18")).listed().is_empty());
    }

    fn streams(&self, client: &mut Http) {
        let script = "echo first; sleep 3; echo second";
        let call = json!({
            "name": "run_command", "arguments": {"command": ["sh", "-c", script]}, "_meta": {"progressToken": 1}
        });
        let mut stream = client.begin("tools/call", call);
        let (mut text, mut first) = (String::new(), None);
        while !text.contains("\"result\"") {
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes).unwrap();
            assert!(length > 0, "it broke off: {text}");
            text.push_str(&String::from_utf8_lossy(&bytes[..length]));
            if first.is_none() && text.contains("first") {
                first = Some(Instant::now());
            }
        }
        let before = first.expect("progress").elapsed();
        assert!(before > Duration::from_secs(1), "held back: the first line came {before:?} before the last");
    }

    fn ends_what_is_left(&self, client: &mut Http) {
        let seconds = unique_seconds();
        let call = json!({"name": "run_command", "arguments": {"command": ["sleep", seconds]}});
        let stream = client.begin("tools/call", call);
        wait_until(SOON, "it runs", || !alive(&seconds).is_empty());
        drop(stream);
        wait_until_gone(&seconds, SOON);
    }
}

/// nginx with the shipped file in `folder`.
fn nginx(folder: &Path, file: &str) -> Command {
    // One process, as whoever runs the test, with nothing outside the folder.
    let config = format!(
        "daemon off;\nmaster_process off;\npid {0}/pid;\nerror_log {0}/error.log;\nevents {{}}\nhttp {{\n\
         access_log off;\nclient_body_temp_path {0}/body;\nproxy_temp_path {0}/proxy;\nfastcgi_temp_path {0}/fastcgi;\n\
         uwsgi_temp_path {0}/uwsgi;\nscgi_temp_path {0}/scgi;\n{file}\n}}\n",
        folder.display()
    );
    fs::write(folder.join("nginx.conf"), config).unwrap();
    let mut command = Command::new(nginx_program());
    command
        .arg("-p")
        .arg(folder)
        .arg("-e")
        .arg(folder.join("error.log"))
        .arg("-c")
        .arg(folder.join("nginx.conf"));
    command
}

/// Debian keeps it where only root looks.
fn nginx_program() -> &'static str {
    if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" }
}

fn nginx_is_there() -> Option<()> {
    let there = Command::new(nginx_program()).arg("-v").stderr(Stdio::null()).status().is_ok();
    require(there.then_some(()), "no nginx; install it: apt install nginx-light")
}

#[test]
fn nginx_takes_the_shipped_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(()), Some(())) = (nginx_is_there(), crate::tls::certificate(folder.path())) else { return };
    let file = shipped("nginx/coretools.conf")
        .replace("/etc/nginx/tls/tools.example.pem", folder.path().join("cert.pem").to_str().unwrap())
        .replace("/etc/nginx/tls/tools.example.key", folder.path().join("key.pem").to_str().unwrap());
    let output = nginx(folder.path(), &file).arg("-t").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("[warn]"), "{said}");
}

#[test]
fn behind_nginx_a_client_is_moved_to_another_replica_in_the_middle_of_its_work() {
    let Some(()) = nginx_is_there() else { return };
    let front = front(|folder, port, [one, two]| {
        let file = shipped("nginx/coretools.conf")
            .replace("listen 443 ssl http2;", &format!("listen 127.0.0.1:{port};"))
            .replace("    ssl_certificate", "    #ssl_certificate")
            .replace("127.0.0.1:8717", &format!("127.0.0.1:{one}"))
            .replace("127.0.0.1:8718", &format!("127.0.0.1:{two}"));
        nginx(folder, &file)
    });
    front.passes_on();
    front.moves();
}

/// One replica after the other is replaced while clients of both eras work without a pause.
#[test]
fn behind_nginx_a_rolling_upgrade_of_two_replicas_loses_no_call() {
    // As many that each replica has some of them.
    const CLIENTS: usize = 12;
    let Some(()) = nginx_is_there() else { return };
    let mut front = front(|folder, port, [one, two]| {
        let file = shipped("nginx/coretools.conf")
            .replace("listen 443 ssl http2;", &format!("listen 127.0.0.1:{port};"))
            .replace("    ssl_certificate", "    #ssl_certificate")
            .replace("127.0.0.1:8717", &format!("127.0.0.1:{one}"))
            .replace("127.0.0.1:8718", &format!("127.0.0.1:{two}"));
        nginx(folder, &file)
    });
    let tokens = front.replicas[0].home().join("tokens.toml");
    // Each caller has a token of its own, so that they are spread over the replicas.
    let bearers: Vec<String> =
        (0..CLIENTS).map(|number| front.replicas[0].token(&format!("caller-{number}"), "dev", &[])).collect();
    wait_until(SOON, "both know the tokens", || {
        front
            .replicas
            .iter()
            .all(|replica| replica.get("/mcp", bearers.last().map(String::as_str)).status != 401)
    });
    let (is_over, at) = (std::sync::atomic::AtomicBool::new(false), front.at);
    let mut retired = Vec::new();
    let made = std::thread::scope(|scope| {
        let clients: Vec<_> = bearers
            .iter()
            .enumerate()
            .map(|(number, bearer)| {
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut client = Http::connect(at, Some(bearer), Era::Modern);
                    let mut made = 0;
                    while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        let line = format!("{made}\n");
                        let path = format!("work-{number}.txt");
                        // Panics unless the call was answered, and answered well.
                        client.text("write_file", json!({"path": path, "content": line, "mode": "append"}));
                        made += 1;
                    }
                    made
                })
            })
            .collect();
        for place in 0..2 {
            let port = front.replicas[place].address().port();
            front.replicas[place].signal(Signal::TERM);
            assert!(front.replicas[place].wait(SOON).success());
            let listen = format!("127.0.0.1:{port}");
            let new = HttpServer::start_with(&front.project, &["--listen", &listen], |home| {
                std::os::unix::fs::symlink(&tokens, home.join("tokens.toml")).unwrap();
            });
            // The folder of the first one has the tokens of all.
            retired.push(std::mem::replace(&mut front.replicas[place], new));
            // nginx sends it calls again before the next one ends, `fail_timeout` after it was gone.
            wait_until(SOON, "the new one serves", || {
                let metrics = front.replicas[place].get("/metrics", Some(&front.token)).body;
                metrics.contains("coretools_calls_total{")
            });
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().expect("no call was lost")).collect::<Vec<usize>>()
    });
    for (number, made) in made.into_iter().enumerate() {
        assert!(made > 20, "caller-{number} made {made} calls");
        let expected: String = (0..made).map(|line| format!("{line}\n")).collect();
        let written = fs::read_to_string(front.project.join(&format!("work-{number}.txt"))).unwrap();
        assert_eq!(written, expected, "each call once, and in order");
    }
}

#[test]
fn caddy_holds_nothing_back_and_ends_calls_whose_client_is_gone() {
    let there = Command::new("caddy").arg("version").stdout(Stdio::null()).status().is_ok();
    let Some(()) = require(there.then_some(()), "no caddy") else { return };
    let front = front(|folder, port, [one, _]| {
        let file = shipped("docker/Caddyfile")
            .replace("tools.example {", &format!("http://:{port} {{\n\tbind 127.0.0.1"))
            .replace("mcp-http:8717", &format!("127.0.0.1:{one}"));
        fs::write(folder.join("Caddyfile"), format!("{{\n\tadmin off\n}}\n{file}")).unwrap();
        let mut command = Command::new("caddy");
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(folder.join("Caddyfile"));
        command.env("XDG_DATA_HOME", folder).env("XDG_CONFIG_HOME", folder).stderr(Stdio::null());
        command
    });
    front.passes_on();
}
