//! The definitions of the filesystem tools.

use super::answer::Answer;
use super::answer_media::AnswerMedia;
use super::call_context::CallContext;
use super::tool::Tool;
use super::tool_error::ToolError;
use super::toolset::Toolset;
#[cfg(feature = "context")]
use crate::filesystem::FileOutline;
use crate::filesystem::{
    self, ApplyPatch, CreateDirectory, DeleteFile, DirectoryTree, EditFile, Existence, FindFiles, FoundFiles,
    GetFileInfo, ListDirectory, MoveFile, PathExistenceCheck, ReadFile, ReadMediaFile, ReadMultipleFiles,
    SearchFiles, WriteFile,
};
use crate::redact::Redactor;
use crate::workspace::{PathKind, Workspace};
use role_policy::{Effect, PatchParts};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

impl From<filesystem::Error> for ToolError {
    fn from(error: filesystem::Error) -> Self {
        // The variant shows the message of the path's own error, which is then no source of it.
        let is_outside = matches!(&error, filesystem::Error::Path(error) if error.is_outside());
        Self::from_error(&error).outside_roots_if(is_outside)
    }
}

/// Returns the toolset `filesystem`, for files beneath the roots of `workspace`.
pub fn toolset(workspace: &Arc<Workspace>) -> Toolset {
    Toolset::new(
        "filesystem",
        [
            read_file(workspace),
            read_multiple_files(workspace),
            read_media_file(workspace),
            write_file(workspace),
            edit_file(workspace),
            apply_patch(workspace),
            #[cfg(feature = "context")]
            file_outline(workspace),
            list_directory(workspace),
            directory_tree(workspace),
            find_files(workspace),
            search_files(workspace),
            move_file(workspace),
            delete_file(workspace),
            create_directory(workspace),
            file_exists(workspace),
            directory_exists(workspace),
            get_file_info(workspace),
        ],
    )
}

/// The parts of a call beside its input.
struct FileCall<'a> {
    cancel: &'a CancellationToken,
    /// Masks the answer when it is complete. A tool that shows a part of a file needs it before.
    redactor: Option<&'a Redactor>,
}

