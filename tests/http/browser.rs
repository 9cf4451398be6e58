//! The page in a real browser: a Chromium without a window, driven by its `DevTools` protocol. `$CORETOOLS_SCREENSHOTS` names
//! a folder in which it leaves pictures to look at.

use crate::SOON;
use base64::Engine;
use integration_tests::{
    Ask, Era, HttpServer, Project, alive, require, unique_seconds, wait_until, wait_until_gone,
};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    last: u64,
    /// The events that it sent unasked: messages of the console, exceptions.
    heard: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Browser {
    /// None where there is no Chromium.
    pub(crate) fn start() -> Option<Self> {
        let profile = tempfile::tempdir().unwrap();
        let start = |name: &str| {
            let mut command = Command::new(name);
            command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
            command.args(["--remote-debugging-port=0", "--no-first-run", "--disable-background-networking"]);
            command.arg(format!("--user-data-dir={}", profile.path().display()));
            command.stdout(Stdio::null()).stderr(Stdio::piped()).stdin(Stdio::null()).process_group(0);
            command.spawn().ok()
        };
        let started = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(start);
        let mut child = require(started, "no chromium; install it: apt install chromium")?;
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = lines.find_map(|line| Some(line.ok()?.strip_prefix("DevTools listening on ")?.to_owned()));
        std::thread::spawn(move || lines.count());
        let url = url.expect("Chromium says where it is");
        let address = url.strip_prefix("ws://").unwrap().split('/').next().unwrap().to_owned();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let (socket, _) = client(&url, stream).unwrap();
        let mut browser =
            Self { child, socket, session: None, last: 0, heard: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let target = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", target);
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a command and returns the answer, which may be an error.
    fn answer(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["id"] == id {
                return message;
            }
            self.heard.push(message);
        }
    }

    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", params);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until this is true. The page may be between two documents.
    pub(crate) fn wait(&mut self, expression: &str) {
        let guarded = format!("(() => {{ try {{ return !!({expression}); }} catch {{ return false; }} }})()");
        let params = json!({"expression": guarded, "returnByValue": true});
        wait_until(SOON, expression, || {
            // An error if the document goes away meanwhile.
            self.answer("Runtime.evaluate", params.clone())["result"]["result"]["value"] == true
        });
    }

    pub(crate) fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url}));
        self.wait(&format!("location.href === {url:?} && document.readyState === 'complete'"));
    }

    pub(crate) fn press(&mut self, key: &str, text: &str) {
        let code = if key == "Enter" { 13 } else { 9 };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    fn scheme(&mut self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", json!({"features": [feature]}));
    }

    fn size(&mut self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    pub(crate) fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("CORETOOLS_SCREENSHOTS") else { return };
        let whole = json!({"format": "png", "captureBeyondViewport": true});
        let answer = self.call("Page.captureScreenshot", whole);
        let bytes =
            base64::engine::general_purpose::STANDARD.decode(answer["data"].as_str().unwrap()).unwrap();
        std::fs::write(Path::new(&folder).join(format!("{name}.png")), bytes).unwrap();
    }

    /// Signs in by the form, with the keyboard.
    pub(crate) fn sign_in(&mut self, server: &HttpServer, token: &str) {
        let page = format!("http://{}/ui", server.address());
        self.open(&page);
        // One can type at once. The browser moves the focus there shortly after the document is complete.
        self.wait("document.activeElement.id === 'token'");
        self.call("Input.insertText", json!({"text": token}));
        self.press("Enter", "\r");
        self.wait("document.title === 'Overview · CoreTools' && document.readyState === 'complete'");
    }

    /// Opens a page of the server.
    pub(crate) fn visit(&mut self, server: &HttpServer, path: &str) {
        self.open(&format!("http://{}{path}", server.address()));
    }

    /// Complaints: refused by the page's policy, broken scripts, missing files. A 401 is the form to sign in.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let bad = |message: &&Value| match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Log.entryAdded") => {
                let entry = &message["params"]["entry"];
                entry["level"] == "error" && !entry["text"].as_str().unwrap_or_default().contains("401")
            }
            _ => false,
        };
        self.heard.iter().filter(bad).map(ToString::to_string).collect()
    }
}

