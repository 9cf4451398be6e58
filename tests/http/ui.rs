//! The page for people.

use crate::SOON;
use integration_tests::{
    Ask, Era, HttpServer, Project, Reply, alive, exchange, unique_seconds, wait_until, wait_until_gone,
};
use serde_json::json;

pub(crate) const POST: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

pub(crate) fn ask(server: &HttpServer, method: &str, path: &str, headers: &str, body: &str) -> Reply {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    exchange(server.address(), request.as_bytes())
}

/// Signs in; the header of the cookie.
pub(crate) fn sign_in(server: &HttpServer, token: &str) -> String {
    let reply = ask(server, "POST", "/ui/sign-in", POST, &format!("token={token}"));
    assert_eq!((reply.status, reply.header("location")), (303, Some("/ui")), "{reply:?}");
    let cookie = reply.header("set-cookie").unwrap();
    format!("Cookie: {}\r\n", cookie.split(';').next().unwrap())
}

pub(crate) fn page(server: &HttpServer, path: &str, cookie: &str) -> String {
    let reply = ask(server, "GET", path, cookie, "");
    assert_eq!(reply.status, 200, "{path}: {reply:?}");
    // Where a narrow column may break a path is no part of it.
    reply.body.replace("<wbr>", "")
}

/// The text of the section `id`.
fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let begin = page.find(&format!("<section id=\"{id}\"")).unwrap_or_else(|| panic!("no {id} in {page}"));
    let rest = &page[begin..];
    &rest[..rest.find("</section>").unwrap()]
}

/// The value of the hidden field `name` that comes first.
pub(crate) fn hidden<'a>(page: &'a str, name: &str) -> &'a str {
    let mark = format!("name=\"{name}\" value=\"");
    let begin = page.find(&mark).unwrap_or_else(|| panic!("no field {name} in {page}")) + mark.len();
    let rest = &page[begin..];
    &rest[..rest.find('"').unwrap()]
}

#[test]
fn the_page_and_all_below_it_need_a_token_also_where_calls_need_none() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &["--anonymous-role", "dev"]);
    for path in [
        "/ui",
        "/ui/",
        "/ui/calls",
        "/ui/history",
        "/ui/tokens",
        "/ui/sessions",
        "/ui/approvals",
        "/ui/roles",
        "/ui/traces",
        "/ui/live.js",
        "/ui/trace/trace-1.svg",
        "/ui/nowhere",
    ] {
        let reply = ask(&server, "GET", path, "", "");
        assert_eq!(reply.status, 401, "{path}: {reply:?}");
        assert!(reply.header("www-authenticate").unwrap().starts_with("Bearer"), "{reply:?}");
        assert!(reply.body.contains("action=\"/ui/sign-in\""), "{reply:?}");
    }
    for body in ["", "token=", "token=ctk_nonsense", "token=%0d%0a", "other=1"] {
        let reply = ask(&server, "POST", "/ui/sign-in", POST, body);
        assert_eq!((reply.status, reply.header("set-cookie")), (401, None), "{body}: {reply:?}");
    }
    for (body, status) in [("token=%zz", 400), ("token=a&token=b", 400), (&*"x".repeat(20_000), 400)] {
        assert_eq!(ask(&server, "POST", "/ui/sign-in", POST, body).status, status, "{body}");
    }
    for cookie in ["coretools_ui=", "coretools_ui=x", "coretools_ui=a; coretools_ui=b"] {
        assert_eq!(ask(&server, "GET", "/ui", &format!("Cookie: {cookie}\r\n"), "").status, 401, "{cookie}");
    }
    let token = server.token("ada", "dev", &[]);
    assert_eq!(ask(&server, "GET", &format!("/ui?token={token}"), "", "").status, 401);
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(ask(&server, "GET", "/ui", &bearer, "").status, 200);
    assert_eq!(ask(&server, "GET", "/ui/nowhere", &bearer, "").status, 404);
    assert_eq!(ask(&server, "PUT", "/ui", &bearer, "").status, 405);
}

#[test]
fn one_signs_in_with_a_token_and_is_out_with_it() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &["--origins", "https://tools.example"]);
    let token = server.token("ada", "dev", &[]);
    let form = format!("token=+{token}+");
    let reply = ask(&server, "POST", "/ui/sign-in", POST, &form);
    let cookie = reply.header("set-cookie").unwrap();
    for part in ["; Path=/ui", "; HttpOnly", "; SameSite=Strict", "; Max-Age=43200"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure") && !cookie.contains(&token), "{cookie}");
    let by_tls =
        ask(&server, "POST", "/ui/sign-in", &format!("{POST}Origin: https://tools.example\r\n"), &form);
    assert!(by_tls.header("set-cookie").unwrap().ends_with("; Secure"), "{by_tls:?}");
    let (first, second) = (sign_in(&server, &token), sign_in(&server, &token));
    assert!(page(&server, "/ui", &first).contains("ada, role dev"));
    let out = ask(&server, "POST", "/ui/sign-out", &first, "");
    assert!(out.status == 303 && out.header("set-cookie").unwrap().contains("Max-Age=0"), "{out:?}");
    assert_eq!(ask(&server, "GET", "/ui", &first, "").status, 401);
    page(&server, "/ui", &second);
    assert!(server.tokens(&["revoke", "ada"]).status.success());
    wait_until(SOON, "it is out", || ask(&server, "GET", "/ui", &second, "").status == 401);
}

