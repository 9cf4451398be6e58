//! Tokens: made, listed, revoked, and what each gives.

use crate::SOON;
use crate::ui::{page, sign_in};
use integration_tests::{
    Ask, Era, Http, HttpServer, Project, Reply, alive, unique_seconds, wait_until, wait_until_gone,
};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// `ctk_`, its id, `_`, its secret.
const HEAD: usize = "ctk_0123456789ab".len();

fn head(token: &str) -> &str {
    &token[..HEAD]
}

fn secret(token: &str) -> &str {
    &token[HEAD + 1..]
}

#[test]
fn a_token_is_printed_once_and_only_its_hash_is_kept() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ci", "worker", &["--expires", "30d"]);
    // By default a token ends, and the one that has no end was asked for.
    let defaults = server.tokens(&["new", "--name", "plain", "--role", "dev"]);
    let said = String::from_utf8_lossy(&defaults.stderr).into_owned();
    assert!(defaults.status.success() && said.contains("ends in 90 d, on 20"), "{said}");
    let endless = server.tokens(&["new", "--name", "endless", "--role", "dev", "--expires", "never"]);
    assert!(String::from_utf8_lossy(&endless.stderr).contains("has no end"), "{endless:?}");
    let path = server.home().join("tokens.toml");
    let kept = fs::read_to_string(&path).unwrap();
    let secret = secret(&token);
    assert!(!kept.contains(secret) && kept.contains("sha256:"), "{kept}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let listed = String::from_utf8(server.tokens(&["list"]).stdout).unwrap();
    assert!(
        listed.contains("ci") && listed.contains("worker") && listed.contains("ends in 29 d")
            || listed.contains("30 d"),
        "{listed}"
    );
    assert!(!listed.contains(secret) && !server.log().contains(secret));
    for (arguments, words) in [
        (vec!["new", "--name", "ci", "--role", "dev"], "there is a token `ci`"),
        (vec!["new", "--name", "a b", "--role", "dev"], "is not a name"),
        (vec!["new", "--name", "x", "--role", "Dev"], "declares no role `Dev`"),
        (vec!["new", "--name", "x", "--role", "dev", "--expires", "soon"], "is not a time"),
        (vec!["new", "--name", "x", "--role", "dev", "--only-root", "/"], "lies in no root"),
        (vec!["revoke", "nobody"], "there is no token `nobody`"),
    ] {
        let output = server.tokens(&arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn what_is_no_token_opens_nothing() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let other = server.token("bob", "dev", &[]);
    let (head, secret) = (head(&token), secret(&token));
    let mut forged = vec![
        String::new(),
        " ".to_owned(),
        head.to_owned(),
        format!("{head}_"),
        format!("{head}_{}", crate::tokens::secret(&other)),
        format!("{}_{secret}", crate::tokens::head(&other)),
        token[..token.len() - 1].to_owned(),
        format!("{token}A"),
        token.to_uppercase(),
        "null".to_owned(),
        "sha256:0".to_owned(),
    ];
    let kept = fs::read_to_string(server.home().join("tokens.toml")).unwrap();
    forged.extend(
        kept.lines()
            .filter_map(|line| line.strip_prefix("hash = "))
            .map(|hash| hash.trim_matches('"').to_owned()),
    );
    for forged in &forged {
        let mut client = Http::silent(server.address(), Some(forged), Era::Modern);
        let reply = client.reply("tools/list", json!({}));
        assert_eq!(reply.status, 401, "{forged:?}: {reply:?}");
    }
    for authorization in [
        format!("Basic {token}"),
        token.clone(),
        format!("Bearer  {forged}", forged = forged[3]),
        format!("Bearer {token}\r\nAuthorization: Bearer {other}"),
        format!("Bearer {token}\r\nAuthorization: Bearer {token}"),
    ] {
        let mut client = Http::silent(server.address(), None, Era::Modern);
        client.headers = format!("Authorization: {authorization}\r\n");
        let reply = client.reply("tools/list", json!({}));
        assert_eq!(reply.status, 401, "{authorization:?}: {reply:?}");
        assert!(reply.header("www-authenticate").unwrap().contains("invalid_token"), "{reply:?}");
    }
    assert_eq!(
        Http::silent(server.address(), Some(&token), Era::Modern).reply("tools/list", json!({})).status,
        200
    );
}

#[test]
fn a_token_ends_when_its_time_is_over_and_with_it_what_it_runs() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let seconds = unique_seconds();
    let token = server.token("brief", "dev", &["--expires", "15s"]);
    let mut client = server.connect(&token, Era::Modern);
    client.text("start_command", json!({"command": ["sleep", seconds]}));
    wait_until(SOON, "it ends", || server.get("/mcp", Some(&token)).status == 401);
    wait_until_gone(&seconds, SOON);
}

#[test]
fn a_revoked_token_stops_at_its_next_call_and_what_runs_ends() {
    for era in Era::BOTH {
        let project = Project::empty();
        let server = HttpServer::start(&project, &[]);
        let (gone, stays) = (server.token("gone", "dev", &[]), server.token("stays", "dev", &[]));
        let [running, background, others] = [(); 3].map(|()| unique_seconds());
        let mut client = server.connect(&gone, era);
        client.text("start_command", json!({"command": ["sleep", background]}));
        let script = format!("setsid sleep {running} & sleep {running}");
        let call = json!({"name": "run_command", "arguments": {"command": ["sh", "-c", script]}});
        let mut open = client.begin("tools/call", call);
        let mut other = server.connect(&stays, era);
        other.text("start_command", json!({"command": ["sleep", others]}));
        wait_until(SOON, "it runs", || alive(&running).len() >= 2);
        assert!(server.tokens(&["revoke", "gone"]).status.success());
        // The call is answered, and says so.
        let reply = Reply::try_from(&mut open).unwrap();
        assert!(reply.body.contains("cancel") || reply.body.contains("stopped"), "{reply:?}");
        assert_eq!(client.reply("tools/list", json!({})).status, 401, "{era:?}");
        wait_until_gone(&running, SOON);
        wait_until_gone(&background, SOON);
        // Another's are another's.
        assert_eq!(alive(&others).len(), 1);
        assert!(!other.listed().is_empty());
    }
}

#[test]
fn a_revoked_token_that_comes_back_is_named_and_an_unknown_one_is_not() {
    let (project, outside) = (Project::empty(), Project::empty());
    let audit = outside.join("audit.jsonl");
    let server = HttpServer::start(&project, &["--audit", audit.to_str().unwrap()]);
    let boss = server.token("boss", "orchestrator", &[]);
    let hana = server.token("hana", "dev", &[]);
    assert!(is_admitted(&server, &hana));
    assert!(server.tokens(&["revoke", "hana"]).status.success());
    wait_until(SOON, "it is revoked", || !is_admitted(&server, &hana));
    let has_line = |parts: &[&str]| {
        let lines = fs::read_to_string(&audit).unwrap();
        lines.lines().any(|line| parts.iter().all(|part| line.contains(part)))
    };
    wait_until(SOON, "its bearer is named", || {
        server.get("/mcp", Some(&hana));
        has_line(&["\"principal\":\"hana\"", "it was revoked on 2"])
    });
    wait_until(SOON, "the revocation is recorded", || has_line(&["file:revoke_token", "the token hana"]));
    // The same id with another secret is unknown, and so is the token where no revocation is kept.
    let forged = hana.replace(secret(&hana), &secret(&hana).to_lowercase());
    wait_until(SOON, "a stranger stays one", || {
        server.get("/mcp", Some(&forged));
        has_line(&["stranger:127.0.0.1", "no such token"])
    });
    assert!(!has_line(&["stranger:127.0.0.1", "revoked on"]));
    // Only the hash is kept, and the name is free again.
    let text = fs::read_to_string(server.home().join("tokens.toml")).unwrap();
    assert!(text.starts_with("# ") && text.contains("version = 3") && text.contains("[[revoked]]"), "{text}");
    assert!(!text.contains(secret(&hana)), "{text}");
    let list = |arguments: &[&str]| String::from_utf8(server.tokens(arguments).stdout).unwrap();
    assert!(!list(&["list"]).contains("hana"), "{}", list(&["list"]));
    assert!(list(&["list", "--all"]).contains("revoked on 2"), "{}", list(&["list", "--all"]));
    let entries: Value = serde_json::from_str(&list(&["list", "--all", "--json"])).unwrap();
    let entry = entries.as_array().unwrap().iter().find(|entry| entry["name"] == "hana").unwrap();
    assert!(entry["revoked"].as_u64().unwrap() > 1_700_000_000 && entry["role"].is_null(), "{entry}");
    let new = server.token("hana", "dev", &[]);
    assert!(is_admitted(&server, &new) && !is_admitted(&server, &hana));
    // The page says so too.
    let cookie = sign_in(&server, &boss);
    for (path, words) in [
        ("/ui/tokens", "Revoked in the last 90 days"),
        ("/ui/history?caller=hana&outcome=not-run", "The token was revoked."),
        ("/ui/history?tool=file:*", "the token hana was revoked in the token file"),
        ("/ui/calls?caller=hana&outcome=not-run", "it was revoked on 2"),
    ] {
        let page = page(&server, path, &cookie);
        assert!(page.contains(words) && page.contains("hana"), "{path}: {page}");
    }
}

#[test]
fn a_file_of_tokens_that_is_wrong_changes_nothing_and_says_so() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let path = server.home().join("tokens.toml");
    let good = fs::read_to_string(&path).unwrap();
    let put = |text: &str, mode: u32| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for (text, mode) in [
        ("version = 1\n[[token]]\n".to_owned(), 0o600),
        (good.replace("version = 1", "version = 4\nnewer = true"), 0o600),
        (format!("{good}{}", good.replace("version = 1", "")), 0o600),
        (good.replace("role = \"dev\"", "role = \"dev\"\nroots = [\"relative\"]"), 0o600),
        (good.replace("role = \"dev\"", "role = \"\""), 0o600),
        ("half a fi".to_owned(), 0o600),
        (good.clone(), 0o666),
    ] {
        let before = server.log().matches("not used").count();
        put(&text, mode);
        wait_until(SOON, "it is refused", || server.log().matches("not used").count() > before);
        assert_eq!(server.get("/mcp", Some(&token)).status, 400, "{text}");
    }
    put("version = 1\n", 0o600);
    wait_until(SOON, "it is empty", || server.get("/mcp", Some(&token)).status == 401);
}

