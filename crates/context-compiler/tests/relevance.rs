//! The source files of a request without globs: what changed, what failed, what the task says, and what is connected.
#![cfg(all(feature = "outline", feature = "tokens"))]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod support;

use context_compiler::cache::ContentCache;
use context_compiler::changes::{ChangedFile, FileChangeKind, RepositoryChanges, RepositoryChangesOutcome};
use context_compiler::{CompiledContext, Compiler, ContextRequest, ManifestSectionEntry, SectionDetailLevel};
use std::fmt::Write as _;
use std::sync::OnceLock;
use support::MemoryTree;

fn compile(tree: &MemoryTree, request: &ContextRequest) -> CompiledContext {
    static CACHE: OnceLock<ContentCache> = OnceLock::new();
    Compiler::new(tree).cache(CACHE.get_or_init(ContentCache::default)).compile(request).unwrap()
}

/// A module with `functions` public functions, each with a body, that uses `uses`.
fn module(name: &str, functions: usize, uses: &str) -> String {
    let mut text = format!("//! The module {name}.\n\n");
    for number in 0..functions {
        let _ = writeln!(
            text,
            "/// Does step {number} of {name}.\npub fn {name}_step_{number}(input: &str) -> usize {{\n    \
             let total = input.len() + {number};\n    let doubled = total * 2;\n    {uses}(doubled)\n}}\n"
        );
    }
    text
}

/// A project of 40 modules, one of them huge, without planning documents.
fn project() -> MemoryTree {
    let mut tree = MemoryTree::with([
        ("README.md", "# Mill\n\nIt grinds.\n".to_owned()),
        ("CONTRIBUTING.md", "# Contributing\n\nRun the tests.\n".to_owned()),
        ("AGENTS.md", "# Agents\n\nBe brief.\n".to_owned()),
        ("Cargo.toml", "[package]\nname = \"mill\"\n".to_owned()),
        ("src/main.rs", "fn main() {\n    grain_step_0(\"x\");\n}\n".to_owned()),
        ("src/grain.rs", module("grain", 12, "stone_step_1")),
        ("src/stone.rs", module("stone", 12, "std::convert::identity")),
        ("src/huge.rs", module("huge", 400, "grain_step_1")),
        ("tests/grain.rs", "#[test]\nfn grinds() {\n    grain_step_2(\"x\");\n}\n".to_owned()),
    ]);
    for number in 0..40 {
        let name = format!("part{number}");
        tree.files.insert(format!("src/{name}.rs"), module(&name, 8, "std::convert::identity").into_bytes());
    }
    tree
}

fn changed(path: &str, hunk: &str) -> RepositoryChanges {
    let mut file = ChangedFile::new(path, FileChangeKind::Modified);
    file.hunks = vec![hunk.to_owned()];
    let mut changes = RepositoryChanges::new("HEAD", RepositoryChangesOutcome::Changed);
    changes.files = vec![file];
    changes
}

fn section<'a>(compiled: &'a CompiledContext, path: &str) -> Option<&'a ManifestSectionEntry> {
    compiled.manifest.sections.iter().find(|section| section.path == path)
}

/// The detail of each file: 1 for its name, 2 for its outline, 3 for more than that, 4 for its whole text.
fn details(compiled: &CompiledContext, tree: &MemoryTree) -> Vec<u8> {
    let listed: Vec<&str> = compiled.tail.lines().collect();
    let detail = |path: &String| match section(compiled, path).map(|section| section.level) {
        Some(SectionDetailLevel::Full) => 4,
        Some(SectionDetailLevel::Trimmed) => 3,
        Some(_) => 2,
        None => u8::from(listed.iter().any(|line| line.split(" (").next() == Some(path))),
    };
    tree.files.keys().map(detail).collect()
}

#[test]
fn what_changed_is_whole_first_then_what_it_uses_and_those_who_use_it() {
    let tree = project();
    let request = |budget| {
        ContextRequest::new("dev")
            .budget_tokens(budget)
            .changes(changed("src/grain.rs", "@@ -1 +1 @@\n-a\n+    stone_step_1(doubled)\n"))
    };
    for budget in [3_000, 4_000, 8_000] {
        let compiled = compile(&tree, &request(budget));
        let grain = section(&compiled, "src/grain.rs").unwrap();
        assert_eq!((grain.level, grain.why.as_str()), (SectionDetailLevel::Full, "changed"), "{budget}");
        let stone = section(&compiled, "src/stone.rs").unwrap();
        assert_eq!(stone.why, "defines what the changes or failures use", "{budget}");
    }
    let large = compile(&tree, &request(8_000));
    assert!(section(&large, "tests/grain.rs").is_some(), "{}", large.tail);
}

#[test]
fn a_file_that_a_failure_names_is_whole() {
    let failure = "thread 'x' panicked at /build/mill/src/part17.rs:9:5:\nassertion failed";
    let request = ContextRequest::new("dev").budget_tokens(4_000).test_failures(failure);
    let compiled = compile(&project(), &request);
    let named = section(&compiled, "src/part17.rs").unwrap();
    assert_eq!((named.level, named.why.as_str()), (SectionDetailLevel::Full, "the failures name it"));
}

#[test]
fn a_file_that_the_task_describes_comes_before_others() {
    for task in ["part31_step_4 returns too much", "Fix step of part31", "see src/part31.rs"] {
        let compiled = compile(&project(), &ContextRequest::new("dev").budget_tokens(2_000).task(task));
        let described = section(&compiled, "src/part31.rs").expect(task);
        assert_eq!(described.why, "matches the task", "{task}");
        assert!(compiled.tail.contains("part31_step_4"), "{task}");
    }
}

