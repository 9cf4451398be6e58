//! The programs in READMEs, read as rustdoc reads them.

/// The first Rust block of a README, as a program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReadmeProgram {
    /// The source of the program, with a `main`.
    pub(crate) program: String,
    /// False if the block is only compiled (`no_run`).
    pub(crate) runs: bool,
}

/// Returns the first ```` ```rust ```` block of `readme`.
pub(crate) fn first_example(readme: &str) -> Option<ReadmeProgram> {
    let (attributes, code) = blocks(readme).into_iter().find(|(attributes, _)| attributes[0] == "rust")?;
    let lines: Vec<&str> = code.lines().map(unhide).collect();
    Some(ReadmeProgram { program: with_main(&lines), runs: !attributes.contains(&"no_run") })
}

/// Returns the content of the first ```` ```toml ```` block of `readme` that lists dependencies.
pub(crate) fn dependencies(readme: &str) -> Option<String> {
    let lists_dependencies =
        |(attributes, code): &(Vec<&str>, String)| attributes[0] == "toml" && code.contains("[dependencies]");
    Some(blocks(readme).into_iter().find(lists_dependencies)?.1)
}

/// Returns the attributes and the content of each fenced block.
fn blocks(readme: &str) -> Vec<(Vec<&str>, String)> {
    let mut blocks = Vec::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        let Some(attributes) = line.strip_prefix("```") else { continue };
        let content = lines.by_ref().take_while(|line| !line.starts_with("```"));
        let content = content.map(|line| format!("{line}\n")).collect();
        blocks.push((attributes.split(',').map(str::trim).collect(), content));
    }
    blocks
}

/// Returns a line of code as the compiler gets it: rustdoc hides lines that begin with `# `, and `##` stands for `#`.
fn unhide(line: &str) -> &str {
    let code = line.trim_start();
    match code.strip_prefix('#') {
        Some("") => "",
        Some(hidden) if hidden.starts_with(' ') => &hidden[1..],
        Some(escaped) if escaped.starts_with('#') => escaped,
        _ => line,
    }
}

/// Puts a `main` around lines that have none. Lines that end in a `Result` become a function of their own, whose error
/// ends the program.
fn with_main(lines: &[&str]) -> String {
    let code = lines.join("\n");
    if code.contains("fn main(") {
        return code + "\n";
    }
    // As rustdoc does: what a reader is only shown may stay unused.
    let (inner_attributes, body): (Vec<&str>, Vec<&str>) =
        lines.iter().partition(|line| line.starts_with("#!["));
    let head = format!("#![allow(unused)]\n{}", inner_attributes.join("\n"));
    let body = body.join("\n");
    if body.trim_end().ends_with("(())") {
        format!(
            "{head}\nfn main() {{\nfn example() -> Result<(), impl std::fmt::Debug> {{\n{body}\n}}\nexample().unwrap();\n}}\n"
        )
    } else {
        format!("{head}\nfn main() {{\n{body}\n}}\n")
    }
}

#[test]
fn the_first_rust_block_is_found_and_hidden_lines_are_kept() {
    let readme = "a\n```toml\nx = 1\n```\n```rust,no_run\n# use std::fs;\n#\n#[allow(dead_code)]\nlet a = 1;\n```\n```rust\nlet b = 2;\n```\n";
    let program = "#![allow(unused)]\n\nfn main() {\nuse std::fs;\n\n#[allow(dead_code)]\nlet a = 1;\n}\n";
    assert_eq!(first_example(readme), Some(ReadmeProgram { program: program.to_owned(), runs: false }));
    assert_eq!(first_example("```sh\nls\n```\n"), None);
}

#[test]
fn a_whole_program_stays_as_it_is_and_an_error_ends_any_other() {
    let whole = first_example("```rust\nfn main() {}\n```\n");
    assert_eq!(whole, Some(ReadmeProgram { program: "fn main() {}\n".to_owned(), runs: true }));
    let fallible = first_example("```rust\ncheck()?;\n# Ok::<(), Error>(())\n```\n").expect("an example");
    assert!(fallible.program.ends_with("check()?;\nOk::<(), Error>(())\n}\nexample().unwrap();\n}\n"));
}

#[test]
fn only_a_block_that_lists_dependencies_is_taken_for_one() {
    let readme = "```toml\nversion = 1\n```\n```toml\n[dependencies]\na = \"1\"\n```\n";
    assert_eq!(dependencies(readme).as_deref(), Some("[dependencies]\na = \"1\"\n"));
    assert_eq!(dependencies("```toml\nversion = 1\n```\n"), None);
}
