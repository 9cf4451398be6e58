//! A flame graph as `capture_trace` writes it, in a real browser: it fits a phone, zooms and finds functions, opened as a
//! file and sent by the server.

use crate::browser::Browser;
use core_tools::trace::flame::{FlameGraphTitle, svg};
use core_tools::trace::{CallTree, ProfiledFunction};
use integration_tests::{HttpServer, Project};
use serde_json::{Value, json};

/// A profile of 1,000 samples: `work` has 60 % in two places, and one function a hostile name.
fn graph() -> String {
    let mut tree = CallTree::default();
    let mut add = |stack: &[&str], weight: u64| {
        let frames: Vec<_> = stack
            .iter()
            .map(|name| tree.frame(ProfiledFunction::new(name, Some("/app/shop.js"), Some(7))))
            .collect();
        tree.add(&frames, weight);
    };
    add(&["main", "handle", "work"], 400);
    add(&["main", "poll", "work"], 200);
    add(&["main", "poll"], 100);
    add(&["main", "</script><script>document.title = 'owned'</script>"], 300);
    svg(&tree, &FlameGraphTitle::new("CPU of node, process 4711", "1,000 samples in 10 s"), |weight| {
        format!("{weight} us")
    })
}

/// The label, the left edge and the width of every bar that is seen.
const BARS: &str = "[...document.querySelectorAll('g')].filter(g => g.style.display !== 'none').map(g => {
    const box = g.querySelector('rect').getBoundingClientRect();
    return [g.dataset.name, Math.round(box.left), Math.round(box.width)];
})";

fn width_of(browser: &mut Browser, name: &str) -> Vec<i64> {
    let bars = browser.eval(BARS);
    let named = bars.as_array().unwrap().iter().filter(|bar| bar[0].as_str().unwrap().starts_with(name));
    named.map(|bar| bar[2].as_i64().unwrap()).collect()
}

/// Uses the graph as a person on a phone does.
fn use_it(browser: &mut Browser, url: &str) {
    let phone = json!({"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": true});
    browser.call("Emulation.setDeviceMetricsOverride", phone);
    browser.open(url);
    // It fits, and its letters are not shrunk.
    assert_eq!(browser.eval("document.documentElement.scrollWidth"), 390);
    assert_eq!(browser.eval("visualViewport.scale"), 1);
    let height = browser.eval("document.querySelectorAll('text')[2].getBoundingClientRect().height");
    assert!(height.as_f64().is_some_and(|height| height > 10.0), "{height}");
    assert_eq!(width_of(browser, "main"), [370]);
    assert_eq!(width_of(browser, "poll"), [111]);
    browser.picture("flame-graph-phone");
    // A bar that is tapped fills the window, what is beside it is gone, and its callers stay.
    let click = |name: &str| {
        format!(
            "[...document.querySelectorAll('g')].find(g => g.dataset.name.startsWith('{name}'))
                .dispatchEvent(new MouseEvent('click', {{bubbles: true}})); 0"
        )
    };
    browser.eval(&click("poll"));
    assert_eq!((width_of(browser, "poll"), width_of(browser, "main")), (vec![370], vec![370]));
    assert_eq!(width_of(browser, "handle"), Vec::<i64>::new());
    assert_eq!(width_of(browser, "work"), [246]);
    let note = browser.eval("document.getElementById('note').textContent");
    assert!(note.as_str().unwrap().starts_with("poll"), "{note}");
    browser.eval(&click("poll"));
    assert_eq!(width_of(browser, "poll"), [111], "tapped again, it leads back");
    // A function is found wherever it is called, and its share is said.
    browser.eval("document.querySelector('input').focus(); 0");
    browser.call("Input.insertText", json!({"text": "WORK"}));
    let note = browser.eval("document.getElementById('note').textContent");
    assert_eq!(note, "2 bars, 60.0 % matches “work”");
    let marked =
        "[...document.querySelectorAll('rect')].filter(r => r.getAttribute('fill') === '#d940d9').length";
    assert_eq!(browser.eval(marked), 2);
    browser.picture("flame-graph-found");
    browser.press("Escape", "");
    assert_eq!(browser.eval(marked), 0);
    // A name is text, whatever it says.
    assert_eq!(
        browser.eval("document.title === 'owned' || document.querySelectorAll('script').length > 1"),
        false
    );
    assert_eq!(browser.eval("document.querySelectorAll('g').length"), 7);
    // On a wide screen it takes the room that there is.
    let desk = json!({"width": 1600, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    browser.call("Emulation.setDeviceMetricsOverride", desk);
    browser.wait("document.documentElement.getAttribute('width') === '1600'");
    assert_eq!(width_of(browser, "main"), [1580]);
    browser.picture("flame-graph-desk");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_flame_graph_fits_a_phone_zooms_and_finds_functions_as_a_file_and_from_the_server() {
    let Some(mut browser) = Browser::start() else { return };
    let (project, outside) = (Project::empty(), Project::empty());
    let name = "trace-2026-11-22T120304.123-node-4711-cpu-17.0.svg";
    outside.write(&format!("traces/{name}"), &graph());
    let file = outside.join("traces").join(name);
    use_it(&mut browser, &format!("file://{}", file.display()));
    let config = outside.join("coretools.toml");
    let folder = outside.join("traces");
    std::fs::write(&config, format!("[traces]\nfolder = {:?}\n", folder.to_str().unwrap())).unwrap();
    let server = HttpServer::start(&project, &["--config", config.to_str().unwrap()]);
    let boss = server.token("boss", "orchestrator", &[]);
    browser.call("Emulation.clearDeviceMetricsOverride", json!({}));
    browser.sign_in(&server, &boss);
    use_it(&mut browser, &format!("http://{}/ui/trace/{name}", server.address()));
    // What it could do there is nothing: it is in a sandbox, without cookies and an origin.
    let origin: Value = browser.eval("self.origin");
    assert_eq!(origin, "null");
}