/// Defines a tool that does its work on a blocking thread.
fn tool<I, F>(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    workspace: &Arc<Workspace>,
    run: F,
) -> Tool
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(&Workspace, &I, &FileCall<'_>) -> Result<Answer, ToolError> + Copy + Send + Sync + 'static,
{
    let workspace = Arc::clone(workspace);
    Tool::new(name, title, description, move |input: I, context: CallContext| {
        let workspace = context.within(&workspace);
        let redactor = context.redactor.clone();
        context.blocking(move |cancel| {
            run(&*workspace?, &input, &FileCall { cancel, redactor: redactor.as_ref() })
        })
    })
}

/// Defines a tool that first tries `run_if_cached` on the calling thread, and does the work as [`tool`] does if that
/// returns nothing.
// A call that needs no disk takes microseconds; handing it to another thread would take longer than that.
fn tool_with_fast_path<I, F, H>(
    (name, title, description): (&'static str, &'static str, &'static str),
    workspace: &Arc<Workspace>,
    run_if_cached: H,
    run: F,
) -> Tool
where
    I: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    F: Fn(&Workspace, &I, &FileCall<'_>) -> Result<Answer, ToolError> + Copy + Send + Sync + 'static,
    H: Fn(&Workspace, &I, &FileCall<'_>) -> Option<Result<Answer, ToolError>> + Copy + Send + Sync + 'static,
{
    let workspace = Arc::clone(workspace);
    Tool::new(name, title, description, move |input: I, context: CallContext| {
        let workspace = context.within(&workspace);
        async move {
            let workspace = workspace?;
            let redactor = context.redactor.clone();
            let call = FileCall { cancel: &context.cancel, redactor: redactor.as_ref() };
            match run_if_cached(&workspace, &input, &call) {
                Some(answer) => answer,
                None => {
                    context
                        .blocking(move |cancel| {
                            run(&workspace, &input, &FileCall { cancel, redactor: redactor.as_ref() })
                        })
                        .await
                }
            }
        }
    })
}

/// The largest file that is read on the calling thread, in bytes: reading it from the page cache takes less time than
/// another thread takes to start.
const MAX_FAST_PATH_BYTES: u64 = 32 * 1024;

fn read_file(workspace: &Arc<Workspace>) -> Tool {
    fn read(workspace: &Workspace, input: &ReadFile, call: &FileCall<'_>) -> Result<Answer, ToolError> {
        let mut file = filesystem::read_file(workspace, input, call.cancel)?;
        if let Some(redactor) = call.redactor {
            file.mask_key_lines(workspace, &input.path, redactor);
        }
        Ok(Answer::text(file.to_text()))
    }
    tool_with_fast_path(
        (
            "read_file",
            "Read a file",
            "Reads a text file, whole or by lines. Use read_multiple_files for several files or ranges in one \
             call, and search_files to find the lines to read. Returns the text as it stands, at most 2,000 lines \
             and 40,000 bytes, then in brackets the lines given, how many there are and the offset to continue \
             with. A binary file is refused with its kind and size.",
        ),
        workspace,
        |workspace, input, call| {
            let is_cached =
                workspace.locate(&input.path).is_ok_and(|path| path.is_in_page_cache(MAX_FAST_PATH_BYTES));
            is_cached.then(|| read(workspace, input, call))
        },
        read,
    )
    .effects(&[Effect::Reads("path")])
}

fn read_multiple_files(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "read_multiple_files",
        "Read several files",
        "Reads several text files, each whole or by a range of lines, in one call. Use it instead of several \
         calls of read_file. Returns each under a line `==> path <==`; one that cannot be read has its error \
         there. All together give at most 40,000 bytes; where a file is cut, the offset to continue with is \
         given.",
        workspace,
        |workspace, input: &ReadMultipleFiles, call| {
            let mut read = filesystem::read_multiple_files(workspace, input, call.cancel)?;
            if let Some(redactor) = call.redactor {
                read.mask_key_lines(workspace, redactor);
            }
            // A file that cannot be read has its error in the answer. The call failed only if no file could be read.
            Ok(Answer::text(read.to_text()).failed_if(read.failures() == read.files.len()))
        },
    )
    .effects(&[Effect::Reads("paths")])
}

fn read_media_file(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "read_media_file",
        "Read an image, sound or PDF",
        "Reads an image, sound or PDF of at most 10 MiB, for a client that can show or play it. Use read_file for text. \
         Returns the content with its type and size; a file of any other kind is refused, with its kind.",
        workspace,
        |workspace, input: &ReadMediaFile, _| {
            let file = filesystem::read_media_file(workspace, input)?;
            let text = format!("{}: {}, {} bytes", file.path, file.mime_type, file.size);
            let media = match file.media {
                filesystem::MediaKind::Image => {
                    AnswerMedia::Image { data: file.data, mime_type: file.mime_type }
                }
                filesystem::MediaKind::Audio => {
                    AnswerMedia::Audio { data: file.data, mime_type: file.mime_type }
                }
                filesystem::MediaKind::Document => {
                    AnswerMedia::Document { data: file.data, mime_type: file.mime_type, path: file.path }
                }
            };
            Ok(Answer::media(media, text))
        },
    )
    .effects(&[Effect::Reads("path")])
}

fn write_file(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "write_file",
        "Write a file",
        "Writes a whole text file, or appends to one. Use it for new files and complete rewrites; edit_file and \
         apply_patch change parts in fewer words. A file that is there is replaced in one step, which cannot be \
         undone, and keeps its permissions. Returns the path, the bytes written and if the file is new. A masked \
         secret is never written over the real one.",
        workspace,
        |workspace, input: &WriteFile, _| {
            let written = filesystem::write_file(workspace, input)?;
            let verb = if written.created { "created" } else { "wrote" };
            let mut text = format!("{verb} `{}` ({} bytes)", written.path, written.bytes);
            for note in written.notes {
                text.push_str("\nnote: ");
                text.push_str(&note);
            }
            Ok(Answer::text(text))
        },
    )
    .effects(&[Effect::Writes("path")])
    .destroys()
    .idempotent()
}

fn edit_file(workspace: &Arc<Workspace>) -> Tool {
    let workspace = Arc::clone(workspace);
    Tool::new(
        "edit_file",
        "Edit a file",
        "Changes a text file: replaces or removes exact text (`old_string` by `new_string`), inserts lines after \
         a line (`insert_line`), or makes several replacements (`edits`). With `pattern` it replaces by regular \
         expression, in a file or in all files of a folder, as for a new name. Use apply_patch for other changes of \
         several files. Text must match byte by byte and occur once, unless `replace_all` is set; otherwise nothing \
         is written, and the answer shows the nearest lines with their numbers. Returns a unified diff.",
        move |input: EditFile, context: CallContext| {
            let workspace = context.within(&workspace);
            let redactor = context.redactor.clone();
            context.blocking(move |cancel| {
                let edited = match redactor {
                    Some(redactor) => {
                        filesystem::edit_file_with_secrets(&*workspace?, &input, &redactor, cancel)?
                    }
                    None => filesystem::edit_file(&*workspace?, &input)?,
                };
                Ok(Answer::text(edited.to_text()))
            })
        },
    )
    // The diff shows the lines around a change.
    .effects(&[Effect::Reads("path"), Effect::Writes("path")])
    .destroys()
}

fn apply_patch(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "apply_patch",
        "Change several files",
        "Changes, creates, moves and deletes several text files by one patch, all or none. Use it for changes in \
         more than one place; a single replacement is shorter with edit_file. A hunk is found by its lines: line \
         numbers may be wrong, and blanks at line ends do not count. Returns one line for each file; where a hunk \
         does not fit, nothing is written, and the answer names every such hunk with the nearest text.",
        workspace,
        |workspace, input: &ApplyPatch, _| {
            Ok(Answer::text(filesystem::apply_patch(workspace, input)?.to_text()))
        },
    )
    .effects(&[Effect::Patches {
        patch: "patch",
        parts: PatchParts {
            edit: "edit_file",
            create: "write_file",
            remove: "delete_file",
            rename: "move_file",
        },
    }])
    .destroys()
}