#[test]
fn nothing_inline_runs_and_no_other_page_has_a_part_in_it() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let cookie = sign_in(&server, &server.token("boss", "orchestrator", &[]));
    let pages = ["/ui", "/ui/calls", "/ui/history", "/ui/tokens", "/ui/sessions", "/ui/roles", "/ui/traces"];
    for (path, cookie) in pages.into_iter().map(|page| (page, &*cookie)).chain([("/ui", "")]) {
        let reply = ask(&server, "GET", path, cookie, "");
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
        assert!(
            policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'self'"),
            "{policy}"
        );
        for (header, value) in [
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(reply.header(header), Some(value), "{path}");
        }
        for tag in reply.body.split('<').filter(|tag| tag.starts_with("script")) {
            assert_eq!(tag, "script src=\"/ui/live.js\" defer>", "{path}");
        }
        let attributes =
            reply.body.split(' ').filter(|word| word.starts_with("on") || word.starts_with("style="));
        assert_eq!(attributes.filter(|word| word.contains("=\"")).count(), 0, "{path}");
        // For those who hear it: a language, one heading above all, where things are, what a column is.
        for part in ["<html lang=\"en\">", "<main id=\"main\"", "<title>"] {
            assert!(reply.body.contains(part), "{path}: {part}");
        }
        assert_eq!(reply.body.matches("<h1>").count(), 1, "{path}");
        for tag in reply.body.split('<').filter(|tag| tag.starts_with("th ") || tag.starts_with("th>")) {
            assert!(tag.starts_with("th scope=\""), "{path}: {tag}");
        }
    }
}

#[test]
fn a_caller_sees_its_own_and_who_is_kept_from_nothing_sees_all() {
    let project = Project::with([("a.txt", "a")]);
    let root = project.path().to_str().unwrap().to_owned();
    let server = HttpServer::start(&project, &[]);
    let [ada, bob] = ["ada", "bob"].map(|name| server.token(name, "dev", &[]));
    let boss = server.token("boss", "orchestrator", &[]);
    // All tools, and not all roots.
    let limited = server.token("limited", "orchestrator", &["--only-root", &root]);
    let seconds = unique_seconds();
    let mut client = server.connect(&ada, Era::Modern);
    client.text("read_file", json!({"path": "a.txt"}));
    client.text("start_command", json!({"command": ["sleep", seconds]}));
    client.failure("read_file", json!({"path": {"file": "a.txt"}}));
    let _session = server.connect(&ada, Era::Initialize("2025-06-18"));
    let slow = unique_seconds();
    let _open =
        client.begin("tools/call", json!({"name": "run_command", "arguments": {"command": ["sleep", slow]}}));
    wait_until(SOON, "it runs", || !alive(&slow).is_empty());
    let mut other = server.connect(&bob, Era::Modern);
    other.text("list_directory", json!({"path": "."}));
    assert_eq!(ask(&server, "GET", "/mcp", "Authorization: Bearer x\r\n", "").status, 401);
    let cookie = sign_in(&server, &ada);
    let own = page(&server, "/ui/calls", &cookie);
    let now = section(&own, "now");
    assert!(now.contains("run_command") && now.contains(&format!("sleep {slow}")), "{own}");
    assert!(section(&own, "programs").contains(&seconds), "{own}");
    let lately = section(&own, "lately");
    assert!(
        lately.contains("read_file") && lately.contains("reads ") && lately.contains("/a.txt"),
        "{lately}"
    );
    assert!(section(&own, "refused").contains("The arguments do not fit the tool."), "{own}");
    assert!(section(&page(&server, "/ui/sessions", &cookie), "sessions").contains("ada"), "{own}");
    for path in ["/ui", "/ui/calls", "/ui/sessions", "/ui/tokens"] {
        let own = page(&server, path, &cookie);
        assert!(!own.contains("bob") && !own.contains("stranger"), "{path}: {own}");
        for token in [&bob, &limited] {
            let others = page(&server, path, &sign_in(&server, token));
            assert!(
                !others.contains("ada") && !others.contains(&seconds) && !others.contains("stranger"),
                "{path}: {others}"
            );
        }
    }
    for token in [&ada, &limited] {
        for path in ["/ui/history", "/ui/approvals", "/ui/traces"] {
            assert_eq!(ask(&server, "GET", path, &sign_in(&server, token), "").status, 404, "{path}");
        }
    }
    let cookie = sign_in(&server, &boss);
    let all = page(&server, "/ui/calls", &cookie);
    let explained = "The token is unknown.";
    for words in ["ada", "bob", "stranger:127.0.0.1", explained, &seconds, "list_directory", "run_command"] {
        assert!(all.contains(words), "{words} is missing in {all}");
    }
    let overview = page(&server, "/ui", &cookie);
    for (id, words) in [
        ("callers", "(strangers)"),
        ("callers", ">ada<"),
        ("tools", "list_directory"),
        ("headroom", "Memory"),
    ] {
        assert!(section(&overview, id).contains(words), "{words} is missing in {overview}");
    }
    // Parts of names, and outcomes.
    for (query, shown, hidden) in [
        ("caller=AD", "read_file", "list_directory"),
        ("tool=directory", "list_directory", "read_file"),
        ("outcome=not-run", "stranger", "list_directory"),
    ] {
        let filtered = page(&server, &format!("/ui/calls?{query}"), &cookie);
        let rows = filtered.split("<section").skip(1).collect::<String>();
        assert!(rows.contains(shown) && !rows.contains(hidden), "{query}: {filtered}");
    }
}

