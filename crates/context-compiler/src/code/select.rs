//! Which files of a project: globs, ignore files, and names that hold secrets.

use super::rules::Rules;
use super::workers;
use crate::source::{Entry, EntryKind, ReadProblem, Tree};
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The ignore files of a folder, the first that says something about a path decides.
const IGNORE_FILES: [&str; 3] = [".contextignore", ".ignore", ".gitignore"];

/// What an ignore file may have; the rest of a larger one would be left out, so it is not used at all.
const IGNORE_FILE_LIMIT: u64 = 1 << 20;

/// Folders of version control: not the project's content.
const VERSION_CONTROL: [&str; 5] = [".git", ".hg", ".svn", ".jj", ".bzr"];

/// How [`select`] works.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads to list folders on. As many as the machine has, at most 8, by default. The result is the same.
    pub threads: usize,
    /// More files than this are [`Error::TooMany`]: what bounds the memory. 200,000 by default.
    pub max_files: usize,
    /// Whether ignore files count. Yes by default.
    pub ignore_files: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: workers::default_threads(), max_files: 200_000, ignore_files: true }
    }
}

/// The files that a request means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Their paths, each once, in byte order.
    pub files: Vec<String>,
    /// What was asked for, is there, and is not among them, in byte order. Not what an ignore file names, which
    /// is only counted.
    pub left_out: Vec<LeftOut>,
    /// How many files and folders that were met are ignored, or excluded by the request.
    pub ignored: usize,
    /// Which of the includes named a file exactly, and there is none.
    pub missing: Vec<String>,
}

/// A path that was met and not selected.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// Where it is.
    pub path: String,
    /// Why it was left out.
    pub reason: Reason,
}

/// Why a path was not selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Its name is one that secrets have (`.env`, `*.pem`, `id_rsa` …). An include that names it exactly selects it.
    SensitiveName,
    /// A symbolic link: what it leads to is selected under its own name. An include that names it exactly
    /// selects it.
    Link,
    /// A pipe, a socket, a device, or a name that is not UTF-8.
    NotRegular,
    /// The folder could not be listed, or its ignore file could not be read; nothing beneath it is selected.
    Unreadable,
}

/// Why there is no selection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A pattern that means nothing here.
    #[error("the glob `{glob}` {why}")]
    Glob {
        /// The pattern.
        glob: String,
        /// What is wrong with it.
        why: String,
    },
    /// There are more files than the limit.
    #[error("more than {limit} files match: narrow the globs")]
    TooMany {
        /// [`Options::max_files`].
        limit: usize,
    },
}

/// The files of `tree` that match a glob of `include` (all files where there is none) and none of `exclude`.
///
/// A glob is matched against the whole path from the root: `*` and `?` stay within a part, `**` crosses parts,
/// `{a,b}` and `[a-z]` as usual, `\` escapes. A pattern without wildcards is that file, or that folder with
/// everything beneath it. Only the plain start of each pattern is walked: `src/**/*.rs` lists nothing outside `src`.
///
/// Left out are what `.contextignore`, `.ignore` and `.gitignore` name, in that order, in any folder from the root
/// down, and `.git/info/exclude` (not the ignore file of the user, which other machines do not have); folders of
/// version control; links; and sensitive names. A file that an include names exactly is selected in spite of
/// these, but not in spite of `exclude`.
///
/// # Errors
/// A pattern is no glob, or leaves the root; or there are more files than [`Options::max_files`].
pub fn select(
    tree: &dyn Tree,
    include: &[String],
    exclude: &[String],
    options: &Options,
) -> Result<Selection, Error> {
    let mut bases = BTreeSet::new();
    let mut exact = Vec::new();
    let mut selection = Selection::default();
    let mut included = GlobSetBuilder::new();
    for pattern in include {
        check(pattern)?;
        let path = pattern.strip_prefix("./").unwrap_or(pattern).trim_end_matches('/');
        let wild = path.find(['*', '?', '[', '{', '\\']);
        if let Some(wild) = wild {
            included.add(glob(path)?);
            bases.insert(path[..wild].rsplit_once('/').map_or("", |(base, _)| base).to_owned());
            continue;
        }
        match if path.is_empty() { Err(ReadProblem::NotRegular("a folder")) } else { tree.stamp(path) } {
            Ok(_) => exact.push(path.to_owned()),
            Err(ReadProblem::NotRegular("a folder")) => {
                included.add(glob(&beneath(&globset::escape(path), "**"))?);
                bases.insert(path.to_owned());
            }
            Err(ReadProblem::NotFound) => selection.missing.push(pattern.clone()),
            Err(ReadProblem::NotRegular(_)) => {
                selection.left_out.push(LeftOut { path: path.to_owned(), reason: Reason::NotRegular });
            }
            Err(_) => selection.left_out.push(LeftOut { path: path.to_owned(), reason: Reason::Unreadable }),
        }
    }
    if include.is_empty() {
        included.add(glob("**")?);
        bases.insert(String::new());
    }
    let mut excluded = GlobSetBuilder::new();
    for pattern in exclude {
        check(pattern)?;
        let path = pattern.strip_prefix("./").unwrap_or(pattern).trim_end_matches('/');
        excluded.add(glob(path)?);
        // Then the folder itself need not be walked.
        excluded.add(glob(path.trim_end_matches("/**"))?);
    }
    let build = |set: GlobSetBuilder| set.build().map_err(|error| bad("", &error));
    let walk = Walk {
        tree,
        included: build(included)?,
        excluded: build(excluded)?,
        options,
        state: Mutex::new(State {
            files: Vec::new(),
            selection,
            folders: Vec::new(),
            busy: 0,
            too_many: false,
        }),
        changed: Condvar::new(),
    };
    for path in exact {
        if !walk.is_excluded(&path) {
            walk.lock().files.push(path);
        }
    }
    for base in &bases {
        if !bases.iter().any(|outer| outer != base && is_beneath(base, outer)) {
            walk.enter(base);
        }
    }
    workers::together(options.threads.max(1), || walk.work());
    let State { mut files, mut selection, too_many, .. } =
        walk.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    files.sort_unstable();
    files.dedup();
    if too_many || files.len() > options.max_files {
        return Err(Error::TooMany { limit: options.max_files });
    }
    selection.files = files;
    selection.left_out.sort_unstable();
    selection.left_out.dedup();
    selection.missing.sort_unstable();
    Ok(selection)
}

