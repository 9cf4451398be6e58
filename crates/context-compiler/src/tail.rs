//! What the volatile half is made of: plans, failures of tests, changes.

use crate::catalogue::{Diff, Layout, Role};
use crate::changes::{ChangedFile, Changes, Outcome, Status};
use crate::code::{Kept, is_sensitive};
use crate::error::Error;
use crate::load::{Loader, Refusal, SENSITIVE};
use crate::manifest::{Kind, LeftOut};
use crate::phase;
use crate::pieces::{self, Class, LARGE, Piece, Rank};
use crate::prefix::language;
use crate::request::Request;
use crate::section::{Section, Source};
use crate::source::{Entry, EntryKind, ReadProblem};
use crate::text::{grouped, normalise, sha256, shown_path};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The largest untracked file of which the lines are shown, in bytes.
const UNTRACKED_BYTES: u64 = 64 * 1024;
/// Untracked files of which the lines are shown.
const UNTRACKED_FILES: usize = 200;
/// What the armour of a private key begins and ends with.
const ARMOUR: &str = "PRIVATE KEY-----";
/// The shortest line that is taken for one of a key, in bytes, where no other stands above it.
const KEY_LINE: usize = 16;
/// A file in which armour is looked for; of a larger one each line that may be of a key is masked.
const KEY_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Changed files that are listed by name.
const LISTED_FILES: usize = 2_000;

/// Sections of the tail.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) sections: Vec<Section>,
    /// What they are, for the reader.
    pub(crate) names: Vec<String>,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) diagnostics: Vec<String>,
}

/// The plans of the phase, or the one that was named.
pub(crate) fn plans(
    loader: &Loader<'_>,
    layout: &Layout,
    role: &Role,
    request: &Request,
) -> Result<Parts, Error> {
    let mut parts = Parts::default();
    let (paths, why) = match (&request.plan, request.phase) {
        (Some(plan), _) => (vec![plan.clone()], "plan that was named".to_owned()),
        (None, Some(phase)) if phase > 0 => {
            let (paths, odd) = phase::plans(loader.tree, layout, phase);
            parts.diagnostics = odd;
            if paths.is_empty() {
                let (plans, phases) = (layout.plans.join(", "), layout.phases.join(", "));
                parts
                    .diagnostics
                    .push(format!("phase {phase} has no plan: no {plans} in its folder in {phases}"));
            }
            (paths, format!("plan of phase {phase}"))
        }
        _ => return Ok(parts),
    };
    let most = if request.plan.is_some() { 1 } else { role.plans };
    for path in paths {
        // After the cap, so that one that cannot be read takes nobody's place.
        if parts.sections.len() == most {
            parts.left_out.push(LeftOut::told(path, format!("a role reads {most} plans at most")));
            continue;
        }
        match loader.load_document(&path) {
            Ok(loaded) => {
                parts.names.push(path.rsplit('/').next().unwrap_or(&path).to_owned());
                parts.sections.push(Section {
                    kind: Kind::Plan,
                    why: why.clone(),
                    language: language(&path),
                    pieces: pieces::markdown(&loaded.text, true),
                    text: loaded.text,
                    source: loaded.source,
                    path,
                });
            }
            Err(Refusal::NotFound) if request.plan.is_some() => {
                return Err(Error::Plan { path, problem: "does not exist".to_owned() });
            }
            Err(Refusal::NotFound) => {}
            Err(Refusal::Because(reason)) if request.plan.is_some() => {
                return Err(Error::Plan { path, problem: reason });
            }
            Err(Refusal::Because(reason)) => parts.left_out.push(LeftOut::told(path, reason)),
        }
    }
    Ok(parts)
}

/// Failures of tests, as the caller has them.
pub(crate) fn failures(loader: &Loader<'_>, said: &str) -> Option<Section> {
    let (text, redactions) = loader.mask(normalise(said));
    (!text.is_empty()).then(|| Section {
        path: "test failures".to_owned(),
        kind: Kind::TestFailures,
        why: "failures of the last test run".to_owned(),
        language: "text",
        pieces: pieces::plain(&text),
        source: Source {
            bytes: said.len() as u64,
            sha256: sha256(said.as_bytes()),
            encoding: "utf-8",
            redactions,
            ..Source::default()
        },
        text,
    })
}

/// A file as it is listed, and its lines.
struct Listed {
    line: String,
    lines: String,
    redactions: usize,
}

