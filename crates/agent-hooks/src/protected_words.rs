//! Refuses a program that would change one of the files that decide what an agent may do, by the words that it is given.

use crate::judge::{Denial, Judgement, ProtectedPath};
use crate::line::{PersonalOpening, base_name};
use crate::shell::{ShellLine, ShellProgram, ShellWord};
use crate::word_pattern::{KnownValues, WordPattern};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Programs that only read the files they are given.
const READERS: [&str; 34] = [
    "cat",
    "less",
    "more",
    "head",
    "tail",
    "grep",
    "egrep",
    "fgrep",
    "ls",
    "stat",
    "file",
    "wc",
    "diff",
    "jq",
    "cmp",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "cut",
    "tr",
    "seq",
    "date",
    "sleep",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "du",
    "df",
    "which",
    "ps",
    "pgrep",
    "expr",
];

/// The commands of git that change no file of the work tree.
const READING_GIT_COMMANDS: [&str; 26] = [
    "add",
    "annotate",
    "blame",
    "branch",
    "cat-file",
    "commit",
    "describe",
    "diff",
    "fetch",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "name-rev",
    "push",
    "reflog",
    "remote",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "status",
    "tag",
];

/// Programs that take away a folder with everything in it.
const REMOVERS: [&str; 3] = ["rm", "rmdir", "unlink"];

/// A protected file or folder that a word reaches.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ReachedPath {
    protected: PathBuf,
    /// The part of the protected folder that the word names, or the protected file.
    named: PathBuf,
}

impl Judgement<'_> {
    /// Refuses a program that is given a word which is a protected file or a folder above one, or could be. `folders` are
    /// those in which a relative path may begin. Returns the words that only reach what a person's word opens.
    pub(crate) fn check_protected_words(
        &self,
        program: &ShellProgram,
        line: &ShellLine,
        folders: Option<&[PathBuf]>,
        denied: &dyn Fn(&str, String) -> Denial,
    ) -> Result<Vec<PersonalOpening>, Denial> {
        let name = program.words.first().map(|word| base_name(&word.text)).unwrap_or_default();
        let arguments = program.words.get(1..).unwrap_or_default();
        let arguments = if is_reader(name, arguments) { &[] } else { arguments };
        let is_remover = REMOVERS.contains(&name);
        let known =
            KnownValues { home: self.surroundings.home, assigned: &line.values, budget: &self.evaluations };
        let mut openings = Vec::new();
        for word in arguments.iter().chain(&program.removed) {
            let patterns = WordPattern::of(word, known).into_iter().flat_map(WordPattern::with_values);
            for pattern in patterns {
                let places: Vec<WordPattern> = match folders {
                    Some(folders) => folders.iter().map(|folder| pattern.in_folder(Some(folder))).collect(),
                    None => vec![pattern.in_folder(None)],
                };
                let reached: BTreeSet<ReachedPath> =
                    places.iter().flat_map(|place| self.reached(place, is_remover)).collect();
                if !reached.is_empty() {
                    let text = &word.text;
                    let reason = if word.is_literal {
                        format!(
                            "`{text}` holds settings that decide what this agent may do; leave it as it is"
                        )
                    } else {
                        format!(
                            "`{text}` is known only when the line runs, and could be a file that decides what this agent may do; \
                             write the names out, in the line or in a `for` loop, or use `find … -name … -exec`"
                        )
                    };
                    let denial = denied("protected files", reason);
                    if !reached.iter().all(|reached| self.is_opened_by_a_person(&reached.protected)) {
                        return Err(denial);
                    }
                    let paths = reached.into_iter().map(|reached| reached.named).collect();
                    openings.push(PersonalOpening::new(denial, text, paths));
                }
            }
        }
        Ok(openings)
    }

    /// Returns true if a person who is asked may let a line change `path`, which is protected.
    fn is_opened_by_a_person(&self, path: &PathBuf) -> bool {
        self.loaded_files.contains(path) || self.protected_folders.contains(path)
    }

    /// Returns the protected files that a path of this pattern is, or that lie in the folder that it is, unless that is above a
    /// root.
    fn reached(&self, pattern: &WordPattern, is_remover: bool) -> Vec<ReachedPath> {
        let text = pattern.text();
        // What only the run knows is judged by the rest of the word; `exec` undoes what a line does in such a folder.
        let start = pattern.literal_start();
        let start = Path::new(&start);
        let around = self.protected_folders.iter().filter(|folder| start.starts_with(folder));
        // A person who agrees to one file of a folder has not agreed to the others.
        let around = around.map(|folder| ReachedPath { protected: folder.clone(), named: start.to_owned() });
        let named = self.protected_paths().iter().filter(|protected| {
            if protected.is_above_root && !is_remover {
                return false;
            }
            let is_named = match &text {
                Some(text) => *text == protected.path,
                None => pattern.can_be(&protected.path),
            };
            // The shell finds only what is there, and only what is there is removed with a root.
            let must_exist = pattern.is_glob() || protected.is_above_root;
            is_named && (!must_exist || self.may_exist(&protected.file))
        });
        let named = named.map(|protected| protected.file.clone());
        around.chain(named.map(|file| ReachedPath { named: file.clone(), protected: file })).collect()
    }

    fn protected_paths(&self) -> &[ProtectedPath] {
        self.protected_paths.get_or_init(|| {
            // The same file may be protected under several settings.
            let files: BTreeSet<&PathBuf> = self.protected.iter().chain(self.protected_folders).collect();
            let mut paths = Vec::new();
            for file in files {
                for path in file.ancestors().filter(|path| path.parent().is_some()) {
                    let is_above_root = self.workspace.roots().any(|root| root.starts_with(path));
                    let (path, file) = (path.to_string_lossy().into_owned(), file.clone());
                    paths.push(ProtectedPath { path, file, is_above_root });
                }
            }
            paths
        })
    }

    /// Returns false if there is no such file. One outside the roots may be there.
    fn may_exist(&self, file: &Path) -> bool {
        self.workspace.locate(file).map_or(true, |located| located.is_there())
    }
}

/// Returns true if the program with these arguments changes no file.
fn is_reader(name: &str, arguments: &[ShellWord]) -> bool {
    match name {
        "rg" => !arguments.iter().any(|word| word.value().is_none_or(|text| text.starts_with("--pre"))),
        // Its actions are read as commands and files of their own.
        "find" => true,
        "git" => git_command(arguments).is_some_and(|command| READING_GIT_COMMANDS.contains(&command)),
        name => READERS.contains(&name),
    }
}

/// Returns the command of git, behind git's own options.
fn git_command(arguments: &[ShellWord]) -> Option<&str> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.value()? {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" => {
                words.next();
            }
            option if option.starts_with('-') => {}
            command => return Some(command),
        }
    }
    None
}
