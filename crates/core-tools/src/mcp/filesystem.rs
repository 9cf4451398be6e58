//! The definitions of the filesystem tools.

use super::answer::{Answer, AnswerMedia, ToolError};
use super::call_context::CallContext;
use super::tool::Tool;
use super::toolset::Toolset;
use crate::filesystem::{
    self, CheckExistence, CreateDirectory, DeleteFile, DirectoryTree, EditFile, Existence, FindFiles,
    FoundFiles, GetFileInfo, ListDirectory, MoveFile, ReadFile, ReadMediaFile, ReadMultipleFiles,
    SearchFiles, WriteFile,
};
use crate::workspace::{PathKind, Workspace};
use role_policy::Effect;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

impl From<filesystem::Error> for ToolError {
    fn from(error: filesystem::Error) -> Self {
        Self::from_error(&error)
    }
}

/// Returns the toolset `filesystem`, for files beneath the roots of `workspace`.
pub fn toolset(workspace: &Arc<Workspace>) -> Toolset {
    Toolset {
        name: "filesystem",
        tools: vec![
            read_file(workspace),
            read_multiple_files(workspace),
            read_media_file(workspace),
            write_file(workspace),
            edit_file(workspace),
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
    }
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
    F: Fn(&Workspace, &I, &CancellationToken) -> Result<Answer, ToolError> + Copy + Send + Sync + 'static,
{
    let workspace = Arc::clone(workspace);
    Tool::new(name, title, description, move |input: I, context: CallContext| {
        let workspace = context.within(&workspace);
        context.blocking(move |cancel| run(&*workspace?, &input, cancel))
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
    F: Fn(&Workspace, &I, &CancellationToken) -> Result<Answer, ToolError> + Copy + Send + Sync + 'static,
    H: Fn(&Workspace, &I, &CancellationToken) -> Option<Result<Answer, ToolError>>
        + Copy
        + Send
        + Sync
        + 'static,
{
    let workspace = Arc::clone(workspace);
    Tool::new(name, title, description, move |input: I, context: CallContext| {
        let workspace = context.within(&workspace);
        async move {
            let workspace = workspace?;
            match run_if_cached(&workspace, &input, &context.cancel) {
                Some(answer) => answer,
                None => context.blocking(move |cancel| run(&workspace, &input, cancel)).await,
            }
        }
    })
}

/// The largest file that is read on the calling thread, in bytes: reading it from the page cache takes less time than
/// another thread takes to start.
const MAX_FAST_PATH_BYTES: u64 = 32 * 1024;

fn read_file(workspace: &Arc<Workspace>) -> Tool {
    fn read(
        workspace: &Workspace,
        input: &ReadFile,
        cancel: &CancellationToken,
    ) -> Result<Answer, ToolError> {
        Ok(Answer::text(filesystem::read_file(workspace, input, cancel)?.to_text()))
    }
    tool_with_fast_path(
        (
            "read_file",
            "Read a file",
            "Reads a text file, whole or by lines. Images and PDFs: read_media_file.",
        ),
        workspace,
        |workspace, input, cancel| {
            let is_cached =
                workspace.locate(&input.path).is_ok_and(|path| path.is_in_page_cache(MAX_FAST_PATH_BYTES));
            is_cached.then(|| read(workspace, input, cancel))
        },
        read,
    )
    .effects(&[Effect::Reads("path")])
}

fn read_multiple_files(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "read_multiple_files",
        "Read several files",
        "Reads several text files; one that fails does not stop the others.",
        workspace,
        |workspace, input: &ReadMultipleFiles, cancel| {
            let read = filesystem::read_multiple_files(workspace, input, cancel)?;
            Ok(Answer::text(read.to_text()).failed_if(read.failures() == read.files.len()))
        },
    )
    .effects(&[Effect::Reads("paths")])
}

fn read_media_file(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "read_media_file",
        "Read an image, sound or PDF",
        "Reads an image, audio or PDF file. Text: read_file.",
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
        "Creates, replaces or extends a text file, atomically. To change a part use edit_file.",
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
    tool(
        "edit_file",
        "Edit a file",
        "Replaces exact pieces of text in a file and returns a unified diff.",
        workspace,
        |workspace, input: &EditFile, _| Ok(Answer::text(filesystem::edit_file(workspace, input)?.to_text())),
    )
    // The diff shows the lines around a change.
    .effects(&[Effect::Reads("path"), Effect::Writes("path")])
    .destroys()
}

fn list_directory(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "list_directory",
        "List a folder",
        "Lists a folder, sorted. By name: find_files.",
        workspace,
        |workspace, input: &ListDirectory, cancel| {
            Ok(Answer::text(filesystem::list_directory(workspace, input, cancel)?.to_text()))
        },
    )
    .effects(&[Effect::Reads("path")])
}

fn directory_tree(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "directory_tree",
        "Show a folder tree",
        "Shows a folder as an indented tree.",
        workspace,
        |workspace, input: &DirectoryTree, cancel| {
            Ok(Answer::text(filesystem::directory_tree(workspace, input, cancel)?.to_text()))
        },
    )
    .effects(&[Effect::Reads("path")])
}

fn find_files(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "find_files",
        "Find files by name",
        "Finds files by a glob, without what .gitignore names (or include_ignored). By content: search_files.",
        workspace,
        |workspace, input: &FindFiles, cancel| {
            let found = filesystem::find_files(workspace, input, cancel)?;
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
        "Searches the lines of text files, without what .gitignore names (or include_ignored). By name: find_files.",
        workspace,
        |workspace, input: &SearchFiles, cancel| {
            Ok(Answer::text(filesystem::search_files(workspace, input, cancel)?.to_text()))
        },
    )
    .effects(&[Effect::Reads("path")])
}

fn move_file(workspace: &Arc<Workspace>) -> Tool {
    tool(
        "move_file",
        "Move or rename",
        "Moves or renames a file or folder.",
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
        "Deletes a file or a symbolic link, not a folder.",
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
        "Creates a folder and those above it; one that is there is fine.",
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
        ("file_exists", "Is it a file?", "Whether a file is there."),
        workspace,
        |workspace, input, _| {
            let existence = filesystem::exists_if_cached(workspace, input, PathKind::File)?;
            Some(existence.map_err(ToolError::from).and_then(|existence| Answer::structured(&existence)))
        },
        |workspace, input: &CheckExistence, _| {
            Answer::structured(&filesystem::file_exists(workspace, input)?)
        },
    )
    .effects(&[Effect::Reads("path")])
    .answers::<Existence>()
}

fn directory_exists(workspace: &Arc<Workspace>) -> Tool {
    tool_with_fast_path(
        ("directory_exists", "Is it a folder?", "Whether a folder is there."),
        workspace,
        |workspace, input, _| {
            let existence = filesystem::exists_if_cached(workspace, input, PathKind::Directory)?;
            Some(existence.map_err(ToolError::from).and_then(|existence| Answer::structured(&existence)))
        },
        |workspace, input: &CheckExistence, _| {
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
        "Kind, size, permissions, time of change, link target.",
        workspace,
        |workspace, input: &GetFileInfo, _| Answer::lines(&filesystem::get_file_info(workspace, input)?),
    )
    .effects(&[Effect::Reads("path")])
}
