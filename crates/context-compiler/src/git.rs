//! What changed, asked of the real git. Feature `git`.
//!
//! git is told to run nothing that the repository's own configuration names: no external differ, no text
//! conversion, no monitor, no filter, no hook. It writes nothing, not even its index.

use crate::catalogue::Diff;
use crate::changes::{ChangedFile, Changes, Outcome, Status};
use crate::error::Error;
use process_runner::{Command, EnvPolicy, Limits, Output, OverLimit, SpawnErrorKind, Termination};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

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
/// What git needs of the environment: to be found, and to start.
const ENVIRONMENT: [&str; 5] = ["PATH", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];

/// What every call sets, over whatever the repository says.
const SETTINGS: [&str; 8] = [
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.quotePath=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "color.ui=false",
];

/// What every difference is asked with, so that no configuration shows in it. `-O/dev/null` takes an order of files
/// back.
const DIFF: [&str; 13] = [
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--relative",
    "--submodule=short",
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
        let listing = ["config", "--null", "--name-only", "--includes", "--get-regexp", r"^filter\."];
        let (resolved, listed) =
            tokio::join!(self.ask(&resolving, &[], LIST_BYTES), self.ask(&listing, &[], LIST_BYTES));
        let (resolved, listed) = match (resolved, listed) {
            (Ok(resolved), Ok(listed)) => (resolved, listed),
            (Err(outcome), _) | (_, Err(outcome)) => return Ok(Err(outcome)),
        };
        let base = match resolved.output.code() {
            Some(0) => String::from_utf8_lossy(resolved.bytes().trim_ascii()).into_owned(),
            Some(1) if ask.since.is_some() => {
                return Err(Error::argument("since", "names no commit of this repository"));
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
        let filters = filters(listed.bytes());
        changes.filters_off = !filters.is_empty();

        let names: Vec<&str> = DIFF.into_iter().chain(["--raw", "--numstat", "-z", &base, "--"]).collect();
        let patch: Vec<&str> = DIFF.into_iter().chain(["-U3", "--patch", &base, "--"]).collect();
        let others = ["ls-files", "--others", "--exclude-standard", "-z"];
        let lines = async {
            match ask.diff {
                Diff::Full => self.ask(&patch, &filters, ask.max_bytes).await.map(Some),
                _ => Ok(None),
            }
        };
        let (names, lines, others) = tokio::join!(
            self.ask(&names, &filters, LIST_BYTES),
            lines,
            self.ask(&others, &filters, LIST_BYTES)
        );
        let (names, lines, others) = match (names, lines, others) {
            (Ok(names), Ok(lines), Ok(others)) => (names, lines, others),
            (Err(outcome), ..) | (_, Err(outcome), _) | (.., Err(outcome)) => return Ok(Err(outcome)),
        };
        for answer in [Some(&names), lines.as_ref(), Some(&others)].into_iter().flatten() {
            if answer.whole() && !answer.output.success() {
                return Ok(Err(failure(&answer.output)));
            }
            changes.truncated |= !answer.whole();
        }
        let mut files = tracked(names.bytes());
        if let Some(lines) = &lines {
            let text = String::from_utf8_lossy(lines.bytes());
            for (path, hunks) in patches(&text, lines.whole()) {
                if let Some(file) = files.get_mut(&path) {
                    file.hunks = hunks;
                }
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

    async fn ask(&self, words: &[&str], filters: &[String], bytes: usize) -> Result<Answer, Outcome> {
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
            .arg("--no-pager");
        for setting in SETTINGS {
            command = command.args(["-c", setting]);
        }
        // By environment, where a name may have any character. An empty process keeps git from the other two.
        let overrides = filters.iter().flat_map(|name| {
            [(format!("{name}.process"), String::new()), (format!("{name}.required"), "false".to_owned())]
        });
        let mut count = 0;
        for (key, value) in overrides {
            command = command
                .env(format!("GIT_CONFIG_KEY_{count}"), key)
                .env(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        if count > 0 {
            command = command.env("GIT_CONFIG_COUNT", count.to_string());
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
    if said.contains("not a git repository") || said.contains("must be run in a work tree") {
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

/// The names of filters among the keys of a configuration.
fn filters(listed: &[u8]) -> Vec<String> {
    let mut names: Vec<String> = listed
        .split(|byte| *byte == 0)
        .filter_map(|key| std::str::from_utf8(key).ok()?.rsplit_once('.'))
        .map(|(section, _)| section.to_owned())
        .filter(|section| section.starts_with("filter."))
        .collect();
    names.sort();
    names.dedup();
    names
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
            hunks.push(line.to_owned());
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
            filters(&bytes);
            patches(&text, false);
        }
    }
}
