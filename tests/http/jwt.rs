//! JWTs of an outside issuer: signed for real, and forged.

use crate::SOON;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use integration_tests::{Ask, Era, Http, HttpServer, Project, Reply, require, wait_until};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// An issuer with one key.
struct JwtIssuer {
    key: EcdsaKeyPair,
    id: &'static str,
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl JwtIssuer {
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
fn server(project: &Project, outside: &Project, issuer: &JwtIssuer) -> HttpServer {
    put_keys(&outside.join("jwks.json"), &[issuer.jwk()]);
    let config = format!(
        "[http]\npublic_url = \"https://tools.example/mcp\"\njwt_issuer = \"https://issuer.example\"\n\
         jwt_keys = \"{}\"\njwt_scope = \"mcp:tools\"\n\
         jwt_roles = [\"groups=admins:orchestrator\", \"groups=developers:dev\", \"realm.access=read:readonly\"]\n",
        outside.join("jwks.json").display()
    );
    fs::write(outside.join("coretools.toml"), config).unwrap();
    let (config, audit) = (outside.join("coretools.toml"), outside.join("audit.jsonl"));
    HttpServer::start(project, &["--config", config.to_str().unwrap(), "--audit", audit.to_str().unwrap()])
}

fn list(server: &HttpServer, token: &str) -> Reply {
    Http::silent(server.address(), Some(token), Era::Modern).reply("tools/list", json!({}))
}

#[test]
fn a_token_that_holds_gives_the_role_of_its_claims() {
    let (project, outside, issuer) =
        (Project::with([("a.txt", "a")]), Project::empty(), JwtIssuer::new("one"));
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
    let (project, outside, issuer) = (Project::empty(), Project::empty(), JwtIssuer::new("one"));
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
    let stranger = JwtIssuer::new("one");
    let one = json!({"alg": "ES256", "kid": "one"});
    // Claims of which one is written as it stands here.
    let raw = |member: &str| {
        let mut claims = claims();
        claims.as_object_mut().unwrap().remove("exp");
        issuer.sign(&one, &claims.to_string().replacen('{', &format!("{{{member},"), 1))
    };
    let raw_header = |header: &str| {
        let signed = format!("{}.{}", encode(header), encode(claims().to_string()));
        let sealed = issuer.key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", encode(sealed.as_ref()))
    };
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
        // What another reader might take differently.
        ("the audience among words", with("aud", json!("https://evil.example https://tools.example/mcp"))),
        ("an audience that is an object", with("aud", json!({"https://tools.example/mcp": true}))),
        ("an issuer that is a list", with("iss", json!(["https://issuer.example"]))),
        ("an end in milliseconds", with("exp", json!((now() + 600) * 1000))),
        ("an end that is no finite number", raw(r#""exp":1e999"#)),
        ("an end with more digits than a number has", raw(r#""exp":99999999999999999999999999"#)),
        ("an end before 1970", with("exp", json!(-1))),
        ("an end that is true", with("exp", json!(true))),
        ("an end that is null", with("exp", Value::Null)),
        ("a beginning that is text", with("nbf", json!("0"))),
        ("a beginning that is null", with("nbf", Value::Null)),
        ("two ends", raw(&format!(r#""exp":{},"exp":{}"#, now() + 600, now() + 600))),
        (
            "two ends, one of them escaped",
            raw(&format!(r#""\u0065xp":{},"exp":{}"#, now() - 600, now() + 600)),
        ),
        ("a subject with a line of its own", with("sub", json!("ada\n2026-11-22 root logged in"))),
        ("a subject that is turned round", with("sub", json!("\u{202e}ada"))),
        ("a subject that is a number", with("sub", json!(1))),
        ("no subject but one that is empty", with("sub", json!(""))),
        ("a subject that is too long", with("sub", json!("a".repeat(257)))),
        ("a token that is too long", with("more", json!("a".repeat(20_000)))),
        (
            "a token with deep claims",
            raw(&format!(r#""x":{}{},"exp":{}"#, "[".repeat(4000), "]".repeat(4000), now() + 600)),
        ),
        ("a mark before the claims", issuer.sign(&one, &format!("\u{feff}{}", claims()))),
        ("claims that are a list", issuer.sign(&one, "[]")),
        ("more behind the claims", issuer.sign(&one, &format!("{} {{}}", claims()))),
        (
            "a key that is named by a number",
            issuer.sign(&json!({"alg": "ES256", "kid": 1}), &claims().to_string()),
        ),
        (
            "a key that is named by a list",
            issuer.sign(&json!({"alg": "ES256", "kid": ["one"]}), &claims().to_string()),
        ),
        (
            "a key that is a path",
            issuer.sign(&json!({"alg": "ES256", "kid": "../../dev/null"}), &claims().to_string()),
        ),
        (
            "a key in other letters",
            issuer.sign(&json!({"alg": "ES256", "kid": "ONE"}), &claims().to_string()),
        ),
        (
            "keys somewhere else",
            stranger.sign(
                &json!({"alg": "ES256", "kid": "one", "jku": "http://127.0.0.1:1/"}),
                &claims().to_string(),
            ),
        ),
        (
            "algorithms to choose from",
            issuer.sign(&json!({"alg": ["ES256"], "kid": "one"}), &claims().to_string()),
        ),
        (
            "an algorithm in other letters",
            issuer.sign(&json!({"alg": "es256", "kid": "one"}), &claims().to_string()),
        ),
        ("two algorithms", raw_header(r#"{"alg":"none","alg":"ES256","kid":"one"}"#)),
        (
            "an empty list of extensions",
            issuer.sign(&json!({"alg": "ES256", "kid": "one", "crit": []}), &claims().to_string()),
        ),
        (
            "a token for logging out",
            issuer.sign(&json!({"alg": "ES256", "kid": "one", "typ": "logout+jwt"}), &claims().to_string()),
        ),
        (
            "a kind that is a number",
            issuer.sign(&json!({"alg": "ES256", "kid": "one", "typ": 1}), &claims().to_string()),
        ),
        ("a signature with padding", format!("{good}==")),
        ("a signature with a line end", format!("{good}%0A")),
        ("a signature in the other alphabet", other_alphabet(&issuer)),
        ("a signature with loose bits", loose_bits(&good)),
        ("a signature in the form of X.509", {
            let raw = URL_SAFE_NO_PAD.decode(sealed).unwrap();
            format!("{signed}.{}", encode(der(&raw)))
        }),
        ("a signature of zeros", format!("{signed}.{}", encode([0_u8; 64]))),
        ("an encrypted token", format!("{good}.{body}.{sealed}")),
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
fn who_is_refused_is_named_once_the_signature_holds_with_the_claim_that_does_not_fit() {
    let (project, outside, issuer) = (Project::empty(), Project::empty(), JwtIssuer::new("one"));
    let server = server(&project, &outside, &issuer);
    let with = |name: &str, value: Value| {
        let mut claims = claims();
        claims[name] = value;
        claims
    };
    let stranger = JwtIssuer::new("one");
    for (token, principal, rule) in [
        (
            issuer.token(&with("exp", json!(now() - 100))),
            "jwt:ada",
            "http: bad_token from 127.0.0.1: it has expired: its claim `exp` has passed",
        ),
        (issuer.token(&with("exp", Value::Null)), "jwt:ada", "its claim `exp` is missing"),
        (issuer.token(&with("aud", json!("https://other.example/mcp"))), "jwt:ada", "its claim `aud`"),
        (issuer.token(&with("iss", json!("https://evil.example"))), "jwt:ada", "its claim `iss`"),
        (issuer.token(&with("nbf", json!(now() + 1000))), "jwt:ada", "its claim `nbf`"),
        (issuer.token(&with("sub", json!(""))), "stranger:127.0.0.1", "its claim `sub` is missing"),
        (
            issuer.token(&with("scope", json!("openid"))),
            "jwt:ada",
            "http: insufficient from 127.0.0.1: the scope `mcp:tools` is missing in its claim `scope` or `scp`",
        ),
        (
            issuer.token(&with("groups", json!(["guests"]))),
            "jwt:ada",
            "http.jwt_roles gives no role to its claims; it looks at `groups`, `realm.access`",
        ),
        (
            stranger.token(&claims()),
            "stranger:127.0.0.1",
            "http: bad_token: its signature does not hold; it says it is `ada`, unverified",
        ),
        // What would mislead a reader is not shown, and what nobody signed names nobody.
        (
            stranger.token(&with("sub", json!("a\u{202e}b"))),
            "stranger:127.0.0.1",
            "its signature does not hold",
        ),
        ("nonsense".to_owned(), "stranger:127.0.0.1", "neither a token of this server nor a JWT"),
    ] {
        let before = fs::read_to_string(outside.join("audit.jsonl")).unwrap_or_default().lines().count();
        assert!(matches!(list(&server, &token).status, 401 | 403));
        // Ten refusals of one kind are recorded in a second.
        let mut found = Value::Null;
        wait_until(SOON, "the refusal is recorded", || {
            let text = fs::read_to_string(outside.join("audit.jsonl")).unwrap_or_default();
            let line = text.lines().nth(before).map(|line| serde_json::from_str(line).unwrap());
            if line.is_none() {
                list(&server, &token);
            }
            found = line.unwrap_or_default();
            found.is_object()
        });
        let recorded = found["rule"].as_str().unwrap();
        assert!(found["principal"] == principal && recorded.contains(rule), "{rule}: {found}");
        assert!(!recorded.contains('\u{202e}'), "{recorded}");
    }
}

/// A token whose signature is written in the alphabet of RFC 4648 §4, where that differs.
fn other_alphabet(issuer: &JwtIssuer) -> String {
    loop {
        let token = issuer.token(&claims());
        let (signed, sealed) = token.rsplit_once('.').unwrap();
        if sealed.contains(['-', '_']) {
            return format!("{signed}.{}", sealed.replace('-', "+").replace('_', "/"));
        }
    }
}

/// The same signature with bits set that no byte has.
fn loose_bits(token: &str) -> String {
    let (rest, last) = token.split_at(token.len() - 1);
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let place = ALPHABET.find(last).unwrap();
    format!("{rest}{}", &ALPHABET[place + 1..place + 2])
}

/// A signature of two numbers, as X9.62 writes it.
fn der(raw: &[u8]) -> Vec<u8> {
    let number = |bytes: &[u8]| {
        let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1);
        let sign = if bytes[first] >= 128 { vec![0] } else { Vec::new() };
        let number = [&sign, &bytes[first..]].concat();
        [&[2, u8::try_from(number.len()).unwrap()], &*number].concat()
    };
    let (r, s) = raw.split_at(raw.len() / 2);
    let both = [number(r), number(s)].concat();
    [&[0x30, u8::try_from(both.len()).unwrap()], &*both].concat()
}

/// The two numbers of a signature, each in `size` bytes.
fn fixed(der: &[u8], size: usize) -> Vec<u8> {
    let mut rest = &der[if der[1] & 0x80 == 0 { 2 } else { 3 }..];
    let mut raw = Vec::new();
    for _ in 0..2 {
        let (number, after) = rest[2..].split_at(usize::from(rest[1]));
        let number = &number[number.iter().take_while(|byte| **byte == 0).count()..];
        raw.extend(std::iter::repeat_n(0, size - number.len()));
        raw.extend(number);
        rest = after;
    }
    raw
}

/// Keys that are made, and used, by openssl.
struct OpensslKey<'a>(&'a Path);

impl OpensslKey<'_> {
    fn run(&self, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new("openssl").args(arguments).current_dir(self.0).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    fn rsa(&self, name: &str, bits: u32) -> Value {
        let size = format!("rsa_keygen_bits:{bits}");
        self.run(&["genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", &size, "-out", name]);
        let modulus = String::from_utf8(self.run(&["rsa", "-in", name, "-noout", "-modulus"])).unwrap();
        let digits = modulus.trim().strip_prefix("Modulus=").unwrap().as_bytes().chunks(2);
        let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
        json!({"kty": "RSA", "kid": name, "n": encode(digits.map(byte).collect::<Vec<_>>()), "e": "AQAB"})
    }

    fn p384(&self, name: &str) -> Value {
        self.run(&[
            "genpkey",
            "-quiet",
            "-algorithm",
            "EC",
            "-pkeyopt",
            "ec_paramgen_curve:P-384",
            "-out",
            name,
        ]);
        let public = self.run(&["pkey", "-in", name, "-pubout", "-outform", "DER"]);
        let (x, y) = public[public.len() - 96..].split_at(48);
        json!({"kty": "EC", "crv": "P-384", "kid": name, "x": encode(x), "y": encode(y)})
    }

    fn token(&self, name: &str, algorithm: &str) -> String {
        let header = json!({"alg": algorithm, "kid": name, "typ": "at+jwt"});
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims().to_string()));
        fs::write(self.0.join("signed"), &signed).unwrap();
        let hash = format!("-sha{}", &algorithm[2..]);
        let mut arguments = vec!["dgst", &*hash, "-sign", name];
        if algorithm.starts_with("PS") {
            arguments.extend(["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest"]);
        }
        arguments.push("signed");
        let sealed = self.run(&arguments);
        let sealed = if algorithm == "ES384" { fixed(&sealed, 48) } else { sealed };
        format!("{signed}.{}", encode(sealed))
    }
}

#[test]
fn what_openssl_signs_is_good_by_every_algorithm_and_by_no_other_than_its_key_is_for() {
    let (project, outside) = (Project::empty(), Project::empty());
    let Some(()) = require(Command::new("openssl").arg("version").output().ok().map(drop), "no openssl")
    else {
        return;
    };
    let openssl = OpensslKey(outside.path());
    let with = |key: &Value, more: Value| {
        let mut key = key.clone();
        key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key
    };
    let (rsa, other, small) =
        (openssl.rsa("rsa", 2048), openssl.rsa("other", 3072), openssl.rsa("small", 1024));
    let p384 = openssl.p384("p384");
    let keys = [
        // For others: none of these may be in the way, or be used.
        json!({"kty": "oct", "kid": "rsa", "k": rsa["n"]}),
        json!({"kty": "RSA", "kid": "rsa"}),
        json!({"kty": "EC", "crv": "P-521", "kid": "p384", "x": "AA", "y": "AA"}),
        with(&other, json!({"kid": "encrypts", "use": "enc"})),
        with(&other, json!({"kid": "wraps", "alg": "RSA-OAEP"})),
        with(&other, json!({"kid": "signs", "key_ops": ["sign"]})),
        with(&other, json!({"kid": "odd", "use": ["sig"]})),
        with(&other, json!({"kid": "pss", "alg": "PS256", "use": "sig"})),
        with(&other, json!({"key_ops": ["verify"]})),
        small,
        rsa,
        p384,
    ];
    put_keys(&outside.join("jwks.json"), &keys);
    let config = format!(
        "[http]\npublic_url = \"https://tools.example/mcp\"\njwt_issuer = \"https://issuer.example\"\n\
         jwt_keys = \"{}\"\njwt_roles = [\"groups=developers:dev\"]\n\
         jwt_algorithms = [\"RS256\", \"RS384\", \"RS512\", \"PS256\", \"PS384\", \"PS512\", \"ES384\"]\n",
        outside.join("jwks.json").display()
    );
    fs::write(outside.join("coretools.toml"), config).unwrap();
    let server = HttpServer::start(&project, &["--config", outside.join("coretools.toml").to_str().unwrap()]);
    for algorithm in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"] {
        let reply = list(&server, &openssl.token("rsa", algorithm));
        assert_eq!(reply.status, 200, "{algorithm}: {reply:?}\n{}", server.log());
    }
    assert_eq!(list(&server, &openssl.token("p384", "ES384")).status, 200, "{}", server.log());
    assert_eq!(list(&server, &openssl.token("other", "RS256")).status, 200, "{}", server.log());
    // The same signatures under another name, by another algorithm, or by a key that is for something else.
    let renamed = |token: &str, header: Value| {
        let (_, rest) = token.split_once('.').unwrap();
        format!("{}.{rest}", encode(header.to_string()))
    };
    let good = openssl.token("rsa", "RS256");
    let mut bad = vec![
        ("PSS of PKCS 1", renamed(&good, json!({"alg": "PS256", "kid": "rsa"}))),
        ("another hash", renamed(&good, json!({"alg": "RS384", "kid": "rsa"}))),
        ("another key", renamed(&good, json!({"alg": "RS256", "kid": "other"}))),
        ("a key of another kind", renamed(&good, json!({"alg": "RS256", "kid": "p384"}))),
        ("a key that is too small", openssl.token("small", "RS256")),
        ("not allowed", renamed(&openssl.token("p384", "ES384"), json!({"alg": "ES256", "kid": "p384"}))),
    ];
    // The key `other` under its other names.
    for (name, algorithm) in
        [("encrypts", "RS256"), ("wraps", "RS256"), ("signs", "RS256"), ("odd", "RS256"), ("pss", "RS256")]
    {
        fs::copy(outside.join("other"), outside.join(name)).unwrap();
        bad.push((name, openssl.token(name, algorithm)));
    }
    for (what, token) in bad {
        assert_eq!(list(&server, &token).status, 401, "{what}");
    }
    assert_eq!(list(&server, &openssl.token("pss", "PS256")).status, 200, "{}", server.log());
}

#[test]
fn a_name_that_somebody_chose_gives_no_role_by_a_word_in_it() {
    let (project, outside, issuer) = (Project::empty(), Project::empty(), JwtIssuer::new("one"));
    let server = server(&project, &outside, &issuer);
    let mut chosen = claims();
    chosen["groups"] = json!("friends of admins developers");
    assert_eq!(list(&server, &issuer.token(&chosen)).status, 403);
}

#[test]
fn an_end_with_a_fraction_counts_and_a_stream_does_not_outlive_it() {
    let (project, outside, issuer) = (Project::empty(), Project::empty(), JwtIssuer::new("one"));
    let server = server(&project, &outside, &issuer);
    let mut short = claims();
    // Over but for the leeway of 30 s.
    short["exp"] = serde_json::from_str(&format!("{}.5", now() - 26)).unwrap();
    let token = issuer.token(&short);
    let mut client = Http::silent(server.address(), Some(&token), Era::Modern);
    assert_eq!(client.reply("tools/list", json!({})).status, 200);
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let mut stream = client.begin("subscriptions/listen", filter);
    stream.set_read_timeout(Some(SOON)).unwrap();
    let reply = Reply::try_from(&mut stream).unwrap();
    assert_eq!(reply.status, 200, "{reply:?}");
    wait_until(SOON, "it is over", || list(&server, &token).status == 401);
}

#[test]
fn keys_are_changed_while_the_server_runs() {
    let (project, outside, issuer) = (Project::empty(), Project::empty(), JwtIssuer::new("one"));
    let server = server(&project, &outside, &issuer);
    let next = JwtIssuer::new("two");
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
    (port, answer_keys(listener, keys))
}

/// Answers each request at `listener` with the keys, and counts them.
fn answer_keys(listener: TcpListener, keys: Arc<Mutex<String>>) -> Arc<AtomicUsize> {
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
    asked
}

#[test]
fn an_unknown_key_is_asked_for_and_not_more_often_than_it_could_have_come() {
    let (project, outside) = (Project::empty(), Project::empty());
    let (one, two) = (JwtIssuer::new("one"), JwtIssuer::new("two"));
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

#[test]
fn a_server_starts_while_its_issuer_is_down_and_refuses_its_tokens_until_it_is_there() {
    let (project, outside, issuer) = (Project::empty(), Project::empty(), JwtIssuer::new("one"));
    let port = integration_tests::unused_port();
    let config = format!(
        "[http]\njwt_audience = \"https://tools.example/mcp\"\njwt_issuer = \"https://issuer.example\"\n\
         jwt_keys = \"http://127.0.0.1:{port}/jwks\"\njwt_roles = [\"groups=developers:dev\"]\n"
    );
    fs::write(outside.join("coretools.toml"), config).unwrap();
    let server = HttpServer::start(&project, &["--config", outside.join("coretools.toml").to_str().unwrap()]);
    assert!(server.log().contains("JWTs are refused until"), "{}", server.log());
    let ready = server.get("/readyz", None);
    assert!(ready.status == 200 && ready.body.contains("JWT issuer"), "{ready:?}");
    // Its own tokens are good meanwhile.
    let own = server.token("ada", "readonly", &[]);
    assert_eq!(list(&server, &own).status, 200);
    let token = issuer.token(&claims());
    assert_eq!(list(&server, &token).status, 401);
    let keys = json!({"keys": [issuer.jwk()]}).to_string();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    answer_keys(listener, Arc::new(Mutex::new(keys)));
    wait_until(SOON, "the issuer is asked again", || list(&server, &token).status == 200);
    assert_eq!(server.get("/readyz", None).body, "ready\n");
}
