//! Selection of files by globs.

use super::glob::{build_set, first_wildcard, normalise_pattern, parse_glob};
use super::selection::{
    MatchedFiles, SkippedSourcePath, SourceSelectError, SourceSelectOptions, SourceSkipReason,
};
use super::walk::{SourceFolderWalk, SourceWalkResult};
use crate::source::path::{is_at_or_beneath, join};
use crate::source::{SourceReadError, SourceTree};
use globset::{GlobSet, GlobSetBuilder};
use std::collections::BTreeSet;

/// Returns the files of `tree` that match a glob of `include` (all files if there is none) and no glob of `exclude`.
///
/// A glob is matched against the whole path from the root: `*` and `?` match within a component, `**` crosses
/// components, `{a,b}` and `[a-z]` match as usual, `\` escapes. A pattern without wildcards is that file, or that folder
/// with everything beneath it. Only the part of each pattern before its first wildcard is walked: `src/**/*.rs` lists no
/// folder outside `src`.
///
/// Left out are the paths that `.contextignore`, `.ignore` and `.gitignore` ignore, in that order of precedence, in any
/// folder from the root down, and those of `.git/info/exclude`; the ignore file of the user does not count, because it
/// differs between machines. Left out as well are folders of version control, links, and files whose names tell of
/// secrets. A file that an include names exactly is selected in spite of these, but not in spite of `exclude`.
///
/// # Errors
/// A pattern is no glob or leaves the root, or there are more files than the options allow.
pub fn select(
    tree: &dyn SourceTree,
    include: &[String],
    exclude: &[String],
    options: &SourceSelectOptions,
) -> Result<MatchedFiles, SourceSelectError> {
    let includes = IncludeGlobs::parse(tree, include)?;
    let excluded = parse_excludes(exclude)?;
    let IncludeGlobs { globs, bases, exact_paths, mut selection } = includes;
    let walk = SourceFolderWalk::new(tree, build_set(&globs)?, excluded, options);
    for base in &bases {
        // A base beneath another one is met on the way from there.
        if !bases.iter().any(|outer| outer != base && is_at_or_beneath(base, outer)) {
            walk.push_base(base);
        }
    }
    let exact_paths = exact_paths.into_iter().filter(|path| !walk.is_excluded(path)).collect::<Vec<_>>();
    let SourceWalkResult { mut files, skipped, ignored, too_many } = walk.run();
    files.extend(exact_paths);
    files.sort_unstable();
    files.dedup();
    if too_many || files.len() > options.max_files {
        return Err(SourceSelectError::TooManyFiles { limit: options.max_files });
    }
    selection.files = files;
    selection.skipped.extend(skipped);
    selection.skipped.sort_unstable();
    // A path may be skipped twice: where an include names it, and on the walk.
    selection.skipped.dedup();
    selection.missing.sort_unstable();
    selection.ignored = ignored;
    Ok(selection)
}

/// The includes of a selection.
struct IncludeGlobs {
    globs: GlobSetBuilder,
    /// The folders to walk.
    bases: BTreeSet<String>,
    /// The files that are named exactly.
    exact_paths: Vec<String>,
    /// The includes without wildcards that name no regular file.
    selection: MatchedFiles,
}

impl IncludeGlobs {
    fn parse(tree: &dyn SourceTree, patterns: &[String]) -> Result<Self, SourceSelectError> {
        let mut includes = Self {
            globs: GlobSetBuilder::new(),
            bases: BTreeSet::new(),
            exact_paths: Vec::new(),
            selection: MatchedFiles::default(),
        };
        for pattern in patterns {
            let path = normalise_pattern(pattern)?;
            match first_wildcard(path) {
                Some(wildcard) => {
                    includes.globs.add(parse_glob(path)?);
                    // To the last slash before the wildcard: `src/a*` is walked from `src`.
                    let base = path[..wildcard].rsplit_once('/').map_or("", |(base, _)| base);
                    includes.bases.insert(base.to_owned());
                }
                None => includes.add_plain_path(tree, pattern, path)?,
            }
        }
        if patterns.is_empty() {
            includes.globs.add(parse_glob("**")?);
            includes.bases.insert(String::new());
        }
        Ok(includes)
    }

    /// Adds `path`, which has no wildcards: a file, or a folder with everything beneath it.
    fn add_plain_path(
        &mut self,
        tree: &dyn SourceTree,
        pattern: &str,
        path: &str,
    ) -> Result<(), SourceSelectError> {
        let state = if path.is_empty() { Err(SourceReadError::IsFolder) } else { tree.state(path) };
        let reason = match state {
            Ok(_) => {
                self.exact_paths.push(path.to_owned());
                return Ok(());
            }
            Err(SourceReadError::IsFolder) => {
                // The name of a folder may hold characters that mean something in a glob, such as `[id]`.
                self.globs.add(parse_glob(&join(&globset::escape(path), "**"))?);
                self.bases.insert(path.to_owned());
                return Ok(());
            }
            Err(SourceReadError::NotFound) => {
                self.selection.missing.push(pattern.to_owned());
                return Ok(());
            }
            Err(SourceReadError::NotRegular(_)) => SourceSkipReason::NotRegular,
            Err(_) => SourceSkipReason::Unreadable,
        };
        self.selection.skipped.push(SkippedSourcePath { path: path.to_owned(), reason });
        Ok(())
    }
}

fn parse_excludes(patterns: &[String]) -> Result<GlobSet, SourceSelectError> {
    let mut globs = GlobSetBuilder::new();
    for pattern in patterns {
        let path = normalise_pattern(pattern)?;
        globs.add(parse_glob(path)?);
        // `a/**` does not match `a`; with `a` itself excluded the folder need not be walked.
        globs.add(parse_glob(path.trim_end_matches("/**"))?);
    }
    build_set(&globs)
}
