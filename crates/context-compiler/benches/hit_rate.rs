//! Measures how much of what a commit touched is in the context that is compiled from its message, at its parent.
//!
//! ```sh
//! cargo bench -p context-compiler --all-features --bench hit_rate -- CHECKOUT COMMITS \
//!     [--budgets 4000,8000,16000] [--whole NAME=COMMAND]... [--sized NAME=COMMAND]... [--each] [--cold]
//! ```
//!
//! `CHECKOUT` is a git checkout, of which nothing is changed; `COMMITS` is a file with one commit on each line. For each
//! commit, the tree of its parent is unpacked into a temporary folder and compiled with the message as `task`. A file counts
//! if it existed before the commit and the commit changed or removed it. It is *named* if the document has its path, and
//! *shown* if it has a section there. A symbol counts if it is the last one that a counted file defines before a changed line;
//! it is found if the part of the document about that file has its name.
//!
//! A peer is a shell command that prints a document for the tree at `$TREE`; its output is cut to the budget by the counter of
//! this crate. `--whole` is run once for each commit; `--sized` once for each budget, which is `$BUDGET`, with the message in
//! the file `$MESSAGE`. `--each` prints a line for each commit. `--cold` gives
//! each compilation an empty cache; else all share one.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark starts the programs that it measures, reads files without the library, prints, and may fail"
)]

#[cfg(not(all(unix, feature = "tokens", feature = "outline")))]
fn main() {}

#[cfg(all(unix, feature = "tokens", feature = "outline"))]
fn main() {
    bench::main();
}

#[cfg(all(unix, feature = "tokens", feature = "outline"))]
mod bench {
    use context_compiler::cache::ContentCache;
    use context_compiler::outline::outline;
    use context_compiler::source::FolderTree;
    use context_compiler::tokens::{O200kCounter, TokenCounter};
    use context_compiler::{Compiler, ContextRequest};
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::{Duration, Instant};

    const USAGE: &str = "usage: cargo bench -p context-compiler --all-features --bench hit_rate -- CHECKOUT COMMITS \
                         [--budgets N,N] [--whole NAME=COMMAND] [--sized NAME=COMMAND] [--each] [--cold]";

    /// Another program, by its shell command.
    struct PeerCommand {
        name: String,
        command: String,
        is_sized: bool,
    }

    /// What a commit touched: the files that existed before, and the symbols of each around its changed lines.
    type TouchedFiles = BTreeMap<String, BTreeSet<String>>;

    /// Shares over several commits, each of which counts the same.
    #[derive(Default)]
    struct ShareSums {
        commits: f64,
        named: f64,
        shown: f64,
        symbol_commits: f64,
        symbols: f64,
        used: f64,
        walls: Vec<Duration>,
    }