/// A server on which a little has happened.
fn busy(project: &Project, server: &HttpServer) -> (String, String) {
    let boss = server.token("boss", "orchestrator", &[]);
    let ada = server.token("ada", "dev", &[]);
    let seconds = unique_seconds();
    let mut client = server.connect(&ada, Era::Modern);
    std::fs::write(project.join("a.txt"), "a\n").unwrap();
    client.text("read_file", json!({"path": "a.txt"}));
    client.text("list_directory", json!({"path": "."}));
    client.failure("read_file", json!({"path": "../etc/passwd"}));
    client.request("tools/call", json!({"name": "<script>alert(1)</script>", "arguments": {}}));
    client.request("tools/call", json!({"name": "send_message", "arguments": {"text": "x"}}));
    let script = format!("sleep {seconds} # <img src=x onerror=alert(2)> \u{202e}");
    client.text("start_command", json!({"command": ["sh", "-c", script]}));
    let _session = server.connect(&ada, Era::Initialize("2025-06-18"));
    server.get("/mcp", Some("nonsense"));
    (boss, seconds)
}

#[test]
fn the_page_is_kept_up_to_date_and_a_program_is_stopped_by_keyboard() {
    let Some(mut browser) = Browser::start() else { return };
    let project = Project::empty();
    let server = HttpServer::start(&project, &[]);
    let (boss, first) = busy(&project, &server);
    browser.size(1280, 900);
    browser.sign_in(&server, &boss);
    browser.visit(&server, "/ui/calls");
    // What callers sent is text.
    assert_eq!(browser.eval("document.querySelectorAll('main img, main script').length"), 0);
    assert_eq!(
        browser.eval("document.querySelector('#refused').innerText.includes('<script>alert(1)')"),
        true
    );
    // The first key leads past the head.
    browser.press("Tab", "");
    assert_eq!(browser.eval("document.activeElement.className"), "skip");
    browser.wait("document.activeElement.getBoundingClientRect().left >= 0");
    // Something begins: the page shows it without being loaded again, and the focus stays where it was.
    browser.eval("window.mark = 1; document.querySelector('#programs button.stop').focus(); 0");
    let focused = browser.eval("document.activeElement.id");
    let eve = server.token("eve", "dev", &[]);
    let second = unique_seconds();
    server.connect(&eve, Era::Modern).text("start_command", json!({"command": ["sleep", second]}));
    browser.wait(&format!("document.querySelector('#programs').innerText.includes('{second}')"));
    assert_eq!(
        (browser.eval("window.mark"), browser.eval("document.activeElement.id")),
        (json!(1), focused.clone())
    );
    // The button says what it stops.
    let label = browser.eval("document.activeElement.getAttribute('aria-label')");
    let stops = if label.as_str().unwrap().contains(&first) { &first } else { &second };
    let stays = if stops == &first { &second } else { &first };
    assert!(label.as_str().unwrap().contains(stops.as_str()), "{label}");
    browser.press("Enter", "\r");
    browser.wait("document.querySelector('[role=status]').innerText === 'The program was stopped.'");
    wait_until_gone(stops, SOON);
    assert_eq!(alive(stays).len(), 1);
    // Updates can be stopped, and it is said when there are none.
    browser.eval("document.querySelector('#bar button').click(); 0");
    assert_eq!(browser.eval("document.querySelector('#bar').innerText.includes('Not updated')"), true);
    browser.eval("document.querySelector('#bar button').click(); 0");
    // Its token is gone, and so is the page.
    assert!(server.tokens(&["revoke", "boss"]).status.success());
    browser.wait("document.querySelector('#token')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Every view of a viewer who sees everything.
const VIEWS: [&str; 10] = [
    "/ui",
    "/ui?span=day",
    "/ui/calls",
    "/ui/calls?outcome=not-run",
    "/ui/history",
    "/ui/tokens",
    "/ui/sessions",
    "/ui/approvals",
    "/ui/roles",
    "/ui/traces",
];

/// Finds faults of accessibility by axe-core: each with its rule and an element.
const FAULTS: &str = "axe.run(document, {iframes: false}).then(found => found.violations.flatMap(
    fault => fault.nodes.map(node => `${fault.id}: ${node.html.slice(0, 200)} ${node.failureSummary ?? ''}`)))";

