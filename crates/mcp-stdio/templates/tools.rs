//! The project's own tools. Each is a typed input, what it reaches, and a function; the server does the rest: it checks
//! the input, judges the call by the role, bounds it in time, masks secrets in the answer and cuts what is too long.

use core_tools::mcp::{Answer, CallContext, Effect, Tool, ToolError, Toolset};
use core_tools::workspace::Workspace;
use mcp_stdio::Resources;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read};

/// The tools. One with the name of a tool of the library replaces it.
pub(crate) fn toolset(resources: &Resources) -> Toolset {
    Toolset::new("project", [find_notes(resources)])
}

/// What a client reads of the input: these comments, types, ranges and defaults are the schema.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindNotes {
    /// Text file to look through
    path: String,
    /// Notes to return at most
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 500))]
    limit: usize,
}

fn default_limit() -> usize {
    100
}

/// What a client reads of the answer.
#[derive(Serialize, JsonSchema)]
struct Notes {
    /// The first `limit` notes
    notes: Vec<Note>,
    /// How many there are
    total: usize,
}

#[derive(Serialize, JsonSchema)]
struct Note {
    /// From 1
    line: usize,
    /// The line that holds it
    text: String,
}

fn find_notes(resources: &Resources) -> Tool {
    let workspace = resources.workspace.clone();
    Tool::new(
        "find_notes",
        "Find notes",
        "Lists the TODO and FIXME notes of a file.",
        move |input: FindNotes, context: CallContext| {
            // As much of the project as this call may reach. Paths that lead out of it are errors.
            let workspace = context.within(&workspace);
            context.blocking(move |_| Answer::structured(&read_notes(&*workspace?, &input)?))
        },
    )
    // What a policy judges: each argument that is a path, a command or a role is named.
    .effects(&[Effect::Reads("path")])
    .answers::<Notes>()
}

fn read_notes(workspace: &Workspace, input: &FindNotes) -> Result<Notes, ToolError> {
    const MAX_BYTES: u64 = 8 << 20;
    let path = workspace
        .locate(&input.path)
        .map_err(|error| ToolError::from_error(&error))?;
    let (file, _) = path
        .open_read()
        .map_err(|error| ToolError::from_error(&error))?;
    let mut found = Notes {
        notes: Vec::new(),
        total: 0,
    };
    for (number, line) in BufReader::new(file.take(MAX_BYTES)).lines().enumerate() {
        let text =
            line.map_err(|error| ToolError::new(format!("{}: {error}", path.display_path())))?;
        if text.contains("TODO") || text.contains("FIXME") {
            found.total += 1;
            if found.notes.len() < input.limit {
                found.notes.push(Note {
                    line: number + 1,
                    text,
                });
            }
        }
    }
    Ok(found)
}
