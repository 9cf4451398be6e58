//! The map of the modules: `docs/modules.md` is written from the sources, and ARCHITECTURE names what is there.
//!
//! `UPDATE_DOCS=1` writes the page anew.

use crate::sources::{crates, files, workspace_root};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// The names that the page gives of one module: its types, then its functions.
const MAX_NAMES: usize = 12;

const HEAD: &str = "\
# Modules

Every module of every crate under `crates/`, with its purpose and the names that it defines: types first, then
functions that other modules call. If you see a name in a line of code, search this page for it. Unit tests are left
out. [ARCHITECTURE.md](../ARCHITECTURE.md) says how the crates and modules fit together.

This page is written by a test from the first sentence of each module's documentation:
`UPDATE_DOCS=1 cargo test --package integration-tests --test repository module_map`
";

#[test]
fn the_page_of_modules_is_up_to_date() {
    let mut page = HEAD.to_owned();
    for krate in crates() {
        let manifest = std::fs::read_to_string(krate.join("Cargo.toml")).unwrap();
        let description = manifest.lines().find_map(|line| line.strip_prefix("description = \"")).unwrap();
        let description = description.strip_suffix('"').unwrap().replace("\\\"", "\"");
        let name = krate.file_name().unwrap().to_string_lossy();
        write!(page, "\n## `{name}`\n\n{description}\n\n| module | purpose | names |\n|---|---|---|\n")
            .unwrap();
        let source = krate.join("src");
        for path in modules(&source) {
            let text = std::fs::read_to_string(&path).unwrap();
            let module = module_name(&source, &path);
            let purpose = match purpose(&text) {
                Some(purpose) => purpose.replace('|', "\\|"),
                None if module == "lib" => "The public items of the crate.".to_owned(),
                None => panic!("{} has no documentation", path.display()),
            };
            let names: Vec<String> = names(&text).iter().map(|name| format!("`{name}`")).collect();
            writeln!(page, "| `{module}` | {purpose} | {} |", names.join(", ")).unwrap();
        }
    }
    let file = workspace_root().join("docs/modules.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap();
    let stale: Vec<&str> = page.lines().filter(|line| !written.lines().any(|other| other == *line)).collect();
    assert!(
        written == page,
        "docs/modules.md is stale; UPDATE_DOCS=1 on this test writes it\n\n{}",
        stale.join("\n")
    );
}

#[test]
fn architecture_names_the_modules_that_are_there() {
    let text = std::fs::read_to_string(workspace_root().join("ARCHITECTURE.md")).unwrap();
    let map = text.split_once("\n## Where things are\n").unwrap().1;
    let map = map.split_once("\n## ").unwrap().0;
    let mut wrong = Vec::new();
    for krate in crates() {
        let name = krate.file_name().unwrap().to_string_lossy();
        let Some((_, section)) = map.split_once(&format!("\n### `{name}`\n")) else {
            wrong.push(format!("{name} has no section"));
            continue;
        };
        let section = section.split_once("\n### ").map_or(section, |(section, _)| section);
        let first_cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" |"));
        let named: BTreeSet<&str> = first_cells
            .flat_map(|(cell, _)| cell.split(", "))
            .map(|module| module.trim_matches('`'))
            .collect();
        let source = krate.join("src");
        for module in &named {
            let is_there = match module.strip_suffix('/') {
                Some(folder) => source.join(folder).is_dir(),
                None => source.join(format!("{module}.rs")).is_file(),
            };
            if !is_there {
                wrong.push(format!("{name} has no {module}"));
            }
        }
        for path in modules(&source) {
            let module = module_name(&source, &path);
            let folder = module.rsplit_once('/').map(|(folder, _)| format!("{folder}/"));
            let home = folder.unwrap_or(module);
            if home != "lib" && home != "main" && !named.contains(home.as_str()) {
                wrong.push(format!("{name}: {home} is not named"));
            }
        }
    }
    wrong.dedup();
    assert!(wrong.is_empty(), "ARCHITECTURE.md, Where things are:\n{}", wrong.join("\n"));
}

/// The files of the modules below `source`, without those that hold tests alone: the files of a folder first, then its
/// folders.
fn modules(source: &Path) -> Vec<std::path::PathBuf> {
    let mut modules: Vec<_> = files(source, "rs")
        .into_iter()
        .filter(|path| {
            !path.ends_with("tests.rs")
                && path.strip_prefix(source).unwrap().iter().all(|part| part != "tests")
        })
        .collect();
    modules.sort_by_key(|path| {
        let folder = path.parent().unwrap().to_owned();
        (folder, !path.ends_with("mod.rs") && !path.ends_with("lib.rs"), path.clone())
    });
    modules
}

/// The name of a module as the page shows it: `lib`, `limits`, `tree/`, `tree/leader`.
fn module_name(source: &Path, path: &Path) -> String {
    let path = path.strip_prefix(source).unwrap().with_extension("");
    let name = path.to_str().unwrap().replace('\\', "/");
    match name.strip_suffix("/mod") {
        Some(folder) => format!("{folder}/"),
        None => name,
    }
}

/// The first sentence of a module's documentation.
fn purpose(text: &str) -> Option<String> {
    let paragraph: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("//!").map(str::trim))
        .take_while(|line| !line.is_empty())
        .collect();
    let paragraph = paragraph.join(" ");
    let sentence = match paragraph.match_indices(". ").find(|(at, _)| begins_sentence(&paragraph[at + 2..])) {
        Some((end, _)) => &paragraph[..=end],
        None => &paragraph,
    };
    (!sentence.is_empty()).then(|| without_links(sentence))
}

fn begins_sentence(rest: &str) -> bool {
    rest.starts_with(|first: char| first.is_uppercase() || first == '`' || first == '[')
}

/// Takes the brackets off links to items, which mean nothing outside the source.
fn without_links(sentence: &str) -> String {
    sentence.replace("[`", "`").replace("`]", "`")
}

/// The types of a module, private ones too, and then the functions that other modules see.
fn names(text: &str) -> Vec<String> {
    let lines = || text.lines().take_while(|line| !line.starts_with("mod tests"));
    let types = lines().filter_map(|line| item(line, &["struct ", "enum ", "trait ", "union "], false));
    let functions =
        lines().filter_map(|line| item(line, &["fn ", "async fn ", "const fn ", "unsafe fn "], true));
    let mut names: Vec<String> = Vec::new();
    for name in types.chain(functions) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.truncate(MAX_NAMES);
    names
}

/// The name of the item that begins at the start of `line`, if it is one of `kinds`.
fn item(line: &str, kinds: &[&str], must_be_visible: bool) -> Option<String> {
    let rest = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None if must_be_visible => return None,
        None => line,
    };
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end =
        name.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(name.len());
    (end > 0).then(|| name[..end].to_owned())
}
