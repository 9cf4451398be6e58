//! A cache changes how long a survey takes and nothing else, whatever the state of its files.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![allow(
    clippy::disallowed_methods,
    reason = "a test makes the files that are read, and damages those of the cache"
)]

use crate::cache::ContentCache;
use crate::code::{CodeSurvey, FileKind, SurveyOptions, survey};
use crate::hash::hash_content;
use crate::source::{
    FolderTree, SourceFileContent, SourceFileState, SourceReadError, SourceTree, SourceTreeEntry,
};
use crate::tokens::{EstimatingCounter, TokenCounter};
use crate::{CodeDetail, Compiler, ContextRequest};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A project whose files report times an hour before the real ones, so that the cache may use its index.
struct AgedTree {
    folder: FolderTree,
    shift_s: i128,
    reads: AtomicUsize,
}

impl AgedTree {
    fn new(root: &Path) -> Self {
        Self { folder: FolderTree::open(root).unwrap(), shift_s: -3600, reads: AtomicUsize::new(0) }
    }

    fn reads(&self) -> usize {
        self.reads.swap(0, Ordering::Relaxed)
    }

    fn shifted(&self, mut state: SourceFileState) -> SourceFileState {
        state.mtime_ns += self.shift_s * 1_000_000_000;
        state.ctime_ns += self.shift_s * 1_000_000_000;
        state
    }
}

impl SourceTree for AgedTree {
    fn read(&self, path: &str, max_bytes: u64) -> Result<SourceFileContent, SourceReadError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let content = self.folder.read(path, max_bytes)?;
        Ok(SourceFileContent { state: self.shifted(content.state), ..content })
    }
    fn list(&self, path: &str) -> Result<Vec<SourceTreeEntry>, SourceReadError> {
        self.folder.list(path)
    }
    fn state(&self, path: &str) -> Result<SourceFileState, SourceReadError> {
        self.folder.state(path).map(|state| self.shifted(state))
    }
}

/// A project and the folder of its cache.
struct CacheFixture {
    root: tempfile::TempDir,
    paths: Vec<String>,
}