#[test]
fn the_instructions_name_the_roots_of_their_caller_and_no_others() {
    let project = Project::with([("mine/a.txt", "a"), ("theirs/b.txt", "b")]);
    let server = HttpServer::start(&project, &[]);
    let mine = project.join("mine").canonicalize().unwrap().display().to_string();
    let token = server.token("narrow", "readonly", &["--only-root", &mine]);
    let mut client = server.connect(&token, Era::Modern);
    let text = client.request("server/discover", json!({}))["result"]["instructions"].take();
    let text = text.as_str().unwrap();
    assert!(text.starts_with(&format!("Tools for the code base in {mine}. ")), "{text}");
    assert!(!text.contains("theirs") && !text.contains("edit_file"), "{text}");
}

#[test]
fn a_token_with_roots_of_its_own_reaches_those_and_no_other() {
    let project = Project::with([("ada/a.txt", "ada's\n"), ("bob/b.txt", "bob's\n"), ("c.txt", "all's\n")]);
    let server = HttpServer::start(&project, &[]);
    let root = project.join("ada");
    let token = server.token("ada", "dev", &["--only-root", root.to_str().unwrap()]);
    for era in Era::BOTH {
        let mut client = server.connect(&token, era);
        assert_eq!(client.text("read_file", json!({"path": "a.txt"})), "ada's\n");
        for path in ["../bob/b.txt", "../c.txt", project.join("bob/b.txt").to_str().unwrap(), "/etc/passwd"] {
            let said = client.failure("read_file", json!({"path": path}));
            assert!(!said.contains("bob's") && !said.contains("all's"), "{said}");
        }
        let said = client.call("run_command", json!({"command": ["pwd"]}));
        assert_eq!(said["structuredContent"]["stdout"].as_str().unwrap().trim(), root.to_str().unwrap());
        client.failure("run_command", json!({"command": ["pwd"], "working_directory": "../bob"}));
    }
    // Where the system can confine them, programs reach no more.
    let diagnostics = server.connect(&token, Era::Modern).text("get_diagnostics", json!({}));
    if diagnostics.contains("Landlock ABI") {
        let mut client = server.connect(&token, Era::Modern);
        client.failure("run_command", json!({"command": ["cat", project.join("bob/b.txt")]}));
        client.failure("run_command", json!({"command": ["cat", server.home().join("tokens.toml")]}));
    }
}

