//! A cache changes how long a survey takes and nothing else, whatever state its files are in.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    reason = "a test makes the files that are read, and damages those of the cache"
)]

use context_compiler::cache::{Cache, DEFAULT_LIMIT, hash};
use context_compiler::code::{Kind, Survey, SurveyOptions, survey};
use context_compiler::count::{Estimate, TokenCounter};
use context_compiler::source::{Content, Entry, Folder, ReadProblem, Stamp, Tree};
use context_compiler::{Code, Compiler, Request};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A project whose files were all written an hour earlier than they were, so that the cache may trust its index.
struct Old {
    folder: Folder,
    shift_s: i128,
    reads: AtomicUsize,
}

impl Old {
    fn new(root: &Path) -> Self {
        Self { folder: Folder::open(root).unwrap(), shift_s: -3600, reads: AtomicUsize::new(0) }
    }

    fn reads(&self) -> usize {
        self.reads.swap(0, Ordering::Relaxed)
    }

    fn shifted(&self, mut stamp: Stamp) -> Stamp {
        stamp.mtime_ns += self.shift_s * 1_000_000_000;
        stamp.ctime_ns += self.shift_s * 1_000_000_000;
        stamp
    }
}

impl Tree for Old {
    fn read(&self, path: &str, limit: u64) -> Result<Content, ReadProblem> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let content = self.folder.read(path, limit)?;
        Ok(Content { stamp: self.shifted(content.stamp), ..content })
    }
    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadProblem> {
        self.folder.list(path)
    }
    fn stamp(&self, path: &str) -> Result<Stamp, ReadProblem> {
        self.folder.stamp(path).map(|stamp| self.shifted(stamp))
    }
}

struct Setting {
    root: tempfile::TempDir,
    paths: Vec<String>,
}

impl Setting {
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

    fn survey(&self, tree: &dyn Tree, cache: &Cache) -> Survey {
        survey(tree, &self.paths, cache, &SurveyOptions { threads: 3, file_limit: 2000 })
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join(".cache")
    }

    fn cache(&self) -> Cache {
        Cache::in_folder(Arc::new(Estimate), DEFAULT_LIMIT, &self.folder(), "project").unwrap()
    }