    pub(super) fn main() {
        let mut places: Vec<PathBuf> = Vec::new();
        let (mut budgets, mut peers) = (vec![4_000, 8_000, 16_000], Vec::new());
        let (mut each, mut cold, shared) = (false, false, ContentCache::default());
        let mut rest = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--budgets" => {
                    let list = rest.next().expect(USAGE);
                    budgets = list.split(',').map(|budget| budget.parse().expect(USAGE)).collect();
                }
                kind @ ("--whole" | "--sized") => {
                    let peer = rest.next().expect(USAGE);
                    let (name, command) = peer.split_once('=').expect(USAGE);
                    let (name, command) = (name.to_owned(), command.to_owned());
                    peers.push(PeerCommand { name, command, is_sized: kind == "--sized" });
                }
                "--each" => each = true,
                "--cold" => cold = true,
                _ => places.push(PathBuf::from(argument)),
            }
        }
        let [checkout, commits] = &places[..] else {
            println!("{USAGE}");
            return;
        };
        let commits = fs::read_to_string(commits).expect("the list of commits");
        let mut sums: BTreeMap<(usize, usize), ShareSums> = BTreeMap::new();
        let names: Vec<&str> =
            ["context-compiler"].into_iter().chain(peers.iter().map(|peer| peer.name.as_str())).collect();
        for commit in commits.split_whitespace() {
            measure(checkout, commit, &budgets, &peers, each, (!cold).then_some(&shared), &mut sums);
        }
        println!(
            "| budget | | files named | files shown | symbols | budget used | best | median |\n|---:|---|---:|---:|---:|---:|---:|---:|"
        );
        for ((budget, peer), sum) in &mut sums {
            sum.walls.sort_unstable();
            let percent = |share: f64, of: f64| format!("{:.0} %", 100.0 * share / of.max(1.0));
            println!(
                "| {budget} | {} | {} | {} | {} | {} | {:.3} s | {:.3} s |",
                names[*peer],
                percent(sum.named, sum.commits),
                percent(sum.shown, sum.commits),
                percent(sum.symbols, sum.symbol_commits),
                percent(sum.used, sum.commits),
                sum.walls[0].as_secs_f64(),
                sum.walls[sum.walls.len() / 2].as_secs_f64(),
            );
        }
    }

    fn measure(
        checkout: &Path,
        commit: &str,
        budgets: &[usize],
        peers: &[PeerCommand],
        each: bool,
        // The cache of all compilations, or none for cold ones.
        shared: Option<&ContentCache>,
        sums: &mut BTreeMap<(usize, usize), ShareSums>,
    ) {
        let scratch = tempfile::tempdir().unwrap();
        let tree = scratch.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let unpack =
            format!("git -C '{}' archive {commit}^ | tar -x -C '{}'", checkout.display(), tree.display());
        assert!(shell(&unpack, &[]).is_some(), "{commit} cannot be unpacked");
        let message = git(checkout, &["log", "-1", "--format=%B", commit]);
        let message_file = scratch.path().join("message");
        fs::write(&message_file, &message).unwrap();
        let touched = touched(checkout, commit);
        let paths: BTreeSet<String> = git(checkout, &["ls-tree", "-r", "--name-only", &format!("{commit}^")])
            .lines()
            .map(str::to_owned)
            .collect();
        let mut wholes: BTreeMap<usize, (String, Duration)> = BTreeMap::new();
        let compile = |&budget: &usize| {
            let project = FolderTree::open(&tree).unwrap();
            let request = ContextRequest::new("dev").task(message.clone()).budget_tokens(budget);
            let started = Instant::now();
            let empty = ContentCache::default();
            let cache = shared.unwrap_or(&empty);
            let compiled = Compiler::new(&project).cache(cache).compile(&request).unwrap();
            (compiled.text(), started.elapsed())
        };
        // Before any peer, which may leave files in the tree.
        let compiled: Vec<(String, Duration)> = budgets.iter().map(compile).collect();
        for (&budget, own) in budgets.iter().zip(compiled) {
            let mut documents = vec![own];
            for (number, peer) in peers.iter().enumerate() {
                let run = || {
                    let started = Instant::now();
                    let budget = budget.to_string();
                    let variables = [
                        ("TREE", tree.to_str().unwrap()),
                        ("BUDGET", &budget),
                        ("MESSAGE", message_file.to_str().unwrap()),
                    ];
                    let text = shell(&peer.command, &variables).unwrap_or_default();
                    (text, started.elapsed())
                };
                let (text, wall) = match peer.is_sized {
                    true => run(),
                    false => wholes.entry(number).or_insert_with(run).clone(),
                };
                documents.push((cut(&text, budget), wall));
            }
            for (number, (text, wall)) in documents.into_iter().enumerate() {
                let parts = parts(&text, &paths);
                let sum = sums.entry((budget, number)).or_default();
                sum.add(&touched, &parts, O200kCounter.count(&text), budget, wall);
                if each {
                    let missing: Vec<&String> =
                        touched.keys().filter(|path| !parts.contains_key(*path)).collect();
                    let listed: Vec<&String> = touched
                        .keys()
                        .filter(|path| parts.get(*path).is_some_and(|part| !part.is_shown))
                        .collect();
                    println!(
                        "{} {budget} {number}: missing {missing:?}, only named {listed:?}",
                        &commit[..8.min(commit.len())]
                    );
                }
            }
        }
    }

    impl ShareSums {
        fn add(
            &mut self,
            touched: &TouchedFiles,
            parts: &BTreeMap<String, DocumentPart>,
            tokens: usize,
            budget: usize,
            wall: Duration,
        ) {
            let share = |found: usize, of: usize| found as f64 / of as f64;
            self.commits += 1.0;
            self.named +=
                share(touched.keys().filter(|path| parts.contains_key(*path)).count(), touched.len());
            let is_shown = |path: &&String| parts.get(*path).is_some_and(|part| part.is_shown);
            self.shown += share(touched.keys().filter(is_shown).count(), touched.len());
            let total: usize = touched.values().map(BTreeSet::len).sum();
            if total > 0 {
                let found = touched.iter().filter_map(|(path, symbols)| {
                    let words = &parts.get(path)?.words;
                    Some(symbols.iter().filter(|symbol| words.contains(*symbol)).count())
                });
                self.symbol_commits += 1.0;
                self.symbols += share(found.sum(), total);
            }
            self.used += share(tokens, budget);
            self.walls.push(wall);
        }
    }

    /// The part of a document that is about one file.
    #[derive(Default)]
    struct DocumentPart {
        is_shown: bool,
        words: BTreeSet<String>,
    }

    /// Divides a document at the lines that name a file: a heading (`## src/a.py`, `## File: src/a.py`), a line of a list
    /// (`src/a.py (12 bytes): name`), a line of a map (`src/a.py:`), or an entry of an indented tree.
    fn parts(text: &str, paths: &BTreeSet<String>) -> BTreeMap<String, DocumentPart> {
        let mut parts: BTreeMap<String, DocumentPart> = BTreeMap::new();
        let mut current: Option<String> = None;
        // The folders around a line of an indented tree, which names a file as well.
        let mut folders: Vec<&str> = Vec::new();
        for line in text.lines() {
            let entry = line.trim_start();
            folders.truncate((line.len() - entry.len()) / 2);
            let in_tree = [folders.concat().as_str(), entry].concat();
            if entry.ends_with('/') {
                folders.push(entry);
            } else if let Some(path) = paths.get(&in_tree).filter(|_| in_tree != line) {
                parts.entry(path.clone()).or_default();
            }
            let heading = line.strip_prefix("## File: ").or_else(|| line.strip_prefix("## "));
            let name = heading.unwrap_or(line);
            let name = name.split(" (").next().unwrap_or_default();
            let name = name.strip_suffix(':').unwrap_or(name);
            if let Some(path) = paths.get(name) {
                // In a list each file has one line.
                let is_section = heading.is_some() || line.ends_with(':');
                parts.entry(path.clone()).or_default().is_shown |= is_section;
                current = Some(path.clone());
            }
            if let Some(part) = current.as_ref().and_then(|path| parts.get_mut(path)) {
                part.words.extend(words(line));
            }
        }
        parts
    }

    fn words(text: &str) -> impl Iterator<Item = String> + '_ {
        text.split(|c: char| !(c.is_alphanumeric() || c == '_')).map(str::to_owned)
    }

    /// Returns what `commit` touched, as its parent has it.
    fn touched(checkout: &Path, commit: &str) -> TouchedFiles {
        let parent = format!("{commit}^");
        let mut touched = TouchedFiles::new();
        let diff =
            git(checkout, &["diff", "--no-renames", "--diff-filter=MD", "--unified=0", &parent, commit]);
        let (mut path, mut lines): (Option<String>, Vec<usize>) = (None, Vec::new());
        let mut finish = |path: &mut Option<String>, lines: &mut Vec<usize>| {
            if let Some(path) = path.take() {
                let text = git(checkout, &["show", &format!("{parent}:{path}")]);
                let symbols = outline(&path, &text).map(|outline| outline.symbols).unwrap_or_default();
                let around = lines.drain(..).filter_map(|line| {
                    symbols.iter().filter(|symbol| symbol.line <= line).max_by_key(|symbol| symbol.line)
                });
                touched.insert(path, around.map(|symbol| symbol.name.clone()).collect());
            }
        };
        for line in diff.lines() {
            if line.starts_with("diff --git") {
                finish(&mut path, &mut lines);
            } else if let Some(name) = line.strip_prefix("--- a/") {
                path = Some(name.to_owned());
            } else if let Some(hunk) = line.strip_prefix("@@ -") {
                let range = hunk.split(' ').next().unwrap();
                let (start, length) = range.split_once(',').unwrap_or((range, "1"));
                let (start, length): (usize, usize) = (start.parse().unwrap(), length.parse().unwrap());
                lines.extend(start..start + length.max(1));
            }
        }
        finish(&mut path, &mut lines);
        touched
    }

    /// Returns the first lines of `text` that have at most `budget` tokens.
    fn cut(text: &str, budget: usize) -> String {
        let mut kept = String::new();
        let mut tokens = 0;
        for line in text.split_inclusive('\n') {
            tokens += O200kCounter.count(line);
            if tokens > budget {
                break;
            }
            kept.push_str(line);
        }
        kept
    }

    fn git(checkout: &Path, arguments: &[&str]) -> String {
        let output = Command::new("git").arg("-C").arg(checkout).args(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn shell(command: &str, variables: &[(&str, &str)]) -> Option<String> {
        let output =
            Command::new("sh").arg("-c").arg(command).envs(variables.iter().copied()).output().unwrap();
        if !output.status.success() {
            eprintln!("{command}: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