/// What changed: how much in which file, and then the lines. `inside` are paths that are in the document already.
pub(crate) fn changes(
    loader: &Loader<'_>,
    changes: &Changes,
    detail: Diff,
    inside: &[&str],
) -> Option<(Section, Vec<LeftOut>)> {
    if changes.files.is_empty() || detail == Diff::Off {
        return None;
    }
    let (mut untracked, mut untracked_lines) = (0, 0);
    let mut ignored = Kept::new(loader.tree);
    let mut folders = BTreeMap::new();
    let mut left_out = Vec::new();
    let listed: Vec<Listed> = changes
        .files
        .iter()
        .map(|file| {
            let mut hunks = file.hunks.concat();
            let mut lines = file.lines;
            let kept = match detail {
                Diff::Full if is_sensitive(&file.path) => Some(SENSITIVE),
                Diff::Full if ignored.ignores(&file.path) => Some("`.contextignore` names it"),
                _ => None,
            };
            if let Some(why) = kept {
                hunks.clear();
                left_out.push(LeftOut::untold(&file.path, why));
            } else if file.status == Status::Untracked && detail == Diff::Full && untracked < UNTRACKED_FILES
            {
                untracked += 1;
                match addition(loader, &file.path, &mut folders) {
                    Ok((text, count)) => (hunks, lines) = (text, Some((count, 0))),
                    Err(reason) => left_out.push(LeftOut::untold(&file.path, reason)),
                }
            }
            let whole = detail == Diff::Full && !inside.contains(&file.path.as_str()) && !is_lock(&file.path);
            let (lines_text, redactions) = match whole && !hunks.is_empty() {
                true => patch(loader, file, &hunks),
                false => (String::new(), 0),
            };
            if let (Status::Untracked, Some((count, _))) = (file.status, lines) {
                untracked_lines += count;
            }
            Listed { line: loader.mask(listed_line(file, lines, kept)).0, lines: lines_text, redactions }
        })
        .collect();
    let mut text = summary(changes, untracked_lines);
    let mut pieces = vec![Piece { range: 0..text.len(), rank: Some(Rank::new(Class::First, 0)) }];
    let mut push = |text: &mut String, words: &str, rank: Rank| {
        let start = text.len();
        text.push_str(words);
        pieces.push(Piece { range: start..text.len(), rank: Some(rank) });
    };
    for listed in listed.iter().take(LISTED_FILES) {
        push(&mut text, &listed.line, Rank::new(Class::First, 1));
    }
    if let Some(more) = listed.len().checked_sub(LISTED_FILES).filter(|more| *more > 0) {
        push(&mut text, &format!("… and {} more files\n", grouped(more)), Rank::new(Class::First, 1));
    }
    // Small changes are whole before large ones are begun.
    let mut sizes: Vec<(usize, usize)> =
        listed.iter().enumerate().map(|(index, listed)| (listed.lines.len(), index)).collect();
    sizes.sort_unstable();
    let mut place = vec![0; listed.len()];
    for (at, (_, index)) in sizes.into_iter().enumerate() {
        if let Some(place) = place.get_mut(index) {
            *place = at;
        }
    }
    for (listed, place) in listed.iter().zip(place) {
        let class = if listed.lines.len() > 4 * LARGE { Class::Large } else { Class::Usual };
        for hunk in hunks(&listed.lines) {
            push(&mut text, hunk, Rank::new(class, place));
        }
    }
    let redactions = listed.iter().map(|listed| listed.redactions).sum();
    let section = Section {
        path: format!("git diff {}", changes.base),
        kind: Kind::Changes,
        why: "what changed, and is not committed or is newer than the revision".to_owned(),
        language: "diff",
        source: Source {
            bytes: text.len() as u64,
            sha256: sha256(text.as_bytes()),
            encoding: "utf-8",
            redactions,
            ..Source::default()
        },
        text,
        pieces,
    };
    Some((section, left_out))
}

/// The first line of the section. Lines of untracked files are added lines, as they are shown.
fn summary(changes: &Changes, untracked: u64) -> String {
    let (added, removed) = totals(changes);
    let mut text = format!(
        "{} files, {} lines added, {} removed",
        grouped(changes.files.len()),
        grouped(usize::try_from(added + untracked).unwrap_or(usize::MAX)),
        grouped(usize::try_from(removed).unwrap_or(usize::MAX))
    );
    if changes.truncated {
        text.push_str("; not all of it was read");
    }
    if changes.filters_off {
        text.push_str("; filters of the repository were not run");
    }
    text.push('\n');
    text
}

/// Lines added and removed, of those that git counts.
pub(crate) fn totals(changes: &Changes) -> (u64, u64) {
    let lines = changes.files.iter().filter_map(|file| file.lines);
    lines.fold((0, 0), |(added, removed), lines| (added + lines.0, removed + lines.1))
}

fn listed_line(file: &ChangedFile, lines: Option<(u64, u64)>, kept: Option<&str>) -> String {
    let mut line = format!("{} {}", file.status.letter(), shown_path(&file.path));
    let _ = match lines {
        Some((added, removed)) => write!(line, " +{added} -{removed}"),
        None if file.status == Status::Untracked => Ok(()),
        None => write!(line, " binary"),
    };
    if let Some(why) = kept {
        let _ = write!(line, " (not shown: {why})");
    }
    line.push('\n');
    line
}

