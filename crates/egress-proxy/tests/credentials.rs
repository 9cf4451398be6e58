//! Credentials that clients use and never see: real clients and hand-written ones, against a host with TLS on the loopback
//! network, with names that only the test's own resolver knows.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "the tests start clients")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use egress_proxy::{
    AllowedHosts, CredentialHeader, CredentialRule, DeniedConnection, EgressProxy, HostCredential,
    Interception, Resolve, ResolvedAddresses, SecretSource, certificate_variables, proxy_variables,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use skipped_tests::require;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A value that no client is told.
const SECRET: &str = "glpat-Ys7bLqz1-plum-orchard";

/// Leads every name to the address of the test's hosts.
struct OneAddress;

impl Resolve for OneAddress {
    fn resolve<'a>(&'a self, _name: &'a str) -> ResolvedAddresses<'a> {
        Box::pin(async { Ok(vec![[127, 0, 0, 2].into()]) })
    }
}

/// An answer of the host to one request, in the pieces in which it is written. The connection is closed after it if it
/// says so.
struct Reply(Vec<Vec<u8>>);

impl Reply {
    fn ok(kind: &str, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
        Self(vec![head.into_bytes(), body.to_vec()])
    }

    fn raw(pieces: &[&str]) -> Self {
        Self(pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect())
    }
}

type Respond = Arc<dyn Fn(&str, &[u8]) -> Reply + Send + Sync>;

/// A web server with TLS that records the heads that it gets, and its own authority.
struct Origin {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    authority: String,
}

impl Origin {
    async fn start(names: &[&str], respond: impl Fn(&str, &[u8]) -> Reply + Send + Sync + 'static) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "the authority of the test");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names).unwrap();
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (heads, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (record, count) = (Arc::clone(&heads), Arc::clone(&connections));
        let respond: Respond = Arc::new(respond);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (record, count, respond) =
                    (Arc::clone(&record), Arc::clone(&count), Arc::clone(&respond));
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    count.fetch_add(1, Ordering::SeqCst);
                    let mut buffer = Vec::new();
                    loop {
                        let end = loop {
                            if let Some(at) = buffer.windows(4).position(|end| end == b"\r\n\r\n") {
                                break at + 4;
                            }
                            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                                return;
                            }
                        };
                        let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
                        buffer.drain(..end);
                        let lower = head.to_ascii_lowercase();
                        if lower.contains("expect: 100-continue") {
                            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
                        }
                        let length = lower.split("content-length: ").nth(1);
                        let length = length.map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
                        let is_chunked = lower.contains("transfer-encoding: chunked");
                        while buffer.len() < length || (is_chunked && !buffer.ends_with(b"0\r\n\r\n")) {
                            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                                return;
                            }
                        }
                        let body: Vec<u8> = if is_chunked {
                            std::mem::take(&mut buffer)
                        } else {
                            buffer.drain(..length).collect()
                        };
                        record.lock().unwrap().push(head.clone());
                        let Reply(pieces) = respond(&head, &body);
                        for piece in &pieces {
                            if stream.write_all(piece).await.is_err() || stream.flush().await.is_err() {
                                return;
                            }
                        }
                        if pieces
                            .first()
                            .is_none_or(|piece| piece.windows(17).any(|text| text == b"Connection: close"))
                        {
                            let _ = stream.shutdown().await;
                            return;
                        }
                    }
                });
            }
        });
        Self { port, heads, connections, authority: issuer.pem() }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// A proxy that has a credential for `git.example`, and a folder for its clients.
struct Fixture {
    proxy: SocketAddr,
    denials: Arc<Mutex<Vec<DeniedConnection>>>,
    secret: Arc<Mutex<String>>,
    authority: String,
    bundle: PathBuf,
    folder: tempfile::TempDir,
    origin: Origin,
}

impl Fixture {
    async fn start(origin: Origin, header: CredentialHeader) -> Self {
        let roots = origin.authority.clone();
        Self::with_roots(origin, header, &roots).await
    }

