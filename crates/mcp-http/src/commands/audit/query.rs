//! `mcp-http audit query`.

use super::error::AuditCommandError;
use super::output::write_entries;
use super::sources::sources;
use crate::cli::{AuditPlace, AuditQueryArgs};
use crate::console_output::{print, say};
use audit_log::{AuditQuery, parse_time};
use server_setup::settings::Settings;
use std::process::ExitCode;
use std::time::SystemTime;

/// Prints the entries that `arguments` ask for. Both places have the same calls, so that one is asked: the database, whose
/// rows nobody rotates away, unless `--from` says otherwise.
pub(super) fn run(settings: &Settings, arguments: &AuditQueryArgs) -> Result<ExitCode, AuditCommandError> {
    let mut query = AuditQuery::default();
    if let Some(pattern) = &arguments.caller {
        query = query.caller(pattern)?;
    }
    if let Some(pattern) = &arguments.tool {
        query = query.tool(pattern)?;
    }
    if let Some(pattern) = &arguments.path {
        query = query.path(pattern)?;
    }
    if let Some(text) = &arguments.containing {
        query = query.containing(text);
    }
    if let Some(outcome) = arguments.outcome {
        query = query.outcome(outcome.filter());
    }
    let now = SystemTime::now();
    let time = |flag: &'static str, text: &str| {
        parse_time(text, now).map_err(|source| AuditCommandError::Time { flag, source })
    };
    if let Some(since) = &arguments.since {
        query = query.since(time("--since", since)?);
    }
    if let Some(until) = &arguments.until {
        query = query.until(time("--until", until)?);
    }
    let sources = sources(settings, arguments.from)?;
    let source = match arguments.from {
        Some(AuditPlace::File) => sources.first(),
        _ => sources.last(),
    };
    let source = source.ok_or(AuditCommandError::NoAudit)?;
    let limit = if arguments.limit == 0 { usize::MAX } else { arguments.limit };
    let found = source.find(&query, limit)?;
    let printed = print(write_entries(&found.entries, arguments.format)?.trim_end_matches('\n'))?;
    if found.has_more {
        say(&format!("These are the newest {limit}; `--limit 0` prints all."));
    }
    if found.damaged > 0 {
        say(&format!("{} lines are no entries; `audit verify` says which.", found.damaged));
    }
    Ok(printed)
}
