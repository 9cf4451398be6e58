//! JWTs of an outside issuer: signed for real, and forged.

use crate::SOON;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use integration_tests::{Ask, Era, Http, HttpServer, Project, Reply, wait_until};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// An issuer with one key.
struct Issuer {
    key: EcdsaKeyPair,
    id: &'static str,
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Issuer {
    fn new(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random).unwrap();
        Self { key, id }
    }

    fn jwk(&self) -> Value {
        let point = self.key.public_key().as_ref();
        json!({"kty": "EC", "crv": "P-256", "kid": self.id, "use": "sig", "x": encode(&point[1..33]), "y": encode(&point[33..])})
    }

    fn sign(&self, header: &Value, claims: &str) -> String {
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims));
        let sealed = self.key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", encode(sealed.as_ref()))
    }

    fn token(&self, claims: &Value) -> String {
        self.sign(&json!({"alg": "ES256", "typ": "JWT", "kid": self.id}), &claims.to_string())
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

fn claims() -> Value {
    json!({
        "iss": "https://issuer.example", "aud": "https://tools.example/mcp", "sub": "ada", "exp": now() + 600,
        "nbf": now() - 5, "scope": "openid mcp:tools", "groups": ["staff", "developers"],
    })
}

fn put_keys(path: &Path, keys: &[Value]) {
    fs::write(path, json!({"keys": keys}).to_string()).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A server that takes tokens of `issuer`, the folder of its keys, and its configuration.
fn server(project: &Project, outside: &Project, issuer: &Issuer) -> HttpServer {
    put_keys(&outside.join("jwks.json"), &[issuer.jwk()]);
    let config = format!(
        "[http]\npublic_url = \"https://tools.example/mcp\"\njwt_issuer = \"https://issuer.example\"\n\
         jwt_keys = \"{}\"\njwt_scope = \"mcp:tools\"\n\
         jwt_roles = [\"groups=admins:orchestrator\", \"groups=developers:dev\", \"realm.access=read:readonly\"]\n",
        outside.join("jwks.json").display()
    );
    fs::write(outside.join("coretools.toml"), config).unwrap();
    HttpServer::start(project, &["--config", outside.join("coretools.toml").to_str().unwrap()])
}

fn list(server: &HttpServer, token: &str) -> Reply {
    Http::silent(server.address(), Some(token), Era::Modern).reply("tools/list", json!({}))
}

#[test]
fn a_token_that_holds_gives_the_role_of_its_claims() {
    let (project, outside, issuer) = (Project::with([("a.txt", "a")]), Project::empty(), Issuer::new("one"));
    let server = server(&project, &outside, &issuer);
    let token = issuer.token(&claims());
    for era in Era::BOTH {
        let mut client = server.connect(&token, era);
        assert!(client.listed().contains("write_file"));
        client.text("read_file", json!({"path": "a.txt"}));
    }
    let mut other = claims();
    other["groups"] = json!("guests");
    other["realm"] = json!({"access": ["read"]});
    other["aud"] = json!(["x", "https://tools.example/mcp"]);
    let listed = list(&server, &issuer.token(&other)).body;
    assert!(listed.contains("read_file") && !listed.contains("write_file"), "{listed}");
}

#[test]
fn what_does_not_hold_is_refused_and_says_where_to_get_one_that_does() {
    let (project, outside, issuer) = (Project::empty(), Project::empty(), Issuer::new("one"));
    let server = server(&project, &outside, &issuer);
    let with = |name: &str, value: Value| {
        let mut claims = claims();
        claims[name] = value;
        issuer.token(&claims)
    };
    let without = |name: &str| {
        let mut claims = claims();
        claims.as_object_mut().unwrap().remove(name);
        issuer.token(&claims)
    };
    let good = issuer.token(&claims());
    assert_eq!(list(&server, &good).status, 200);
    let (signed, sealed) = good.rsplit_once('.').unwrap();
    let body = signed.split_once('.').unwrap().1;
    let header = |header: Value| format!("{}.{body}.{sealed}", encode(header.to_string()));
    let stranger = Issuer::new("one");
    let point = issuer.key.public_key().as_ref();
    let mut bad = vec![
        ("alg none", format!("{}.{body}.", encode(r#"{"alg":"none"}"#))),
        ("alg None with a signature", header(json!({"alg": "None", "kid": "one"}))),
        ("no alg", header(json!({"kid": "one"}))),
        ("another algorithm", header(json!({"alg": "EdDSA", "kid": "one"}))),
        ("RSA of an EC key", header(json!({"alg": "RS256", "kid": "one"}))),
        ("an algorithm that is not allowed", header(json!({"alg": "ES384", "kid": "one"}))),
        (
            "an extension",
            issuer.sign(
                &json!({"alg": "ES256", "kid": "one", "crit": ["b64"], "b64": false}),
                &claims().to_string(),
            ),
        ),
        ("another's key", stranger.token(&claims())),
        ("a key that it brings", {
            let header = json!({"alg": "ES256", "jwk": stranger.jwk(), "kid": "one"});
            stranger.sign(&header, &claims().to_string())
        }),
        ("an unknown key", issuer.sign(&json!({"alg": "ES256", "kid": "two"}), &claims().to_string())),
        ("another issuer", with("iss", json!("https://evil.example"))),
        ("no issuer", without("iss")),
        ("another audience", with("aud", json!("https://other.example/mcp"))),
        ("a part of the audience", with("aud", json!("https://tools.example"))),
        ("no audience", without("aud")),
        ("over", with("exp", json!(now() - 120))),
        ("no end", without("exp")),
        ("an end that is text", with("exp", json!("9999999999"))),
        ("not yet", with("nbf", json!(now() + 600))),
        ("no subject", without("sub")),
        (
            "changed claims",
            format!(
                "{}.{}.{sealed}",
                signed.split_once('.').unwrap().0,
                encode(claims().to_string().replace("ada", "bob"))
            ),
        ),
        ("no signature", format!("{signed}.")),
        ("a signature of another form", format!("{signed}.{}", encode([0_u8; 64]))),
        ("a fourth part", format!("{good}.x")),
        (
            "two subjects",
            issuer.sign(
                &json!({"alg": "ES256", "kid": "one"}),
                &claims().to_string().replace("\"sub\":", "\"sub\":\"root\",\"sub\":"),
            ),
        ),
        ("nothing", "..".to_owned()),
    ];
    // The public key as a secret, which anybody has.
    let hmac = {
        let signed = format!("{}.{body}", encode(r#"{"alg":"HS256","kid":"one"}"#));
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, point);
        format!("{signed}.{}", encode(ring::hmac::sign(&key, signed.as_bytes()).as_ref()))
    };
    bad.push(("a public key as a secret", hmac));
    for (what, token) in &bad {
        let reply = list(&server, token);
        assert_eq!(reply.status, 401, "{what}: {reply:?}");
        let challenge = reply.header("www-authenticate").unwrap();
        assert!(challenge.contains("error=\"invalid_token\""), "{what}: {challenge}");
        assert!(
            challenge.contains(
                "resource_metadata=\"https://tools.example/.well-known/oauth-protected-resource/mcp\""
            ),
            "{challenge}"
        );
    }
    // It holds, and is not enough.
    for (what, token) in [
        ("no scope", without("scope")),
        ("another scope", with("scope", json!("mcp:tools2 openid"))),
        ("no role", with("groups", json!(["guests"]))),
    ] {
        let reply = list(&server, &token);
        assert_eq!(reply.status, 403, "{what}: {reply:?}");
        assert!(
            reply.header("www-authenticate").unwrap().contains("error=\"insufficient_scope\""),
            "{what}: {reply:?}"
        );
    }
    for path in ["", "/mcp"] {
        let reply = server.get(&format!("/.well-known/oauth-protected-resource{path}"), None);
        let document: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(document["resource"], "https://tools.example/mcp");
        assert_eq!(document["authorization_servers"], json!(["https://issuer.example"]));
        assert_eq!(document["scopes_supported"], json!(["mcp:tools"]));
    }
    let challenge = server.get("/mcp", None);
    assert!(challenge.header("www-authenticate").unwrap().contains("scope=\"mcp:tools\""), "{challenge:?}");
}

#[test]
fn keys_are_changed_while_the_server_runs() {
    let (project, outside, issuer) = (Project::empty(), Project::empty(), Issuer::new("one"));
    let server = server(&project, &outside, &issuer);
    let next = Issuer::new("two");
    let (old, new) = (issuer.token(&claims()), next.token(&claims()));
    assert_eq!((list(&server, &old).status, list(&server, &new).status), (200, 401));
    put_keys(&outside.join("jwks.json"), &[json!({"kty": "oct", "k": "AAAA"}), next.jwk(), issuer.jwk()]);
    wait_until(SOON, "the new key is known", || list(&server, &new).status == 200);
    assert_eq!(list(&server, &old).status, 200);
    put_keys(&outside.join("jwks.json"), &[next.jwk()]);
    wait_until(SOON, "the old key is gone", || list(&server, &old).status == 401);
    fs::write(outside.join("jwks.json"), "{").unwrap();
    wait_until(SOON, "it is refused", || server.log().contains("keys is not used"));
    assert_eq!(list(&server, &new).status, 200);
    // Of another kind.
    let random = SystemRandom::new();
    let made = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    let key = Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap();
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": encode(key.public_key().as_ref())});
    put_keys(&outside.join("jwks.json"), &[jwk]);
    let signed = format!("{}.{}", encode(r#"{"alg":"EdDSA"}"#), encode(claims().to_string()));
    let token = format!("{signed}.{}", encode(key.sign(signed.as_bytes()).as_ref()));
    wait_until(SOON, "the other kind is known", || list(&server, &token).status == 200);
}

/// Serves `keys` to whoever asks, and counts how often that was.
fn serve_keys(keys: Arc<Mutex<String>>) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                head.push(byte[0]);
            }
            counted.fetch_add(1, Ordering::Relaxed);
            let body = keys.lock().unwrap().clone();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    (port, asked)
}

#[test]
fn an_unknown_key_is_asked_for_and_not_more_often_than_it_could_have_come() {
    let (project, outside) = (Project::empty(), Project::empty());
    let (one, two) = (Issuer::new("one"), Issuer::new("two"));
    let keys = Arc::new(Mutex::new(json!({"keys": [one.jwk()]}).to_string()));
    let (port, asked) = serve_keys(Arc::clone(&keys));
    let config = format!(
        "[http]\njwt_audience = \"https://tools.example/mcp\"\njwt_issuer = \"https://issuer.example\"\n\
         jwt_keys = \"http://127.0.0.1:{port}/jwks\"\njwt_roles = [\"groups=developers:dev\"]\n"
    );
    fs::write(outside.join("coretools.toml"), config).unwrap();
    let server = HttpServer::start(&project, &["--config", outside.join("coretools.toml").to_str().unwrap()]);
    assert_eq!(list(&server, &one.token(&claims())).status, 200);
    *keys.lock().unwrap() = json!({"keys": [one.jwk(), two.jwk()]}).to_string();
    let token = two.token(&claims());
    wait_until(SOON, "the new key is asked for", || list(&server, &token).status == 200);
    let before = asked.load(Ordering::Relaxed);
    let forged = one.sign(&json!({"alg": "ES256", "kid": "three"}), &claims().to_string());
    for _ in 0..50 {
        assert_eq!(list(&server, &forged).status, 401);
    }
    assert!(
        asked.load(Ordering::Relaxed) <= before + 2,
        "asked {} times",
        asked.load(Ordering::Relaxed) - before
    );
    // What cannot be read changes nothing.
    *keys.lock().unwrap() = "nonsense".to_owned();
    assert_eq!(list(&server, &token).status, 200);
}
