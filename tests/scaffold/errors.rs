//! The messages and refusals of `new`; a refusal leaves nothing behind.

use crate::{printed, run, text};
use integration_tests::Project;

#[test]
fn help_is_as_recorded() {
    let project = Project::empty();
    insta::assert_snapshot!("help_new", printed(&project, &["new", "--help"]));
    insta::assert_snapshot!("help_index", printed(&project, &["index", "--help"]));
}

#[test]
fn each_refusal_says_what_to_do_and_leaves_nothing_behind() {
    let project = Project::with([("full/a.txt", ""), ("a-file", "")]);
    let before = tree(&project);
    let said: Vec<_> = [
        &["new", "full"][..],
        &["new", "a-file"],
        &["new", "a-file/demo"],
        &["new", "9lives"],
        &["new", "demo", "--name", "Demo"],
        &["new", "demo", "--name", "async"],
        &["new", "demo", "--name", "core_tools"],
        &["new", "demo", "--toolsets", "filesytem,git"],
        &["new", "demo", "--toolsets", "minmal"],
        &["new", "demo", "--toolsets", ""],
        &["new", "demo", "--path", "full"],
        &["new", "demo", "--path", "nowhere"],
    ]
    .iter()
    .map(|arguments| {
        let output = run(&project, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        format!("$ mcp-stdio {}\n{}", arguments.join(" "), text(&project, &output.stderr))
    })
    .collect();
    insta::assert_snapshot!("refusals", said.join("\n\n"));
    assert_eq!(tree(&project), before);
}

#[cfg(unix)]
#[test]
fn a_project_that_cannot_be_written_whole_is_not_written_at_all() {
    let project = Project::empty();
    std::fs::create_dir(project.join("there")).expect("a folder");
    let before = tree(&project);
    for place in ["there", "new", "above/new"] {
        // As a full disk would: files may have 4 blocks of 512 bytes, and some of the project's are longer.
        let limited = std::process::Command::new("sh")
            .args(["-c", "ulimit -f 4; trap '' XFSZ; exec \"$0\" new \"$1\""])
            .arg(integration_tests::server())
            .arg(place)
            .current_dir(project.path())
            .output()
            .expect("sh is there");
        assert_eq!(limited.status.code(), Some(2), "{limited:?}");
        assert_eq!(tree(&project), before, "{place}");
    }
}

#[test]
fn an_empty_folder_is_filled_and_what_is_written_is_as_recorded() {
    let project = Project::with([("demo/.keep", "")]);
    std::fs::remove_file(project.join("demo/.keep")).expect("it is there");
    let said = printed(&project, &["new", "demo", "--toolsets", "git, filesystem", "--http", "--published"]);
    insta::assert_snapshot!("said", said);
    insta::assert_snapshot!("files", tree(&project).join("\n"));
    for file in ["Cargo.toml", "src/lib.rs", "roles.toml", "README.md"] {
        insta::assert_snapshot!(file.replace('/', "_"), project.read(&format!("demo/{file}")));
    }
}

#[test]
fn a_preset_or_a_tool_stands_for_the_toolsets_of_its_tools() {
    for (list, features) in [
        ("minimal", r#"["filesystem", "ci"]"#),
        ("introspect", r#"["filesystem", "ci", "introspection"]"#),
        ("git_status,tests", r#"["git", "tests"]"#),
    ] {
        let project = Project::empty();
        printed(&project, &["new", "demo", "--toolsets", list]);
        let manifest = project.read("demo/Cargo.toml");
        assert!(manifest.contains(&format!("features = {features} }}")), "{list}: {manifest}");
    }
}

/// Every file and folder in it.
fn tree(project: &Project) -> Vec<String> {
    fn walk(folder: &std::path::Path, shown: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let shown = format!("{shown}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                found.push(format!("{shown}/"));
                walk(&entry.path(), &format!("{shown}/"), found);
            } else {
                found.push(shown);
            }
        }
    }
    let mut found = Vec::new();
    walk(project.path(), "", &mut found);
    found.sort();
    found
}
