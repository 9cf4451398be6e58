//! Replaces the matches of a regular expression in a file, or in all files below a folder.

use regex::bytes::{Regex, RegexBuilder};
use tokio_util::sync::CancellationToken;

use super::diff::{MAX_BYTES, truncate_diff, truncate_diff_to};
use super::insert::line_end_of;
use super::replacement::{UnknownGroup, replacement};
use super::request::{EditFile, EditResult};
use super::secrets::FileSecrets;
use crate::filesystem::error::Error;
use crate::filesystem::mask;
use crate::filesystem::patch::{RewrittenFiles, rewrite_files};
use crate::filesystem::search::{SearchFiles, SearchMode, files_with_matches, with_any_line_end};
use crate::redact::Redactor;
use crate::workspace::{PathKind, Workspace};

/// The most files that one call changes.
const MAX_FILES: usize = 500;
/// The most files that the answer names.
const MAX_NAMED: usize = 50;
/// The bytes of the difference in the answer to a change that was made.
const MAX_DIFF_BYTES: usize = 4_000;

/// Replaces each match of the pattern of `input`, in the file at its path or in the text files below that folder, all or none.
/// Folders are searched as [`search_files`](crate::filesystem::search_files) does. A pattern without a line break is matched
/// line by line. A match that has a part of a secret in it, as `redactor` finds them, is left as it is.
///
/// # Errors
/// The path, the pattern, a group that it does not have, nothing that matches, more than 500 files, masks of secrets.
pub(super) fn replace_by_pattern(
    workspace: &Workspace,
    input: &EditFile,
    (pattern, new): (&str, &str),
    redactor: Option<&Redactor>,
    cancel: &CancellationToken,
) -> Result<EditResult, Error> {
    let is_multiline = pattern.contains('\n') || with_any_line_end(pattern) != pattern;
    let expression = if is_multiline { with_any_line_end(pattern) } else { pattern.to_owned() };
    let regex = RegexBuilder::new(&expression)
        .multi_line(true)
        .build()
        .map_err(|error| Error::Pattern { reason: error.to_string() })?;
    let template = replacement(&regex, new).map_err(|UnknownGroup(group)| Error::NoSuchGroup { group })?;
    let start = workspace.locate(&input.path)?;
    let paths = if start.metadata()?.kind == PathKind::Directory {
        paths_below(workspace, input, pattern, cancel)?
    } else {
        vec![start.display_path()]
    };
    let mut changed: Vec<(String, u64)> = Vec::new();
    let mut all_secrets = Vec::new();
    // All new texts are in memory until the last file is judged.
    let mut free_bytes = MAX_BYTES;
    let rewritten = rewrite_files(workspace, &paths, input.dry_run, |path, original| {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        // A mask stands for a secret that was hidden from the caller. Writing the mask would destroy the secret.
        if let Some(mask) = mask::first_new(template.as_bytes(), original) {
            return Err(Error::Masked { path: path.to_owned(), mask });
        }
        let secrets = FileSecrets::new(original, redactor);
        // New lines end like the other lines of the file.
        let template = match line_end_of(original) {
            b"\r\n" => template.replace("\r\n", "\n").replace('\n', "\r\n"),
            _ => template.clone(),
        };
        let replaced = PatternReplacement { regex: &regex, template: template.as_bytes(), is_multiline };
        let Some((text, count)) = replaced.apply(original, &secrets) else {
            return Err(Error::TooLarge { path: path.to_owned(), size: MAX_BYTES + 1, limit: MAX_BYTES });
        };
        if count == 0 || text == original {
            return Ok(None);
        }
        free_bytes = match free_bytes.checked_sub(text.len() as u64) {
            Some(free) => free,
            None => {
                return Err(Error::TooLarge { path: path.to_owned(), size: MAX_BYTES + 1, limit: MAX_BYTES });
            }
        };
        changed.push((path.to_owned(), count));
        all_secrets.push(secrets);
        Ok(Some(text))
    })?;
    if changed.is_empty() {
        return Err(Error::NothingMatches { path: start.display_path() });
    }
    let RewrittenFiles { mut diff, mut notes } = rewritten;
    all_secrets.iter().for_each(|secrets| secrets.mask(&mut diff));
    notes.extend(match input.dry_run {
        true => truncate_diff(&mut diff),
        false => truncate_diff_to(&mut diff, MAX_DIFF_BYTES),
    });
    notes.push(files_note(&changed));
    let replacements = changed.iter().map(|(_, count)| count).sum();
    Ok(EditResult { path: start.display_path(), diff, replacements, dry_run: input.dry_run, notes })
}

/// Returns the files below the folder that match, as a search finds them.
fn paths_below(
    workspace: &Workspace,
    input: &EditFile,
    pattern: &str,
    cancel: &CancellationToken,
) -> Result<Vec<String>, Error> {
    let mut search = SearchFiles::new(pattern);
    search.path.clone_from(&input.path);
    search.include = input.include.clone();
    search.mode = SearchMode::Files;
    search.max_results = Some(MAX_FILES as i64);
    let (mut paths, total) = files_with_matches(workspace, &search, cancel)?;
    if total > MAX_FILES as u64 || total > paths.len() as u64 {
        return Err(Error::TooManyFiles { files: total, limit: MAX_FILES });
    }
    paths.truncate(MAX_FILES);
    Ok(paths)
}

fn files_note(changed: &[(String, u64)]) -> String {
    let named = changed.iter().take(MAX_NAMED).map(|(path, count)| format!("{path} ({count})"));
    let more = if changed.len() > MAX_NAMED { ", ..." } else { "" };
    let plural = if changed.len() == 1 { "" } else { "s" };
    format!("{} file{plural}: {}{more}", changed.len(), named.collect::<Vec<_>>().join(", "))
}

/// A pattern, and the text in the place of its matches.
struct PatternReplacement<'a> {
    regex: &'a Regex,
    template: &'a [u8],
    is_multiline: bool,
}

impl PatternReplacement<'_> {
    /// Returns the text with the matches replaced, and their number. Nothing if it would be too large.
    fn apply(&self, text: &[u8], secrets: &FileSecrets) -> Option<(Vec<u8>, u64)> {
        let (mut edited, mut copied, mut count) = (Vec::with_capacity(text.len()), 0, 0);
        let mut start = 0;
        let whole = [text];
        let lines: Box<dyn Iterator<Item = &[u8]>> = match self.is_multiline {
            true => Box::new(whole.into_iter()),
            false => Box::new(text.split_inclusive(|byte| *byte == b'\n')),
        };
        for piece in lines {
            let content = if self.is_multiline { piece } else { without_line_end(piece) };
            for captures in self.regex.captures_iter(content) {
                let Some(found) = captures.get(0) else { continue };
                let (from, to) = (start + found.start(), start + found.end());
                if !secrets.are_apart_from(text, from, to) {
                    continue;
                }
                edited.extend_from_slice(&text[copied..from]);
                // Before the memory is taken. Each reference stands for a part of the match.
                let references = memchr::memchr_iter(b'$', self.template).count();
                let most = references.saturating_mul(to - from).saturating_add(self.template.len());
                if (edited.len().saturating_add(most)) as u64 > 2 * MAX_BYTES {
                    return None;
                }
                captures.expand(self.template, &mut edited);
                copied = to;
                count += 1;
                if edited.len() as u64 > MAX_BYTES {
                    return None;
                }
            }
            start += piece.len();
        }
        edited.extend_from_slice(&text[copied..]);
        (edited.len() as u64 <= MAX_BYTES).then_some((edited, count))
    }
}

fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