#[test]
fn background_commands_are_their_callers_alone() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let (ada, bob) = (server.token("ada", "dev", &[]), server.token("bob", "dev", &[]));
    let seconds = unique_seconds();
    let mut ada = server.connect(&ada, Era::Modern);
    let started = ada.call("start_command", json!({"command": ["sleep", seconds]}));
    let id = started["structuredContent"]["id"].clone();
    let mut bob = server.connect(&bob, Era::Modern);
    assert_eq!(bob.call("list_commands", json!({}))["structuredContent"]["commands"], json!([]));
    bob.failure("stop_command", json!({"id": id}));
    bob.failure("read_command_output", json!({"id": id}));
    ada.text("stop_command", json!({"id": id}));
}

/// Ends a token through the file itself, as an operator's script would, in place.
fn without(file: &str, name: &str) -> String {
    let (head, entries) = file.split_once("[[token]]").unwrap();
    let entries: Vec<&str> =
        entries.split("[[token]]").filter(|entry| !entry.contains(&format!("name = \"{name}\""))).collect();
    assert!(!entries.is_empty(), "{file}");
    format!("{head}[[token]]{}", entries.join("[[token]]"))
}

fn is_admitted(server: &HttpServer, token: &str) -> bool {
    let status =
        Http::silent(server.address(), Some(token), Era::Modern).reply("tools/list", json!({})).status;
    // Who is waited for by many requests comes to the end of what a caller may ask in a second, and is known all the same.
    assert!([200, 401, 429].contains(&status), "{status}");
    status != 401
}