#[test]
fn what_callers_send_is_shown_as_text() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ada", "dev", &[]);
    let mut client = server.connect(&token, Era::Modern);
    let script = format!("sleep {} # <script>alert(1)</script> \" onfocus=\"alert(2)", unique_seconds());
    client.text("start_command", json!({"command": ["sh", "-c", script]}));
    client.request("tools/call", json!({"name": "<script>alert(3)</script>", "arguments": {}}));
    client.call("read_file", json!({"<script>alert(4)</script>": "<script>alert(5)</script>"}));
    let page = page(&server, "/ui/calls", &sign_in(&server, &token));
    assert!(!page.contains("<script>alert") && !page.contains("\" onfocus"), "{page}");
    assert!(section(&page, "programs").contains("&lt;script&gt;alert(1)&lt;/script&gt; &quot;"), "{page}");
    assert!(section(&page, "refused").contains("&lt;script&gt;alert(3)&lt;/script&gt;"), "{page}");
    // Not even as text: names that no tool has, and values.
    assert!(!page.contains("alert(4)") && !page.contains("alert(5)"), "{page}");
}

#[test]
fn a_tool_that_is_hidden_is_not_told_from_one_that_there_is_not() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("ro", "readonly", &[]);
    let mut client = server.connect(&token, Era::Modern);
    for tool in ["run_command", "no_such_tool"] {
        client.request("tools/call", json!({"name": tool, "arguments": {"command": "x"}}));
    }
    let cookie = sign_in(&server, &token);
    let calls = page(&server, "/ui/calls", &cookie);
    let rows: Vec<&str> = section(&calls, "refused").split("<tr").filter(|row| row.contains("_")).collect();
    let [hidden, unknown] = ["run_command", "no_such_tool"].map(|tool| {
        let row = rows.iter().find(|row| row.contains(tool)).unwrap();
        row[row.find(tool).unwrap() + tool.len()..row.find("</tr>").unwrap()].to_owned()
    });
    assert_eq!(hidden, unknown);
    assert!(!section(&calls, "programs").contains("<form"), "{calls}");
    let roles = page(&server, "/ui/roles", &cookie);
    assert!(roles.contains("read_file") && roles.contains(">readonly<"), "{roles}");
    assert!(!roles.contains("run_command") && !roles.contains("orchestrator"), "{roles}");
    let all = page(&server, "/ui/roles", &sign_in(&server, &server.token("boss", "orchestrator", &[])));
    for words in ["run_command", ">orchestrator</th>", ">readonly</th>", ">yes<", ">rules<", ">no<"] {
        assert!(all.contains(words), "{words} is missing in {all}");
    }
}

