//! Benchmarks the survey of a whole repository with exact counts, compared with reading it, with reading and counting it,
//! and with other packers.
//!
//! ```sh
//! cargo bench -p context-compiler --bench repository -- PATH [--rounds 5] [--threads 2] [--no-peers]
//! ```
//!
//! `PATH` is a checkout that does not change meanwhile; nothing is written to it. Each measurement is a process of its own,
//! so that "cold" means an empty cache and a vocabulary that is not loaded yet (the file cache of the system is warm: the
//! first round does not count). Each round runs every candidate once. Peers are taken from the environment variable `PATH`;
//! missing ones are reported.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark starts the programs that it measures, reads files without the library, prints, and may fail"
)]

#[cfg(not(all(unix, feature = "tokens")))]
fn main() {}

#[cfg(all(unix, feature = "tokens"))]
fn main() {
    bench::main();
}

#[cfg(all(unix, feature = "tokens"))]
mod bench {
    use context_compiler::cache::ContentCache;
    use context_compiler::code::{SourceSelectOptions, SurveyOptions, map, select, survey};
    use context_compiler::source::{
        FolderTree, SourceFileContent, SourceFileState, SourceReadError, SourceTree, SourceTreeEntry,
    };
    use context_compiler::tokens::{O200kCounter, TokenCounter};
    use std::collections::HashSet;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    const USAGE: &str = "usage: cargo bench -p context-compiler --bench repository -- PATH [--rounds N] [--threads N] [--no-peers]";

    /// Other packers: name, arguments (`{repo}`, `{out}`), and the text before the count in their output.
    const PEERS: [(&str, &[&str], &str); 6] = [
        ("yek", &["--tokens", "1000000000", "--output-dir", "{out}", "{repo}"], ""),
        (
            "code2prompt",
            &["{repo}", "--output-file", "{out}/code2prompt", "--no-clipboard", "--encoding", "o200k"],
            "Token count:",
        ),
        ("repomix", &["{repo}", "-o", "{out}/repomix", "--no-git-sort-by-changes"], "Total Tokens:"),
        (
            "repomix",
            &["{repo}", "-o", "{out}/repomix", "--no-git-sort-by-changes", "--no-security-check"],
            "Total Tokens:",
        ),
        ("gitingest", &["{repo}", "-o", "{out}/gitingest"], "Estimated tokens:"),
        ("files-to-prompt", &["{repo}", "-o", "{out}/files-to-prompt"], ""),
    ];

