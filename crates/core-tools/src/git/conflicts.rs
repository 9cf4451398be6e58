//! Lists the files in conflict with the lines of their markers, and refuses what has to wait for them.

use super::add::FilesToStage;
use super::change_kind::ConflictKind;
use super::conflict::ConflictedFile;
use super::error::Error;
use super::git_process::Git;
use super::invocation::{GitAccess, GitInvocation};
use super::printed_text::{count_of, nul_fields, printable_line, relative_to};
use super::repository::Repository;
use crate::workspace::ConfinedPath;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use tokio_util::sync::CancellationToken;

/// The most conflicts that are listed.
const MAX_LISTED: usize = 200;
/// The most lines of markers that are named for one file.
const MAX_LINES: usize = 20;
/// The longest text of conflicts that is given, of all files together, in bytes.
const MAX_TEXT_BYTES: usize = 3_000;
/// The longest file that is searched for markers.
const MAX_SEARCHED_BYTES: u64 = 4 * 1024 * 1024;

/// Parses `ls-files --unmerged -z`: each path with the stages that it has, as bits. Stage 1 is the common ancestor, 2
/// ours, 3 theirs (git-ls-files(1)).
fn parse(listed: &[u8]) -> BTreeMap<&[u8], u8> {
    let mut paths = BTreeMap::new();
    for entry in nul_fields(listed) {
        let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { continue };
        let (attributes, path) = entry.split_at(tab);
        let bit = match attributes.last() {
            Some(b'1') => 1,
            Some(b'2') => 2,
            Some(b'3') => 4,
            _ => continue,
        };
        *paths.entry(path.get(1..).unwrap_or_default()).or_insert(0) |= bit;
    }
    paths
}

/// Returns the kind of conflict that stages tell.
fn kind_of(stages: u8) -> ConflictKind {
    match stages {
        1 => ConflictKind::BothDeleted,
        2 => ConflictKind::AddedByUs,
        3 => ConflictKind::DeletedByThem,
        4 => ConflictKind::AddedByThem,
        5 => ConflictKind::DeletedByUs,
        6 => ConflictKind::BothAdded,
        _ => ConflictKind::BothModified,
    }
}

/// Returns the lines of `text`, counted from 1, at which conflicts begin, the first [`MAX_LINES`]. None where no conflict
/// also ends: a heading that is underlined with `=======` is no conflict.
fn marker_lines(text: &[u8]) -> Vec<usize> {
    let lines = || text.split(|byte| *byte == b'\n');
    if !lines().any(|line| line.starts_with(b">>>>>>> ")) {
        return Vec::new();
    }
    let starts = lines().enumerate().filter(|(_, line)| line.starts_with(b"<<<<<<< "));
    starts.map(|(index, _)| index + 1).take(MAX_LINES).collect()
}

/// Returns the conflicts in `text`, from marker to marker, in at most `max_bytes`: whole lines, and what was left out.
fn conflict_text(text: &[u8], max_bytes: usize) -> String {
    let mut conflicts = String::new();
    let (mut is_inside, mut left_out) = (false, 0_usize);
    for line in text.split(|byte| *byte == b'\n') {
        is_inside |= line.starts_with(b"<<<<<<< ");
        if !is_inside {
            continue;
        }
        is_inside = !line.starts_with(b">>>>>>> ");
        if left_out > 0 || conflicts.len() + line.len() >= max_bytes {
            left_out += 1;
            continue;
        }
        conflicts.push_str(&String::from_utf8_lossy(line));
        conflicts.push('\n');
    }
    if left_out > 0 {
        conflicts.push_str(&format!("[{} left out]\n", count_of(left_out, "line", "lines")));
    }
    conflicts
}

/// Returns the content of a file in conflict; nothing where it cannot be read or is binary.
fn content_of(path: &ConfinedPath) -> Vec<u8> {
    let Ok((file, _)) = path.open_read() else { return Vec::new() };
    let mut content = Vec::new();
    // The markers are a hint for the caller, so that an unreadable file is listed without them.
    match file.take(MAX_SEARCHED_BYTES).read_to_end(&mut content) {
        Ok(_) if !content.contains(&0) => content,
        _ => Vec::new(),
    }
}

impl Git {
    /// Returns the output of `ls-files --unmerged`, of all paths or of `paths`.
    async fn list_unmerged(
        &self,
        repository: &Repository,
        paths: &[String],
        cancel: &CancellationToken,
    ) -> Result<Vec<u8>, Error> {
        let words = ["ls-files", "--unmerged", "-z", "--full-name"];
        let invocation = GitInvocation::new(repository, GitAccess::Read, cancel, &words);
        let invocation =
            if paths.is_empty() { invocation.args(["--", ":/"]) } else { invocation.paths(paths) };
        Ok(self.run_checked("listing conflicts", invocation).await?.bytes)
    }