/// One walk over a project.
struct Walk<'a> {
    tree: &'a dyn Tree,
    included: GlobSet,
    excluded: GlobSet,
    options: &'a Options,
    state: Mutex<State>,
    /// There is another folder to list, or no worker is busy any more.
    changed: Condvar,
}

struct State {
    files: Vec<String>,
    selection: Selection,
    folders: Vec<Job>,
    busy: usize,
    too_many: bool,
}

/// A folder to list, and the rules that hold in it.
struct Job {
    path: String,
    rules: Option<Arc<Level>>,
}

/// The ignore files of one folder, and of those above it.
struct Level {
    above: Option<Arc<Level>>,
    /// How much of a path is its folder, with the slash.
    prefix: usize,
    /// By [`IGNORE_FILES`].
    rules: [Rules; 3],
    /// `.git/info/exclude`, which counts last.
    info: Rules,
}

/// A worker that has taken a folder; the others must learn of it even if a panic ends it.
struct Busy<'a, 'b>(&'a Walk<'b>);

impl Drop for Busy<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().busy -= 1;
        self.0.changed.notify_all();
    }
}

impl Walk<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_excluded(&self, path: &str) -> bool {
        !self.excluded.is_empty() && self.excluded.is_match(path)
    }

    /// Begins at `base`, with the rules of the folders above it, unless one of them is ignored.
    fn enter(&self, base: &str) {
        let mut rules = None;
        let mut path = String::new();
        for part in base.split('/').filter(|part| !part.is_empty()) {
            match self.level(&path, None, rules) {
                Ok(level) => rules = level,
                Err(()) => return self.leave_out(path, Reason::Unreadable),
            }
            path = beneath(&path, part);
            if VERSION_CONTROL.contains(&part)
                || self.is_excluded(&path)
                || is_ignored(rules.as_deref(), &path, true)
            {
                self.lock().selection.ignored += 1;
                return;
            }
        }
        self.lock().folders.push(Job { path, rules });
    }

    fn leave_out(&self, path: String, reason: Reason) {
        self.lock().selection.left_out.push(LeftOut { path, reason });
    }

    /// Lists folders until there are none left and nobody can find another.
    fn work(&self) {
        loop {
            let mut state = self.lock();
            let job = loop {
                if state.too_many {
                    return;
                }
                if let Some(job) = state.folders.pop() {
                    break job;
                }
                if state.busy == 0 {
                    return;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            state.busy += 1;
            drop(state);
            let busy = Busy(self);
            self.list(job);
            drop(busy);
        }
    }

    fn list(&self, job: Job) {
        let (mut files, mut folders, mut left_out, mut ignored) = (Vec::new(), Vec::new(), Vec::new(), 0);
        let Ok(entries) = self.tree.list(&job.path) else {
            return self.leave_out(job.path, Reason::Unreadable);
        };
        let Ok(rules) = self.level(&job.path, Some(&entries), job.rules) else {
            return self.leave_out(job.path, Reason::Unreadable);
        };
        for entry in entries {
            let path = beneath(&job.path, &entry.name);
            let is_folder = entry.kind == EntryKind::Folder;
            if is_folder && VERSION_CONTROL.contains(&entry.name.as_str()) {
                continue;
            }
            if self.is_excluded(&path) || is_ignored(rules.as_deref(), &path, is_folder) {
                ignored += 1;
            } else if is_folder {
                folders.push(Job { path, rules: rules.clone() });
            } else if self.included.is_match(&path) {
                match entry.kind {
                    EntryKind::File if is_sensitive(&path) => {
                        left_out.push(LeftOut { path, reason: Reason::SensitiveName });
                    }
                    EntryKind::File => files.push(path),
                    EntryKind::Link => left_out.push(LeftOut { path, reason: Reason::Link }),
                    EntryKind::Folder | EntryKind::Other => {
                        left_out.push(LeftOut { path, reason: Reason::NotRegular });
                    }
                }
            }
        }
        let mut state = self.lock();
        state.files.append(&mut files);
        state.folders.append(&mut folders);
        state.selection.left_out.append(&mut left_out);
        state.selection.ignored += ignored;
        // Names met are bounded as well as files selected, so that a tree of links is no way around the limit.
        state.too_many |= state.files.len().max(state.selection.left_out.len()) > self.options.max_files;
    }

    /// The rules in `folder`, whose `entries` are these where they are known.
    fn level(
        &self,
        folder: &str,
        entries: Option<&[Entry]>,
        above: Option<Arc<Level>>,
    ) -> Result<Option<Arc<Level>>, ()> {
        if !self.options.ignore_files {
            return Ok(None);
        }
        let read = |name: &str| {
            // Git follows no link to an ignore file either.
            let there = |entry: &Entry| entry.name == name && entry.kind == EntryKind::File;
            if entries.is_some_and(|entries| !entries.iter().any(there)) {
                return Ok(Rules::default());
            }
            match self.tree.read(&beneath(folder, name), IGNORE_FILE_LIMIT) {
                Ok(content) => Ok(Rules::parse(&content.bytes)),
                Err(ReadProblem::NotFound | ReadProblem::NotRegular(_) | ReadProblem::Outside) => {
                    Ok(Rules::default())
                }
                Err(_) => Err(()),
            }
        };
        let [first, second, third] = IGNORE_FILES.map(read);
        let rules = [first?, second?, third?];
        let info = if folder.is_empty()
            && entries.is_none_or(|entries| entries.iter().any(|entry| entry.name == ".git"))
        {
            // In a linked worktree it is outside the root.
            self.tree
                .read(".git/info/exclude", IGNORE_FILE_LIMIT)
                .map(|content| Rules::parse(&content.bytes))
                .ok()
        } else {
            None
        };
        let info = info.unwrap_or_default();
        if info.is_empty() && rules.iter().all(Rules::is_empty) {
            return Ok(above);
        }
        let prefix = if folder.is_empty() { 0 } else { folder.len() + 1 };
        Ok(Some(Arc::new(Level { above, prefix, rules, info })))
    }
}

/// Whether the rules from `level` up ignore `path`. Each kind of file is asked from the nearest folder to the root
/// before the next kind.
fn is_ignored(level: Option<&Level>, path: &str, is_folder: bool) -> bool {
    let levels = || std::iter::successors(level, |level| level.above.as_deref());
    let by_files = (0..IGNORE_FILES.len()).find_map(|kind| {
        levels().find_map(|level| level.rules[kind].ignores(&path[level.prefix..], is_folder))
    });
    by_files
        .or_else(|| levels().find_map(|level| level.info.ignores(&path[level.prefix..], is_folder)))
        .unwrap_or(false)
}

/// Whether files of this name usually hold secrets. The one list there is: for code, for changes and for documents.
pub(crate) fn is_sensitive(path: &str) -> bool {
    const ENDS: [&str; 8] = [".pem", ".p12", ".pfx", ".kdbx", ".jks", ".keystore", ".key", ".ppk"];
    const NAMES: [&str; 11] = [
        ".env",
        ".envrc",
        ".netrc",
        "_netrc",
        ".pgpass",
        ".htpasswd",
        ".git-credentials",
        ".npmrc",
        ".pypirc",
        ".dockercfg",
        ".my.cnf",
    ];
    const KEYS: [&str; 4] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
    const DATA: [&str; 8] = ["json", "toml", "yaml", "yml", "ini", "csv", "xml", "properties"];
    const PUBLIC: [&str; 4] = [".pub", ".example", ".sample", ".template"];
    let path = path.to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    if PUBLIC.iter().any(|end| name.ends_with(end)) {
        return false;
    }
    let credentials = name.trim_start_matches('.').strip_prefix("credentials");
    name.starts_with(".env.")
        || NAMES.contains(&name)
        || ENDS.iter().any(|end| name.ends_with(end))
        || KEYS.iter().any(|key| name.starts_with(key))
        || path == ".docker/config.json"
        || path.ends_with("/.docker/config.json")
        // `credentials.rs` is code.
        || credentials.is_some_and(|rest| rest.is_empty() || rest.rsplit_once('.').is_some_and(|(_, end)| DATA.contains(&end)))
}

/// What the `.contextignore` files of a project say, for paths that no walk met.
pub(crate) struct Kept<'a> {
    tree: &'a dyn Tree,
    rules: BTreeMap<String, Rules>,
}