fn set_mode(path: &std::path::Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_caller_that_makes_the_file_of_tokens_writable_does_not_freeze_its_revocation() {
    for by_command in [true, false] {
        let project = Project::empty();
        let server = HttpServer::start(&project, &[]);
        let (gone, stays) = (server.token("gone", "dev", &[]), server.token("stays", "dev", &[]));
        let path = server.home().join("tokens.toml");
        wait_until(SOON, "both are admitted", || is_admitted(&server, &gone) && is_admitted(&server, &stays));
        let background = unique_seconds();
        server.connect(&gone, Era::Modern).text("start_command", json!({"command": ["sleep", background]}));

        set_mode(&path, 0o666);
        // The mode comes back without anybody's doing, and nothing else changes.
        wait_until(SOON, "the mode is set back", || mode(&path) == 0o644);
        assert!(is_admitted(&server, &gone) && is_admitted(&server, &stays));

        // Again, at the moment of the revocation.
        set_mode(&path, 0o666);
        if by_command {
            let output = server.tokens(&["revoke", "gone"]);
            assert!(output.status.success(), "{output:?}");
            assert_eq!(mode(&path), 0o600, "the file is replaced with a private one");
        } else {
            let file = fs::read_to_string(&path).unwrap();
            fs::write(&path, without(&file, "gone")).unwrap();
        }
        wait_until(SOON, "the token is revoked", || !is_admitted(&server, &gone));
        wait_until_gone(&background, SOON);
        assert!(is_admitted(&server, &stays), "{}", server.log());
    }
}

#[test]
fn a_token_that_others_could_add_is_never_used() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let (ada, forged) = (server.token("ada", "dev", &[]), server.token("forged", "orchestrator", &[]));
    let path = server.home().join("tokens.toml");
    let with_forged = fs::read_to_string(&path).unwrap();
    assert!(server.tokens(&["revoke", "forged"]).status.success());
    wait_until(SOON, "one is admitted", || is_admitted(&server, &ada) && !is_admitted(&server, &forged));

    set_mode(&path, 0o666);
    fs::write(&path, &with_forged).unwrap();
    wait_until(SOON, "it is told", || server.log().contains("are not trusted"));
    assert!(is_admitted(&server, &ada) && !is_admitted(&server, &forged));
    // A command that repairs the file names what stays in it, and the server goes on without it.
    let next = server.token("next", "dev", &[]);
    wait_until(SOON, "the new one is admitted", || is_admitted(&server, &next));
    assert!(is_admitted(&server, &ada) && !is_admitted(&server, &forged), "{}", server.log());
    // In another place, where no server sets the mode back first.
    let copy = server.home().join("copy.toml");
    fs::copy(&path, &copy).unwrap();
    set_mode(&copy, 0o666);
    let mut revoke = HttpServer::program(&project);
    let output = revoke.arg("--tokens").arg(&copy).args(["token", "revoke", "next"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("ada (dev)") && said.contains("forged (orchestrator)"), "{said}");
    assert_eq!(mode(&copy), 0o600);

    // What was a token before and is another now is neither.
    set_mode(&path, 0o666);
    let file = fs::read_to_string(&path).unwrap();
    fs::write(&path, file.replace("role = \"dev\"", "role = \"orchestrator\"")).unwrap();
    wait_until(SOON, "the changed token ends", || !is_admitted(&server, &ada));
}

#[test]
fn a_rotated_token_has_two_secrets_for_a_while_and_what_runs_goes_on() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let old = server.token("ci", "dev", &["--expires", "30d"]);
    let seconds = unique_seconds();
    server.connect(&old, Era::Modern).text("start_command", json!({"command": ["sleep", seconds]}));
    let rotate = |overlap: &str| {
        let output = server.tokens(&["rotate", "ci", "--overlap", overlap]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let token = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        wait_until(SOON, "the new secret is known", || is_admitted(&server, &token));
        (token, String::from_utf8(output.stderr).unwrap())
    };
    let (second, said) = rotate("12s");
    assert!(said.contains("The secret before holds for 12 s") && said.contains("ends in 30 d"), "{said}");
    assert!(is_admitted(&server, &old), "both hold");
    let listed: Value = serde_json::from_slice(&server.tokens(&["list", "--json"]).stdout).unwrap();
    let entry = listed.as_array().unwrap().iter().find(|entry| entry["name"] == "ci").unwrap();
    assert!(entry["previous_expires"].is_u64() && entry["role"] == "dev", "{entry}");
    // The same caller by either secret, so that the command of the one is the command of the other.
    let text = server.connect(&second, Era::Modern).text("list_commands", json!({}));
    assert!(text.contains(&seconds), "{text}");
    wait_until(SOON, "the old secret ends", || !is_admitted(&server, &old));
    assert!(is_admitted(&server, &second));
    assert_eq!(alive(&seconds).len(), 1, "what it runs goes on");
    assert!(!server.log().contains("ci may call no more"), "{}", server.log());
    // At once, as after a leak: then what was started with the old one ends too.
    let (third, said) = rotate("0s");
    assert!(said.contains("The secret before has ended"), "{said}");
    wait_until(SOON, "the old secret ends", || !is_admitted(&server, &second));
    wait_until_gone(&seconds, SOON);
    assert!(is_admitted(&server, &third));
    for (arguments, words) in [
        (vec!["rotate", "nobody"], "there is no token `nobody`"),
        (vec!["rotate", "ci", "--overlap", "soon"], "--overlap `soon` is not a time"),
    ] {
        let output = server.tokens(&arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{output:?}");
    }
}

#[test]
fn the_checksum_of_a_token_is_what_a_scanner_computes_and_the_server_masks_its_own_form() {
    let project = Project::with([("a.txt", "a")]);
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    const SCRIPT: &str = "
import re, sys, zlib
token = re.fullmatch(r'(ctk_[0-9a-f]{12}_[A-Za-z0-9_-]{43})([0-9A-Za-z]{6})', sys.argv[1])
digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
n, text = zlib.crc32(token[1].encode()), ''
for _ in range(6): n, text = n // 62, digits[n % 62] + text
sys.exit(text != token[2])";
    let checked = std::process::Command::new("python3").args(["-c", SCRIPT, &token]).status().unwrap();
    assert!(checked.success(), "{token}");
    // A token that lies about in a project is masked like any other secret.
    fs::write(project.join("leaked.txt"), format!("the key is {token} for ada")).unwrap();
    let text = server.connect(&token, Era::Modern).text("read_file", json!({"path": "leaked.txt"}));
    assert!(!text.contains(secret(&token)) && text.contains("coretools-token"), "{text}");
}

#[test]
fn the_end_of_a_token_is_told_before_it_comes_and_a_bearer_of_one_that_has_ended_is_named() {
    let (project, outside) = (Project::empty(), Project::empty());
    let audit = outside.join("audit.jsonl");
    let server = HttpServer::start(&project, &["--audit", audit.to_str().unwrap()]);
    let token = server.token("brief", "dev", &["--expires", "20s"]);
    let figures = server.get("/metrics", Some(&token)).body;
    for series in ["coretools_token_expires_timestamp_seconds", "coretools_token_last_used_timestamp_seconds"]
    {
        assert!(figures.contains(&format!("{series}{{token=\"brief\"}} 1")), "{figures}");
    }
    // One that was made a month ago and ends within the hour.
    server.token("late", "dev", &["--expires", "1h"]);
    let path = server.home().join("tokens.toml");
    let text = fs::read_to_string(&path).unwrap();
    let (before, entry) = text.split_once("name = \"late\"").unwrap();
    let created = entry.lines().find_map(|line| line.strip_prefix("created = ")).unwrap();
    let earlier = (created.parse::<u64>().unwrap() - 30 * 86_400).to_string();
    fs::write(&path, format!("{before}name = \"late\"{}", entry.replacen(created, &earlier, 1))).unwrap();
    wait_until(SOON, "its end is told", || server.log().contains("the token late ends within 1 h"));
    assert!(!server.log().contains("the token first ends"), "{}", server.log());
    wait_until(SOON, "it ends", || !is_admitted(&server, &token));
    wait_until(SOON, "its bearer is named", || {
        server.get("/mcp", Some(&token));
        let lines = fs::read_to_string(&audit).unwrap();
        lines.lines().any(|line| line.contains("\"principal\":\"brief\"") && line.contains("it has expired"))
    });
}
