//! Prompts, resources and suggestions that help a person in a client: the context of a role, and a prompt for each role.

use integration_tests::{Era, Project, Wire};
use serde_json::{Value, json};

const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

fn project() -> Project {
    let plan = format!("# Plan\n\nBuild the shop. The old token was {SECRET}.\n");
    Project::with([
        ("ARCHITECTURE.md", plan.as_str()),
        ("CONVENTIONS.md", "# Conventions\n\nWrite short functions.\n"),
        ("src/shop.rs", "pub fn sell() {}\n"),
        ("src/stock.rs", "pub fn count() {}\n"),
        (".hidden", ""),
    ])
}

fn connect(project: &Project, role: &str, era: Era) -> Wire {
    let mut command = project.server();
    command.args(["--role", role]);
    Wire::connect(command, era)
}

fn prompts(wire: &mut Wire) -> Vec<String> {
    let answer = wire.request("prompts/list", json!({}));
    let prompts = answer["result"]["prompts"].as_array().unwrap_or_else(|| panic!("{answer}"));
    prompts.iter().map(|prompt| prompt["name"].as_str().unwrap().to_owned()).collect()
}

fn completed(wire: &mut Wire, reference: &Value, argument: &str, value: &str) -> Value {
    let params = json!({"ref": reference, "argument": {"name": argument, "value": value}});
    let answer = wire.request("completion/complete", params);
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"]["completion"]["values"].clone()
}

#[test]
fn a_caller_is_offered_a_prompt_for_each_role_that_it_may_use() {
    let project = project();
    for era in Era::BOTH {
        let mut all = connect(&project, "orchestrator", era);
        let offered = prompts(&mut all);
        for role in ["orchestrator", "dev", "qa", "architect"] {
            assert!(offered.contains(&format!("work_as_{role}")), "{offered:?}");
        }
        let got = all.request(
            "prompts/get",
            json!({"name": "work_as_architect", "arguments": {"task": "sell more in `sell`", "path": "src/shop.rs"}}),
        );
        let messages = got["result"]["messages"].as_array().unwrap_or_else(|| panic!("{got}"));
        let [document, instruction] =
            [0, 1].map(|index: usize| messages[index]["content"]["text"].as_str().unwrap());
        assert!(document.contains("Build the shop") && document.contains("pub fn sell"), "{document}");
        assert!(!document.contains(SECRET) && document.contains("[redacted"), "{document}");
        assert!(!document.contains("prefix_hash"), "facts for programs are left out: {document}");
        assert!(instruction.starts_with("Work in the role `architect`. Reads everything"), "{instruction}");
        assert!(instruction.ends_with("The task: sell more in `sell`"), "{instruction}");
        // A role that uses no other has its own alone, and the others are not there.
        let mut dev = connect(&project, "dev", era);
        assert_eq!(prompts(&mut dev), ["fix_test", "work_as_dev"]);
        let hidden = dev.request("prompts/get", json!({"name": "work_as_qa"}));
        let unknown = dev.request("prompts/get", json!({"name": "work_as_zz"}));
        assert_eq!(
            hidden["error"].to_string().replace("work_as_qa", "NAME"),
            unknown["error"].to_string().replace("work_as_zz", "NAME"),
            "{era:?}"
        );
        // The name decides the role, and no argument.
        let got = dev.request("prompts/get", json!({"name": "work_as_dev", "arguments": {"role": "qa"}}));
        let text =
            got["result"]["messages"][1]["content"]["text"].as_str().unwrap_or_else(|| panic!("{got}"));
        assert!(text.starts_with("Work in the role `dev`."), "{text}");
        assert_eq!(prompts(&mut connect(&project, "minimal", era)), Vec::<String>::new());
    }
}

#[test]
fn the_context_of_a_role_is_a_resource_for_those_who_may_use_the_role() {
    let project = project();
    for era in Era::BOTH {
        let mut dev = connect(&project, "dev", era);
        let mut read = |uri: &str| dev.request("resources/read", json!({"uri": uri}));
        let own = read("coretools://context");
        let content = &own["result"]["contents"][0];
        assert_eq!(content["mimeType"], "text/markdown", "{own}");
        let text = content["text"].as_str().unwrap();
        assert!(text.contains("Write short functions") && !text.contains(SECRET), "{text}");
        assert_eq!(read("coretools://context/dev")["result"]["contents"][0]["text"], content["text"]);
        let refused = read("coretools://context/qa");
        assert!(refused["error"]["message"].as_str().unwrap().contains("the role dev may use"), "{refused}");
        let template = json!({"type": "ref/resource", "uri": "coretools://context/{role}"});
        assert_eq!(completed(&mut dev, &template, "role", ""), json!(["dev"]));
        let mut all = connect(&project, "orchestrator", era);
        assert_eq!(completed(&mut all, &template, "role", "arch"), json!(["architect"]));
    }
}