    /// Starts the proxy, which believes the authorities of `roots`. The clients believe that of the origin beside it.
    async fn with_roots(origin: Origin, header: CredentialHeader, roots: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = listener.local_addr().unwrap();
        let denials = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&denials);
        let port = origin.port;
        let hosts = ["git.example", "other.example", "127.0.0.2"].map(|host| format!("{host}:{port}"));
        let secret = Arc::new(Mutex::new(SECRET.to_owned()));
        let value = Arc::clone(&secret);
        let source = SecretSource::Variable("TOKEN".to_owned());
        let rule = CredentialRule::new(&format!("git.example:{port}"), header, source).unwrap();
        let credential = HostCredential::new(rule, move || Ok(value.lock().unwrap().clone()));
        let interception = Interception::new([credential], roots.as_bytes()).unwrap();
        let authority = interception.certificate_pem().to_owned();
        let server = EgressProxy::new(AllowedHosts::parse(hosts).unwrap())
            .resolver(OneAddress)
            .on_denied(move |denial| record.lock().unwrap().push(denial.clone()))
            .interception(interception);
        tokio::spawn(server.serve(listener, Default::default()));
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("bundle.pem");
        std::fs::write(&bundle, format!("{}\n{authority}", origin.authority)).unwrap();
        Self { proxy, denials, secret, authority, bundle, folder, origin }
    }

    fn url(&self, path: &str) -> String {
        format!("https://git.example:{}{path}", self.origin.port)
    }

    /// Runs a client that has nothing in its environment but `PATH`, an empty home and the variables of the proxy.
    async fn run(&self, program: &str, arguments: &[&str]) -> Option<Output> {
        let output = tokio::process::Command::new(program)
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.folder.path())
            .env("CARGO_HOME", self.folder.path().join("cargo"))
            .env("RUSTUP_HOME", rustup_home())
            .env("GIT_TERMINAL_PROMPT", "0")
            .envs(proxy_variables(self.proxy))
            .envs(certificate_variables(self.bundle.as_os_str()))
            .current_dir(self.folder.path())
            .output()
            .await;
        require(output.ok(), &format!("no {program}; apt install curl git npm python3-pip"))
    }

    /// Connects to `git.example` through the proxy, as a client that believes its authority.
    async fn connect(&self) -> tokio_rustls::client::TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = self.tunnel("git.example").await;
        TlsConnector::from(Arc::new(config))
            .connect(ServerName::try_from("git.example").unwrap(), stream)
            .await
            .unwrap()
    }

    /// Asks for a tunnel to a host, and returns it.
    async fn tunnel(&self, host: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.proxy).await.unwrap();
        let target = format!("{host}:{}", self.origin.port);
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        stream
    }

    /// Sends the bytes of a request on a connection of its own, and returns all that comes back.
    async fn send(&self, request: &str) -> String {
        let mut stream = self.connect().await;
        let place = format!("git.example:{}", self.origin.port);
        stream.write_all(request.replace("$HOST", &place).as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Gets a path, and closes.
    async fn get(&self, path: &str) -> String {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: $HOST\r\nConnection: close\r\n\r\n")).await
    }
}

fn rustup_home() -> std::ffi::OsString {
    std::env::var_os("RUSTUP_HOME").unwrap_or_else(|| {
        let home = std::env::var_os("HOME").unwrap_or_default();
        PathBuf::from(home).join(".rustup").into()
    })
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Returns the value of a header, or an empty text.
fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let named = head.lines().find_map(|line| {
        let (own, value) = line.split_once(": ")?;
        own.eq_ignore_ascii_case(name).then_some(value)
    });
    named.unwrap_or_default()
}

fn bearer() -> CredentialHeader {
    CredentialHeader::default()
}

#[tokio::test]
async fn curl_uses_the_credential_and_never_sees_it() {
    // It answers with all that it got, as a page for debugging does.
    let origin = Origin::start(&["git.example", "other.example"], |head, body| {
        Reply::ok("text/plain", [head.as_bytes(), body].concat())
    })
    .await;
    let fixture = Fixture::start(origin, bearer()).await;
    let url = fixture.url("/a?b=c");
    let arguments = ["-sS", "-H", "Authorization: Bearer placeholder", "--compressed", "-r", "0-10", &url];
    let Some(output) = fixture.run("curl", &arguments).await else { return };
    let masked = format!("authorization: bearer {}", "*".repeat(SECRET.len()));
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).to_ascii_lowercase().contains(&masked), "{}", text(&output));
    assert!(!text(&output).contains(SECRET) && !text(&output).contains("placeholder"), "{}", text(&output));
    let head = fixture.origin.heads().remove(0);
    assert_eq!(header(&head, "Authorization"), format!("Bearer {SECRET}"));
    assert_eq!(header(&head, "Accept-Encoding"), "identity");
    assert_eq!((header(&head, "Range"), header(&head, "Connection")), ("", ""));
    assert_eq!(header(&head, "Host"), format!("git.example:{}", fixture.origin.port));

    // A large upload in both framings, and a request without a body in the same connection.
    let large = fixture.folder.path().join("large");
    std::fs::write(&large, vec![b'x'; 3 << 20]).unwrap();
    let from = format!("@{}", large.display());
    for framing in ["Content-Length: 3145728", "Transfer-Encoding: chunked"] {
        let arguments = ["-sS", "-o", "/dev/null", "-w", "%{http_code} %{size_upload}\n", "-H", framing];
        let arguments =
            [&arguments[..], &["-H", "Expect: 100-continue", "--data-binary", &from, &url]].concat();
        let output = fixture.run("curl", &arguments).await.unwrap();
        // curl counts what frames the chunks too.
        assert!(text(&output).starts_with("200 314"), "{framing}: {}", text(&output));
    }
    let arguments = ["-sS", "-I", &url, "--next", "-sS", "-o", "/dev/null", "-w", "%{num_connects}", &url];
    let output = fixture.run("curl", &arguments).await.unwrap();
    assert!(text(&output).starts_with("HTTP/1.1 200") && text(&output).ends_with('0'), "{}", text(&output));

    // Another host is tunnelled as it is, with its own certificate, and gets nothing.
    let other = format!("https://other.example:{}/", fixture.origin.port);
    let output =
        fixture.run("curl", &["-sS", "-v", "-H", "Authorization: Bearer own", &other]).await.unwrap();
    assert!(output.status.success() && !text(&output).contains("CoreTools"), "{}", text(&output));
    assert_eq!(header(fixture.origin.heads().last().unwrap(), "Authorization"), "Bearer own");
    assert!(fixture.denials.lock().unwrap().is_empty());
}

