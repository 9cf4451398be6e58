//! Finds the source files, parses them, and keeps the answer within its bound.

use std::io::Read;
use std::ops::ControlFlow;

use context_compiler::outline::{Definition, Language, SymbolKind, definitions};
use tokio_util::sync::CancellationToken;

use super::request::{FileOutline, OutlineDefinition, OutlinedFile, OutlinedFiles};
use crate::filesystem::error::Error;
use crate::filesystem::limits::MAX_TEXT_BYTES;
use crate::filesystem::signature::{HEAD_BYTES, binary_kind};
use crate::filesystem::walk::{WalkEntry, WalkFilter, WalkOutcome, WalkVisitor, relative_path, walk};
use crate::workspace::{ConfinedPath, PathKind, Workspace, printable};
use error_causes::chain;

/// The most paths in one call.
const MAX_PATHS: usize = 100;
/// The most files that are parsed, the first in order.
const MAX_FILES: usize = 500;
/// The largest file that is parsed: a larger one is generated.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Outlines source files, and the source files of folders, in at most [`MAX_TEXT_BYTES`]: if they have more, nested
/// definitions are left out first, then files.
///
/// # Errors
/// No paths or too many, a folder that cannot be read, cancellation. A file that cannot is reported in its place.
pub fn file_outline(
    workspace: &Workspace,
    input: &FileOutline,
    cancel: &CancellationToken,
) -> Result<OutlinedFiles, Error> {
    if input.paths.is_empty() || input.paths.len() > MAX_PATHS {
        return Err(Error::Parameters("`paths` must name 1 to 100 files or folders"));
    }
    let mut notes = Vec::new();
    let mut files = Vec::new();
    for given in &input.paths {
        match workspace.locate(given).and_then(|path| Ok((path.metadata()?.kind, path))) {
            Ok((PathKind::Directory, folder)) => files.extend(source_files(&folder, cancel, &mut notes)?),
            Ok((_, path)) => files.push(Ok(path)),
            Err(error) => files.push(Err((given.clone(), error.into()))),
        }
    }
    if files.len() > MAX_FILES {
        notes.push(format!(
            "{} files were not read, after the first {MAX_FILES}; name a folder below",
            files.len() - MAX_FILES
        ));
        files.truncate(MAX_FILES);
    }
    let mut outlined = Vec::with_capacity(files.len());
    for file in files {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        outlined.push(match file {
            Ok(path) => outline_file(&path),
            Err((path, error)) => failed(shorten_path(&path), &error),
        });
    }
    let mut outlined = OutlinedFiles { files: outlined, notes };
    fit(&mut outlined);
    Ok(outlined)
}

/// A source file, or a path that cannot be read and why.
type FoundFile = Result<ConfinedPath, (String, Error)>;

/// Returns the source files below `folder`, by their paths.
fn source_files(
    folder: &ConfinedPath,
    cancel: &CancellationToken,
    notes: &mut Vec<String>,
) -> Result<Vec<FoundFile>, Error> {
    let filter = WalkFilter { gitignore: true, hidden: false };
    let WalkOutcome { visitors, .. } = walk(folder, filter, cancel, SourceFileFinder::default)?;
    let mut keys: Vec<Vec<u8>> = visitors.into_iter().flat_map(|finder| finder.keys).collect();
    keys.sort_unstable();
    if keys.is_empty() {
        notes.push(format!("`{folder}` has no source files in the languages {}", languages()));
    }
    Ok(keys
        .iter()
        .map(|key| folder.join(&relative_path(key)).map_err(|error| (folder.display_path(), error.into())))
        .collect())
}

/// Collects the files of one thread that there is a grammar for.
#[derive(Default)]
struct SourceFileFinder {
    keys: Vec<Vec<u8>>,
}

impl WalkVisitor for SourceFileFinder {
    fn visit(&mut self, entry: &WalkEntry<'_>) -> ControlFlow<()> {
        let is_source = entry.name.to_str().is_some_and(|name| Language::of_path(name).is_some());
        if entry.kind == PathKind::File && is_source {
            let mut key = Vec::new();
            entry.write_key(&mut key);
            self.keys.push(key);
        }
        ControlFlow::Continue(())
    }
}

