//! What changed, asked of the real git. Feature `git`.
//!
//! git is told to run nothing that the repository's own configuration names: no external differ, no text
//! conversion, no monitor, no filter, no hook. It writes nothing, not even its index.

use crate::catalogue::Diff;
use crate::changes::{ChangedFile, Changes, Outcome, Status};
use crate::error::Error;
use process_runner::{Command, EnvPolicy, Limits, Output, OverLimit, SpawnErrorKind, Termination};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

/// How git is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What to compare with; `HEAD` if absent.
    pub since: Option<String>,
    /// How much to ask for. Everything by default.
    pub diff: Diff,
    /// What git gets for each of two rounds of questions. 5 seconds by default.
    pub time_limit: Duration,
    /// The most that is read of the lines. 4 MiB by default: far more than a document has room for, so that small
    /// changes are found behind large ones.
    pub max_bytes: usize,
}

impl Default for Ask {
    fn default() -> Self {
        Self { since: None, diff: Diff::Full, time_limit: Duration::from_secs(5), max_bytes: 4 * 1024 * 1024 }
    }
}

/// No revision that anybody writes is longer.
const MAX_REVISION: usize = 1_000;
/// The most that is read of lists of names.
const LIST_BYTES: usize = 16 * 1024 * 1024;
/// The most that is read of the names of filters. Where there are more, nothing is compared.
const FILTER_BYTES: usize = 64 * 1024;
/// A change of more lines is asked for after the others.
const LARGE_LINES: u64 = 5_000;
/// How many files are asked for after the others, in the beginning.
const MOST_LARGE: usize = 32;
/// How often the others are asked for, each time without the one in which the answer was cut.
const ROUNDS: usize = 4;
/// What git needs of the environment: to be found, and to start.
const ENVIRONMENT: [&str; 5] = ["PATH", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];

/// What every call sets, over whatever the repository says.
const SETTINGS: [&str; 14] = [
    // A folder that could pass for a repository without a work tree is a folder.
    "safe.bareRepository=explicit",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.quotePath=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.bigFileThreshold=512m",
    "diff.indentHeuristic=true",
    "diff.suppressBlankEmpty=false",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "color.ui=false",
];

/// What every difference is asked with, so that no configuration shows in it. `-O/dev/null` takes an order of files
/// back. Of a submodule only another commit is a change: to look at its files, git would run what *its*
/// configuration names.
const DIFF: [&str; 14] = [
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--relative",
    "--submodule=short",
    "--ignore-submodules=dirty",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--diff-algorithm=myers",
    "--inter-hunk-context=0",
    "--full-index",
    "-O/dev/null",
];

/// git in the folder `root`. Repositories above it are not looked for.
pub fn command(root: &Path) -> Command {
    Command::new("git", root).env("GIT_CEILING_DIRECTORIES", root.parent().unwrap_or(root).as_os_str())
}

/// What changed in the repository that `command` runs git in; `run` runs it. That what went wrong is no error but
/// the [outcome](Changes::outcome).
///
/// `command` gives git, to be run in the project's root, as [`command()`](command()) does; whoever has handles,
/// fences or tokens to cancel by puts them there, or into `run`.
///
/// ```no_run
/// # async fn example(root: &std::path::Path) -> Result<(), context_compiler::Error> {
/// use context_compiler::{Request, git};
///
/// let runner = process_runner::Runner::new();
/// let changes = git::changes(|| git::command(root), |command| runner.run(command), &git::Ask::default()).await?;
/// let request = Request { changes: Some(changes), ..Request::new("dev") };
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`Error::Argument`] where `since` cannot be a revision, or names no commit.
pub async fn changes<R, F>(command: impl Fn() -> Command, run: R, ask: &Ask) -> Result<Changes, Error>
where
    R: Fn(Command) -> F,
    F: Future<Output = Result<Output, process_runner::Error>>,
{
    let since = ask.since.as_deref().unwrap_or("HEAD");
    check(since)?;
    let mut changes = Changes { base: since.to_owned(), ..Changes::default() };
    if ask.diff == Diff::Off {
        return Ok(changes);
    }
    let git = Git { command, run, time_limit: ask.time_limit };
    if let Err(outcome) = git.fill(&mut changes, since, ask).await? {
        changes.outcome = outcome;
    }
    Ok(changes)
}