impl CacheFixture {
    /// Forty files of text, one that is not UTF-8, one binary, one too large, and one that is not there.
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut paths: Vec<String> = (0..40).map(|number| format!("file{number:02}.rs")).collect();
        for path in &paths {
            fs::write(root.path().join(path), format!("pub fn {}() {{\n    body();\n}}\n", &path[..6]))
                .unwrap();
        }
        for (path, content) in
            [("latin.txt", &b"caf\xe9\n"[..]), ("data.bin", b"a\0b"), ("large.txt", &[b'a'; 3000])]
        {
            fs::write(root.path().join(path), content).unwrap();
            paths.push(path.to_owned());
        }
        paths.push("gone.rs".to_owned());
        paths.sort();
        Self { root, paths }
    }

    fn survey(&self, tree: &dyn SourceTree, cache: &ContentCache) -> CodeSurvey {
        survey(tree, &self.paths, cache, &SurveyOptions::default().threads(3).max_file_bytes(2000))
    }

    fn cache_folder(&self) -> PathBuf {
        self.root.path().join(".cache")
    }

    fn cache(&self) -> ContentCache {
        ContentCache::in_folder(Arc::new(EstimatingCounter), self.cache_folder(), "project").unwrap()
    }

    /// The files of the cache.
    fn cache_files(&self) -> Vec<PathBuf> {
        fs::read_dir(self.cache_folder()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

fn in_memory() -> ContentCache {
    ContentCache::new(Arc::new(EstimatingCounter))
}

#[test]
fn a_survey_says_what_each_file_is_in_the_order_asked() {
    let fixture = CacheFixture::new();
    let tree = AgedTree::new(fixture.root.path());
    let survey = fixture.survey(&tree, &in_memory());
    assert_eq!(survey.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), fixture.paths);
    let kind = |path: &str| {
        let file = survey.files.iter().find(|file| file.path == path).unwrap();
        (file.kind, file.bytes, file.tokens, file.lines)
    };
    assert_eq!(kind("file07.rs"), (FileKind::Text, 32, 11, 3));
    assert_eq!(kind("latin.txt"), (FileKind::InvalidUtf8, 5, 3, 1));
    assert_eq!(kind("data.bin"), (FileKind::Binary, 3, 0, 0));
    assert_eq!(kind("large.txt"), (FileKind::TooLarge, 3000, 0, 0));
    assert_eq!(kind("gone.rs"), (FileKind::Unreadable, 0, 0, 0));
}

#[test]
fn unchanged_files_are_not_read_again_in_this_process_or_the_next() {
    let fixture = CacheFixture::new();
    let tree = AgedTree::new(fixture.root.path());
    let cache = fixture.cache();
    let cold = fixture.survey(&tree, &cache);
    assert_eq!((cold.read, tree.reads()), (42, 44));
    let warm = fixture.survey(&tree, &cache);
    assert_eq!((warm.read, &warm.files), (0, &cold.files));
    cache.save().unwrap();
    tree.reads();
    let next = fixture.survey(&tree, &fixture.cache());
    assert_eq!((next.read, &next.files), (0, &cold.files));
    assert_eq!(tree.reads(), 2, "the one that is too large and the one that is not there are asked for");

    fs::write(fixture.root.path().join("file07.rs"), "pub fn other() {}\n").unwrap();
    let changed = fixture.survey(&tree, &fixture.cache());
    assert_eq!(changed.read, 1);
    assert_eq!(changed.files, fixture.survey(&tree, &in_memory()).files);
}

#[test]
fn a_file_written_as_it_was_looked_at_is_read_again() {
    let fixture = CacheFixture::new();
    // However long the test takes: the clock of the files is a minute ahead.
    let tree = AgedTree { shift_s: 60, ..AgedTree::new(fixture.root.path()) };
    let cache = in_memory();
    assert_eq!(fixture.survey(&tree, &cache).read, 42);
    assert_eq!(fixture.survey(&tree, &cache).read, 42);
}

#[test]
fn every_part_of_a_files_state_counts() {
    let cache = in_memory();
    let state = SourceFileState { size: 5, mtime_ns: 10, ctime_ns: 20, inode: 30 };
    let settled = 2_000_000_020;
    cache.record_index_entry("a", &state, settled, hash_content(b"hello"));
    assert_eq!(cache.indexed_hash("a", &state), Some(hash_content(b"hello")));
    for other in [
        SourceFileState { size: 6, ..state },
        SourceFileState { mtime_ns: 9, ..state },
        SourceFileState { ctime_ns: 19, ..state },
        SourceFileState { inode: 31, ..state },
    ] {
        assert_eq!(cache.indexed_hash("a", &other), None, "{other:?}");
    }
    assert_eq!(cache.indexed_hash("b", &state), None);
    cache.record_index_entry("a", &state, settled - 1, hash_content(b"hello"));
    assert_eq!(cache.indexed_hash("a", &state), None, "it may have changed again in the same tick");
}

#[test]
fn a_damaged_cache_is_an_empty_one() {
    let fixture = CacheFixture::new();
    let tree = AgedTree::new(fixture.root.path());
    let cache = fixture.cache();
    let expected = fixture.survey(&tree, &cache).files;
    cache.save().unwrap();
    let files = fixture.cache_files();
    assert_eq!(files.len(), 1);
    let whole = fs::read(&files[0]).unwrap();
    let mut damaged: Vec<Vec<u8>> =
        vec![Vec::new(), whole[..10].to_vec(), [&whole[..], b"x"].concat(), vec![0xff; 4096]];
    damaged.extend((0..whole.len()).step_by(97).map(|length| whole[..length].to_vec()));
    damaged.extend((0..whole.len()).step_by(61).map(|at| {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        flipped
    }));
    for bytes in damaged {
        fs::write(&files[0], &bytes).unwrap();
        let survey = fixture.survey(&tree, &fixture.cache());
        assert_eq!((survey.read, &survey.files), (42, &expected), "{} bytes of {}", bytes.len(), whole.len());
    }
    fs::write(&files[0], &whole).unwrap();
    assert_eq!(fixture.survey(&tree, &fixture.cache()).read, 0);
}

#[test]
fn what_another_counter_or_another_project_wrote_is_not_used() {
    struct OtherCounter;
    impl TokenCounter for OtherCounter {
        fn name(&self) -> &'static str {
            "other"
        }
        fn is_estimate(&self) -> bool {
            true
        }
        fn count(&self, _: &str) -> usize {
            1
        }
    }
    let fixture = CacheFixture::new();
    let tree = AgedTree::new(fixture.root.path());
    let cache = fixture.cache();
    fixture.survey(&tree, &cache);
    cache.save().unwrap();
    let other = ContentCache::in_folder(Arc::new(OtherCounter), fixture.cache_folder(), "project").unwrap();
    let survey = fixture.survey(&tree, &other);
    assert_eq!((survey.read, survey.files[1].tokens), (42, 1));
    let elsewhere =
        ContentCache::in_folder(Arc::new(EstimatingCounter), fixture.cache_folder(), "elsewhere").unwrap();
    assert_eq!(fixture.survey(&tree, &elsewhere).read, 42);
    // Not even if a file has the name that the other counter would give it.
    let file = fixture.cache_files().pop().unwrap();
    other.save().unwrap();
    for path in fixture.cache_files().into_iter().filter(|path| *path != file) {
        fs::copy(&file, path).unwrap();
    }
    let other = ContentCache::in_folder(Arc::new(OtherCounter), fixture.cache_folder(), "project").unwrap();
    assert_eq!(fixture.survey(&tree, &other).files[1].tokens, 1);
}

