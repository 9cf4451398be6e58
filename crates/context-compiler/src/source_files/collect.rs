//! Selection of the source files of a request.

use super::files::SourceFiles;
use super::measure::{Quotability, measure_files};
use crate::cache::ContentCache;
use crate::code::{SelectOptions, SkipReason, select};
use crate::error::{Error, RequestField};
use crate::load::{Loader, SENSITIVE_NAME};
use crate::manifest::Omission;
use crate::request::CodeDetail;
use crate::text::group_digits;
use crate::writer::Renderer;
use std::collections::BTreeSet;

/// The part of a request that is about source files.
pub(crate) struct SourceFilesRequest<'a> {
    pub(crate) include: &'a [String],
    pub(crate) exclude: &'a [String],
    pub(crate) detail: CodeDetail,
    /// The paths of documents that are in another section already.
    pub(crate) already_included: &'a [String],
    /// The paths of files that changed. They, and the files that refer to them, come before the others.
    pub(crate) changed: BTreeSet<String>,
}

/// The source files of a request, and what was left out.
pub(crate) struct CollectedSourceFiles<'a> {
    pub(crate) files: SourceFiles<'a>,
    pub(crate) omissions: Vec<Omission>,
    pub(crate) diagnostics: Vec<String>,
}

/// Selects and measures the source files of a request; `None` if it includes none.
///
/// # Errors
/// A glob cannot be used, or too many files match.
pub(crate) fn collect_source_files<'a>(
    loader: &'a Loader<'a>,
    cache: &'a ContentCache,
    renderer: Renderer<'a>,
    request: SourceFilesRequest<'_>,
) -> Result<Option<CollectedSourceFiles<'a>>, Error> {
    if request.include.is_empty() {
        return Ok(None);
    }
    let selection = select(loader.tree, request.include, request.exclude, &SelectOptions::default())
        .map_err(|error| Error::invalid(RequestField::Include, format!("cannot be used: {error}")))?;
    let mut omissions: Vec<Omission> =
        selection.missing.iter().map(|path| Omission::in_summary(path, "missing")).collect();
    omissions.extend(selection.skipped.iter().map(|skipped| {
        let reason = match skipped.reason {
            SkipReason::SensitiveName => SENSITIVE_NAME,
            SkipReason::Link => "a link; what it leads to is there under its own name",
            SkipReason::NotRegular => "no regular file",
            SkipReason::Unreadable => "cannot be read",
        };
        Omission::in_manifest(&skipped.path, reason)
    }));
    let mut diagnostics = Vec::new();
    if selection.ignored > 0 {
        let ignored = group_digits(selection.ignored);
        diagnostics.push(format!("{ignored} files and folders are ignored or excluded"));
    }
    let paths: Vec<String> =
        selection.files.into_iter().filter(|path| !request.already_included.contains(path)).collect();
    let files = measure_files(loader, cache, renderer, &paths);
    for file in &files {
        if let Quotability::Refused(reason) = &file.quotability {
            omissions.push(Omission::in_manifest(&file.path, reason));
        }
    }
    let files = SourceFiles::new(loader, cache, renderer, request.detail, files, request.changed);
    Ok(Some(CollectedSourceFiles { files, omissions, diagnostics }))
}
