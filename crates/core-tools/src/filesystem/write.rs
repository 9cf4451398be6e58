//! `write_file`: a whole file, or more at its end.

use std::io::Read;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::mask;
use crate::workspace::{self, Expect, Target, Workspace};

/// A file's new content.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// File to write; missing folders are created
    pub path: String,
    /// The text
    pub content: String,
    /// Default overwrite
    #[serde(default)]
    pub mode: WriteMode,
}

/// What to do with a file that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum WriteMode {
    // No doc comments: they would turn the schema's plain list of three words into a page.
    #[default]
    #[allow(missing_docs, reason = "see above")]
    Overwrite,
    #[allow(missing_docs, reason = "see above")]
    Create,
    #[allow(missing_docs, reason = "see above")]
    Append,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Written {
    /// The file, relative to its root.
    pub path: String,
    /// Bytes written.
    pub bytes: u64,
    /// Whether the file is new.
    pub created: bool,
    /// What is odd about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Writes a file, creating it and the folders it lies in.
///
/// `overwrite` and `create` are atomic ([`Target::replace`]); `append` takes back what it wrote if the disk
/// fills up. A link is followed to the file it names. Text with masks of secrets in it does not overwrite a
/// file that lacks them.
///
/// # Errors
/// The path, [`Error::Masked`], and whatever keeps the file from being written; nothing was changed then.
pub fn write_file(workspace: &Workspace, input: &WriteFile) -> Result<Written, Error> {
    let path = workspace.locate(&input.path)?;
    let content = input.content.as_bytes();
    path.create_parents()?;
    let target = path.target()?;
    let _lock = target.lock();
    let created = target.metadata()?.is_none();
    let masked = mask::contains(content);
    match input.mode {
        WriteMode::Overwrite => {
            if masked && !created {
                refuse_masks(&target, content)?;
            }
            target.replace(content, Expect::Anything)?;
        }
        WriteMode::Create => target.replace(content, Expect::Missing)?,
        WriteMode::Append => target.append(content)?,
    }
    let mut notes = Vec::new();
    if masked && (created || input.mode == WriteMode::Append) {
        notes.push("the text contains [redacted:…]: the mask itself was written, not the secret".to_owned());
    }
    Ok(Written { path: path.shown(), bytes: content.len() as u64, created, notes })
}

/// Refuses `content` if it has a mask that the existing file has not.
fn refuse_masks(target: &Target, content: &[u8]) -> Result<(), Error> {
    let (mut file, _) = target.open_read()?;
    let mut original = Vec::new();
    let path = target.shown().to_owned();
    file.read_to_end(&mut original)
        .map_err(|source| Error::Path(workspace::Error::Io { action: "read", path: path.clone(), source }))?;
    match mask::first_new(content, &original) {
        Some(mask) => Err(Error::Masked { path, mask }),
        None => Ok(()),
    }
}
