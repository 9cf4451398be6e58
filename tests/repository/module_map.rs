//! The map of the modules: `docs/modules.md` is written from the sources, and ARCHITECTURE names what is there.
//!
//! `UPDATE_DOCS=1` writes the page anew.

use crate::sources::{crates, files, workspace_root};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::path::Path;

/// A name that more modules define than this says nothing of where a line stands, and is left out.
const MAX_MODULES_OF_NAME: usize = 3;

const HEAD: &str = "\
# Modules

Every module of every crate under `crates/`, with its purpose and the names that it defines: types first, then functions,
methods, constants, variants and fields, private ones too. A name that more than three modules define is left out. If you
see a name in a line of code, search this page for it. Unit tests are left out. [ARCHITECTURE.md](../ARCHITECTURE.md)
says how the crates and modules fit together.

This page is written by a test from the first sentence of each module's documentation:
`UPDATE_DOCS=1 cargo test --package integration-tests --test repository module_map`
";

#[test]
fn the_page_of_modules_is_up_to_date() {
    let mut page = HEAD.to_owned();
    let definitions = modules_of_names();
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
            let mut names = names(&text);
            names.retain(|name| definitions[name] <= MAX_MODULES_OF_NAME);
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
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

/// How many modules define each name.
fn modules_of_names() -> HashMap<String, usize> {
    let mut definitions = HashMap::new();
    for path in crates().iter().flat_map(|krate| modules(&krate.join("src"))) {
        for name in names(&std::fs::read_to_string(path).unwrap()) {
            *definitions.entry(name).or_default() += 1;
        }
    }
    definitions
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

/// The names that a module defines, in order: its types, then everything else, private items too.
fn names(text: &str) -> Vec<String> {
    let lines = || text.lines().take_while(|line| !line.starts_with("mod tests"));
    let types = lines().filter_map(|line| item(line.trim_start(), &["struct ", "enum ", "trait ", "union "]));
    // Deeper ones are the types of traits, `type Error` among them.
    let aliases = lines().filter_map(|line| item(line, &["type "]));
    let items = lines().filter_map(|line| item(line.trim_start(), &["fn ", "const ", "static "]));
    let members = lines().filter_map(member);
    let mut names: Vec<String> = Vec::new();
    for name in types.chain(aliases).chain(items).chain(members) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The name of the item that begins at the start of `line`, if it is one of `kinds`.
fn item(line: &str, kinds: &[&str]) -> Option<String> {
    let mut rest = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    for qualifier in ["const ", "async ", "unsafe "] {
        let without = rest.strip_prefix(qualifier);
        rest = without.filter(|without| without.contains("fn ")).unwrap_or(rest);
    }
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = name.find(|character: char| !is_of_name(character)).unwrap_or(name.len());
    (end > 0 && name != "_").then(|| name[..end].to_owned())
}

/// The name of a field or variant that begins at `line`, as rustfmt sets them: one level deep, with a comma at the end or a
/// list of fields that begins.
fn member(line: &str) -> Option<String> {
    let line = line.strip_prefix("    ").filter(|line| !line.starts_with(' '))?;
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let end = line.find(|character: char| !is_of_name(character)).filter(|end| *end > 0)?;
    let (name, rest) = line.split_at(end);
    let is_field = rest.starts_with(": ") && rest.ends_with(',') && !rest.contains(" = ");
    let is_variant = name.starts_with(|first: char| first.is_ascii_uppercase())
        && (rest == "," || rest == " {" || (rest.starts_with(['(', ' ']) && rest.ends_with(',')));
    (is_field || is_variant).then(|| name.to_owned())
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