#[test]
fn a_program_is_stopped_by_who_may_and_by_nobody_else() {
    let (project, outside) = (Project::empty(), Project::empty());
    let audit = outside.join("audit.jsonl");
    let server = HttpServer::start(&project, &["--audit", audit.to_str().unwrap()]);
    let [ada, bob] = ["ada", "bob"].map(|name| server.token(name, "dev", &[]));
    let boss = server.token("boss", "orchestrator", &[]);
    let [first, second] = [(); 2].map(|()| unique_seconds());
    let mut client = server.connect(&ada, Era::Modern);
    for seconds in [&first, &second] {
        client.text("start_command", json!({"command": ["sleep", seconds]}));
    }
    let id = |seconds: &str| if seconds == first { 1 } else { 2 };
    let post = |headers: &str, body: &str| {
        let reply = ask(&server, "POST", "/ui/stop", &format!("{POST}{headers}"), body);
        (reply.status, reply.header("location").unwrap_or_default().to_owned())
    };
    let cookie = sign_in(&server, &ada);
    let secret = hidden(&page(&server, "/ui/calls", &cookie), "secret").to_owned();
    let other = sign_in(&server, &bob);
    let mut others = server.connect(&bob, Era::Modern);
    others.text("start_command", json!({"command": ["sleep", unique_seconds()]}));
    let others_secret = hidden(&page(&server, "/ui/calls", &other), "secret").to_owned();
    let form = |seconds: &str, secret: &str| format!("owner=ada&id={}&secret={secret}", id(seconds));
    // From another page, with another's form, without any, and by another.
    let bearer = format!("Authorization: Bearer {bob}\r\n");
    for (headers, body, status) in [
        (format!("{cookie}Sec-Fetch-Site: same-site\r\n"), form(&first, &secret), 403),
        (format!("{cookie}Sec-Fetch-Site: cross-site\r\n"), form(&first, &secret), 403),
        (format!("{cookie}Origin: http://evil.example\r\n"), form(&first, &secret), 403),
        (cookie.clone(), form(&first, &others_secret), 403),
        (cookie.clone(), "owner=ada&id=1".to_owned(), 403),
        (cookie.clone(), format!("owner=ada&id=x&secret={secret}"), 400),
        (String::new(), form(&first, &secret), 401),
        (other.clone(), form(&first, &others_secret), 303),
        (bearer, "owner=ada&id=1".to_owned(), 303),
    ] {
        assert_eq!(post(&headers, &body).0, status, "{headers} {body}");
    }
    assert_eq!(ask(&server, "GET", &format!("/ui/stop?{}", form(&first, &secret)), &cookie, "").status, 404);
    assert_eq!((alive(&first).len(), alive(&second).len()), (1, 1));
    // By whose it is, and by who is kept from nothing.
    let here = format!("{cookie}Sec-Fetch-Site: same-origin\r\nOrigin: http://localhost\r\n");
    assert_eq!(post(&here, &form(&first, &secret)), (303, "/ui/calls?said=stopped#programs".to_owned()));
    wait_until_gone(&first, SOON);
    assert_eq!(post(&here, "owner=ada&id=77&secret=").0, 403);
    assert_eq!(post(&here, &format!("owner=ada&id=77&secret={secret}")).1, "/ui/calls?said=gone#programs");
    let bearer = format!("Authorization: Bearer {boss}\r\n");
    assert_eq!(post(&bearer, "owner=ada&id=2").1, "/ui/calls?said=stopped#programs");
    wait_until_gone(&second, SOON);
    let lines = std::fs::read_to_string(&audit).unwrap();
    let stops: Vec<&str> = lines.lines().filter(|line| line.contains("stop_command")).collect();
    for principal in ["ada", "boss"] {
        let recorded = format!("\"principal\":\"{principal}\"");
        assert!(stops.iter().any(|line| line.contains(&recorded)), "{stops:?}");
    }
    assert!(server.log().contains("boss stops the program 2 of ada"), "{}", server.log());
}

#[test]
fn an_agents_session_is_seen_and_ended_by_who_may_and_by_nobody_else() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    // Who has some of the folders sees and ends its own.
    let own = ["--only-root", project.path().to_str().unwrap()];
    let [ada, bob] = ["ada", "bob"].map(|name| server.token(name, "orchestrator", &own));
    let boss = server.token("boss", "orchestrator", &[]);
    let worker = server.token("worker", "worker", &[]);
    let empty = page(&server, "/ui/sessions", &sign_in(&server, &ada));
    assert!(section(&empty, "agents").contains("None."), "nobody supervises yet: {empty}");
    let [hers, his] = [(); 2].map(|()| unique_seconds());
    let mut client = server.connect(&boss, Era::Modern);
    for (token, seconds) in [(&ada, &hers), (&boss, &his)] {
        let may = server
            .connect(token, Era::Modern)
            .call("new_session", json!({"command": ["sleep", seconds], "role": "worker"}));
        assert_eq!(may["isError"], false, "{may}");
    }
    let seen = |token: &str| {
        let cookie = sign_in(&server, token);
        let page = page(&server, "/ui/sessions", &cookie);
        (cookie, page.clone(), section(&page, "agents").to_owned())
    };
    let (cookie, _, own) = seen(&ada);
    assert!(own.contains(&hers) && !own.contains(&his), "{own}");
    assert!(
        own.contains(">running") && own.contains(">worker<") && own.contains("aria-label=\"End "),
        "{own}"
    );
    let (_, _, all) = seen(&boss);
    assert!(all.contains(&hers) && all.contains(&his), "{all}");
    let (_, _, none) = seen(&worker);
    assert!(none.contains("None."), "{none}");
    let id = hidden(&own, "session").to_owned();
    let secret = hidden(&own, "secret").to_owned();
    let post = |headers: &str, body: &str| {
        let reply = ask(&server, "POST", "/ui/stop", &format!("{POST}{headers}"), body);
        (reply.status, reply.header("location").unwrap_or_default().to_owned())
    };
    // By another, by whom the policy lets end none, and without the secret of the page.
    let form = format!("owner=ada&session={id}");
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    assert_eq!(post(&bearer(&bob), &form).1, "/ui/sessions?said=gone#agents");
    assert_eq!(
        post(&bearer(&bob), &format!("owner=bob&session={id}")).1,
        "/ui/sessions?said=not-ended#agents"
    );
    assert_eq!(
        post(&bearer(&worker), &format!("owner=worker&session={id}")).1,
        "/ui/sessions?said=not-ended#agents"
    );
    assert_eq!(post(&cookie, &form).0, 403);
    assert_eq!(alive(&hers).len(), 1);
    assert_eq!(post(&cookie, &format!("{form}&secret={secret}")).1, "/ui/sessions?said=ended#agents");
    wait_until_gone(&hers, SOON);
    let list = client.text("list_sessions", json!({}));
    assert!(list.contains(&his), "{list}");
    // Who is kept from nothing ends anybody's.
    let again = server
        .connect(&ada, Era::Modern)
        .call("new_session", json!({"command": ["sleep", &hers], "role": "worker"}));
    let id = again["structuredContent"]["session_id"].as_str().unwrap().to_owned();
    assert_eq!(post(&bearer(&boss), &format!("owner=ada&session={id}")).1, "/ui/sessions?said=ended#agents");
    wait_until_gone(&hers, SOON);
    assert!(server.log().contains("of ada"), "{}", server.log());
}