#[test]
fn the_folder_is_its_owners_alone_and_one_that_is_not_is_refused() {
    let fixture = CacheFixture::new();
    let cache = fixture.cache();
    fixture.survey(&AgedTree::new(fixture.root.path()), &cache);
    cache.save().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&fixture.cache_folder()), 0o700);
    for file in fixture.cache_files() {
        assert_eq!(mode(&file), 0o600);
    }
    fs::set_permissions(fixture.cache_folder(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(ContentCache::in_folder(Arc::new(EstimatingCounter), fixture.cache_folder(), "project").is_err());
    // Nor is a link followed to a folder or a file of somebody else.
    fs::set_permissions(fixture.cache_folder(), fs::Permissions::from_mode(0o700)).unwrap();
    let link = fixture.root.path().join("link");
    std::os::unix::fs::symlink(fixture.cache_folder(), &link).unwrap();
    assert!(ContentCache::in_folder(Arc::new(EstimatingCounter), &link, "project").is_err());
}

#[test]
fn files_that_nobody_used_for_a_month_and_halves_that_nobody_finished_are_removed() {
    let fixture = CacheFixture::new();
    let old = fixture.cache();
    fixture.survey(&AgedTree::new(fixture.root.path()), &old);
    old.save().unwrap();
    let folder = fixture.cache_folder();
    let age = |name: &str, days: u64| {
        let file = fs::File::create(folder.join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(days * 24 * 3600))
            .unwrap();
    };
    let name = "0123456789abcdef0123456789abcdef";
    for (end, days) in [("facts", 31), ("outlines", 29), ("facts.1.2.new", 1)] {
        age(&format!("{name}.{end}"), days);
    }
    age("somebody else's.facts", 90);
    let cache = fixture.cache();
    cache.facts(&hash_content(b"new"), b"new");
    cache.save().unwrap();
    let mut left: Vec<_> = fixture
        .cache_files()
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    left.retain(|left| left.starts_with(name) || left.starts_with("somebody"));
    left.sort();
    assert_eq!(left, [format!("{name}.outlines"), "somebody else's.facts".to_owned()]);
}

#[test]
fn the_memory_is_bounded_and_what_was_used_last_stays() {
    let cache = ContentCache::with_max_bytes(Arc::new(EstimatingCounter), 64 << 10);
    let state = SourceFileState { size: 1, ..SourceFileState::default() };
    let far = i128::MAX;
    for number in 0..10_000_u32 {
        cache.record_index_entry(&number.to_string(), &state, far, hash_content(&number.to_le_bytes()));
        assert!(cache.indexed_hash("0", &state).is_some(), "{number}");
    }
    let kept =
        (0..10_000_u32).filter(|number| cache.indexed_hash(&number.to_string(), &state).is_some()).count();
    assert!((2..=150).contains(&kept), "{kept}");
}

#[cfg(feature = "outline")]
#[test]
fn outlines_are_kept_on_disk_and_are_those_that_were_made() {
    let fixture = CacheFixture::new();
    let text = "/// Doc.\npub fn one(a: u8) -> u8 {\n    a + 1\n}\n";
    let key = hash_content(text.as_bytes());
    let cache = fixture.cache();
    let made = cache.outline("a.rs", &key, text).unwrap();
    cache.save().unwrap();
    // A text that would have none: what is returned is what was kept.
    let kept = fixture.cache().outline("b.rs", &key, "").unwrap();
    assert_eq!(made, kept);
    assert_eq!(fixture.cache().outline("a.md", &key, text), None);
    assert!(
        fixture.cache().outline("a.py", &key, text).is_none_or(|other| other != made),
        "another language"
    );
}

/// Runs as another process of the test below.
#[test]
#[ignore = "run by several_processes_may_write_at_once"]
fn a_writer() {
    let Some(folder) = std::env::var_os("CACHE_FOLDER") else { return };
    for round in 0..200_u32 {
        let cache =
            ContentCache::in_folder(Arc::new(EstimatingCounter), Path::new(&folder), "project").unwrap();
        let content = format!("{} {round}", std::process::id());
        cache.facts(&hash_content(content.as_bytes()), content.as_bytes());
        let always = "what everybody knows".repeat(200);
        assert_eq!(cache.tokens(&always), always.len().div_ceil(3));
        cache.save().unwrap();
    }
}

#[test]
fn several_processes_may_write_at_once() {
    let fixture = CacheFixture::new();
    let tree = AgedTree::new(fixture.root.path());
    let cache = fixture.cache();
    let expected = fixture.survey(&tree, &cache).files;
    cache.save().unwrap();
    let mut writers: Vec<_> = (0..3)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--ignored", "--exact", "cache::tests::a_writer"])
                .env("CACHE_FOLDER", fixture.cache_folder())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut opened = 0;
    while writers.iter_mut().any(|writer| writer.try_wait().unwrap().is_none()) || opened == 0 {
        // Always whole: each writer keeps what it read.
        let survey = fixture.survey(&tree, &fixture.cache());
        assert_eq!((survey.read, &survey.files), (0, &expected));
        opened += 1;
    }
    assert!(writers.iter_mut().all(|writer| writer.wait().unwrap().success()));
    assert_eq!(fixture.survey(&tree, &fixture.cache()).read, 0);
    assert!(fixture.cache_files().iter().all(|path| path.extension().is_some_and(|end| end == "facts")));
}

#[test]
fn a_document_is_the_same_from_a_warm_cache_and_only_what_it_quotes_is_read_again() {
    let fixture = CacheFixture::new();
    let tree = AgedTree::new(fixture.root.path());
    let fresh = || ContentCache::new(Arc::new(EstimatingCounter));
    let cache = fresh();
    // Some of forty files fit whole; the others are a line in the list.
    let request =
        ContextRequest::new("dev").include(["*.rs"]).budget_tokens(450).code_detail(CodeDetail::Full);
    let compile = || Compiler::new(&tree).cache(&cache).compile(&request).unwrap();
    let cold = compile();
    tree.reads();
    // Planning documents are looked for each time.
    Compiler::new(&tree)
        .cache(&cache)
        .compile(&ContextRequest { include: Some(Vec::new()), ..request.clone() })
        .unwrap();
    let without = tree.reads();
    let warm = compile();
    let read = tree.reads() - without;
    assert_eq!((warm.prefix, warm.tail.clone()), (cold.prefix, cold.tail));
    let quoted = warm.manifest.sections.iter().filter(|section| section.path.starts_with("file")).count();
    assert!(quoted > 0 && quoted < 40, "{quoted}");
    assert!(read <= 2 * quoted, "{read} reads for {quoted} files");

    // A file that changed is seen.
    fs::write(fixture.root.path().join("file00.rs"), "pub fn other() {}\n").unwrap();
    let changed = compile();
    assert!(changed.tail != warm.tail);
    assert!(changed.tail == Compiler::new(&tree).cache(&fresh()).compile(&request).unwrap().tail);
}
