//! The section of the changes, from its files.

use super::patch::{is_lock_file, masked_patch, split_hunks};
use super::untracked::UntrackedFiles;
use crate::catalogue::DiffDetail;
use crate::changes::{
    ChangedFile, ChangedLineCounts, FileChangeKind, RepositoryChanges, RepositoryChangesOutcome,
};
use crate::decoded_text::{TextEncoding, display_path, group_digits, sha256_hex};
use crate::ignore::ContextIgnore;
use crate::load::{FileLoader, SENSITIVE_NAME};
use crate::manifest::{OmittedContent, SectionKind};
use crate::section::{QuotedSection, SourceProvenance};
use crate::sensitive_name::is_sensitive_name;
use crate::text_pieces::{LARGE_PIECE_BYTES, TextPiece, TextPieceClass, TextPieceRank};
use std::fmt::Write as _;

/// The most untracked files whose lines are shown.
const MAX_UNTRACKED_FILES: usize = 200;
/// The most changed files that are listed by name.
const MAX_LISTED_FILES: usize = 2_000;
/// Bytes above which the patch of a file is kept after those of other files.
const LARGE_PATCH_BYTES: usize = 4 * LARGE_PIECE_BYTES;

/// A changed file as it is written.
struct FileChange {
    /// The line of the file in the statistics.
    stat_line: String,
    patch: String,
    redactions: usize,
}

/// Collects the files of a section.
struct ChangeCollector<'a> {
    loader: &'a FileLoader<'a>,
    detail: DiffDetail,
    /// The paths whose whole text is in the document already.
    included: &'a [&'a str],
    context_ignore: ContextIgnore<'a>,
    untracked: UntrackedFiles<'a>,
    untracked_files: usize,
    untracked_lines: u64,
    omissions: Vec<OmittedContent>,
}

/// Returns the section of `changes` and what it leaves out, or `None` if nothing changed. The files at `included` are in
/// the document already, so their hunks are not shown.
pub(crate) fn changes_section(
    loader: &FileLoader<'_>,
    changes: &RepositoryChanges,
    detail: DiffDetail,
    included: &[&str],
) -> Option<(QuotedSection, Vec<OmittedContent>)> {
    if changes.files.is_empty() || detail == DiffDetail::Off {
        return None;
    }
    let mut collector = ChangeCollector {
        loader,
        detail,
        included,
        context_ignore: ContextIgnore::new(loader.tree),
        untracked: UntrackedFiles::new(loader),
        untracked_files: 0,
        untracked_lines: 0,
        omissions: Vec::new(),
    };
    let files: Vec<FileChange> = changes.files.iter().map(|file| collector.file_change(file)).collect();
    let (text, pieces) = text_and_pieces(&statistics(changes, collector.untracked_lines), &files);
    let section = QuotedSection {
        path: format!("git diff {}", changes.base),
        kind: SectionKind::Changes,
        why: "what changed, and is not committed or is newer than the revision".to_owned(),
        language: "diff",
        provenance: SourceProvenance {
            bytes: text.len() as u64,
            sha256: sha256_hex(text.as_bytes()),
            encoding: TextEncoding::Utf8,
            redactions: files.iter().map(|file| file.redactions).sum(),
            ..SourceProvenance::default()
        },
        text,
        pieces,
    };
    Some((section, collector.omissions))
}

impl<'a> ChangeCollector<'a> {
    fn file_change(&mut self, file: &'a ChangedFile) -> FileChange {
        let is_full = self.detail == DiffDetail::Full;
        // The name is shown in any case, so this matters only where lines are shown.
        let hidden = is_full.then(|| self.hidden_reason(&file.path)).flatten();
        let mut hunks = file.hunks.concat();
        let mut line_counts = file.line_counts;
        if let Some(reason) = hidden {
            hunks.clear();
            self.omissions.push(OmittedContent::in_manifest(&file.path, reason));
        } else if is_full
            && file.kind == FileChangeKind::Untracked
            && self.untracked_files < MAX_UNTRACKED_FILES
        {
            self.untracked_files += 1;
            match self.untracked.addition(&file.path) {
                Ok(addition) => {
                    hunks = addition.hunk;
                    line_counts = Some(ChangedLineCounts { added: addition.lines, removed: 0 });
                }
                Err(error) => self.omissions.push(OmittedContent::in_manifest(&file.path, error)),
            }
        }
        let is_shown = is_full && !self.included.contains(&file.path.as_str()) && !is_lock_file(&file.path);
        let (patch, redactions) = match is_shown && !hunks.is_empty() {
            true => masked_patch(self.loader, file, &hunks),
            false => (String::new(), 0),
        };
        // git counts no lines of untracked files, so the total counts those that were read here.
        if let (FileChangeKind::Untracked, Some(counts)) = (file.kind, line_counts) {
            self.untracked_lines += counts.added;
        }
        // The name of a file can be a secret too.
        let (stat_line, _) = self.loader.mask(stat_line(file, line_counts, hidden));
        FileChange { stat_line, patch, redactions }
    }