#[cfg(feature = "context")]
fn file_outline(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "file_outline",
        "Outline source files",
        "Lists what source files define, without reading them whole: functions, methods, types and constants with \
         signatures and lines. Use it before reading a long file or an unknown folder, then read the lines of \
         interest with read_multiple_files. Knows Rust, Python, JavaScript, TypeScript, Go, Java, C#, C and C++. \
         Returns `12-40 signature` under each file, nested by indentation, at most 40,000 bytes.",
        workspace,
        |workspace, input: &FileOutline, call| {
            let outlined = filesystem::file_outline(workspace, input, call.cancel)?;
            let all_failed = !outlined.files.is_empty() && outlined.failures() == outlined.files.len();
            Ok(Answer::text(outlined.to_text()).failed_if(all_failed))
        },
    )
    .effects(&[Effect::Reads("paths")])
}

fn list_directory(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "list_directory",
        "List a folder",
        "Lists what is in a folder, sorted by name, hidden names included. Use find_files to look for a name at \
         any depth. Returns one entry a line, with `/` after folders and `@` after links, at most 1,000 unless \
         told otherwise.",
        workspace,
        |workspace, input: &ListDirectory, call| {
            Ok(Answer::text(filesystem::list_directory(workspace, input, call.cancel)?.to_text()))
        },
    )
    .effects(&[Effect::Reads("path")])
}

fn directory_tree(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "directory_tree",
        "Show a folder tree",
        "Shows a folder and what is below it as an indented tree, without hidden names and what .gitignore names. Use \
         list_directory for one level, or with sizes. Returns at most 1,000 entries and 40,000 bytes, and the number of \
         all folders and files.",
        workspace,
        |workspace, input: &DirectoryTree, call| {
            Ok(Answer::text(filesystem::directory_tree(workspace, input, call.cancel)?.to_text()))
        },
    )
    .effects(&[Effect::Reads("path")])
}

fn find_files(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "find_files",
        "Find files by name",
        "Finds files or folders by a glob on their names or paths. Use search_files to look for what files \
         contain. Leaves out `.git` and what .gitignore names. Returns sorted paths, one a line, at most 1,000 \
         unless told otherwise, and says how many match in all.",
        workspace,
        |workspace, input: &FindFiles, call| {
            let found = filesystem::find_files(workspace, input, call.cancel)?;
            Answer::report(&found, found.to_text())
        },
    )
    .effects(&[Effect::Reads("path")])
    .answers::<FoundFiles>()
}