/// An untracked file as the addition of its lines, and how many they are.
fn addition<'p>(
    loader: &Loader<'_>,
    path: &'p str,
    folders: &mut BTreeMap<&'p str, Vec<Entry>>,
) -> Result<(String, u64), String> {
    // What a link leads to is no addition, and has a name of its own.
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let entries = folders.entry(folder).or_insert_with(|| loader.tree.list(folder).unwrap_or_default());
    let kind = entries.iter().find(|entry| entry.name == name).map(|entry| entry.kind);
    if kind == Some(EntryKind::Link) || loader.tree.resolve(path).is_ok_and(|resolved| resolved != path) {
        return Err("a symbolic link".to_owned());
    }
    let content = loader.tree.read(path, UNTRACKED_BYTES).map_err(|problem| problem.to_string())?;
    let Some(text) = crate::text::decode(&content.bytes) else {
        return Err(format!("binary, {} bytes", content.bytes.len()));
    };
    let count = text.text.matches('\n').count() as u64;
    if count == 0 {
        return Err("empty".to_owned());
    }
    // Masked before each line gets its sign: a key in PEM armour is known by whole lines.
    let (text, _) = loader.mask(text.text);
    let mut hunk = format!("@@ -0,0 +1,{count} @@\n");
    for line in text.split_inclusive('\n') {
        hunk.push('+');
        hunk.push_str(line);
    }
    Ok((hunk, count))
}

/// The lines of one file's change, under its name, with secrets masked.
fn patch(loader: &Loader<'_>, file: &ChangedFile, hunks: &str) -> (String, usize) {
    let path = shown_path(&file.path);
    let (before, after) = match file.status {
        Status::Added | Status::Untracked => ("/dev/null".to_owned(), format!("b/{path}")),
        Status::Deleted => (format!("a/{path}"), "/dev/null".to_owned()),
        Status::Modified => (format!("a/{path}"), format!("b/{path}")),
    };
    let (hunks, keys) = match file.status {
        // Masked already, as a whole.
        Status::Untracked => (Cow::Borrowed(hunks), 0),
        _ => without_keys(loader, file, hunks),
    };
    let (text, redactions) = loader.mask(normalise(&format!("--- {before}\n+++ {after}\n{hunks}")));
    (text, redactions + keys)
}

/// What a line of a key in armour may be: base64 of some length. Shorter ones count beside such a line.
fn is_base64(line: &str, least: usize) -> bool {
    let line = line.trim();
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    line.len() >= least && line.bytes().all(base64)
}

/// The hunks of a file that has a private key in armour, now or in the lines that were removed, without the key's
/// lines: a hunk may have a part of a key, which nothing else knows for one.
fn without_keys<'h>(loader: &Loader<'_>, file: &ChangedFile, hunks: &'h str) -> (Cow<'h, str>, usize) {
    let content = |line: &'h str| line.get(1..).unwrap_or_default();
    if !hunks.lines().any(|line| is_base64(content(line), KEY_LINE)) {
        return (Cow::Borrowed(hunks), 0);
    }
    let armoured = hunks.contains(ARMOUR)
        || match loader.tree.read(&file.path, KEY_FILE_BYTES) {
            Ok(content) => content.bytes.windows(ARMOUR.len()).any(|window| window == ARMOUR.as_bytes()),
            // It may have one.
            Err(ReadProblem::TooLarge { .. }) => true,
            Err(_) => false,
        };
    if !armoured {
        return (Cow::Borrowed(hunks), 0);
    }
    let mut text = String::with_capacity(hunks.len());
    let (mut masked, mut in_key) = (0, false);
    for line in hunks.split_inclusive('\n') {
        in_key = !line.starts_with("@@") && is_base64(content(line), if in_key { 1 } else { KEY_LINE });
        if in_key {
            masked += 1;
            text.push_str(line.get(..1).unwrap_or_default());
            text.push_str("[redacted: a line of a key]\n");
        } else {
            text.push_str(line);
        }
    }
    (Cow::Owned(text), masked)
}

/// The hunks of a file, the first with the names above it. A line of content begins with a sign, so `@@` is a head.
fn hunks(patch: &str) -> Vec<&str> {
    let mut hunks = Vec::new();
    let mut rest = patch;
    let mut first = true;
    while !rest.is_empty() {
        // The names stay with the first hunk.
        let from = if first { rest.find("\n@@").map_or(0, |at| at + 1) } else { 0 };
        first = false;
        let next = rest.get(from..).and_then(|after| after.find("\n@@")).map(|at| from + at + 1);
        let (hunk, after) = rest.split_at(next.unwrap_or(rest.len()));
        hunks.push(hunk);
        rest = after;
    }
    hunks
}

/// Files that programs write, of which the lines say little.
fn is_lock(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ends = std::path::Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case("lock"));
    ends || matches!(name, "package-lock.json" | "npm-shrinkwrap.json" | "pnpm-lock.yaml" | "go.sum")
}

/// How what changed is told at the top of the tail.
pub(crate) fn told(changes: &Changes) -> String {
    match &changes.outcome {
        Outcome::Changed => format!("{} files", grouped(changes.files.len())),
        outcome => shown_path(&outcome.words()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_cut_at_its_hunks_and_names_stay_with_the_first() {
        let patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+@@\n@@ -9 +9 @@\n c\n";
        assert_eq!(hunks(patch), ["--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+@@\n", "@@ -9 +9 @@\n c\n"]);
        assert_eq!(hunks("--- a/x\n+++ b/x\n"), ["--- a/x\n+++ b/x\n"]);
    }
}
