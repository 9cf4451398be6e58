//! Definitions of tools, recorded when they were first seen: a server that changes one later is noticed.
//!
//! A fingerprint is the SHA-256 of a definition's `name`, `title`, `description`, `inputSchema`,
//! `outputSchema` and `annotations`, as JSON without blanks and with the members of each object in the order
//! of their names (numbers as the server writes them). The file also keeps the definitions, to show what has
//! changed.
#![allow(clippy::disallowed_methods, reason = "the operator's own file, which no tool names")]

use super::server_tool::{ServerTool, WithheldTool};
use json_rpc::json::{Json, JsonObject};
use sha2::{Digest, Sha256};
use similar::TextDiff;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The treatment of a tool whose definition is not the recorded one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PinMode {
    /// It is not offered, and calls of it are refused as of a tool that does not exist.
    #[default]
    Refuse,
    /// It is offered, and the difference is logged.
    Warn,
    /// It is offered and recorded.
    Update,
}

/// The members of a definition that are pinned.
const PINNED_MEMBERS: [&str; 6] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// The largest file that is read, 64 MiB.
const MAX_FILE: u64 = 64 << 20;

/// The error for a file of pins that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the pins in {}: {problem}", .file.display())]
#[non_exhaustive]
pub struct PinError {
    /// The file.
    pub file: PathBuf,
    /// The problem.
    pub problem: PinFileProblem,
}

/// The reason why a file of pinned tools cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PinFileProblem {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// The path leads to something else than a file.
    #[error("it is no file")]
    NotAFile,
    /// The file is too large.
    #[error("more than {max_bytes} bytes")]
    TooLarge {
        /// The largest size that is read.
        max_bytes: u64,
    },
    /// The file is not JSON.
    #[error(transparent)]
    Syntax(#[from] json_rpc::json::ParseError),
    /// The file is JSON of another form.
    #[error("it is no file of pins")]
    Form,
    /// A later version wrote the file.
    #[error("version {version} is not known")]
    Version {
        /// The version, as it is written.
        version: String,
    },
    /// Somebody changed a definition or its fingerprint, and not the other.
    #[error("the fingerprint of `{tool}` is not that of its definition")]
    Fingerprint {
        /// The name of the tool.
        tool: String,
    },
}

/// The definitions on record, and the file that holds them.
#[derive(Debug)]
pub(super) struct PinnedTools {
    file: PathBuf,
    mode: PinMode,
    /// The pinned members of each tool, by its name, in canonical form. `None` before the first use.
    known: Option<BTreeMap<String, JsonObject<'static>>>,
}

impl PinnedTools {
    /// Reads the file; one that is not there is written at the first list.
    pub(super) fn open(file: &Path, mode: PinMode) -> Result<Self, PinError> {
        let fail = |problem| PinError { file: file.to_owned(), problem };
        let known = match std::fs::metadata(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fail(error.into())),
            // Before the read, which would wait for the writer of a FIFO.
            Ok(found) if !found.is_file() => return Err(fail(PinFileProblem::NotAFile)),
            Ok(found) if found.len() > MAX_FILE => {
                return Err(fail(PinFileProblem::TooLarge { max_bytes: MAX_FILE }));
            }
            Ok(_) => {
                let text = std::fs::read(file).map_err(|error| fail(error.into()))?;
                Some(parse_pins(&text).map_err(fail)?)
            }
        };
        Ok(Self { file: file.to_owned(), mode, known })
    }

    /// Compares `tools` with the record. Returns the tools that may be offered, those that may not, and notes for the
    /// log.
    pub(super) fn check(
        &mut self,
        tools: Vec<ServerTool>,
    ) -> (Vec<ServerTool>, Vec<WithheldTool>, Vec<String>) {
        let mut notes = Vec::new();
        let offered: BTreeMap<String, JsonObject<'static>> =
            tools.iter().map(|tool| (tool.name.clone(), pinned(&tool.definition))).collect();
        let known = match (&self.known, self.mode) {
            (Some(known), PinMode::Refuse | PinMode::Warn) => known,
            (known, _) => {
                if let Some(known) = known {
                    notes.extend(offered.iter().filter_map(|(name, new)| describe_change(known, name, new)));
                }
                // A file that cannot be written does not stop the session: the record in memory holds for the rest
                // of it.
                if known.as_ref() != Some(&offered)
                    && let Err(error) = self.write(&offered)
                {
                    notes.push(format!("cannot write the pins to {}: {error}", self.file.display()));
                }
                self.known = Some(offered);
                return (tools, Vec::new(), notes);
            }
        };
        let (mut kept, mut withheld) = (Vec::new(), Vec::new());
        for tool in tools {
            let change = offered.get(&tool.name).and_then(|new| describe_change(known, &tool.name, new));
            match change {
                None => kept.push(tool),
                Some(change) if self.mode == PinMode::Warn => {
                    notes.push(change);
                    kept.push(tool);
                }
                Some(change) => withheld.push(WithheldTool { name: tool.name, reason: change }),
            }
        }
        (kept, withheld, notes)
    }

    /// Replaces the file as a whole, readable by its owner alone.
    fn write(&self, tools: &BTreeMap<String, JsonObject<'static>>) -> io::Result<()> {
        use std::os::unix::fs::OpenOptionsExt;
        let mut text = b"{\"version\":1,\"tools\":{".to_vec();
        for (index, (name, definition)) in tools.iter().enumerate() {
            text.extend_from_slice(if index == 0 { b"\n" } else { b",\n" });
            Json::string(name.as_str()).write(&mut text);
            text.extend_from_slice(b":{\"sha256\":\"");
            text.extend_from_slice(fingerprint(definition).as_bytes());
            text.extend_from_slice(b"\",\"definition\":");
            definition.write(&mut text);
            text.push(b'}');
        }
        text.extend_from_slice(b"\n}}\n");
        let mut temp_path = self.file.clone().into_os_string();
        temp_path.push(format!(".{}.new", std::process::id()));
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temp_path)?;
        let written = file
            .write_all(&text)
            .and_then(|()| file.sync_all())
            .and_then(|()| std::fs::rename(&temp_path, &self.file));
        if written.is_err() {
            // A half-written file is of no use.
            let _ = std::fs::remove_file(&temp_path);
        }
        written
    }
}

