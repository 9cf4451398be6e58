//! The threat model names tests, and there are such tests.

use crate::sources::{crates, files, shown, workspace_root};
use std::collections::BTreeMap;
use std::fs;

/// Returns the tests in a column of a table: `path/to/file.rs::name`, in backticks.
fn named_tests(page: &str) -> Vec<(&str, &str)> {
    let quoted =
        page.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter_map(|text| text.split_once(".rs::")).collect()
}

#[test]
fn every_attack_of_the_threat_model_has_a_test_that_exists() {
    let root = workspace_root();
    let page = fs::read_to_string(root.join("docs/threat-model.md")).unwrap();
    let attacks = page
        .lines()
        .skip_while(|line| *line != "## Files")
        .filter(|line| line.starts_with("| ") && !line.starts_with("| attack |"));
    let without: Vec<_> = attacks.filter(|line| !line.contains(".rs::")).collect();
    assert!(without.is_empty(), "no test is named for: {without:#?}");
    let mut sources = BTreeMap::new();
    let mut missing = Vec::new();
    let named = named_tests(&page);
    assert!(named.len() > 40, "{} tests are named", named.len());
    for (file, name) in named {
        let source = sources
            .entry(file)
            .or_insert_with(|| fs::read_to_string(root.join(format!("{file}.rs"))).unwrap_or_default());
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        let at = lines.iter().position(|line| {
            let line = line.strip_prefix("async ").unwrap_or(line);
            line.strip_prefix("fn ")
                .is_some_and(|rest| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with('(')))
        });
        // Attributes stand right above the function.
        let attributes = at
            .map(|at| lines[..at].iter().rev().take_while(|line| line.starts_with("#[")).collect::<Vec<_>>());
        let is_test = attributes.is_some_and(|attributes| {
            attributes.iter().any(|line| line.contains("test"))
                && !attributes.iter().any(|line| line.contains("ignore"))
        });
        if !is_test {
            missing.push(format!("{file}.rs::{name}"));
        }
    }
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
}

/// A module that uses `unsafe` is in the table of ARCHITECTURE, with the reason why it is sound, and no other is.
#[test]
fn every_module_with_unsafe_code_is_listed_with_its_argument() {
    let root = workspace_root();
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let table = page.split("The modules that allow `unsafe_code`:").nth(1).unwrap_or_default();
    let rows = table
        .lines()
        .skip(1)
        .skip_while(|line| line.is_empty())
        .take_while(|line| line.starts_with('|'))
        .skip(2);
    let mut listed: Vec<String> = Vec::new();
    for row in rows {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 3 && cells[2].len() > 20, "no argument: {row}");
        listed.extend(cells[0].split('`').nth(1).map(|path| format!("crates/{path}")));
    }
    let mut found = Vec::new();
    for path in crates().iter().flat_map(|folder| files(folder, "rs")) {
        let text = fs::read_to_string(&path).unwrap();
        if text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains("unsafe {")) {
            found.push(shown(&path));
        }
    }
    listed.sort();
    found.sort();
    assert_eq!(found, listed);
}