#[test]
fn flame_graphs_are_shown_and_nothing_else_of_their_folder() {
    let (project, outside) = (Project::empty(), Project::empty());
    let traces = outside.join("traces");
    std::fs::create_dir(&traces).unwrap();
    let name = "trace-2026-11-22T120304.123-node-4711-cpu-17.0";
    std::fs::write(traces.join(format!("{name}.svg")), "<svg xmlns=\"http://www.w3.org/2000/svg\"/>")
        .unwrap();
    std::fs::write(traces.join(format!("{name}.cpuprofile")), "all of it").unwrap();
    let config = outside.join("coretools.toml");
    std::fs::write(&config, format!("[traces]\nfolder = {:?}\n", traces.to_str().unwrap())).unwrap();
    let server = HttpServer::start(&project, &["--config", config.to_str().unwrap()]);
    let cookie = sign_in(&server, &server.token("boss", "orchestrator", &[]));
    let page = page(&server, "/ui/traces", &cookie);
    assert!(
        page.contains("title=\"Flame graph of node, process 4711, cpu, 2026-11-22 12:03:04 UTC"),
        "{page}"
    );
    let picture = ask(&server, "GET", &format!("/ui/trace/{name}.svg"), &cookie, "");
    assert_eq!(picture.header("content-type"), Some("image/svg+xml"));
    assert!(
        picture.header("content-security-policy").unwrap().ends_with("; sandbox allow-scripts"),
        "{picture:?}"
    );
    for path in [
        format!("/ui/trace/{name}.cpuprofile"),
        "/ui/trace/../coretools.toml".to_owned(),
        "/ui/trace/".to_owned(),
    ] {
        assert_eq!(ask(&server, "GET", &path, &cookie, "").status, 404, "{path}");
    }
    let other = sign_in(&server, &server.token("ada", "dev", &[]));
    assert_eq!(ask(&server, "GET", &format!("/ui/trace/{name}.svg"), &other, "").status, 404);
}

