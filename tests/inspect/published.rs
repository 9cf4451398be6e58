//! State that the application publishes.

use crate::{answer, failure, said, serve, value};
use integration_tests::Project;
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_file_is_read_by_its_usual_name_by_setting_and_by_target() {
    let project = Project::with([
        (".app-state.json", r#"{"cart": {"items": [{"name": "tea"}], "total": 2.5}, "token": "t-0"}"#),
        ("run/state.json", r#"{"from": "the setting"}"#),
    ]);
    let mut wire = serve(&project, &[]);
    let found = answer(&mut wire, json!({"path": "cart"}));
    assert_eq!(found["value"], json!({"items": [{"name": "tea"}], "total": 2.5}));
    assert_eq!(found["source"], "file: .app-state.json");
    assert_eq!(value(&mut wire, "")["token"], "[masked]");
    assert_eq!(value(&mut wire, "token"), "t-0");
    let failed = failure(&mut wire, json!({"path": "cart.zzz"}));
    assert_eq!(
        (&failed["error"], &failed["resolved"], &failed["failed_at"], &failed["keys"]),
        (&json!("Path not found"), &json!("cart"), &json!("zzz"), &json!(["items", "total"]))
    );
    assert_eq!(
        answer(&mut wire, json!({"path": "from", "target": "file:run/state.json"}))["value"],
        "the setting"
    );
    let mut wire = serve(&project, &[("STATE_PATH", "run/state.json")]);
    assert_eq!(value(&mut wire, "from"), "the setting");
}

#[test]
fn a_document_is_cut_within_its_bounds() {
    let big = json!({
        "keys": (0..60).map(|i| (format!("k{i}"), json!(i))).collect::<serde_json::Map<_, _>>(),
        "list": (0..60).collect::<Vec<_>>(),
        "text": "é".repeat(3000),
        "deep": {"a": {"b": {"c": {"d": 1}}}},
        "wide": vec![vec!["x".repeat(100); 50]; 50],
    });
    let project = Project::with([(".app-state.json", &*big.to_string())]);
    let mut wire = serve(&project, &[]);
    let keys = answer(&mut wire, json!({"path": "keys"}));
    assert_eq!((keys["value"].as_object().unwrap().len(), &keys["value"]["$more"]), (51, &json!(10)));
    assert_eq!(value(&mut wire, "list")[50], json!({"$more": 10}));
    assert_eq!(value(&mut wire, "list[59]"), 59);
    let all = answer(&mut wire, json!({"path": ""}));
    assert_eq!(all["value"]["text"].as_str().unwrap().chars().count(), 2000 + " (3000 characters)".len() + 1);
    assert_eq!(all["value"]["deep"], json!({"a": {"b": {"$cut": "Object(1)"}}}));
    assert_eq!(
        answer(&mut wire, json!({"path": "deep", "depth": 4}))["value"]["a"]["b"]["c"],
        json!({"d": 1})
    );
    let wide = answer(&mut wire, json!({"path": "wide"}));
    assert!(wide["truncated"]["full"].as_u64().unwrap() > 0 && wide.to_string().len() < 60_000);
}

#[test]
fn a_file_that_is_no_document_is_said_so() {
    let project = Project::with([(".app-state.json", "{\"half\": "), ("big.json", &" ".repeat(17 << 20))]);
    let mut wire = serve(&project, &[]);
    assert!(said(&mut wire, json!({"path": "half"})).contains("holds no JSON document"));
    assert!(said(&mut wire, json!({"path": "a", "target": "file:big.json"})).contains("more than 16 MiB"));
}

#[test]
fn a_state_file_that_never_ends_or_leads_elsewhere_is_refused_at_once() {
    let (project, outside) = (Project::empty(), Project::with([("secret.json", "{\"a\": \"sesame\"}")]));
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, project.join("fifo"), fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, project.join(name)).unwrap();
    link("/dev/zero", "zero");
    link(outside.join("secret.json").to_str().unwrap(), "elsewhere");
    link("loop", "loop");
    link("fifo", "to-fifo");
    let _socket = std::os::unix::net::UnixListener::bind(project.join("socket")).unwrap();
    std::fs::create_dir(project.join("folder")).unwrap();
    std::fs::File::create(project.join("endless")).unwrap().set_len(1 << 40).unwrap();
    let mut wire = serve(&project, &[]);
    for name in ["fifo", "zero", "elsewhere", "loop", "to-fifo", "socket", "folder", "endless"] {
        let started = Instant::now();
        let answered = said(&mut wire, json!({"path": "a", "target": format!("file:{name}")}));
        assert!(answered.contains(name) && !answered.contains("sesame"), "{name}: {answered}");
        assert!(started.elapsed() < Duration::from_secs(15), "{name}: {:?}", started.elapsed());
        // Where the settings name it, it is the same.
        let mut named = serve(&project, &[("STATE_PATH", name)]);
        let answered = said(&mut named, json!({"path": "a"}));
        assert!(answered.contains(name) && !answered.contains("sesame"), "{name}: {answered}");
    }
    assert!(integration_tests::peak_memory_kib(wire.pid()) < 300 << 10, "memory");
}

#[test]
fn a_file_that_is_named_and_missing_is_an_error_and_the_rest_is_still_asked() {
    let project = Project::empty();
    let mut wire = serve(&project, &[("STATE_PATH", "nothing.json"), ("MODE", "x")]);
    let found = answer(&mut wire, json!({"path": "process.env.MODE"}));
    assert!(found["tried"][0]["why"].as_str().unwrap().contains("nothing.json"), "{found}");
    assert!(failure(&mut wire, json!({"path": "a"}))["error"].as_str().unwrap().contains("nothing.json"));
}
