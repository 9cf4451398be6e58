//! Doc comments begin with a sentence that says what the item is or does.

use crate::sources::{crates, files, shown, workspace_root};

/// Words that begin a clause and not a sentence: "What was found." says nothing of what the item is.
const NO_BEGINNINGS: &[&str] =
    &["What", "Who", "Whose", "Whom", "Whoever", "Whether", "Whatever", "Of which", "Or"];

#[test]
fn doc_comments_begin_with_a_sentence() {
    let mut wrong = Vec::new();
    let folders =
        ["tests", "benchmarks/src", "fuzz/fuzz_targets"].map(|folder| workspace_root().join(folder));
    for folder in crates().iter().map(|krate| krate.join("src")).chain(folders) {
        for path in files(&folder, "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut in_comment = false;
            for (index, line) in text.lines().enumerate() {
                let line = line.trim_start();
                let content = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
                let Some(content) = content else {
                    in_comment = false;
                    continue;
                };
                let first = !std::mem::replace(&mut in_comment, true);
                let begins_badly = NO_BEGINNINGS.iter().any(|word| {
                    content.trim_start().strip_prefix(word).is_some_and(|rest| rest.starts_with([' ', ',']))
                });
                if first && begins_badly {
                    wrong.push(format!("{}:{}: {}", shown(&path), index + 1, line));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} doc comments begin with no sentence:\n{}", wrong.len(), wrong.join("\n"));
}