#[test]
fn a_call_is_stopped_by_who_may_and_by_nobody_else() {
    let (project, outside) = (Project::empty(), Project::empty());
    let audit = outside.join("audit.jsonl");
    let server = HttpServer::start(&project, &["--audit", audit.to_str().unwrap()]);
    let [ada, bob] = ["ada", "bob"].map(|name| server.token(name, "dev", &[]));
    let boss = server.token("boss", "orchestrator", &[]);
    let seconds = unique_seconds();
    let mut client = server.connect(&ada, Era::Modern);
    let call = client
        .begin("tools/call", json!({"name": "run_command", "arguments": {"command": ["sleep", seconds]}}));
    wait_until(SOON, "it runs", || !alive(&seconds).is_empty());
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    // What it does, and why it is not over: it sleeps.
    let mut shown = String::new();
    wait_until(SOON, "its program was looked at", || {
        shown = page(&server, "/ui", &bearer(&boss));
        section(&shown, "slow").contains("uses no processor")
    });
    assert!(section(&shown, "slow").contains(&format!("sleep {seconds}")), "{shown}");
    let number = hidden(section(&shown, "slow"), "call").to_owned();
    let post = |token: &str, body: &str| {
        let reply = ask(&server, "POST", "/ui/stop", &format!("{POST}{}", bearer(token)), body);
        (reply.status, reply.header("location").unwrap_or_default().to_owned())
    };
    let over = (303, "/ui/calls?said=call-over#now".to_owned());
    for (token, body) in [
        (&bob, format!("owner=ada&call={number}")),
        (&bob, format!("owner=bob&call={number}")),
        (&boss, format!("owner=bob&call={number}")),
        (&boss, "owner=ada&call=99999".to_owned()),
        (&boss, "owner=ada&call=x".to_owned()),
    ] {
        assert_eq!(post(token, &body), over, "{body}");
    }
    let cookie = sign_in(&server, &boss);
    let foreign =
        ask(&server, "POST", "/ui/stop", &format!("{POST}{cookie}"), &format!("owner=ada&call={number}"));
    assert_eq!(foreign.status, 403, "without the secret of the page");
    assert_eq!(alive(&seconds).len(), 1);
    assert_eq!(post(&boss, &format!("owner=ada&call={number}")).1, "/ui/calls?said=call-stopped#now");
    wait_until_gone(&seconds, SOON);
    drop(call);
    wait_until(SOON, "it is recorded who did it", || {
        let lines = std::fs::read_to_string(&audit).unwrap();
        lines.lines().any(|line| {
            line.contains("page:stop_call")
                && line.contains("\"principal\":\"boss\"")
                && line.contains(&seconds)
        })
    });
    wait_until(SOON, "the call is recorded as well", || {
        let history = page(&server, &format!("/ui/history?about={seconds}"), &bearer(&boss));
        section(&history, "found").contains("run_command")
    });
    let history = page(&server, "/ui/history?tool=page:*", &bearer(&boss));
    assert!(section(&history, "found").contains("stopped `run_command` of ada"), "{history}");
    // A call that waits for a permit is shown with what it waits for, and can be stopped as well.
    let eve = server.token("eve", "dev", &["--calls-in-flight", "1"]);
    let [first, second] = [(); 2].map(|()| unique_seconds());
    let mut client = server.connect(&eve, Era::Modern);
    let run = |seconds: &str| json!({"name": "run_command", "arguments": {"command": ["sleep", seconds]}});
    let _runs = client.begin("tools/call", run(&first));
    wait_until(SOON, "it runs", || !alive(&first).is_empty());
    let mut waiting = server.connect(&eve, Era::Modern).begin("tools/call", run(&second));
    let cookie = bearer(&eve);
    wait_until(SOON, "it waits", || {
        shown = page(&server, "/ui/calls", &cookie);
        section(&shown, "now").contains("Waits: eve has 1 calls running")
    });
    let rows: Vec<&str> = section(&shown, "now").split("<li").collect();
    let row = rows.iter().find(|row| row.contains("Waits: ")).unwrap();
    let number = hidden(row, "call").to_owned();
    assert_eq!(post(&eve, &format!("owner=eve&call={number}")).1, "/ui/calls?said=call-stopped#now");
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains("somebody stopped this call") {
        let mut part = [0; 4096];
        let read = std::io::Read::read(&mut waiting, &mut part).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&part[..read]);
    }
    assert!(alive(&second).is_empty());
}