    /// Returns the files in conflict, the first 200, and how many there are.
    pub(super) async fn conflicts(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<(Vec<ConflictedFile>, usize), Error> {
        let top = repository.top_level("listing conflicts")?;
        let listed = self.list_unmerged(repository, &[], cancel).await?;
        let unmerged = parse(&listed);
        let mut conflicts = Vec::new();
        let mut free_bytes = MAX_TEXT_BYTES;
        for (path, stages) in unmerged.iter().take(MAX_LISTED) {
            let content = content_of(&repository.locate(top, path)?);
            let lines = marker_lines(&content);
            let text = match lines.is_empty() || free_bytes == 0 {
                true => String::new(),
                false => conflict_text(&content, free_bytes),
            };
            // The files share one budget, in the order of git. Later files are listed with their lines alone.
            free_bytes = free_bytes.saturating_sub(text.len());
            let path = relative_to(&repository.prefix, path);
            conflicts.push(ConflictedFile { text, ..ConflictedFile::new(path, kind_of(*stages), lines) });
        }
        Ok((conflicts, unmerged.len()))
    }

    /// Refuses where files are in conflict.
    pub(super) async fn refuse_conflicts(
        &self,
        repository: &Repository,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let (conflicts, total) = self.conflicts(repository, cancel).await?;
        if conflicts.is_empty() { Ok(()) } else { Err(Error::Conflicts { conflicts, total }) }
    }

    /// Stages `files` for `action`. Refuses files in conflict that still have markers.
    pub(super) async fn stage_resolved(
        &self,
        repository: &Repository,
        files: &[String],
        action: &'static str,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        if !files.is_empty() {
            // Staging marks a conflict as resolved. After that git itself would commit the markers.
            self.refuse_markers(repository, files, cancel).await?;
        }
        self.stage(repository, FilesToStage::Named(files), action, cancel).await.map(drop)
    }

    /// Refuses if one of `files` is in conflict and still has markers.
    async fn refuse_markers(
        &self,
        repository: &Repository,
        files: &[String],
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        super::revision::check_paths("files", files)?;
        let top = repository.top_level("listing conflicts")?;
        let listed = self.list_unmerged(repository, files, cancel).await?;
        let unmerged: BTreeSet<_> = parse(&listed).into_keys().collect();
        for path in unmerged {
            if let Some(line) = marker_lines(&content_of(&repository.locate(top, path)?)).first() {
                let path = printable_line(&relative_to(&repository.prefix, path));
                let reason =
                    format!("`{path}` still has conflict markers, the first at line {line}: edit it first");
                return Err(Error::InvalidArgument { name: "files", reason });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stages_tell_the_kind_of_a_conflict() {
        let listed = b"100644 a 1\tboth\x00100644 b 2\tboth\x00100644 c 3\tboth\x00100644 a 1\tx y\x00100644 b 3\tx y\0";
        let parsed = parse(listed);
        assert_eq!(kind_of(parsed[&b"both"[..]]), ConflictKind::BothModified);
        assert_eq!(kind_of(parsed[&b"x y"[..]]), ConflictKind::DeletedByUs);
    }

    #[test]
    fn markers_are_found_where_a_conflict_also_ends() {
        assert_eq!(marker_lines(b"a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> x\n<<<<<<< HEAD\n"), [2, 7]);
        assert_eq!(marker_lines(b"Heading\n=======\n<<<<<<< not one\n"), [0; 0]);
    }

    #[test]
    fn the_text_of_conflicts_is_whole_lines_within_the_bound() {
        let file = b"a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> x\nd\n<<<<<<< HEAD\ne\n=======\n>>>>>>> x\nf\n";
        let whole = "<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> x\n<<<<<<< HEAD\ne\n=======\n>>>>>>> x\n";
        assert_eq!(conflict_text(file, 1_000), whole);
        assert_eq!(conflict_text(file, 20), "<<<<<<< HEAD\nb\n[7 lines left out]\n");
        assert_eq!(conflict_text(b"a\n=======\n", 1_000), "");
    }

    proptest! {
        #[test]
        fn no_listing_is_a_panic(listed: Vec<u8>) {
            parse(&listed);
            marker_lines(&listed);
            conflict_text(&listed, 10);
        }
    }
}