#[test]
fn the_budget_is_used_and_more_of_it_takes_detail_from_no_file() {
    let tree = project();
    let requests = [
        ContextRequest::new("dev").task("grain runs through the huge stone"),
        ContextRequest::new("dev").changes(changed("src/huge.rs", "@@ -1 +1 @@\n-a\n+b\n")),
        ContextRequest::new("dev").include(["src"]),
    ];
    for request in requests {
        let mut before = vec![0; tree.files.len()];
        for budget in (1_000..24_000).step_by(4_610) {
            let compiled = compile(&tree, &request.clone().budget_tokens(budget));
            let tokens = compiled.manifest.tokens;
            assert!(
                tokens <= budget && tokens * 100 >= budget * 85,
                "{tokens} of {budget}: {:?}\n{}",
                request.task,
                compiled.text()
            );
            assert_eq!(compiled.manifest.unused, None);
            let now = details(&compiled, &tree);
            for ((path, before), now) in tree.files.keys().zip(&before).zip(&now) {
                assert!(now >= before, "{path} has {now} at {budget}, and had {before}");
            }
            before = now;
        }
    }
}

#[test]
fn one_long_outline_keeps_out_no_others() {
    let compiled = compile(
        &project(),
        &ContextRequest::new("dev").budget_tokens(4_000).task("huge_step_300 and stone_step_3, grain_step_2"),
    );
    for path in ["src/huge.rs", "src/stone.rs", "src/grain.rs"] {
        assert!(section(&compiled, path).is_some(), "{path}: {}", compiled.tail);
    }
    let huge = section(&compiled, "src/huge.rs").unwrap();
    assert!(huge.tokens < 1_000 && huge.pieces_left_out > 0, "{huge:?}");
    assert!(compiled.tail.contains("huge_step_300"), "what the task names is kept: {}", compiled.tail);
}

#[test]
fn a_project_without_planning_documents_explains_itself() {
    let tree = project();
    let compiled = compile(&tree, &ContextRequest::new("dev").budget_tokens(4_000));
    for path in ["AGENTS.md", "README.md", "CONTRIBUTING.md", "Cargo.toml"] {
        assert!(compiled.prefix.contains(&format!("## {path}\n")), "{path}: {}", compiled.prefix);
    }
    assert_eq!(section(&compiled, "src/main.rs").unwrap().why, "entry point");
    assert!(!compiled.tail.contains("(missing)"), "{}", compiled.tail);
    let with_task = compile(&tree, &ContextRequest::new("dev").budget_tokens(4_000).task("stone"));
    assert_eq!(with_task.prefix, compiled.prefix);
}

#[test]
fn a_long_introduction_has_a_small_part_unless_the_project_is_small() {
    let long = "A sentence of some words about the mill.\n\n".repeat(600);
    let mut tree = project();
    tree.files.insert("README.md".to_owned(), format!("# Mill\n\n{long}").into_bytes());
    let compiled = compile(&tree, &ContextRequest::new("dev").budget_tokens(4_000).task("grain stone"));
    assert!(compiled.manifest.prefix_tokens <= 800, "{}", compiled.manifest.prefix_tokens);
    tree.files.retain(|path, _| path == "README.md" || path == "src/main.rs");
    let compiled = compile(&tree, &ContextRequest::new("dev").budget_tokens(4_000));
    assert!(compiled.manifest.tokens >= 3_400, "{}", compiled.manifest.tokens);
}

#[test]
fn what_is_left_unused_is_told_with_its_reason() {
    let unused = |request: ContextRequest| {
        compile(&project(), &request.budget_tokens(200_000)).manifest.unused.unwrap().reason
    };
    let all = unused(ContextRequest::new("dev").include(["src"]));
    assert_eq!(all, "every source file of the request is whole");
    assert!(unused(ContextRequest::new("dev")).contains("`task` or `include` would"));
    let task = unused(ContextRequest::new("dev").task("grain"));
    assert!(task.contains("has to do with the changes, the failures or the task is whole"), "{task}");
    let none = unused(ContextRequest::new("dev").include(Vec::<String>::new()));
    assert_eq!(none, "everything that was asked for is in the document");
}

#[test]
fn a_document_that_is_cut_keeps_the_phase_that_was_asked_for() {
    let mut roadmap = "# Roadmap\n\nTen phases.\n".to_owned();
    for phase in 1..=10 {
        let _ = write!(
            roadmap,
            "\n## Phase {phase}: Name {phase}\n\n{}\n",
            format!("Goal of {phase}. ").repeat(60)
        );
    }
    let tree = MemoryTree::with([("docs/ROADMAP.md", roadmap), ("docs/CONVENTIONS.md", "# C\n".to_owned())]);
    for phase in [1, 7, 10] {
        let compiled = compile(&tree, &ContextRequest::new("dev").phase(phase).budget_tokens(1_000));
        let goal = format!("Goal of {phase}. ");
        assert!(compiled.prefix.contains(&goal), "{phase}: {}", compiled.prefix);
        assert!(compiled.prefix.contains("left out"), "{phase}: {}", compiled.prefix);
    }
}

#[test]
fn the_same_request_gives_the_same_bytes_in_whatever_order_files_are_listed() {
    let (tree, backwards) = (project(), MemoryTree { backwards: true, ..project() });
    for budget in [1_500, 6_000] {
        let request = ContextRequest::new("dev").budget_tokens(budget).task("grain and stone of part3");
        let first = compile(&tree, &request).text();
        assert_eq!(first, compile(&backwards, &request).text());
        let fresh = Compiler::new(&tree).compile(&request).unwrap();
        assert_eq!(first, fresh.text());
    }
}