#[test]
fn a_token_is_revoked_at_once_by_who_may_also_where_its_file_cannot_be_changed() {
    use std::os::unix::fs::PermissionsExt;
    let (project, outside) = (Project::empty(), Project::empty());
    let audit = outside.join("audit.jsonl");
    let server = HttpServer::start(&project, &["--audit", audit.to_str().unwrap()]);
    let [ada, bob, eve] = ["ada", "bob", "eve"].map(|name| server.token(name, "dev", &["--expires", "6d"]));
    let boss = server.token("boss", "orchestrator", &[]);
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let shown = page(&server, "/ui/tokens", &bearer(&boss));
    assert!(
        shown.contains("The tokens of <strong>ada, bob, eve</strong> end within 7 days.")
            && shown.contains("No token ends in the 7 days after that."),
        "{shown}"
    );
    let own = page(&server, "/ui/tokens", &bearer(&ada));
    assert!(own.contains("from 127.0.0.1") && own.contains("in 6 days") && !own.contains("bob"), "{own}");
    let post = |token: &str, name: &str| {
        let reply =
            ask(&server, "POST", "/ui/revoke", &format!("{POST}{}", bearer(token)), &format!("name={name}"));
        (reply.status, reply.header("location").unwrap_or_default().to_owned())
    };
    let refused = (303, "/ui/tokens?said=no-token".to_owned());
    assert_eq!((post(&ada, "bob"), post(&boss, "nobody")), (refused.clone(), refused.clone()));
    let cookie = sign_in(&server, &boss);
    assert_eq!(ask(&server, "POST", "/ui/revoke", &format!("{POST}{cookie}"), "name=bob").status, 403);
    let seconds = unique_seconds();
    server.connect(&bob, Era::Modern).text("start_command", json!({"command": ["sleep", seconds]}));
    assert_eq!(post(&boss, "bob"), (303, "/ui/tokens?said=revoked".to_owned()));
    assert_eq!(server.get("/metrics", Some(&bob)).status, 401);
    wait_until_gone(&seconds, SOON);
    let list = server.tokens(&["list"]);
    assert!(!String::from_utf8_lossy(&list.stdout).contains("bob"), "{list:?}");
    // One revokes one's own.
    assert_eq!(post(&ada, "ada"), (303, "/ui/tokens?said=revoked".to_owned()));
    assert_eq!(server.get("/metrics", Some(&ada)).status, 401);
    assert_eq!(post(&boss, "ada"), refused);
    let lines = std::fs::read_to_string(&audit).unwrap();
    for principal in ["boss", "ada"] {
        let by = format!("\"principal\":\"{principal}\"");
        assert!(
            lines.lines().any(|line| line.contains("page:revoke_token") && line.contains(&by)),
            "{lines}"
        );
    }
    // Nobody can change the file, not even root, where a folder is in its place.
    let file = server.token_file();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert_eq!(post(&boss, "eve"), (303, "/ui/tokens?said=revoked-here".to_owned()));
    assert_eq!(server.get("/metrics", Some(&eve)).status, 401);
    let times_read = || server.log().matches("were read again").count();
    let before = times_read();
    std::fs::remove_dir(&file).unwrap();
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    wait_until(SOON, "the file was read again", || times_read() > before);
    assert_eq!(server.get("/metrics", Some(&eve)).status, 401, "it stays revoked until the server ends");
    // The bearer is named, also where the file has lost the token, or never knew of its end.
    for is_left in [true, false] {
        if !is_left {
            let before = times_read();
            std::fs::write(&file, "version = 1\n").unwrap();
            wait_until(SOON, "the file was read again", || times_read() > before);
        }
        let lines = || std::fs::read_to_string(&audit).unwrap();
        let of_eve = || lines().matches("\"principal\":\"eve\"").count();
        let before = of_eve();
        wait_until(SOON, "its bearer is named", || {
            server.get("/metrics", Some(&eve));
            of_eve() > before
        });
        assert!(lines().contains("it was revoked on 2"), "{}", lines());
    }
}

#[test]
fn to_be_shown_the_form_is_no_refusal_and_a_bad_token_is_one() {
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let token = server.token("boss", "orchestrator", &[]);
    let metrics = || server.get("/metrics", Some(&token)).body;
    let refused = |reason: &str| {
        let start = format!("coretools_requests_turned_away_total{{reason=\"{reason}\"}} ");
        metrics().lines().find_map(|line| line.strip_prefix(&start)?.parse::<u64>().ok()).unwrap_or(0)
    };
    // The token was asked about before the server had read it.
    let before = refused("bad_token");
    for path in ["/ui", "/ui/calls", "/ui/live.js"] {
        assert_eq!(ask(&server, "GET", path, "", "").status, 401);
    }
    sign_in(&server, &token);
    assert_eq!((refused("no_token"), refused("bad_token")), (0, before));
    assert_eq!(ask(&server, "POST", "/ui/sign-in", POST, "token=ctk_nonsense").status, 401);
    assert_eq!(refused("bad_token"), before + 1);
    // A request of the protocol without a token is one.
    assert_eq!(server.get("/mcp", None).status, 401);
    assert_eq!(refused("no_token"), 1);
}

#[test]
fn the_page_says_why_calls_failed_how_often_callers_were_refused_and_how_the_server_is() {
    let (project, outside) = (Project::with([("notes.txt", "a")]), Project::empty());
    let audit = outside.join("audit.jsonl");
    let server = HttpServer::start(&project, &["--audit", audit.to_str().unwrap()]);
    let [ada, emil] =
        [("ada", "dev"), ("emil", "readonly")].map(|(name, role)| server.token(name, role, &[]));
    let cookie = sign_in(&server, &server.token("boss", "orchestrator", &[]));
    server.connect(&ada, Era::Modern).failure("read_file", json!({"path": "no-such-notes.txt"}));
    let mut client = server.connect(&emil, Era::Modern);
    for path in ["notes.txt", "notes.txt", "plan.txt"] {
        client.request("tools/call", json!({"name": "delete_file", "arguments": {"path": path}}));
    }
    let shown = |path: &str, id: &str| {
        let page = page(&server, path, &cookie);
        section(&page, id).to_owned()
    };
    // The error of the call, beside what it was about.
    let lately = shown("/ui/calls?caller=ada", "lately");
    let row = lately.split("<tr").find(|row| row.contains("no-such-notes.txt")).unwrap();
    assert!(row.contains("class=\"bad small\"") && row.contains(">failed<"), "{row}");
    let refused = shown("/ui/calls?caller=EMI&outcome=not-run", "refused");
    let (sums, rows) = refused.split_once("One by one").unwrap();
    assert!(sums.contains("By caller and reason") && sums.contains("<div>3</div>"), "{sums}");
    assert!(sums.contains("delete_file: The role readonly does not have this tool."), "{sums}");
    assert!(rows.contains("(2 times since "), "{rows}");
    let history = "/ui/history?outcome=not-run&amp;when=hour&amp;caller=emil";
    assert!(shown("/ui", "callers").contains(history), "{}", shown("/ui", "callers"));
    for (query, is_found) in [
        ("caller=EMI", true),
        ("caller=e*l", true),
        ("caller=mil*", false),
        ("caller=emil&tool=DELETE", true),
        ("caller=emil&tool=read", false),
    ] {
        let found = shown(&format!("/ui/history?when=hour&{query}"), "found");
        assert_eq!(found.contains("<strong>emil</strong>"), is_found, "{query}: {found}");
        assert_eq!(found.contains("stands for any text"), !is_found, "{query}: {found}");
        assert!(found.contains("The audit begins at 20"), "{query}: {found}");
    }
    let overview = page(&server, "/ui", &cookie);
    let state = overview.split("id=\"server\"").nth(1).unwrap().split("</p>").next().unwrap();
    for words in ["Version ", ", up for ", "Audit: ", "in the file, last written ", ", no errors"] {
        assert!(state.contains(words), "{words} is missing in {state}");
    }
    // Who sees its own calls alone learns nothing of the server.
    assert!(!page(&server, "/ui", &sign_in(&server, &ada)).contains("id=\"server\""));
}