    pub(super) fn main() {
        let arguments: Vec<String> =
            std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
        if let [worker, kind, repo, threads, cache] = &arguments[..]
            && worker == "--worker"
        {
            return work(kind, Path::new(repo), threads.parse().unwrap(), Path::new(cache));
        }
        let mut rounds = 5;
        let mut threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        let (mut repo, mut peers) = (None, true);
        let mut rest = arguments.into_iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--rounds" => rounds = rest.next().and_then(|number| number.parse().ok()).expect(USAGE),
                "--threads" => threads = rest.next().and_then(|number| number.parse().ok()).expect(USAGE),
                "--no-peers" => peers = false,
                _ => repo = Some(PathBuf::from(argument)),
            }
        }
        let Some(repo) = repo.map(|repo| fs::canonicalize(repo).expect("the repository")) else {
            println!("{USAGE}");
            return;
        };
        compare(&repo, rounds, threads, peers);
    }

    /// A program to measure, and its measurements.
    struct MeasuredProgram {
        name: String,
        program: PathBuf,
        arguments: Vec<String>,
        count_after: &'static str,
        walls: Vec<Duration>,
        peak_kib: u64,
        result: String,
    }

    fn compare(repo: &Path, rounds: usize, threads: usize, with_peers: bool) {
        let scratch = tempfile::tempdir().unwrap();
        let out = scratch.path().join("out");
        fs::create_dir(&out).unwrap();
        let mut candidates = Vec::new();
        let own = std::env::current_exe().unwrap();
        let kinds = [
            "list",
            "read",
            "read and count",
            "cold",
            "warm, nothing changed",
            "warm, ten changed",
            "map, cold",
            "map, warm",
        ];
        for kind in kinds {
            let arguments = [
                "--worker",
                kind,
                repo.to_str().unwrap(),
                &threads.to_string(),
                scratch.path().to_str().unwrap(),
            ];
            candidates.push(MeasuredProgram::new(
                kind.to_owned(),
                own.clone(),
                arguments.map(str::to_owned).to_vec(),
                "",
            ));
        }
        for (name, arguments, count_after) in PEERS.iter().filter(|_| with_peers) {
            let Some(program) = find(name) else {
                println!("missing: {name}");
                continue;
            };
            let fill = |argument: &&str| {
                argument.replace("{repo}", repo.to_str().unwrap()).replace("{out}", out.to_str().unwrap())
            };
            let arguments: Vec<String> = arguments.iter().map(fill).collect();
            let options: Vec<&str> =
                arguments.iter().map(String::as_str).filter(|argument| argument.starts_with("--")).collect();
            candidates.push(MeasuredProgram::new(
                format!("{name} {}", options.join(" ")),
                program,
                arguments,
                count_after,
            ));
        }
        for round in 0..=rounds {
            for candidate in &mut candidates {
                // A candidate that takes long needs no more rounds: noise is small beside its time.
                if candidate.walls.iter().sum::<Duration>() < Duration::from_secs(60) {
                    candidate.run(round > 0);
                }
            }
        }
        println!(
            "{} rounds, {threads} threads; load {}",
            rounds,
            fs::read_to_string("/proc/loadavg").unwrap_or_default().trim()
        );
        println!("| | best | median | peak memory | |\n|---|---:|---:|---:|---|");
        for candidate in &mut candidates {
            candidate.walls.sort_unstable();
            let Some(&best) = candidate.walls.first() else { continue };
            let median = candidate.walls[candidate.walls.len() / 2];
            println!(
                "| {} | {:.3} s | {:.3} s | {} MiB | {} |",
                candidate.name,
                best.as_secs_f64(),
                median.as_secs_f64(),
                candidate.peak_kib / 1024,
                candidate.result
            );
        }
    }

    impl MeasuredProgram {
        fn new(name: String, program: PathBuf, arguments: Vec<String>, count_after: &'static str) -> Self {
            Self {
                name,
                program,
                arguments,
                count_after,
                walls: Vec::new(),
                peak_kib: 0,
                result: String::new(),
            }
        }

        fn run(&mut self, counts: bool) {
            let output = tempfile::NamedTempFile::new().unwrap();
            let started = Instant::now();
            let mut child = Command::new(&self.program)
                .args(&self.arguments)
                .stdin(Stdio::null())
                .stdout(output.reopen().unwrap())
                .stderr(output.reopen().unwrap())
                .spawn()
                .unwrap();
            let status = format!("/proc/{}/status", child.id());
            let finished = loop {
                if let Some(finished) = child.try_wait().unwrap() {
                    break finished;
                }
                let peak = fs::read_to_string(&status).ok().and_then(|status| {
                    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
                    line.split_whitespace().nth(1)?.parse().ok()
                });
                self.peak_kib = self.peak_kib.max(peak.unwrap_or(0));
                std::thread::sleep(Duration::from_millis(1));
            };
            // The first round of a slow candidate counts, because there may be no second.
            if counts || started.elapsed() > Duration::from_secs(20) {
                self.walls.push(started.elapsed());
            }
            let output = fs::read(output.path()).unwrap();
            let output = String::from_utf8_lossy(&output);
            self.result = if !finished.success() {
                format!("failed: {}", output.lines().last().unwrap_or_default())
            } else if let Some(own) = output.lines().find_map(|line| line.strip_prefix("said: ")) {
                own.to_owned()
            } else {
                let line = output
                    .lines()
                    .rfind(|line| !self.count_after.is_empty() && line.contains(self.count_after));
                line.unwrap_or_default().trim().to_owned()
            };
        }
    }

    fn find(program: &str) -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
    }

    /// One measurement, in a process of its own.
    fn work(kind: &str, repo: &Path, threads: usize, scratch: &Path) {
        let folder = FolderTree::open(repo).unwrap();
        let options = SourceSelectOptions::default().threads(threads);
        let limit = 512 << 10;
        let survey_options = SurveyOptions::default().threads(threads).max_file_bytes(limit);
        let list = scratch.join("list");
        let files = |tree: &dyn SourceTree| select(tree, &[], &[], &options).unwrap().files;
        match kind {
            "list" => {
                let files = files(&folder);
                // For the candidates that only read: they are given the files.
                let regular =
                    |path: &&String| fs::metadata(repo.join(path)).is_ok_and(|file| file.len() <= limit);
                let small: Vec<&str> = files.iter().filter(regular).map(String::as_str).collect();
                fs::write(list, small.join("\n")).unwrap();
                println!("said: {} files", files.len());
            }
            "read" | "read and count" => {
                let list = fs::read_to_string(list).unwrap();
                let paths: Vec<&str> = list.lines().collect();
                let (next, bytes, tokens) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
                std::thread::scope(|scope| {
                    for _ in 0..threads {
                        scope.spawn(|| {
                            while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                                let content = fs::read(repo.join(path)).unwrap();
                                bytes.fetch_add(content.len(), Ordering::Relaxed);
                                if kind == "read and count"
                                    && !content[..content.len().min(8000)].contains(&0)
                                {
                                    tokens.fetch_add(
                                        O200kCounter.count(&String::from_utf8_lossy(&content)),
                                        Ordering::Relaxed,
                                    );
                                }
                            }
                        });
                    }
                });
                println!(
                    "said: {} files, {} bytes, {} tokens",
                    paths.len(),
                    bytes.into_inner(),
                    tokens.into_inner()
                );
            }
            "map, cold" | "map, warm" => {
                let cache =
                    ContentCache::in_folder(Arc::new(O200kCounter), scratch.join("cache"), kind).unwrap();
                let cold = ContentCache::new(Arc::new(O200kCounter));
                let cache = if kind == "map, cold" { &cold } else { &cache };
                let map = map(&folder, &files(&folder), &[], cache, &survey_options);
                cache.save().unwrap();
                println!(
                    "said: {} files, {} names",
                    map.files.len(),
                    map.files.iter().map(|file| file.names.len()).sum::<usize>()
                );
            }
            _ => {
                let stored =
                    ContentCache::in_folder(Arc::new(O200kCounter), scratch.join("cache"), "repository")
                        .unwrap();
                let empty = ContentCache::new(Arc::new(O200kCounter));
                let cache = if kind == "cold" { &empty } else { &stored };
                let found = std::thread::scope(|scope| {
                    if kind == "cold" {
                        scope.spawn(|| cache.counter().prepare());
                    }
                    let files = files(&folder);
                    if kind == "warm, ten changed" {
                        let changed = (0..10).map(|part| files[files.len() * part / 10].clone()).collect();
                        survey(&ChangedTree { folder, changed }, &files, cache, &survey_options)
                    } else {
                        survey(&folder, &files, cache, &survey_options)
                    }
                });
                // The pretended change must not be in the cache of the next round.
                if kind != "warm, ten changed" {
                    cache.save().unwrap();
                }
                let tokens: usize = found.files.iter().map(|file| file.tokens).sum();
                println!("said: {} files, {tokens} tokens, {} read", found.files.len(), found.read);
            }
        }
    }

    /// A tree that pretends that some files have changed since the cache was written.
    struct ChangedTree {
        folder: FolderTree,
        changed: HashSet<String>,
    }

    impl SourceTree for ChangedTree {
        fn read(&self, path: &str, max_bytes: u64) -> Result<SourceFileContent, SourceReadError> {
            let mut content = self.folder.read(path, max_bytes)?;
            if self.changed.contains(path) {
                content.bytes.extend(b"\n");
                content.state.mtime_ns += 1;
            }
            Ok(content)
        }
        fn list(&self, path: &str) -> Result<Vec<SourceTreeEntry>, SourceReadError> {
            self.folder.list(path)
        }
        fn state(&self, path: &str) -> Result<SourceFileState, SourceReadError> {
            let mut state = self.folder.state(path)?;
            state.mtime_ns += i128::from(self.changed.contains(path));
            Ok(state)
        }
    }
}