fn search_files(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "search_files",
        "Search contents",
        "Searches the content of text files with a regular expression, or plain text with `literal`. Use \
         find_files to look for names, and file_outline to see what a file defines. Leaves out binary files, \
         `.git` and what .gitignore names. Returns `path:line:text` sorted by path, at most 200 lines unless told \
         otherwise and 40,000 bytes, with the number of all matches.",
        workspace,
        |workspace, input: &SearchFiles, call| {
            let found = match call.redactor {
                Some(redactor) => {
                    filesystem::search_files_with_secrets(workspace, input, redactor, call.cancel)?
                }
                None => filesystem::search_files(workspace, input, call.cancel)?,
            };
            Ok(Answer::text(found.to_text()))
        },
    )
    .effects(&[Effect::Reads("path")])
}

fn move_file(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "move_file",
        "Move or rename",
        "Moves or renames a file, a folder or a link. Use apply_patch to move a file and change it at once. \
         Nothing is replaced unless `overwrite` is set, which deletes the file at the new path. Returns both \
         paths.",
        workspace,
        |workspace, input: &MoveFile, _| {
            let moved = filesystem::move_file(workspace, input)?;
            Ok(Answer::text(format!("moved `{}` to `{}`", moved.source, moved.destination)))
        },
    )
    .effects(&[Effect::Moves("source"), Effect::Replaces("destination")])
    .destroys()
}

fn delete_file(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "delete_file",
        "Delete a file",
        "Deletes a file or a symbolic link, whose target stays. It cannot be undone except by version control. Folders are \
         refused. Returns the path.",
        workspace,
        |workspace, input: &DeleteFile, _| {
            Ok(Answer::text(format!("deleted `{}`", filesystem::delete_file(workspace, input)?.path)))
        },
    )
    .effects(&[Effect::Replaces("path")])
    .destroys()
}

fn create_directory(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "create_directory",
        "Create a folder",
        "Creates a folder, and those above it that are missing. It is rarely needed: write_file creates missing folders \
         itself. A folder that is there already is no error, and the answer says so.",
        workspace,
        |workspace, input: &CreateDirectory, _| {
            let result = filesystem::create_directory(workspace, input)?;
            Ok(Answer::text(format!(
                "`{}` {}",
                result.path,
                if result.created { "created" } else { "was there already" }
            )))
        },
    )
    .effects(&[Effect::Writes("path")])
    .adds()
    .idempotent()
}

fn file_exists(workspace: &Arc<Workspace>) -> Tool {
    tool_with_fast_path(
        (
            "file_exists",
            "Is it a file?",
            "Says if a regular file, or a link to one, is at a path. Use list_directory to see several names at once. \
             Returns `exists`, and the kind of what is there otherwise; a path outside the roots is an error.",
        ),
        workspace,
        |workspace, input, _| {
            let existence = filesystem::exists_if_cached(workspace, input, PathKind::File)?;
            Some(existence.map_err(ToolError::from).and_then(|existence| Answer::structured(&existence)))
        },
        |workspace, input: &PathExistenceCheck, _| {
            Answer::structured(&filesystem::file_exists(workspace, input)?)
        },
    )
    .effects(&[Effect::Reads("path")])
    .answers::<Existence>()
}

fn directory_exists(workspace: &Arc<Workspace>) -> Tool {
    tool_with_fast_path(
        (
            "directory_exists",
            "Is it a folder?",
            "Says if a folder, or a link to one, is at a path. Use list_directory to see what is in it. Returns `exists`, \
             and the kind of what is there otherwise; a path outside the roots is an error.",
        ),
        workspace,
        |workspace, input, _| {
            let existence = filesystem::exists_if_cached(workspace, input, PathKind::Directory)?;
            Some(existence.map_err(ToolError::from).and_then(|existence| Answer::structured(&existence)))
        },
        |workspace, input: &PathExistenceCheck, _| {
            Answer::structured(&filesystem::directory_exists(workspace, input)?)
        },
    )
    .effects(&[Effect::Reads("path")])
    .answers::<Existence>()
}

fn get_file_info(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "get_file_info",
        "File information",
        "Describes a file, folder or link without reading it: kind, size, permissions, time of the last change, target of a \
         link. Use list_directory with `details` for several at once. A link is described itself.",
        workspace,
        |workspace, input: &GetFileInfo, _| Answer::lines(&filesystem::get_file_info(workspace, input)?),
    )
    .effects(&[Effect::Reads("path")])
}