#[test]
fn paths_and_branches_are_suggested_as_far_as_the_caller_sees_them() {
    let project = project();
    project.git(&["init", "-q", "-b", "main"]);
    project.git(&["add", "-A"]);
    project.git(&["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "first"]);
    project.git(&["branch", "fix/stock"]);
    for era in Era::BOTH {
        let mut wire = connect(&project, "dev", era);
        let prompt = json!({"type": "ref/prompt", "name": "work_as_dev"});
        let mut suggested = |argument: &str, value: &str| completed(&mut wire, &prompt, argument, value);
        assert_eq!(suggested("path", "s"), json!(["src/"]), "{era:?}");
        assert_eq!(suggested("path", "src/s"), json!(["src/shop.rs", "src/stock.rs"]));
        assert_eq!(suggested("path", ".h"), json!([".hidden"]));
        assert!(!suggested("path", "").to_string().contains(".hidden"));
        assert_eq!(suggested("path", "../"), json!([]));
        assert_eq!(suggested("path", "/etc/"), json!([]));
        assert_eq!(suggested("since", "fix"), json!(["fix/stock"]));
        assert_eq!(suggested("task", "anything"), json!([]));
    }
    // A role that may read one folder alone is suggested nothing of the others.
    let roles = "version = 1\n[roles.narrow]\nallow = [\"*\"]\n[[roles.narrow.require]]\nid = \"docs\"\n\
                 tools = [\"list_directory\"]\nread_within = [\"docs\"]\n";
    let outside = Project::with([("roles.toml", roles)]);
    project.write("docs/a.md", "a");
    let mut command = project.server();
    command.args(["--role", "narrow", "--policy", outside.join("roles.toml").to_str().unwrap()]);
    let mut wire = Wire::connect(command, Era::Modern);
    let prompt = json!({"type": "ref/prompt", "name": "work_as_narrow"});
    assert_eq!(completed(&mut wire, &prompt, "path", "src/"), json!([]));
    assert_eq!(completed(&mut wire, &prompt, "path", "docs/"), json!(["docs/a.md"]));
}

#[test]
fn the_audit_records_prompts_resources_and_suggestions() {
    let (project, outside) = (project(), Project::empty());
    let audit = outside.join("audit.jsonl");
    let mut command = project.server();
    command.args(["--role", "dev", "--audit", audit.to_str().unwrap()]);
    let mut wire = Wire::connect(command, Era::Modern);
    wire.request("prompts/get", json!({"name": "work_as_dev"}));
    wire.request("resources/read", json!({"uri": "coretools://context/qa"}));
    let prompt = json!({"type": "ref/prompt", "name": "work_as_dev"});
    completed(&mut wire, &prompt, "path", "s");
    let records = std::fs::read_to_string(&audit).unwrap();
    let recorded: Vec<(String, String)> = records
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|record| {
            let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
            (text("tool"), text("decision"))
        })
        .collect();
    for (tool, decision) in [
        ("mcp/prompts/work_as", "allowed"),
        ("compile_context", "allowed"),
        ("mcp/resources/role-context", "refused"),
        ("mcp/completions/work_as", "allowed"),
        ("list_directory", "allowed"),
    ] {
        assert!(recorded.contains(&(tool.to_owned(), decision.to_owned())), "{tool}: {recorded:?}");
    }
}

#[test]
fn the_tests_that_failed_last_are_suggested_to_the_caller_who_ran_them() {
    let test = "import unittest\nclass Shop(unittest.TestCase):\n    def test_sells(self): self.assertEqual(1, 2)\n    \
                def test_counts(self): pass\n";
    let project = Project::with([("test_shop.py", test)]);
    for era in Era::BOTH {
        let mut wire = connect(&project, "dev", era);
        let prompt = json!({"type": "ref/prompt", "name": "fix_test"});
        assert_eq!(completed(&mut wire, &prompt, "test", ""), json!([]), "nothing was run");
        let report = wire.call("run_tests", json!({"runner": "unittest"}));
        assert_eq!(report["structuredContent"]["failed"], 1, "{report}");
        let suggested = completed(&mut wire, &prompt, "test", "sells");
        let names = suggested.as_array().unwrap();
        assert!(names.len() == 1 && names[0].as_str().unwrap().ends_with("test_sells"), "{suggested}");
        assert_eq!(completed(&mut wire, &prompt, "test", "counts"), json!([]));
        assert_eq!(completed(&mut wire, &prompt, "project_path", "te"), json!(["test_shop.py"]));
        let got = wire.request("prompts/get", json!({"name": "fix_test", "arguments": {"test": names[0]}}));
        let text =
            got["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_else(|| panic!("{got}"));
        assert!(text.contains(r#"`run_tests` {"filter":"#) && text.contains("test_sells"), "{text}");
        // Without its required argument, the client is told what is missing.
        let got = wire.request("prompts/get", json!({"name": "fix_test"}));
        assert!(got["error"]["message"].as_str().unwrap().contains("test"), "{got}");
    }
}
