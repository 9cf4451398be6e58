//! Real clients, which know nothing of the proxy but its variables, and a web server on the loopback network.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "the tests start clients")]

use std::net::SocketAddr;
use std::process::Output;
use std::sync::{Arc, Mutex};

use egress_proxy::{AllowedHosts, EgressProxy, Resolve, ResolvedAddresses, proxy_variables};
use skipped_tests::require;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Leads every name to the address of the test's server.
struct OneAddress;

impl Resolve for OneAddress {
    fn resolve<'a>(&'a self, _name: &'a str) -> ResolvedAddresses<'a> {
        Box::pin(async { Ok(vec![[127, 0, 0, 2].into()]) })
    }
}

/// A package registry at `packages.example`, and a proxy for it.
struct RegistryFixture {
    registry: String,
    proxy: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    denied: Arc<Mutex<Vec<String>>>,
    folder: tempfile::TempDir,
}

impl RegistryFixture {
    async fn start() -> Self {
        let server = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = server.accept().await {
                let record = Arc::clone(&record);
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let head = String::from_utf8_lossy(&head).into_owned();
                    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
                    let (kind, body) = page(&path);
                    record.lock().unwrap().push(head);
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                        body.len()
                    );
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = listener.local_addr().unwrap();
        let denied = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&denied);
        let hosts =
            AllowedHosts::parse([format!("packages.example:{port}"), format!("127.0.0.2:{port}")]).unwrap();
        let server = EgressProxy::new(hosts)
            .resolver(OneAddress)
            .on_denied(move |denial| record.lock().unwrap().push(format!("{}:{}", denial.host, denial.port)));
        tokio::spawn(server.serve(listener, Default::default()));
        let folder = tempfile::tempdir().unwrap();
        Self { registry: format!("packages.example:{port}"), proxy, requests, denied, folder }
    }

    /// Runs a client with nothing in its environment but `PATH`, an empty home and the variables of the proxy.
    async fn run(&self, program: &str, arguments: &[&str]) -> Option<Output> {
        let output = tokio::process::Command::new(program)
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.folder.path())
            .envs(proxy_variables(self.proxy))
            .current_dir(self.folder.path())
            .output()
            .await;
        let output = require(output.ok(), &format!("no {program}; apt install npm python3-pip git"))?;
        Some(output)
    }
}

/// The pages of the registry: a packument of npm, and an index of a Python registry.
fn page(path: &str) -> (&'static str, String) {
    match path {
        "/tiny" => {
            let version =
                r#"{"name":"tiny","version":"1.2.3","dist":{"tarball":"http://packages.example/tiny.tgz"}}"#;
            let body = format!(
                r#"{{"name":"tiny","dist-tags":{{"latest":"1.2.3"}},"versions":{{"1.2.3":{version}}}}}"#
            );
            ("application/json", body)
        }
        "/simple/tiny/" => ("text/html", "<a href=\"tiny-1.2.3-py3-none-any.whl\">tiny</a>".to_owned()),
        _ => ("text/plain", String::new()),
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

#[tokio::test]
async fn npm_finds_a_package_by_the_variables_alone() {
    let fixture = RegistryFixture::start().await;
    let registry = format!("--registry=http://{}/", fixture.registry);
    let arguments = ["view", "tiny", "version", &registry, "--fetch-retries=0", "--no-update-notifier"];
    let Some(output) = fixture.run("npm", &arguments).await else { return };
    assert!(output.status.success() && text(&output).contains("1.2.3"), "{}", text(&output));
    assert!(fixture.requests.lock().unwrap()[0].contains(&format!("{}\r\n", fixture.registry)));

    let arguments = ["view", "tiny", "version", "--registry=https://other.example/", "--fetch-retries=0"];
    let output = fixture.run("npm", &arguments).await.unwrap();
    assert!(!output.status.success(), "{}", text(&output));
    // Once for each attempt of npm's.
    let denied = fixture.denied.lock().unwrap();
    assert!(!denied.is_empty() && denied.iter().all(|host| host == "other.example:443"), "{denied:?}");
}

#[tokio::test]
async fn pip_finds_a_package_by_the_variables_alone() {
    let fixture = RegistryFixture::start().await;
    let index = format!("http://{}/simple/", fixture.registry);
    let pip = [
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-cache-dir",
        "--retries=0",
        "download",
        "--no-deps",
    ];
    let arguments =
        [&pip[..], &["--trusted-host=packages.example", "--index-url", &index, "tiny==9"]].concat();
    let python = "/usr/bin/python3";
    let Some(output) = fixture.run(python, &arguments).await else { return };
    if text(&output).contains("No module named pip") {
        require(None::<()>, "no pip; apt install python3-pip");
        return;
    }
    // It read the index, which has another version.
    assert!(text(&output).contains("from versions: 1.2.3"), "{}", text(&output));
    let arguments = [&pip[..], &["--index-url", "https://other.example/simple/", "tiny"]].concat();
    let output = fixture.run(python, &arguments).await.unwrap();
    assert!(!output.status.success(), "{}", text(&output));
    assert!(fixture.denied.lock().unwrap().contains(&"other.example:443".to_owned()));
}

#[tokio::test]
async fn git_is_refused_another_host_by_the_variables_alone() {
    let fixture = RegistryFixture::start().await;
    let Some(output) = fixture.run("git", &["ls-remote", "https://other.example/x.git"]).await else {
        return;
    };
    assert!(!output.status.success() && text(&output).contains("403"), "{}", text(&output));
    assert_eq!(*fixture.denied.lock().unwrap(), ["other.example:443"]);
    let url = format!("http://{}/x.git", fixture.registry);
    fixture.run("git", &["ls-remote", &url]).await.unwrap();
    assert!(fixture.requests.lock().unwrap().iter().any(|head| head.starts_with("GET /x.git/info/refs")));
}