fn outline_file(path: &ConfinedPath) -> OutlinedFile {
    let shown = path.display_path();
    match read(path) {
        Ok(text) => match definitions(&shown, &text) {
            Some(found) => OutlinedFile {
                path: shown,
                lines: text.lines().count() as u64,
                has_errors: found.has_errors,
                definitions: found.definitions.iter().map(definition).collect(),
                error: None,
            },
            None if Language::of_path(&shown).is_some() => {
                message(shown, "it takes too long to parse; read it instead".to_owned())
            }
            None => message(shown, format!("no grammar for this kind of file; there are {}", languages())),
        },
        Err(error) => failed(shown, &error),
    }
}

pub(super) fn read(path: &ConfinedPath) -> Result<String, Error> {
    let (file, metadata) = path.open_read()?;
    let shown = path.display_path();
    if metadata.size > MAX_FILE_BYTES {
        return Err(Error::TooLarge { path: shown, size: metadata.size, limit: MAX_FILE_BYTES });
    }
    let mut content = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut content).map_err(|source| Error::read(&shown, source))?;
    if let Some(kind) = binary_kind(&content[..content.len().min(HEAD_BYTES)]) {
        return Err(Error::Binary { path: shown, kind, size: metadata.size, advice: "" });
    }
    Ok(String::from_utf8_lossy(&content).into_owned())
}

fn failed(path: String, error: &Error) -> OutlinedFile {
    message(path, chain(error))
}

fn message(path: String, error: String) -> OutlinedFile {
    OutlinedFile { path, lines: 0, has_errors: false, definitions: Vec::new(), error: Some(error) }
}

fn definition(definition: &Definition) -> OutlineDefinition {
    let kind = match definition.kind {
        SymbolKind::Function => "function",
        SymbolKind::Method => "method",
        SymbolKind::Type => "type",
        SymbolKind::Constant if definition.depth > 0 => "field",
        SymbolKind::Constant => "constant",
        SymbolKind::Macro => "macro",
        _ => "module",
    };
    OutlineDefinition {
        // A file may have control characters in it.
        signature: printable(definition.signature.as_ref()),
        kind,
        first_line: definition.first_line as u64,
        last_line: definition.last_line as u64,
        depth: definition.depth as u64,
    }
}

/// Leaves out what goes beyond the bound of an answer: nested definitions, then files.
fn fit(outlined: &mut OutlinedFiles) {
    let bytes = |outlined: &OutlinedFiles| -> usize {
        outlined.files.iter().map(|file| file.to_text(u64::MAX).len()).sum()
    };
    if bytes(outlined) <= MAX_TEXT_BYTES {
        return;
    }
    // A single file keeps its nested definitions: they are what a caller wants of it.
    if outlined.files.len() > 1 {
        for file in &mut outlined.files {
            file.definitions.retain(|definition| definition.depth == 0);
        }
        outlined.notes.push("definitions in others were left out; name fewer files to see them".to_owned());
    }
    let mut free = MAX_TEXT_BYTES;
    let fitting = outlined.files.iter().take_while(|file| {
        let bytes = file.to_text(u64::MAX).len();
        let fits = bytes <= free;
        free = free.saturating_sub(bytes);
        fits
    });
    // At least one file stays, and is then shortened itself.
    let kept = fitting.count().max(1);
    let left_out = outlined.files.len() - kept;
    if left_out > 0 {
        let next = outlined.files[kept].path.clone();
        outlined
            .notes
            .push(format!("{left_out} files were left out, from `{next}` on; name them or a folder below"));
        outlined.files.truncate(kept);
    }
    if let [only] = outlined.files.as_mut_slice() {
        let total = only.definitions.len();
        while only.to_text(u64::MAX).len() > MAX_TEXT_BYTES && !only.definitions.is_empty() {
            // By a quarter each time. One by one, the text would be made as often as there are definitions.
            only.definitions.truncate(only.definitions.len() * 3 / 4);
        }
        if only.definitions.len() < total {
            outlined
                .notes
                .push(format!("the first {} of {total} definitions are given", only.definitions.len()));
        }
    }
}

/// Returns the languages that there are grammars for.
fn languages() -> &'static str {
    "Rust, Python, JavaScript, TypeScript, Go, Java, C#, C and C++"
}

/// Returns a path that could not be read; only the start of one that is longer than any path can be.
fn shorten_path(path: &str) -> String {
    const PATH_MAX: usize = 4096;
    match path.len() {
        0..=PATH_MAX => path.to_owned(),
        _ => path.chars().take(80).chain(['…']).collect(),
    }
}
