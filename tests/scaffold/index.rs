//! `.agent/index.agent.md`.

use crate::{printed, run, text};
use integration_tests::Project;
use std::path::Path;

#[test]
fn the_index_names_every_listed_tool_with_the_description_that_clients_get() {
    let project = Project::empty();
    let index = printed(&project, &["index", "--out", "-", "--toolsets", "introspection,run_test_task"]);
    insta::assert_snapshot!("index", index);
    let listed = printed(&project, &["tools", "--json", "--toolsets", "introspection,run_test_task"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    for tool in listed["tools"].as_array().expect("a list") {
        let (name, description) = (tool["name"].as_str().unwrap(), tool["description"].as_str().unwrap());
        let line = index.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).expect("a row");
        assert!(line.contains(&description.replace('|', "\\|")), "{line}");
    }
}

#[test]
fn the_same_tools_give_the_same_bytes_and_the_sum_is_of_the_lines_above_it() {
    let (one, other) = (Project::empty(), Project::empty());
    printed(&one, &["index"]);
    printed(&other, &["index"]);
    let index = one.read(".agent/index.agent.md");
    assert_eq!(index, other.read(".agent/index.agent.md"));
    let (above, sum) = index.rsplit_once("\n\n").expect("a last paragraph");
    one.write("above", &format!("{above}\n"));
    let output = std::process::Command::new("sha256sum").arg(one.join("above")).output().expect("coreutils");
    let known = String::from_utf8_lossy(&output.stdout)[..64].to_owned();
    assert!(sum.contains(&known), "{sum} and {known}");
}

#[test]
fn a_check_passes_on_what_was_written_and_shows_what_is_stale() {
    let project = Project::empty();
    let missing = run(&project, &["index", "--check"]);
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    printed(&project, &["index", "--toolsets", "read_file"]);
    assert!(printed(&project, &["index", "--check", "--toolsets", "read_file"]).ends_with("is up to date"));
    assert!(printed(&project, &["index", "--toolsets", "read_file"]).ends_with("is up to date"));
    let stale = run(&project, &["index", "--check", "--toolsets", "read_file,file_exists"]);
    assert_eq!(stale.status.code(), Some(1), "{stale:?}");
    let edited = project.read(".agent/index.agent.md").replace("Reads a text file", "Eats a text file");
    project.write(".agent/index.agent.md", &edited);
    let by_hand = run(&project, &["index", "--check", "--toolsets", "read_file"]);
    assert_eq!(by_hand.status.code(), Some(1), "{by_hand:?}");
    let said = [missing, stale, by_hand].map(|output| text(&project, &output.stderr));
    insta::assert_snapshot!("checks", said.join("\n\n"));
    let left: Vec<_> = std::fs::read_dir(project.join(".agent")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn the_index_of_this_repository_is_up_to_date() {
    let repository = Project::at(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    let output = run(&repository, &["index", "--check"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n(`cargo run -p coretools-mcp -- index` writes it)");
}