/// Each text against its ground, by the formula of WCAG 2.2 (1.4.3): those below 4.5 to 1.
const CONTRAST: &str = r"(() => {
  const light = c => c.map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const rgb = text => text.match(/[\d.]+/g).map(Number);
  const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  const low = new Set();
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || e.tagName === 'SCRIPT') continue;
    const [a, b] = [light(rgb(getComputedStyle(e).color).slice(0, 3)), light(ground(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) low.add(e.tagName + '.' + e.className + ' ' + (a + 0.05) / (b + 0.05));
  }
  return [...low];
})()";

#[test]
fn the_page_can_be_read_in_light_and_dark_when_narrow_when_heard_and_without_scripts() {
    let Some(mut browser) = Browser::start() else { return };
    let (project, outside) = (Project::empty(), Project::empty());
    let traces = outside.join("traces");
    std::fs::create_dir(&traces).unwrap();
    let graph = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 600 60\"><style>rect{fill:#e66}</style>\
                 <rect width=\"600\" height=\"28\"/><rect y=\"30\" width=\"300\" height=\"28\"/></svg>";
    std::fs::write(traces.join("trace-2026-11-22T120304.123-node-4711-cpu-17.0.svg"), graph).unwrap();
    let config = outside.join("coretools.toml");
    std::fs::write(&config, format!("[traces]\nfolder = {:?}\n", traces.to_str().unwrap())).unwrap();
    let server = HttpServer::start(&project, &["--config", config.to_str().unwrap()]);
    let (boss, seconds) = busy(&project, &server);
    let base = format!("http://{}", server.address());
    browser.size(1280, 900);
    browser.open(&format!("{base}/ui"));
    browser.picture("sign-in");
    browser.sign_in(&server, &boss);
    for scheme in ["light", "dark"] {
        browser.scheme(scheme);
        for view in VIEWS {
            browser.visit(&server, view);
            assert_eq!(browser.eval(CONTRAST), json!([]), "{view} {scheme}");
            browser.picture(&format!("{}-{scheme}", view.rsplit('/').next().unwrap()));
        }
    }
    browser.scheme("light");
    let ground = browser.eval("getComputedStyle(document.body).backgroundColor");
    browser.scheme("dark");
    assert_ne!(browser.eval("getComputedStyle(document.body).backgroundColor"), ground);
    browser.scheme("light");
    // What a screen reader is told.
    browser.visit(&server, "/ui/calls");
    let tree = browser.call("Accessibility.getFullAXTree", json!({}));
    let nodes: Vec<(String, String)> = tree["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|node| node["ignored"] != true)
        .map(|node| {
            let text = |value: &Value| value["value"].as_str().unwrap_or_default().to_owned();
            (text(&node["role"]), text(&node["name"]))
        })
        .collect();
    let has = |role: &str, name: &str| nodes.iter().any(|(r, n)| r == role && n.contains(name));
    for (role, name) in [
        ("banner", ""),
        ("navigation", "Pages"),
        ("main", ""),
        ("region", "Calls now"),
        ("region", "Background programs"),
        ("region", "Calls lately"),
        ("region", "Not run"),
        ("columnheader", "Outcome"),
        ("status", ""),
        ("button", &format!("Stop sh -c \"sleep {seconds}")[..8]),
    ] {
        assert!(has(role, name), "{role} {name}: {nodes:?}");
    }
    assert!(
        nodes.iter().all(|(role, name)| !matches!(&**role, "button" | "link" | "region") || !name.is_empty())
    );
    // Without scripts it says the same, and loads itself again.
    browser.call("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    browser.call("Page.navigate", json!({"url": format!("{base}/ui/calls")}));
    browser.wait("document.querySelector('noscript meta[http-equiv=refresh], meta[http-equiv=refresh]')");
    browser.wait(&format!("document.querySelector('#programs').innerText.includes('{seconds}')"));
    assert_eq!(browser.eval("document.querySelector('#bar button')"), Value::Null);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn every_view_fits_a_phone_and_a_desk_and_axe_finds_no_fault() {
    let axe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.axe/node_modules/axe-core/axe.min.js");
    let Some(axe) = require(std::fs::read_to_string(axe).ok(), "no axe-core; run `.ci/run tools`") else {
        return;
    };
    let Some(mut browser) = Browser::start() else { return };
    let (project, outside) = (Project::empty(), Project::empty());
    let traces = outside.join("traces");
    std::fs::create_dir(&traces).unwrap();
    let graph = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 600 60\"><title>x</title>\
                 <rect width=\"600\" height=\"28\" fill=\"#e66\"/></svg>";
    for name in [
        "trace-2026-11-22T120304.123-node-4711-cpu-17.0.svg",
        "trace-2026-11-23T120304.123-node-4712-cpu-17.0.svg",
    ] {
        std::fs::write(traces.join(name), graph).unwrap();
    }
    let (config, audit) = (outside.join("coretools.toml"), outside.join("audit.jsonl"));
    std::fs::write(&config, format!("[traces]\nfolder = {:?}\n", traces.to_str().unwrap())).unwrap();
    let flags = ["--config", config.to_str().unwrap(), "--audit", audit.to_str().unwrap()];
    let server = HttpServer::start(&project, &flags);
    let (boss, _seconds) = busy(&project, &server);
    server.token("ends-soon", "dev", &["--expires", "5d"]);
    let worker = ["--only-root", project.path().to_str().unwrap()];
    let owner = server.token("agents", "orchestrator", &worker);
    server
        .connect(&owner, Era::Modern)
        .call("new_session", json!({"command": ["sleep", unique_seconds()], "role": "worker"}));
    let slow = server.token("slow", "dev", &[]);
    let command = format!("while :; do sleep 0.01; done # {}", unique_seconds());
    let _call = server
        .connect(&slow, Era::Modern)
        .begin("tools/call", json!({"name": "run_command", "arguments": {"command": ["sh", "-c", command]}}));
    browser.sign_in(&server, &boss);
    // Its programs were looked at.
    browser.wait("document.querySelector('#slow').innerText.includes('processor')");
    for (width, height) in [(390, 844), (1280, 900)] {
        browser.size(width, height);
        for view in VIEWS {
            browser.visit(&server, view);
            let name = view.trim_start_matches("/ui").replace(['/', '?', '='], "-");
            browser.picture(&format!("view{name}-{width}"));
            let wide = browser.eval(&format!(
                "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > {width} + 1 &&
                    !e.closest('.scroll, nav, .skip, svg')).map(e => e.outerHTML.slice(0, 150))"
            ));
            // Less than the window where it has a bar to scroll down.
            let is_narrow = browser.eval(&format!("document.documentElement.scrollWidth <= {width}"));
            assert_eq!(is_narrow, true, "{view}: {wide}");
            browser.eval(&format!("{axe}; 0"));
            assert_eq!(browser.eval(FAULTS), json!([]), "{view} at {width}");
        }
    }
    browser.call("Network.clearBrowserCookies", json!({}));
    for (width, height) in [(390, 844), (1280, 900)] {
        browser.size(width, height);
        browser.visit(&server, "/ui");
        browser.wait("document.activeElement.id === 'token'");
        browser.picture(&format!("view-sign-in-{width}"));
        browser.eval(&format!("{axe}; 0"));
        assert_eq!(browser.eval(FAULTS), json!([]), "the form to sign in at {width}");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