    /// The files of the cache.
    fn cache_files(&self) -> Vec<PathBuf> {
        fs::read_dir(self.folder()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

fn in_memory() -> Cache {
    Cache::new(Arc::new(Estimate), DEFAULT_LIMIT)
}

#[test]
fn a_survey_says_what_each_file_is_in_the_order_asked() {
    let setting = Setting::new();
    let tree = Old::new(setting.root.path());
    let survey = setting.survey(&tree, &in_memory());
    assert_eq!(survey.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), setting.paths);
    let kind = |path: &str| {
        let file = survey.files.iter().find(|file| file.path == path).unwrap();
        (file.kind, file.bytes, file.tokens, file.lines)
    };
    assert_eq!(kind("file07.rs"), (Kind::Text, 32, 11, 3));
    assert_eq!(kind("latin.txt"), (Kind::NotUtf8, 5, 3, 1));
    assert_eq!(kind("data.bin"), (Kind::Binary, 3, 0, 0));
    assert_eq!(kind("large.txt"), (Kind::TooLarge, 3000, 0, 0));
    assert_eq!(kind("gone.rs"), (Kind::Unreadable, 0, 0, 0));
}

#[test]
fn unchanged_files_are_not_read_again_in_this_process_or_the_next() {
    let setting = Setting::new();
    let tree = Old::new(setting.root.path());
    let cache = setting.cache();
    let cold = setting.survey(&tree, &cache);
    assert_eq!((cold.read, tree.reads()), (42, 44));
    let warm = setting.survey(&tree, &cache);
    assert_eq!((warm.read, &warm.files), (0, &cold.files));
    cache.save().unwrap();
    tree.reads();
    let next = setting.survey(&tree, &setting.cache());
    assert_eq!((next.read, &next.files), (0, &cold.files));
    assert_eq!(tree.reads(), 2, "the one that is too large and the one that is not there are asked for");

    fs::write(setting.root.path().join("file07.rs"), "pub fn other() {}\n").unwrap();
    let changed = setting.survey(&tree, &setting.cache());
    assert_eq!(changed.read, 1);
    assert_eq!(changed.files, setting.survey(&tree, &in_memory()).files);
}

#[test]
fn a_file_written_as_it_was_looked_at_is_read_again() {
    let setting = Setting::new();
    // However long the test takes: the clock of the files is a minute ahead.
    let tree = Old { shift_s: 60, ..Old::new(setting.root.path()) };
    let cache = in_memory();
    assert_eq!(setting.survey(&tree, &cache).read, 42);
    assert_eq!(setting.survey(&tree, &cache).read, 42);
}

#[test]
fn every_part_of_a_files_state_counts() {
    let cache = in_memory();
    let stamp = Stamp { size: 5, mtime_ns: 10, ctime_ns: 20, inode: 30 };
    let settled = 2_000_000_020;
    cache.remember("a", &stamp, settled, hash(b"hello"));
    assert_eq!(cache.content_of("a", &stamp), Some(hash(b"hello")));
    for other in [
        Stamp { size: 6, ..stamp },
        Stamp { mtime_ns: 9, ..stamp },
        Stamp { ctime_ns: 19, ..stamp },
        Stamp { inode: 31, ..stamp },
    ] {
        assert_eq!(cache.content_of("a", &other), None, "{other:?}");
    }
    assert_eq!(cache.content_of("b", &stamp), None);
    cache.remember("a", &stamp, settled - 1, hash(b"hello"));
    assert_eq!(cache.content_of("a", &stamp), None, "it may have changed again in the same tick");
}

#[test]
fn a_damaged_cache_is_an_empty_one() {
    let setting = Setting::new();
    let tree = Old::new(setting.root.path());
    let cache = setting.cache();
    let expected = setting.survey(&tree, &cache).files;
    cache.save().unwrap();
    let files = setting.cache_files();
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
        let survey = setting.survey(&tree, &setting.cache());
        assert_eq!((survey.read, &survey.files), (42, &expected), "{} bytes of {}", bytes.len(), whole.len());
    }
    fs::write(&files[0], &whole).unwrap();
    assert_eq!(setting.survey(&tree, &setting.cache()).read, 0);
}

#[test]
fn what_another_counter_or_another_project_wrote_is_not_used() {
    struct Other;
    impl TokenCounter for Other {
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
    let setting = Setting::new();
    let tree = Old::new(setting.root.path());
    let cache = setting.cache();
    setting.survey(&tree, &cache);
    cache.save().unwrap();
    let other = Cache::in_folder(Arc::new(Other), DEFAULT_LIMIT, &setting.folder(), "project").unwrap();
    let survey = setting.survey(&tree, &other);
    assert_eq!((survey.read, survey.files[1].tokens), (42, 1));
    let elsewhere =
        Cache::in_folder(Arc::new(Estimate), DEFAULT_LIMIT, &setting.folder(), "elsewhere").unwrap();
    assert_eq!(setting.survey(&tree, &elsewhere).read, 42);
    // Not even under the other's name.
    let file = setting.cache_files().pop().unwrap();
    other.save().unwrap();
    for path in setting.cache_files().into_iter().filter(|path| *path != file) {
        fs::copy(&file, path).unwrap();
    }
    let other = Cache::in_folder(Arc::new(Other), DEFAULT_LIMIT, &setting.folder(), "project").unwrap();
    assert_eq!(setting.survey(&tree, &other).files[1].tokens, 1);
}

#[test]
fn the_folder_is_its_owners_alone_and_one_that_is_not_is_refused() {
    let setting = Setting::new();
    let cache = setting.cache();
    setting.survey(&Old::new(setting.root.path()), &cache);
    cache.save().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&setting.folder()), 0o700);
    for file in setting.cache_files() {
        assert_eq!(mode(&file), 0o600);
    }
    fs::set_permissions(setting.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(Cache::in_folder(Arc::new(Estimate), DEFAULT_LIMIT, &setting.folder(), "project").is_err());
    // Nor is a link followed to a folder or a file of somebody else.
    fs::set_permissions(setting.folder(), fs::Permissions::from_mode(0o700)).unwrap();
    let link = setting.root.path().join("link");
    std::os::unix::fs::symlink(setting.folder(), &link).unwrap();
    assert!(Cache::in_folder(Arc::new(Estimate), DEFAULT_LIMIT, &link, "project").is_err());
}

#[test]
fn files_that_nobody_used_for_a_month_and_halves_that_nobody_finished_are_removed() {
    let setting = Setting::new();
    let old = setting.cache();
    setting.survey(&Old::new(setting.root.path()), &old);
    old.save().unwrap();
    let folder = setting.folder();
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
    let cache = setting.cache();
    cache.facts_of(&hash(b"new"), b"new");
    cache.save().unwrap();
    let mut left: Vec<_> = setting
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
    let cache = Cache::new(Arc::new(Estimate), 64 << 10);
    let stamp = Stamp { size: 1, ..Stamp::default() };
    let far = i128::MAX;
    for number in 0..10_000_u32 {
        cache.remember(&number.to_string(), &stamp, far, hash(&number.to_le_bytes()));
        assert!(cache.content_of("0", &stamp).is_some(), "{number}");
    }
    let kept =
        (0..10_000_u32).filter(|number| cache.content_of(&number.to_string(), &stamp).is_some()).count();
    assert!((2..=150).contains(&kept), "{kept}");
}

#[cfg(feature = "outline")]
#[test]
fn outlines_are_kept_on_disk_and_are_those_that_were_made() {
    let setting = Setting::new();
    let text = "/// Doc.\npub fn one(a: u8) -> u8 {\n    a + 1\n}\n";
    let key = hash(text.as_bytes());
    let cache = setting.cache();
    let made = cache.outline("a.rs", &key, text).unwrap();
    cache.save().unwrap();
    // A text that would have none: what is returned is what was kept.
    let kept = setting.cache().outline("b.rs", &key, "").unwrap();
    assert_eq!(made, kept);
    assert_eq!(setting.cache().outline("a.md", &key, text), None);
    assert!(
        setting.cache().outline("a.py", &key, text).is_none_or(|other| other != made),
        "another language"
    );
}

/// What the test below runs as another process.
#[test]
#[ignore = "run by several_processes_may_write_at_once"]
fn a_writer() {
    let Some(folder) = std::env::var_os("CACHE_FOLDER") else { return };
    for round in 0..200_u32 {
        let cache =
            Cache::in_folder(Arc::new(Estimate), DEFAULT_LIMIT, Path::new(&folder), "project").unwrap();
        let content = format!("{} {round}", std::process::id());
        cache.facts_of(&hash(content.as_bytes()), content.as_bytes());
        let always = "what everybody knows".repeat(200);
        assert_eq!(cache.tokens(&always), always.len().div_ceil(3));
        cache.save().unwrap();
    }
}

#[test]
fn several_processes_may_write_at_once() {
    let setting = Setting::new();
    let tree = Old::new(setting.root.path());
    let cache = setting.cache();
    let expected = setting.survey(&tree, &cache).files;
    cache.save().unwrap();
    let mut writers: Vec<_> = (0..3)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--ignored", "--exact", "a_writer"])
                .env("CACHE_FOLDER", setting.folder())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut opened = 0;
    while writers.iter_mut().any(|writer| writer.try_wait().unwrap().is_none()) || opened == 0 {
        // Always whole: each writer keeps what it read.
        let survey = setting.survey(&tree, &setting.cache());
        assert_eq!((survey.read, &survey.files), (0, &expected));
        opened += 1;
    }
    assert!(writers.iter_mut().all(|writer| writer.wait().unwrap().success()));
    assert_eq!(setting.survey(&tree, &setting.cache()).read, 0);
    assert!(setting.cache_files().iter().all(|path| path.extension().is_some_and(|end| end == "facts")));
}

#[test]
fn a_document_is_the_same_from_a_warm_cache_and_only_what_it_quotes_is_read_again() {
    let setting = Setting::new();
    let tree = Old::new(setting.root.path());
    let fresh = || Cache::new(Arc::new(Estimate), DEFAULT_LIMIT);
    let cache = fresh();
    // Some of forty files fit whole; the others are a line in the list.
    let request = Request {
        include: Some(vec!["*.rs".to_owned()]),
        budget: Some(450),
        code: Code::Full,
        ..Request::new("dev")
    };
    let compile = || Compiler::new(&tree, &cache).compile(&request).unwrap();
    let cold = compile();
    tree.reads();
    // Planning documents are looked for each time.
    Compiler::new(&tree, &cache).compile(&Request { include: None, ..request.clone() }).unwrap();
    let without = tree.reads();
    let warm = compile();
    let read = tree.reads() - without;
    assert_eq!((warm.prefix, warm.tail.clone()), (cold.prefix, cold.tail));
    let quoted = warm.manifest.sections.iter().filter(|section| section.path.starts_with("file")).count();
    assert!(quoted > 0 && quoted < 40, "{quoted}");
    assert!(read <= 2 * quoted, "{read} reads for {quoted} files");

    // A file that changed is seen.
    fs::write(setting.root.path().join("file00.rs"), "pub fn other() {}\n").unwrap();
    let changed = compile();
    assert!(changed.tail != warm.tail);
    assert!(changed.tail == Compiler::new(&tree, &fresh()).compile(&request).unwrap().tail);
}