fn parse_pins(text: &[u8]) -> Result<BTreeMap<String, JsonObject<'static>>, PinFileProblem> {
    let json = Json::parse(text.trim_ascii_end())?.into_owned();
    let wrong = || PinFileProblem::Form;
    let Json::Object(mut file) = json else { return Err(wrong()) };
    let version = file.remove("version");
    let (Some(Json::Number(version)), Some(Json::Object(tools))) = (version, file.remove("tools")) else {
        return Err(wrong());
    };
    if version != "1" {
        return Err(PinFileProblem::Version { version: version.to_string() });
    }
    let mut known = BTreeMap::new();
    for (name, entry) in tools.members() {
        let entry = entry.as_object().ok_or_else(wrong)?;
        let definition = pinned(entry.get("definition").and_then(Json::as_object).ok_or_else(wrong)?);
        // An edit by hand that changes one of the two is an error.
        if entry.get("sha256").and_then(Json::as_str) != Some(&fingerprint(&definition)) {
            return Err(PinFileProblem::Fingerprint { tool: name.to_owned() });
        }
        known.insert(name.to_owned(), definition);
    }
    Ok(known)
}

/// Returns the members that are pinned, in canonical order at every depth.
fn pinned(definition: &JsonObject<'_>) -> JsonObject<'static> {
    let mut pinned = definition.clone().into_owned();
    pinned.retain(|name| PINNED_MEMBERS.contains(&name));
    match canonical(Json::Object(pinned)) {
        Json::Object(object) => object,
        _ => unreachable!("an object stays one"),
    }
}

fn canonical(json: Json<'static>) -> Json<'static> {
    match json {
        // Not sorted: the order of an array means something.
        Json::Array(items) => Json::Array(items.into_iter().map(canonical).collect()),
        Json::Object(object) => Json::Object(object.sorted(canonical)),
        other => other,
    }
}

fn fingerprint(definition: &JsonObject<'_>) -> String {
    let mut text = Vec::new();
    definition.write(&mut text);
    Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Describes how the tool differs from the record; `None` if it does not.
fn describe_change(
    known: &BTreeMap<String, JsonObject<'static>>,
    name: &str,
    new: &JsonObject<'static>,
) -> Option<String> {
    let Some(old) = known.get(name) else {
        let without_name = |definition: &JsonObject<'static>| {
            let mut rest = definition.clone();
            rest.remove("name");
            rest
        };
        // So that the operator reads of a rename, and not of a tool that is new.
        let renamed = known.iter().find(|(_, old)| without_name(old) == without_name(new));
        return Some(match renamed {
            Some((former_name, _)) => format!("`{name}` is `{former_name}` under another name"),
            None => format!("`{name}` is not pinned: it was not there when the pins were recorded"),
        });
    };
    if old == new {
        return None;
    }
    let (old, new) = (diff_lines(old), diff_lines(new));
    let diff = TextDiff::from_lines(&old, &new);
    let diff = diff.unified_diff().context_radius(1).header("pinned", "offered").to_string();
    /// The length at which a difference is cut: enough for a log to show what was done.
    const MAX_CHARS: usize = 4096;
    let short: String = diff.chars().take(MAX_CHARS).collect();
    Some(format!("the definition of `{name}` has changed:\n{short}"))
}

/// Writes one member on a line, for a readable difference.
fn diff_lines(definition: &JsonObject<'_>) -> String {
    fn add(path: &str, json: &Json<'_>, out: &mut String) {
        match json {
            Json::Object(object) => {
                object.members().for_each(|(name, value)| add(&format!("{path}.{name}"), value, out));
            }
            other => {
                out.push_str(path.trim_start_matches('.'));
                out.push_str(": ");
                // Nothing in it can look like another line, or move a terminal's cursor.
                out.extend(other.to_string().chars().flat_map(|char| {
                    let escape = !(' '..='~').contains(&char) && !char.is_alphanumeric();
                    let shown: Box<dyn Iterator<Item = char>> = if escape {
                        Box::new(char.escape_unicode())
                    } else {
                        Box::new(std::iter::once(char))
                    };
                    shown
                }));
                out.push('\n');
            }
        }
    }
    let mut out = String::new();
    definition.members().for_each(|(name, value)| add(name, value, &mut out));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn tools(text: &str) -> Vec<ServerTool> {
        let Json::Array(entries) = Json::parse(text.as_bytes()).unwrap().into_owned() else {
            panic!("{text}")
        };
        super::super::server_tool::separate_withheld(entries).0
    }

    fn names<'t>(tools: impl IntoIterator<Item = &'t ServerTool>) -> Vec<&'t str> {
        tools.into_iter().map(|tool| tool.name.as_str()).collect()
    }

    const FIRST: &str =
        r#"[{"name":"a","description":"reads","inputSchema":{"type":"object","x":1}},{"name":"b"}]"#;
    const LATER: &str = r#"[{"name":"a","description":"reads, and sends","inputSchema":{"x":1,"type":"object"}},
        {"inputSchema":{"x":1,"type":"object"},"description":"reads","name":"c"},{"name":"b","_meta":{"n":2}},{"name":"d","title":"new"}]"#;

    #[test]
    fn what_was_recorded_is_offered_and_a_change_a_rename_and_a_newcomer_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pins.json");
        let mut pinned_tools = PinnedTools::open(&file, PinMode::Refuse).unwrap();
        assert_eq!(names(&pinned_tools.check(tools(FIRST)).0), ["a", "b"]);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let mut pinned_tools = PinnedTools::open(&file, PinMode::Refuse).unwrap();
        assert_eq!(names(&pinned_tools.check(tools(FIRST)).0), ["a", "b"]);
        let (kept, withheld, notes) = pinned_tools.check(tools(LATER));
        assert_eq!((names(&kept), notes.len()), (vec!["b"], 0));
        assert!(
            withheld[0].reason.contains("-description: \"reads\"\n+description: \"reads, and sends\""),
            "{withheld:?}"
        );
        assert_eq!(withheld[1].reason, "`c` is `a` under another name");
        assert!(withheld[2].reason.starts_with("`d` is not pinned"), "{withheld:?}");
    }

    #[test]
    fn a_warning_offers_all_of_it_and_an_update_records_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pins.json");
        PinnedTools::open(&file, PinMode::Refuse).unwrap().check(tools(FIRST));
        for (mode, noted) in [(PinMode::Warn, 3), (PinMode::Update, 3), (PinMode::Refuse, 0)] {
            let (kept, withheld, notes) = PinnedTools::open(&file, mode).unwrap().check(tools(LATER));
            assert_eq!((kept.len(), withheld.len(), notes.len()), (4, 0, noted), "{mode:?}");
        }
    }

    #[test]
    fn a_file_that_somebody_has_edited_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pins.json");
        PinnedTools::open(&file, PinMode::Refuse).unwrap().check(tools(FIRST));
        let text = std::fs::read_to_string(&file).unwrap();
        for wrong in
            [text.replace("reads", "sends"), "{}".to_owned(), text.replace(":1,\"tools", ":2,\"tools")]
        {
            std::fs::write(&file, wrong).unwrap();
            assert!(PinnedTools::open(&file, PinMode::Refuse).is_err());
        }
        assert!(PinnedTools::open(folder.path(), PinMode::Refuse).is_err());
    }
}