    /// Returns the reason why the lines of the file at `path` are not shown, if there is one.
    fn hidden_reason(&mut self, path: &str) -> Option<&'static str> {
        if is_sensitive_name(path) {
            return Some(SENSITIVE_NAME);
        }
        self.context_ignore.is_ignored(path).then_some("`.contextignore` names it")
    }
}

/// Returns the text of the section and its pieces: the statistics, a line for each file, and the hunks.
fn text_and_pieces(statistics: &str, files: &[FileChange]) -> (String, Vec<TextPiece>) {
    let mut text = String::new();
    let mut pieces = Vec::new();
    let mut push = |piece: &str, rank: TextPieceRank| {
        let start = text.len();
        text.push_str(piece);
        pieces.push(TextPiece { range: start..text.len(), rank: Some(rank) });
    };
    push(statistics, TextPieceRank::new(TextPieceClass::Opening, 0));
    for file in files.iter().take(MAX_LISTED_FILES) {
        push(&file.stat_line, TextPieceRank::new(TextPieceClass::Opening, 1));
    }
    if let Some(more) = files.len().checked_sub(MAX_LISTED_FILES).filter(|more| *more > 0) {
        push(
            &format!("… and {} more files\n", group_digits(more)),
            TextPieceRank::new(TextPieceClass::Opening, 1),
        );
    }
    for (file, order) in files.iter().zip(order_by_size(files)) {
        let class =
            if file.patch.len() > LARGE_PATCH_BYTES { TextPieceClass::Large } else { TextPieceClass::Normal };
        for hunk in split_hunks(&file.patch) {
            push(hunk, TextPieceRank::new(class, order));
        }
    }
    (text, pieces)
}

/// Returns the position of each file in the order of their sizes: small changes are complete before large ones begin.
fn order_by_size(files: &[FileChange]) -> Vec<usize> {
    let mut sizes: Vec<(usize, usize)> =
        files.iter().enumerate().map(|(index, file)| (file.patch.len(), index)).collect();
    // Files of one size stay in the order of their paths, which the index gives: the result must not depend on the
    // sort.
    sizes.sort_unstable();
    let mut order = vec![0; files.len()];
    for (position, (_, index)) in sizes.into_iter().enumerate() {
        if let Some(order) = order.get_mut(index) {
            *order = position;
        }
    }
    order
}

/// Returns the first line of the section. The lines of untracked files count as added, as they are shown.
fn statistics(changes: &RepositoryChanges, untracked_lines: u64) -> String {
    let total = changes.total_lines();
    let mut text = format!(
        "{} files, {} lines added, {} removed",
        group_digits(changes.files.len()),
        group_digits(usize::try_from(total.added + untracked_lines).unwrap_or(usize::MAX)),
        group_digits(usize::try_from(total.removed).unwrap_or(usize::MAX))
    );
    if changes.truncated {
        text.push_str("; not all of it was read");
    }
    if changes.filters_disabled {
        text.push_str("; filters of the repository were not run");
    }
    text.push('\n');
    text
}

/// Returns the line of `file` in the statistics, such as `M src/lib.rs +1 -2`.
fn stat_line(file: &ChangedFile, line_counts: Option<ChangedLineCounts>, hidden: Option<&str>) -> String {
    let mut line = format!("{} {}", file.kind.letter(), display_path(&file.path));
    let _ = match line_counts {
        Some(ChangedLineCounts { added, removed }) => write!(line, " +{added} -{removed}"),
        None if file.kind == FileChangeKind::Untracked => Ok(()),
        None => write!(line, " binary"),
    };
    if let Some(reason) = hidden {
        let _ = write!(line, " (not shown: {reason})");
    }
    line.push('\n');
    line
}

/// Returns the description of the changes for the summary of the document.
pub(crate) fn describe_outcome(changes: &RepositoryChanges) -> String {
    match &changes.outcome {
        RepositoryChangesOutcome::Changed => format!("{} files", group_digits(changes.files.len())),
        outcome => display_path(&outcome.describe()).into_owned(),
    }
}
