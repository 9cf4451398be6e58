//! The manual and the completions, of both programs.

use crate::succeed;
use integration_tests::require;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn programs() -> [&'static Path; 2] {
    [integration_tests::server(), integration_tests::http_server()]
}

/// The pages of a program, by the name of their file.
fn pages(program: &Path, folder: &Path) -> BTreeMap<String, String> {
    let folder = folder.join("man");
    let output = succeed(Command::new(program).args(["man", "--out"]).arg(&folder));
    let paths = String::from_utf8(output.stdout).unwrap();
    let name = |path: &str| Path::new(path).file_name().unwrap().to_str().unwrap().to_owned();
    paths.lines().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// A page as a terminal of 80 columns shows it.
fn shown(page: &str, folder: &Path) -> Option<String> {
    let path = folder.join("page.1");
    fs::write(&path, page).unwrap();
    let output = Command::new("mandoc").args(["-T", "ascii", "-O", "width=80"]).arg(&path).output();
    let output = require(output.ok(), "no mandoc")?;
    assert!(output.status.success(), "{output:?}");
    // What is bold stands there twice, with a backspace between.
    let text = String::from_utf8(output.stdout).unwrap();
    let mut plain = String::new();
    for letter in text.chars() {
        match letter {
            '\u{8}' => drop(plain.pop()),
            letter => plain.push(letter),
        }
    }
    Some(plain)
}

/// The options that `--help` lists.
fn options(program: &Path, arguments: &[&str]) -> Vec<String> {
    let output = succeed(Command::new(program).args(arguments).arg("--help"));
    let help = String::from_utf8(output.stdout).unwrap();
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    // What follows two blanks is about them.
    let words = lines.filter_map(|line| line.split("  ").next()).flat_map(|names| names.split([' ', ',']));
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

#[test]
fn every_subcommand_has_a_page_that_shows_each_option_of_its_help() {
    let folder = tempfile::tempdir().unwrap();
    for program in programs() {
        let pages = pages(program, folder.path());
        let name = program.file_name().unwrap().to_str().unwrap();
        assert!(pages.len() >= 5, "{name}: {:?}", pages.keys());
        for (file, page) in &pages {
            let words = file.strip_prefix(name).unwrap().strip_suffix(".1").unwrap();
            // The words with a dash.
            let words = words
                .replace("print-config", "print_config")
                .replace("codex-environment", "codex_environment")
                .replace("remote-server", "remote_server");
            let words: Vec<_> = words.split('-').filter(|word| !word.is_empty()).collect();
            let words: Vec<_> = words.iter().map(|word| word.replace('_', "-")).collect();
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            let options = options(program, &words);
            assert!(options.iter().any(|option| option == "--help"), "{file}");
            let Some(shown) = shown(page, folder.path()) else { return };
            for option in options {
                assert!(shown.contains(&option), "{file} does not show {option}: {shown}");
            }
        }
    }
}

#[test]
fn the_pages_are_well_formed() {
    let there = Command::new("mandoc").arg("-V").stderr(Stdio::null()).stdout(Stdio::null()).status().is_ok();
    if require(there.then_some(()), "no mandoc").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for program in programs() {
        for file in pages(program, folder.path()).keys() {
            let path = folder.path().join("man").join(file);
            let output =
                Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).arg(path).output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            // A date would change the pages of one version. The other is a blank line too few or too many.
            let known =
                |line: &&str| line.contains("missing date") || line.contains("skipping paragraph macro");
            let wrong: Vec<_> = said.lines().filter(|line| !known(line)).collect();
            assert!(wrong.is_empty(), "{wrong:?}");
        }
    }
}

#[test]
fn examples_keep_their_layout_and_no_folder_means_the_first_page() {
    let folder = tempfile::tempdir().unwrap();
    let output = succeed(Command::new(programs()[0]).arg("man"));
    let page = String::from_utf8(output.stdout).unwrap();
    assert_eq!(page.trim_end(), pages(programs()[0], folder.path())["mcp-stdio.1"].trim_end());
    let Some(shown) = shown(&page, folder.path()) else { return };
    let help = String::from_utf8(succeed(Command::new(programs()[0]).arg("--help")).stdout).unwrap();
    let examples: Vec<_> = help.lines().skip_while(|line| *line != "Examples:").skip(1).collect();
    assert!(examples.len() > 3);
    for example in examples {
        assert!(shown.lines().any(|line| line.trim() == example.trim()), "{example}: {shown}");
    }
}

#[test]
fn pages_that_cannot_be_written_are_an_error_that_names_the_folder() {
    let output = Command::new(programs()[1]).args(["man", "--out", "/dev/null/man"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("/dev/null/man") && output.stdout.is_empty(), "{said}");
}

#[test]
fn mcp_http_completes_its_words_in_every_shell_too() {
    for (shell, checker) in [
        ("bash", Some(["bash", "-n"])),
        ("zsh", None),
        ("fish", None),
        ("powershell", None),
        ("elvish", None),
    ] {
        let output = succeed(Command::new(programs()[1]).args(["completions", shell]));
        let script = String::from_utf8(output.stdout).unwrap();
        for word in ["mcp-http", "health", "revoke", "behind-proxy"] {
            assert!(script.contains(word), "{shell} knows nothing of {word}");
        }
        if let Some([checker, flag]) = checker {
            let file = tempfile::NamedTempFile::new().unwrap();
            fs::write(file.path(), script).unwrap();
            succeed(Command::new(checker).arg(flag).arg(file.path()));
        }
    }
}
