//! Selection of the source files of a request.

use super::files::{SourceFileWishes, SourceFiles};
use super::measure::{FileQuotability, measure_files};
use crate::cache::ContentCache;
use crate::change_section::is_lock_file;
use crate::changes::RepositoryChanges;
use crate::code::{SourceSelectOptions, SourceSkipReason, select};
use crate::decoded_text::group_digits;
use crate::error::{ContextRequestField, Error};
use crate::load::{FileLoader, SENSITIVE_NAME};
use crate::manifest::OmittedContent;
use crate::request::CodeDetail;
use crate::source::path::is_at_or_beneath;
use crate::writer::SectionRenderer;
use std::collections::BTreeSet;

/// The part of a request that is about source files.
pub(crate) struct SourceFilesRequest<'a> {
    /// The globs of the files; `None` for those that have to do with the request.
    pub(crate) include: Option<&'a [String]>,
    pub(crate) exclude: Vec<String>,
    pub(crate) detail: CodeDetail,
    /// The paths of documents that are in another section already.
    pub(crate) already_included: Vec<String>,
    /// The paths of planning documents, and the folders of plans. What lies there is included by globs only.
    pub(crate) planning: Vec<String>,
    /// The paths of files that changed. They, and the files that refer to them, come before the others.
    pub(crate) changed: BTreeSet<String>,
    pub(crate) task: Option<&'a str>,
    pub(crate) failures: Option<&'a str>,
    pub(crate) changes: Option<&'a RepositoryChanges>,
}

/// The source files of a request, and what was left out.
pub(crate) struct CollectedSourceFiles<'a> {
    /// `None` if the project has no file to quote.
    pub(crate) files: Option<SourceFiles<'a>>,
    pub(crate) omissions: Vec<OmittedContent>,
    pub(crate) diagnostics: Vec<String>,
}

/// Selects and measures the source files of a request; `None` if it includes none.
///
/// # Errors
/// A glob cannot be used, or too many files match.
pub(crate) fn collect_source_files<'a>(
    loader: &'a FileLoader<'a>,
    cache: &'a ContentCache,
    renderer: SectionRenderer<'a>,
    request: SourceFilesRequest<'a>,
) -> Result<Option<CollectedSourceFiles<'a>>, Error> {
    let every_file = request.include.is_some();
    let include = request.include.unwrap_or_default();
    if every_file && include.is_empty() {
        return Ok(None);
    }
    let selection = match select(loader.tree, include, &request.exclude, &SourceSelectOptions::default()) {
        Ok(selection) => selection,
        // Nobody asked for the files of a project that is too large, or that cannot be listed.
        Err(error) if !every_file => {
            let omissions = vec![OmittedContent::in_summary("source files", error)];
            return Ok(Some(CollectedSourceFiles { files: None, omissions, diagnostics: Vec::new() }));
        }
        Err(error) => {
            return Err(Error::invalid(ContextRequestField::Include, format!("cannot be used: {error}")));
        }
    };
    let mut omissions: Vec<OmittedContent> =
        selection.missing.iter().map(|path| OmittedContent::in_summary(path, "missing")).collect();
    omissions.extend(selection.skipped.iter().map(|skipped| {
        let reason = match skipped.reason {
            SourceSkipReason::SensitiveName => SENSITIVE_NAME,
            SourceSkipReason::Link => "a link; what it leads to is there under its own name",
            SourceSkipReason::NotRegular => "no regular file",
            SourceSkipReason::Unreadable => "cannot be read",
        };
        OmittedContent::in_manifest(&skipped.path, reason)
    }));
    let mut diagnostics = Vec::new();
    if selection.ignored > 0 {
        let ignored = group_digits(selection.ignored);
        diagnostics.push(format!("{ignored} files and folders are ignored or excluded"));
    }
    let is_planning = |path: &String| {
        request.planning.iter().any(|planned| !planned.is_empty() && is_at_or_beneath(path, planned))
    };
    let is_wanted = |path: &String| {
        !request.already_included.contains(path) && (every_file || !is_lock_file(path) && !is_planning(path))
    };
    let paths: Vec<String> = selection.files.into_iter().filter(is_wanted).collect();
    let mut files = measure_files(loader, cache, renderer, &paths);
    for file in &files {
        if let FileQuotability::Refused(reason) = &file.quotability {
            omissions.push(OmittedContent::in_manifest(&file.path, reason));
        }
    }
    if !every_file {
        files.retain(|file| matches!(file.quotability, FileQuotability::Tokens(_)));
        if files.is_empty() {
            return Ok(Some(CollectedSourceFiles { files: None, omissions, diagnostics }));
        }
    }
    let wishes = SourceFileWishes {
        detail: request.detail,
        every_file,
        changed: request.changed,
        task: request.task,
        failures: request.failures,
        changes: request.changes,
    };
    let files = Some(SourceFiles::new(loader, cache, renderer, files, wishes));
    Ok(Some(CollectedSourceFiles { files, omissions, diagnostics }))
}