/// Refuses what git could take for an option, and what no revision can hold.
fn check(since: &str) -> Result<(), Error> {
    let reason = if since.is_empty() {
        "is empty"
    } else if since.starts_with('-') {
        "begins with `-`"
    } else if since.len() > MAX_REVISION {
        "is longer than 1000 bytes"
    } else if since.contains(char::is_control) {
        "has a control character"
    } else {
        return Ok(());
    };
    Err(Error::argument("since", reason))
}

struct Git<C, R> {
    command: C,
    run: R,
    time_limit: Duration,
}

impl<C, R, F> Git<C, R>
where
    C: Fn() -> Command,
    R: Fn(Command) -> F,
    F: Future<Output = Result<Output, process_runner::Error>>,
{
    async fn fill(
        &self,
        changes: &mut Changes,
        since: &str,
        ask: &Ask,
    ) -> Result<Result<(), Outcome>, Error> {
        let revision = format!("{since}^{{commit}}");
        let resolving = ["rev-parse", "--verify", "--quiet", "--end-of-options", &revision];
        let listing = [
            "config",
            "--null",
            "--name-only",
            "--includes",
            "--get-regexp",
            r"^(filter\.|diff\..*\.binary$)",
        ];
        let (resolved, listed) =
            tokio::join!(self.ask(&resolving, &[], LIST_BYTES), self.ask(&listing, &[], FILTER_BYTES));
        let (resolved, listed) = match (resolved, listed) {
            (Ok(resolved), Ok(listed)) => (resolved, listed),
            (Err(outcome), _) | (_, Err(outcome)) => return Ok(Err(outcome)),
        };
        let base = match resolved.output.code() {
            Some(0) => String::from_utf8_lossy(resolved.bytes().trim_ascii()).into_owned(),
            Some(1) if since != "HEAD" => {
                return Err(Error::argument(
                    "since",
                    format!("is `{since}`, and no commit, branch or tag is called that here"),
                ));
            }
            Some(1) => {
                changes.outcome = Outcome::Unborn;
                // The name of the empty tree, which depends on how the repository names objects.
                match self.ask(&["hash-object", "-t", "tree", "--stdin"], &[], LIST_BYTES).await {
                    Ok(answer) => String::from_utf8_lossy(answer.bytes().trim_ascii()).into_owned(),
                    Err(outcome) => return Ok(Err(outcome)),
                }
            }
            _ => return Ok(Err(failure(&resolved.output))),
        };
        if base.len() < 40 || !base.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Err(Outcome::Failed { said: "git named no commit".to_owned() }));
        }
        // What is not known cannot be turned off. 1: there are none.
        if !listed.whole() {
            return Ok(Err(Outcome::Failed { said: "its configuration names too many filters".to_owned() }));
        }
        if !matches!(listed.output.code(), Some(0 | 1)) {
            return Ok(Err(failure(&listed.output)));
        }
        let (filters, any) = overrides(listed.bytes());
        changes.filters_off = any;

        let names: Vec<&str> = DIFF.into_iter().chain(["--raw", "--numstat", "-z", &base, "--"]).collect();
        let others = ["ls-files", "--others", "--exclude-standard", "-z"];
        let (names, others) =
            tokio::join!(self.ask(&names, &filters, LIST_BYTES), self.ask(&others, &filters, LIST_BYTES));
        let (names, others) = match (names, others) {
            (Ok(names), Ok(others)) => (names, others),
            (Err(outcome), _) | (_, Err(outcome)) => return Ok(Err(outcome)),
        };
        for answer in [&names, &others] {
            if answer.whole() && !answer.output.success() {
                return Ok(Err(failure(&answer.output)));
            }
            changes.truncated |= !answer.whole();
        }
        let mut files = tracked(names.bytes());
        if ask.diff == Diff::Full && !files.is_empty() {
            match self.lines(&base, &mut files, &filters, ask.max_bytes).await {
                Ok(whole) => changes.truncated |= !whole,
                Err(outcome) => return Ok(Err(outcome)),
            }
        }
        for path in fields(others.bytes(), others.whole()) {
            let file =
                ChangedFile { path: path.clone(), status: Status::Untracked, lines: None, hunks: Vec::new() };
            files.entry(path).or_insert(file);
        }
        changes.files = files.into_values().collect();
        if changes.outcome != Outcome::Unborn && !changes.files.is_empty() {
            changes.outcome = Outcome::Changed;
        }
        Ok(Ok(()))
    }

    /// Fills in the hunks: of small changes first, then of those that are large, or turned out to be. False if some
    /// are missing.
    async fn lines(
        &self,
        base: &str,
        files: &mut BTreeMap<String, ChangedFile>,
        overrides: &[Override],
        most: usize,
    ) -> Result<bool, Outcome> {
        let size =
            |file: &ChangedFile| file.lines.map_or(0, |(added, removed)| added.saturating_add(removed));
        let mut large: Vec<(u64, String)> = files
            .values()
            .map(|file| (size(file), file.path.clone()))
            .filter(|(size, _)| *size > LARGE_LINES)
            .collect();
        large.sort_unstable();
        // The largest are the ones to keep away.
        let skipped = large.len().saturating_sub(MOST_LARGE);
        let mut large: Vec<String> = large.into_iter().skip(skipped).map(|(_, path)| path).collect();
        let started = Instant::now();
        let mut whole = true;
        for round in 1..=ROUNDS {
            let words: Vec<String> = large.iter().map(|path| format!(":(exclude,literal){path}")).collect();
            let Some(cut) = self.patch(base, &words, files, overrides, most).await? else {
                whole = true;
                break;
            };
            whole = round < ROUNDS;
            if cut.is_empty() || started.elapsed() > self.time_limit {
                whole = false;
                break;
            }
            // It is asked for with the large ones; the next round is without it.
            if whole {
                large.push(cut);
            }
        }
        for path in large {
            if started.elapsed() > self.time_limit {
                return Ok(false);
            }
            let words = [format!(":(literal){path}")];
            whole &= self.patch(base, &words, files, overrides, most / 8).await?.is_none();
        }
        Ok(whole)
    }

    /// Fills in the hunks of the files that `words` name. Returns in which the answer was cut.
    async fn patch(
        &self,
        base: &str,
        words: &[String],
        files: &mut BTreeMap<String, ChangedFile>,
        overrides: &[Override],
        most: usize,
    ) -> Result<Option<String>, Outcome> {
        let arguments: Vec<&str> = DIFF
            .into_iter()
            .chain(["-U3", "--patch", base, "--"])
            .chain(words.iter().map(String::as_str))
            .collect();
        let answer = self.ask(&arguments, overrides, most).await?;
        if answer.whole() && !answer.output.success() {
            return Err(failure(&answer.output));
        }
        let mut last = None;
        for (path, hunks) in patches(&String::from_utf8_lossy(answer.bytes()), answer.whole()) {
            if let Some(file) = files.get_mut(&path) {
                file.hunks = hunks;
            }
            last = Some(path);
        }
        // Where not even one name was whole there is nobody to leave out.
        Ok((!answer.whole()).then(|| last.unwrap_or_default()))
    }

    async fn ask(&self, words: &[&str], overrides: &[Override], bytes: usize) -> Result<Answer, Outcome> {
        let mut command = (self.command)()
            .env_policy(EnvPolicy::Allow(ENVIRONMENT.map(OsString::from).to_vec()))
            .noninteractive()
            .envs([
                ("LC_ALL", "C"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_OPTIONAL_LOCKS", "0"),
                ("GIT_NO_LAZY_FETCH", "1"),
                ("GIT_ATTR_NOSYSTEM", "1"),
            ])
            // Whatever `core.worktree` says.
            .args(["--no-pager", "--work-tree=."]);
        for setting in SETTINGS {
            command = command.args(["-c", setting]);
        }
        // By environment, where a name may have any character and be no UTF-8.
        for (index, (key, value)) in overrides.iter().enumerate() {
            command = command
                .env(format!("GIT_CONFIG_KEY_{index}"), key)
                .env(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        if !overrides.is_empty() {
            command = command.env("GIT_CONFIG_COUNT", overrides.len().to_string());
        }
        let limits = Limits::default()
            .timeout(self.time_limit)
            .capture(bytes)
            .max_output(bytes as u64, OverLimit::Close);
        let command = command.args(words).limits(limits).label("git");
        match (self.run)(command).await {
            Ok(output) => match output.termination {
                Termination::TimedOut { .. } | Termination::IdleTimedOut { .. } => Err(Outcome::TimedOut),
                Termination::Cancelled { .. } => {
                    Err(Outcome::Failed { said: "asking git was cancelled".to_owned() })
                }
                _ => Ok(Answer { output, most: bytes }),
            },
            Err(process_runner::Error::Spawn(error))
                if matches!(error.kind, SpawnErrorKind::NotFound { .. }) =>
            {
                Err(Outcome::GitMissing)
            }
            Err(
                process_runner::Error::SpawnTimedOut { .. } | process_runner::Error::QueueTimedOut { .. },
            ) => Err(Outcome::TimedOut),
            // What the system said may name places.
            Err(_) => Err(Outcome::Failed { said: "git could not be run".to_owned() }),
        }
    }
}

/// What git printed.
struct Answer {
    output: Output,
    most: usize,
}

impl Answer {
    fn whole(&self) -> bool {
        self.output.stdout.total_bytes < self.most as u64 && !self.output.stdout.truncated()
    }

    fn bytes(&self) -> &[u8] {
        if self.output.stdout.truncated() { self.output.stdout.head() } else { self.output.stdout.bytes() }
    }
}

/// Why git failed, in our words: its own name places.
fn failure(output: &Output) -> Outcome {
    let said = output.stderr.text();
    let none = ["not a git repository", "must be run in a work tree", "cannot use bare repository"];
    if none.iter().any(|none| said.contains(none)) {
        return Outcome::NotARepository;
    }
    let said = if said.contains("dubious ownership") {
        "the repository belongs to another user".to_owned()
    } else {
        match output.code() {
            Some(code) => format!("git ended with code {code}"),
            None => "git was ended".to_owned(),
        }
    };
    Outcome::Failed { said }
}

/// The parts that are ended by a NUL, but for the last where the end is missing, as UTF-8.
fn fields(bytes: &[u8], whole: bool) -> Vec<String> {
    let mut fields: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
    // What follows the last NUL is nothing, or a part of something.
    let _ = if whole { fields.pop_if(|last| last.is_empty()) } else { fields.pop() };
    fields.into_iter().map(|field| crate::source::printable_name(field).0).collect()
}

/// A key of the configuration, and what it is for us.
type Override = (OsString, &'static str);

/// What to configure so that the filters among these keys are not run, and that no driver says what is binary. The
/// second value says whether there are filters.
fn overrides(listed: &[u8]) -> (Vec<Override>, bool) {
    let mut overrides = Vec::new();
    let mut any = false;
    let names: BTreeSet<&[u8]> = listed
        .split(|byte| *byte == 0)
        .filter_map(|key| Some(&key[..key.iter().rposition(|byte| *byte == b'.')?]))
        .collect();
    let key = |name: &[u8], last: &str| os_string([name, last.as_bytes()].concat());
    for name in names {
        if name.starts_with(b"filter.") {
            any = true;
            // An empty process keeps git from the other two.
            overrides.push((key(name, ".process"), ""));
            overrides.push((key(name, ".required"), "false"));
        } else if name.starts_with(b"diff.") {
            overrides.push((key(name, ".binary"), "auto"));
        }
    }
    (overrides, any)
}

#[cfg(unix)]
fn os_string(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(not(unix))]
fn os_string(bytes: Vec<u8>) -> OsString {
    // git's own names are UTF-8 there.
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Files by path, from `--raw --numstat -z`: first what happened to each, then how many lines.
fn tracked(listed: &[u8]) -> BTreeMap<String, ChangedFile> {
    let mut files = BTreeMap::new();
    let listed = fields(listed, true);
    let mut fields = listed.iter();
    while let Some(field) = fields.next() {
        if field.starts_with(':') {
            let Some(path) = fields.next() else { break };
            let status = match field.rsplit(' ').next().and_then(|letters| letters.chars().next()) {
                Some('A') => Status::Added,
                Some('D') => Status::Deleted,
                _ => Status::Modified,
            };
            let file = ChangedFile { path: path.clone(), status, lines: None, hunks: Vec::new() };
            files.entry(path.clone()).or_insert(file);
        } else {
            let mut parts = field.splitn(3, '\t');
            let lines = (parts.next().map(str::parse), parts.next().map(str::parse));
            let file = parts.next().and_then(|path| files.get_mut(path));
            if let (Some(file), (Some(Ok(added)), Some(Ok(removed)))) = (file, lines) {
                file.lines = Some((added, removed));
            }
        }
    }
    files
}

/// The hunks of each file of a patch. Of one that was cut the last hunk is dropped.
///
/// A line of content begins with a sign or a backslash, and a name with a line feed is quoted: so these heads are
/// git's own.
fn patches(text: &str, whole: bool) -> Vec<(String, Vec<String>)> {
    let mut files: Vec<(Option<String>, Vec<String>)> = Vec::new();
    let mut in_hunks = false;
    for line in text.split_inclusive('\n') {
        if line.starts_with("diff --git ") {
            files.push((None, Vec::new()));
            in_hunks = false;
            continue;
        }
        let Some((path, hunks)) = files.last_mut() else { continue };
        if line.starts_with("@@ ") {
            in_hunks = true;
            // What function it is in is for the repository's own patterns to say: not a part of what changed.
            let end = line.get(3..).and_then(|rest| rest.find(" @@")).map_or(line.len(), |at| 3 + at + 3);
            hunks.push(format!("{}\n", line.get(..end).unwrap_or(line).trim_end_matches('\n')));
        } else if in_hunks {
            if let Some(hunk) = hunks.last_mut() {
                hunk.push_str(line);
            }
        } else if let Some(named) = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- ")) {
            // The second of the two wins, unless it is /dev/null.
            *path = name_of(named).or(path.take());
        }
    }
    if !whole && let Some((_, hunks)) = files.last_mut() {
        hunks.pop();
    }
    files.into_iter().filter_map(|(path, hunks)| Some((path?, hunks))).collect()
}

/// The path after `+++ ` or `--- `: quoted where it has special characters, and with a tab after it where it has
/// spaces. Nothing for `/dev/null`.
fn name_of(named: &str) -> Option<String> {
    let named = named.trim_end_matches('\n');
    let named = named.strip_suffix('\t').unwrap_or(named);
    let path = match named.strip_prefix('"') {
        Some(quoted) => crate::source::printable_name(&unquoted(quoted.strip_suffix('"')?)).0,
        None => named.to_owned(),
    };
    path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).map(str::to_owned)
}

/// What git's quotation of a name stands for.
fn unquoted(quoted: &str) -> Vec<u8> {
    let mut bytes = quoted.bytes().peekable();
    let mut out = Vec::with_capacity(quoted.len());
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(digit) = bytes.next_if(|byte| matches!(byte, b'0'..=b'7')) {
                        value = value * 8 + u32::from(digit - b'0');
                    }
                }
                out.push(u8::try_from(value & 0xff).unwrap_or_default());
            }
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(b'a') => out.push(7),
            Some(b'b') => out.push(8),
            Some(b'v') => out.push(11),
            Some(b'f') => out.push(12),
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_could_be_an_option_is_no_revision() {
        for bad in ["", "-p", "--output=/etc/x", "a\nb", "a\0b", &"x".repeat(1_001)] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
        assert!(check("HEAD~2").is_ok());
    }

    #[test]
    fn names_are_read_in_every_way_that_git_writes_them() {
        assert_eq!(name_of("b/a b\t\n").unwrap(), "a b");
        assert_eq!(name_of("\"b/a\\nb\\\"c\\303\\251\"\n").unwrap(), "a\nb\"cé");
        assert_eq!(name_of("/dev/null\n"), None);
    }

    #[test]
    fn a_patch_that_was_cut_loses_its_last_hunk() {
        let text = "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+diff --git\n@@ -5 +5 @@\n-c\n";
        let hunks = ["@@ -1 +1 @@\n-a\n+diff --git\n".to_owned(), "@@ -5 +5 @@\n-c\n".to_owned()];
        assert_eq!(patches(text, true), [("x".to_owned(), hunks.to_vec())]);
        assert_eq!(patches(text, false), [("x".to_owned(), hunks[..1].to_vec())]);
    }

    proptest! {
        #[test]
        fn no_output_is_a_panic(bytes: Vec<u8>, text in "(diff --git |@@ |[+]{3} |\"b/\\\\|\n|[ -~]){0,40}") {
            tracked(&bytes);
            overrides(&bytes);
            patches(&text, false);
        }
    }
}
