//! The names in a map of a project, and the files that refer to changed ones.
#![cfg(all(unix, feature = "outline"))]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test makes the project that is mapped")]

use context_compiler::cache::ContentCache;
use context_compiler::code::{CodeMap, SurveyOptions, map};
use context_compiler::source::FolderTree;
use context_compiler::tokens::EstimatingCounter;
use std::fs;
use std::sync::Arc;

const FILES: [(&str, &str); 5] = [
    ("lib/queue.rs", "pub struct Queue;\npub fn unused_helper() {}\npub fn go() {}\nfn private_one() {}\n"),
    ("lib/runner.py", "class Runner:\n    def start(self):\n        go = Queue()\n        private_one\n"),
    ("main.ts", "import { Queue } from './queue';\nexport function main() { new Runner(new Queue()); }\n"),
    ("notes.md", "The Queue is asked by the Runner. Queue Queue.\n"),
    ("other.go", "package other\n\nfunc Start() {}\n"),
];

fn mapped(changed: &[&str], threads: usize) -> CodeMap {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("lib")).unwrap();
    for (path, content) in FILES {
        fs::write(root.path().join(path), content).unwrap();
    }
    let paths = FILES.map(|(path, _)| path.to_owned());
    let changed: Vec<String> = changed.iter().map(|&path| path.to_owned()).collect();
    let options = SurveyOptions::default().threads(threads);
    let cache = ContentCache::new(Arc::new(EstimatingCounter));
    let first = map(&FolderTree::open(root.path()).unwrap(), &paths, &changed, &cache, &options);
    assert_eq!(
        map(&FolderTree::open(root.path()).unwrap(), &paths, &changed, &cache, &options),
        first,
        "from the cache"
    );
    first
}

#[test]
fn files_and_names_come_by_how_many_others_mention_them() {
    insta::assert_snapshot!(mapped(&[], 2).to_string(), @r"
    lib/queue.rs (79 bytes): Queue, go, unused_helper
    lib/runner.py (76 bytes): Runner, start
    main.ts (85 bytes): main
    notes.md (47 bytes)
    other.go (31 bytes): Start
    ");
    let map = mapped(&[], 2);
    assert_eq!((map.files[0].names[0].mentioned_in, map.files[0].rank), (3, 48));
    assert!(map.referrers.is_empty());
}

#[test]
fn a_changed_file_brings_those_that_mention_what_it_exports() {
    let referrers: Vec<_> = mapped(&["lib/queue.rs", "lib/runner.py"], 2)
        .referrers
        .into_iter()
        .map(|file| (file.path, file.names))
        .collect();
    let both = vec!["Queue".to_owned(), "Runner".to_owned()];
    assert_eq!(referrers, [("main.ts".to_owned(), both.clone()), ("notes.md".to_owned(), both)]);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    assert_eq!(mapped(&["lib/queue.rs"], 1), mapped(&["lib/queue.rs"], 7));
}