impl<'a> Kept<'a> {
    pub(crate) fn new(tree: &'a dyn Tree) -> Self {
        Self { tree, rules: BTreeMap::new() }
    }

    /// Whether the file at `path`, or a folder above it, is ignored. A `.contextignore` that cannot be read ignores
    /// everything beneath it.
    pub(crate) fn ignores(&mut self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| (at, true)).chain([(path.len(), false)]);
        ends.into_iter().any(|(end, is_folder)| self.says(path.get(..end).unwrap_or(path), is_folder))
    }

    /// The same, of this path alone: the nearest file that says something decides.
    fn says(&mut self, path: &str, is_folder: bool) -> bool {
        let mut folder = path;
        while let Some(above) =
            (!folder.is_empty()).then(|| folder.rsplit_once('/').map_or("", |(above, _)| above))
        {
            let inner = path.get(if above.is_empty() { 0 } else { above.len() + 1 }..).unwrap_or(path);
            if let Some(said) = self.rules_of(above).ignores(inner, is_folder) {
                return said;
            }
            folder = above;
        }
        false
    }

    fn rules_of(&mut self, folder: &str) -> &Rules {
        let tree = self.tree;
        self.rules.entry(folder.to_owned()).or_insert_with(|| {
            match tree.read(&beneath(folder, IGNORE_FILES[0]), IGNORE_FILE_LIMIT) {
                Ok(content) => Rules::parse(&content.bytes),
                Err(ReadProblem::NotFound | ReadProblem::NotRegular(_) | ReadProblem::Outside) => {
                    Rules::default()
                }
                Err(_) => Rules::parse(b"*"),
            }
        })
    }
}