#[test]
fn the_page_alone_answers_who_deleted_a_file_who_is_slow_whose_token_ends_and_what_room_there_is() {
    let (project, outside) = (Project::with([("notes.txt", "a"), ("plan.txt", "b")]), Project::empty());
    let audit = outside.join("audit.jsonl");
    let server = HttpServer::start(&project, &["--audit", audit.to_str().unwrap()]);
    let [ada, bob] = ["ada", "bob"].map(|name| server.token(name, "dev", &["--expires", "9d"]));
    let cookie = sign_in(&server, &server.token("boss", "orchestrator", &[]));
    server.connect(&ada, Era::Modern).text("delete_file", json!({"path": "notes.txt"}));
    server.connect(&bob, Era::Modern).text("run_command", json!({"command": ["rm", "plan.txt"]}));
    // Both are of yesterday now: the audit is a file of lines, each with its time.
    let day = |when: &str| {
        let output = std::process::Command::new("date").args(["-u", "+%F", "-d", when]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let lines = std::fs::read_to_string(&audit).unwrap().replace(&day("now"), &day("yesterday"));
    std::fs::write(&audit, lines).unwrap();
    server.connect(&bob, Era::Modern).text("write_file", json!({"path": "notes.txt", "content": "new"}));
    let found = |query: &str| {
        let page = page(&server, &format!("/ui/history?{query}"), &cookie);
        section(&page, "found").to_owned()
    };
    let deleted = found("about=notes.txt&when=yesterday");
    assert!(deleted.contains("<strong>ada</strong>") && deleted.contains("deletes "), "{deleted}");
    assert!(!deleted.contains("bob"), "{deleted}");
    let removed = found("about=plan.txt&when=yesterday");
    assert!(removed.contains("<strong>bob</strong>") && removed.contains("rm plan.txt"), "{removed}");
    assert!(
        found("about=notes.txt&when=today").contains("changes "),
        "{}",
        found("about=notes.txt&when=today")
    );
    assert!(found("about=%7B&when=all").contains("is not a pattern"));
    // Who is slow now, and why.
    let seconds = unique_seconds();
    let mut client = server.connect(&ada, Era::Modern);
    let spin = format!("end=$(($(date +%s)+60)); while [ $(date +%s) -lt $end ]; do :; done # {seconds}");
    let _call = client
        .begin("tools/call", json!({"name": "run_command", "arguments": {"command": ["sh", "-c", spin]}}));
    let mut overview = String::new();
    wait_until(std::time::Duration::from_secs(25), "its program was looked at twice", || {
        overview = page(&server, "/ui", &cookie);
        section(&overview, "slow").contains(" busy, and has ")
    });
    let slow = section(&overview, "slow");
    assert!(
        slow.contains("<strong>ada</strong>") && slow.contains(&seconds) && slow.contains("processor"),
        "{slow}"
    );
    // What its programs have used is counted to it, and to the tool.
    for id in ["callers", "tools"] {
        assert!(section(&overview, id).contains(" of CPU time"), "{overview}");
    }
    // Whose token ends, and what room there is.
    let tokens = page(&server, "/ui/tokens", &cookie);
    assert!(
        tokens.contains("The tokens of <strong>ada, bob</strong> end in the 7 days after that."),
        "{tokens}"
    );
    let room = section(&overview, "headroom");
    for words in ["Processors", "processors busy", "Memory", " free", "Disk of ", "Calls", "room for "] {
        assert!(room.contains(words), "{words} is missing in {room}");
    }
}