#[tokio::test]
async fn git_npm_pip_and_cargo_use_the_credential_by_the_variables_alone() {
    let port = Arc::new(AtomicUsize::new(0));
    let known_port = Arc::clone(&port);
    let origin = Origin::start(&["git.example"], move |head, _| {
        let path = head.split(' ').nth(1).unwrap_or("/");
        let place = format!("https://git.example:{}", known_port.load(Ordering::SeqCst));
        if !head.contains(SECRET) {
            return Reply::raw(&["HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"]);
        }
        match path {
            "/repository.git/info/refs" | "/repository.git/info/refs?service=git-upload-pack" => Reply::ok(
                "text/plain",
                "1111111111111111111111111111111111111111\trefs/heads/main\n",
            ),
            "/repository.git/HEAD" => Reply::ok("text/plain", "ref: refs/heads/main\n"),
            "/npm/tiny" => {
                let version = format!(
                    r#"{{"name":"tiny","version":"1.2.3","dist":{{"tarball":"{place}/tiny.tgz"}}}}"#
                );
                let body =
                    format!(r#"{{"name":"tiny","dist-tags":{{"latest":"1.2.3"}},"versions":{{"1.2.3":{version}}}}}"#);
                Reply::ok("application/json", body)
            }
            "/simple/tiny/" => Reply::ok("text/html", "<a href=\"tiny-1.2.3-py3-none-any.whl\">tiny</a>"),
            "/index/config.json" => Reply::ok("application/json", format!(r#"{{"dl":"{place}/dl","api":"{place}"}}"#)),
            "/index/ti/ny/tiny" => Reply::ok(
                "text/plain",
                r#"{"name":"tiny","vers":"1.2.3","deps":[],"cksum":"0000000000000000000000000000000000000000000000000000000000000000","features":{},"yanked":false}"#,
            ),
            _ => Reply::raw(&["HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"]),
        }
    })
    .await;
    port.store(origin.port.into(), Ordering::SeqCst);
    let fixture = Fixture::start(origin, bearer()).await;

    let Some(output) = fixture.run("git", &["ls-remote", &fixture.url("/repository.git")]).await else {
        return;
    };
    assert!(output.status.success() && text(&output).contains("refs/heads/main"), "{}", text(&output));

    let registry = format!("--registry={}", fixture.url("/npm/"));
    let arguments = ["view", "tiny", "version", &registry, "--fetch-retries=0", "--no-update-notifier"];
    let Some(output) = fixture.run("npm", &arguments).await else { return };
    assert!(output.status.success() && text(&output).contains("1.2.3"), "{}", text(&output));

    let index = fixture.url("/simple/");
    let pip = ["-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "--retries=0", "download"];
    let arguments = [&pip[..], &["--no-deps", "--index-url", &index, "tiny==9"]].concat();
    let Some(output) = fixture.run("/usr/bin/python3", &arguments).await else { return };
    if require(
        (!text(&output).contains("No module named pip")).then_some(()),
        "no pip; apt install python3-pip",
    )
    .is_none()
    {
        return;
    }
    // It read the index, which has another version.
    assert!(text(&output).contains("from versions: 1.2.3"), "{}", text(&output));

    let package = fixture.folder.path().join("package");
    std::fs::create_dir_all(package.join("src")).unwrap();
    std::fs::create_dir_all(package.join(".cargo")).unwrap();
    std::fs::write(package.join("src/lib.rs"), "").unwrap();
    let index = fixture.url("/index/");
    std::fs::write(
        package.join(".cargo/config.toml"),
        format!("[registries.own]\nindex = \"sparse+{index}\"\n"),
    )
    .unwrap();
    let manifest = "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\ntiny = { version = \"1\", registry = \"own\" }\n";
    std::fs::write(package.join("Cargo.toml"), manifest).unwrap();
    let output =
        fixture.run("sh", &["-c", "cd package && cargo generate-lockfile && cat Cargo.lock"]).await.unwrap();
    assert!(output.status.success() && text(&output).contains("name = \"tiny\""), "{}", text(&output));

    let heads = fixture.origin.heads();
    for client in ["git/", "npm/", "pip/", "cargo/"] {
        let own: Vec<_> = heads.iter().filter(|head| header(head, "User-Agent").contains(client)).collect();
        assert!(!own.is_empty() && own.iter().all(|head| head.contains(SECRET)), "{client}: {own:?}");
    }
    assert!(fixture.denials.lock().unwrap().is_empty(), "{:?}", fixture.denials.lock().unwrap());
}

#[tokio::test]
async fn basic_authentication_and_other_headers_are_masked_in_each_form() {
    let pair = "bWU6Z2xwYXQtWXM3YkxxejEtcGx1bS1vcmNoYXJk";
    let origin = Origin::start(&["git.example"], |head, _| Reply::ok("text/plain", head)).await;
    let fixture = Fixture::start(origin, CredentialHeader::basic(None, "me").unwrap()).await;
    let answer = fixture.get("/").await;
    assert_eq!(header(&fixture.origin.heads()[0], "Authorization"), format!("Basic {pair}"));
    assert!(answer.contains(&format!("Authorization: Basic {}\r\n", "*".repeat(pair.len()))), "{answer}");

    let origin = Origin::start(&["git.example"], |_, _| {
        // As it stands, in the name of a field, in hexadecimal digits, and cut between two reads and two chunks.
        Reply::raw(&[
            &format!("HTTP/1.1 200 {SECRET}\r\nX-{SECRET}: 1\r\nSet-Cookie: a={SECRET}\r\nTransfer-Encoding: chunked\r\n\r\n"),
            &format!("{:x}\r\n<{}", 1 + 10, &SECRET[..10]),
            "\r\n",
            &format!("{:x}\r\n{}>", SECRET.len() - 10 + 1, &SECRET[10..]),
            "\r\n36\r\n676c7061742d597337624c717a312d706c756d2d6f726368617264\r\n0\r\nTrailer: 1\r\n\r\n",
        ])
    })
    .await;
    let header = CredentialHeader::new(Some("PRIVATE-TOKEN"), Some("{secret}")).unwrap();
    let fixture = Fixture::start(origin, header).await;
    let answer = fixture.get("/").await;
    let stars = "*".repeat(SECRET.len());
    let hexadecimal = "*".repeat(2 * SECRET.len());
    assert!(
        answer.starts_with(&format!("HTTP/1.1 200 {stars}\r\nX-{stars}: 1\r\nSet-Cookie: a={stars}\r\n")),
        "{answer}"
    );
    let body: String = answer.split("\r\n\r\n").nth(1).unwrap().lines().skip(1).step_by(2).collect();
    assert_eq!(body, format!("<{stars}>{hexadecimal}"), "{answer}");
    assert!(answer.ends_with("\r\n0\r\n\r\n") && !answer.contains("Trailer"), "{answer}");
}

#[tokio::test]
async fn a_redirect_to_another_host_or_without_tls_does_not_carry_it() {
    let port = Arc::new(AtomicUsize::new(0));
    let known_port = Arc::clone(&port);
    let origin = Origin::start(&["git.example", "other.example"], move |head, _| {
        let port = known_port.load(Ordering::SeqCst);
        match head.split(' ').nth(1).unwrap() {
            "/away" => Reply::raw(&[&format!(
                "HTTP/1.1 302 Found\r\nLocation: https://other.example:{port}/there\r\nContent-Length: 0\r\n\r\n"
            )]),
            _ => Reply::ok("text/plain", "arrived"),
        }
    })
    .await;
    port.store(origin.port.into(), Ordering::SeqCst);
    let fixture = Fixture::start(origin, bearer()).await;
    let arguments = ["-sSL", "-H", "Authorization: Bearer placeholder", &fixture.url("/away")];
    let Some(output) = fixture.run("curl", &arguments).await else { return };
    assert_eq!(text(&output), "arrived");
    let heads = fixture.origin.heads();
    assert!(
        heads[0].contains(SECRET) && heads[1].starts_with("GET /there") && !heads[1].contains(SECRET),
        "{heads:?}"
    );

    // Plain HTTP to the same port: the host gets the request as it is.
    let plain = fixture.url("/").replace("https://", "http://");
    fixture.run("curl", &["-sS", "-m", "20", &plain]).await.unwrap();
    // Inside a tunnel without TLS, nothing reaches the host.
    let mut stream = fixture.tunnel("git.example").await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: git.example\r\n\r\n").await.unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).await;
    assert_eq!(fixture.origin.heads().len(), 2);
    let denied = fixture.denials.lock().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(denied.len() == 1 && denied[0].contains("is no TLS handshake"), "{denied:?}");
}

#[tokio::test]
async fn a_host_whose_certificate_is_not_accepted_gets_nothing() {
    let other = Origin::start(&["git.example"], |_, _| Reply::ok("text/plain", "")).await;
    // Signed by an authority that the proxy does not know; and for another name.
    for names in [["git.example"], ["evil.example"]] {
        let origin = Origin::start(&names, |_, _| Reply::ok("text/plain", "")).await;
        let roots = if names == ["git.example"] { &other.authority } else { &origin.authority }.clone();
        let fixture = Fixture::with_roots(origin, bearer(), &roots).await;
        let answer = fixture.get("/").await;
        assert!(
            answer.starts_with("HTTP/1.1 502") && answer.contains("no TLS connection that the proxy accepts"),
            "{answer}"
        );
        assert!(fixture.origin.heads().is_empty());
    }
}

#[tokio::test]
async fn a_request_that_could_lead_the_credential_elsewhere_is_refused() {
    let origin = Origin::start(&["git.example"], |_, _| Reply::ok("text/plain", "taken")).await;
    let fixture = Fixture::start(origin, bearer()).await;
    for (request, status) in [
        // Another name of the same server, none, two, and another port.
        ("GET / HTTP/1.1\r\nHost: other.example\r\n\r\n", 403),
        ("GET / HTTP/1.1\r\n\r\n", 403),
        ("GET / HTTP/1.1\r\nHost: $HOST\r\nHost: other.example\r\n\r\n", 403),
        ("GET / HTTP/1.1\r\nHost: git.example:1\r\n\r\n", 403),
        ("GET https://other.example/ HTTP/1.1\r\nHost: $HOST\r\n\r\n", 400),
        ("GET / HTTP/1.0\r\nHost: $HOST\r\n\r\n", 505),
        ("CONNECT other.example:443 HTTP/1.1\r\nHost: $HOST\r\n\r\n", 400),
        // What two readers could end in two places.
        (
            "POST / HTTP/1.1\r\nHost: $HOST\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        ("GET / HTTP/1.1\nHost: $HOST\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: $HOST\r\nA: b\nGET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : $HOST\r\n\r\n", 400),
    ] {
        let answer = fixture.send(request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
    }
    assert!(fixture.origin.heads().is_empty(), "{:?}", fixture.origin.heads());
    // A client's `Connection` takes nothing from the proxy's own header.
    let request = "GET / HTTP/1.1\r\nHost: $HOST\r\nConnection: close, Authorization, Host\r\nAuthorization: Bearer own\r\n\r\n";
    let answer = fixture.send(request).await;
    assert!(answer.ends_with("taken"), "{answer}");
    let head = fixture.origin.heads().remove(0);
    assert_eq!(head.matches("Authorization").count(), 1, "{head}");
    assert!(head.contains(SECRET) && !head.contains("own"), "{head}");
}

#[tokio::test]
async fn an_answer_in_which_the_secret_could_not_be_found_is_refused() {
    let origin = Origin::start(&["git.example"], |head, _| match head.split(' ').nth(1).unwrap() {
        "/gzip" => Reply::raw(&["HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx"]),
        "/two" => Reply::raw(&[
            "HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\nxx",
        ]),
        "/part" => Reply::raw(&["HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\n\r\nxx"]),
        "/transfer" => Reply::raw(&["HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nxx"]),
        "/switch" => Reply::raw(&["HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\nxx"]),
        "/both" => Reply::raw(&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nxx"]),
        "/lf" => Reply::raw(&["HTTP/1.1 200 OK\nContent-Length: 2\n\nxx"]),
        "/identity" => {
            Reply::raw(&["HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 2\r\n\r\nxx"])
        }
        _ => Reply(Vec::new()),
    })
    .await;
    let fixture = Fixture::start(origin, bearer()).await;
    for (path, part) in [
        ("/gzip", "content coding `gzip`"),
        ("/two", "content coding `br`"),
        ("/part", "a part that nobody asked for"),
        ("/transfer", "cannot be read"),
        ("/switch", "another protocol"),
        ("/both", "cannot be read"),
        ("/lf", "cannot be read"),
        ("/nothing", "without an answer"),
    ] {
        let answer = fixture.get(path).await;
        assert!(answer.starts_with("HTTP/1.1 502") && answer.contains(part), "{path}: {answer}");
        assert!(!answer.contains("xx"), "{path}: {answer}");
    }
    assert!(fixture.get("/identity").await.ends_with("xx"));
}

#[tokio::test]
async fn a_cut_answer_does_not_look_whole() {
    let origin = Origin::start(&["git.example"], |head, _| match head.split(' ').nth(1).unwrap() {
        "/until-end" => Reply::raw(&["HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", "all of it"]),
        _ => Reply::raw(&["HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 100\r\n\r\n", "half"]),
    })
    .await;
    let fixture = Fixture::start(origin, bearer()).await;
    let mut read = Vec::new();
    let mut stream = fixture.connect().await;
    let request = format!("GET /half HTTP/1.1\r\nHost: git.example:{}\r\n\r\n", fixture.origin.port);
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(stream.read_to_end(&mut read).await.is_err(), "TLS must not end well");
    let mut stream = fixture.connect().await;
    stream.write_all(request.replace("/half", "/until-end").as_bytes()).await.unwrap();
    read.clear();
    stream.read_to_end(&mut read).await.unwrap();
    assert!(read.ends_with(b"all of it"));
}

#[tokio::test]
async fn the_secret_is_read_for_each_request_and_connections_are_kept() {
    let origin = Origin::start(&["git.example"], |_, _| Reply::ok("text/plain", "")).await;
    let fixture = Fixture::start(origin, bearer()).await;
    let mut stream = fixture.connect().await;
    let request = format!("GET / HTTP/1.1\r\nHost: git.example:{}\r\n\r\n", fixture.origin.port);
    for secret in [SECRET, "another-secret"] {
        *fixture.secret.lock().unwrap() = secret.to_owned();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
        }
        assert!(fixture.origin.heads().last().unwrap().contains(&format!("Bearer {secret}\r\n")));
    }
    assert_eq!(fixture.origin.connections.load(Ordering::SeqCst), 1);
    *fixture.secret.lock().unwrap() = "short".to_owned();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(
        answer.starts_with("HTTP/1.1 502") && answer.contains("cannot be used") && !answer.contains("short"),
        "{answer}"
    );
}