/// `name` in `folder`.
fn beneath(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

fn is_beneath(path: &str, folder: &str) -> bool {
    folder.is_empty()
        || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn check(pattern: &str) -> Result<(), Error> {
    let why = if pattern.is_empty() {
        "is empty"
    } else if pattern.starts_with('/') || pattern.get(1..2) == Some(":") {
        "is not relative to the root"
    } else if pattern.split('/').any(|part| part == "..") {
        "leaves the root"
    } else if pattern.contains('\0') || pattern.contains("//") || pattern.contains("/./") {
        "is no path as the project's are written"
    } else {
        return Ok(());
    };
    Err(Error::Glob { glob: pattern.to_owned(), why: why.to_owned() })
}

fn glob(pattern: &str) -> Result<Glob, Error> {
    let mut builder = GlobBuilder::new(pattern);
    builder.literal_separator(true).backslash_escape(true).build().map_err(|error| bad(pattern, &error))
}

fn bad(pattern: &str, error: &globset::Error) -> Error {
    Error::Glob { glob: pattern.to_owned(), why: format!("cannot be read: {}", error.kind()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_tell_of_secrets_are_known_and_examples_are_not_taken_for_them() {
        for path in [
            "a/.env",
            ".env.local",
            "k/id_rsa",
            "x.PEM",
            "credentials.json",
            ".npmrc",
            "tls/server.key",
            ".htpasswd",
            ".netrc",
            "_netrc",
            ".my.cnf",
            ".pgpass",
            ".dockercfg",
            "home/.docker/config.json",
        ] {
            assert!(is_sensitive(path), "{path}");
        }
        for path in
            ["src/env.rs", ".env.example", ".env.sample", ".env.template", "id_rsa.pub", "docker/config.json"]
        {
            assert!(!is_sensitive(path), "{path}");
        }
    }
}
