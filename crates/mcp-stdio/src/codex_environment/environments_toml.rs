//! The text of Codex's `environments.toml`, with this program's entry and without it.

use std::ops::Range;
use toml::{Table, Value};

/// The id of this program's entry.
pub(super) const ID: &str = "coretools";
/// The mark of a line that this program wrote.
const MARK: &str = "# CoreTools";
/// The beginning of a comment that keeps a line as it was before.
const BEFORE: &str = "# before CoreTools: ";

/// The reason why the text is left as it is.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EnvironmentsError {
    /// It is no TOML.
    #[error("it is not valid TOML: {0}")]
    Syntax(String),
    /// It has a form in which no line can be changed without harm.
    #[error(
        "its form is not one that can be changed without harm; write the entry by hand: docs/govern.md has it"
    )]
    Form,
}

fn parse(text: &str) -> Result<Table, EnvironmentsError> {
    text.parse().map_err(|error: toml::de::Error| {
        EnvironmentsError::Syntax(error.to_string().trim_end().replace('\n', " "))
    })
}

/// Returns the value of a table as TOML writes it in a line.
fn line_of(key: &str, value: &Value) -> String {
    format!("{key} = {value}")
}

/// Returns the settings that make this program the only executor.
fn own_settings() -> [(&'static str, Value); 2] {
    // Without the second one, Codex still has its own executor, which nothing judges.
    [("default", Value::from(ID)), ("include_local", Value::from(false))]
}

/// Returns this program's entry.
fn entry(words: &[String]) -> Table {
    let mut entry = Table::new();
    entry.insert("id".to_owned(), Value::from(ID));
    entry.insert("program".to_owned(), Value::from(words.first().cloned().unwrap_or_default()));
    entry.insert("args".to_owned(), Value::Array(words.iter().skip(1).cloned().map(Value::from).collect()));
    entry
}

/// Returns the entries of other executors.
pub(super) fn others(text: &str) -> Vec<String> {
    let document = parse(text).unwrap_or_default();
    let entries = document.get("environments").and_then(Value::as_array).into_iter().flatten();
    let ids = entries.filter_map(|entry| entry.get("id").and_then(Value::as_str));
    ids.filter(|id| *id != ID).map(str::to_owned).collect()
}

/// Returns the program of this program's entry, if there is one.
pub(super) fn installed_program(text: &str) -> Option<String> {
    let document = parse(text).ok()?;
    let entries = document.get("environments")?.as_array()?;
    let own = entries.iter().find(|entry| entry.get("id").and_then(Value::as_str) == Some(ID))?;
    own.get("program").and_then(Value::as_str).map(str::to_owned)
}

/// Returns true if Codex uses this program's entry, and cannot use its own executor.
pub(super) fn is_only_executor(text: &str) -> bool {
    let document = parse(text).unwrap_or_default();
    own_settings().iter().all(|(key, value)| document.get(*key) == Some(value))
}

/// Returns `text` with this program, which `words` start, as the only executor.
pub(super) fn with_entry(text: &str, words: &[String]) -> Result<String, EnvironmentsError> {
    let mut expected = parse(text)?;
    for (key, value) in own_settings() {
        expected.insert(key.to_owned(), value);
    }
    let list = expected.entry("environments").or_insert_with(|| Value::Array(Vec::new()));
    let list = list.as_array_mut().ok_or(EnvironmentsError::Form)?;
    list.retain(|entry| entry.get("id").and_then(Value::as_str) != Some(ID));
    list.push(Value::Table(entry(words)));
    let mut changed = without_section(text);
    for (key, value) in own_settings() {
        changed = with_setting(&changed, key, &value);
    }
    let entry = entry(words);
    let members = ["id", "program", "args"].into_iter().filter_map(|key| Some(line_of(key, entry.get(key)?)));
    let members: Vec<String> = members.collect();
    let section = format!("[[environments]]\n{}\n", members.join("\n"));
    let kept = changed.trim_end();
    let changed = if kept.is_empty() { section } else { format!("{kept}\n\n{section}") };
    checked(changed, &expected)
}

/// Returns `text` without this program's entry, and with the settings as they were before.
pub(super) fn without_entry(text: &str) -> Result<String, EnvironmentsError> {
    let mut expected = parse(text)?;
    if let Some(list) = expected.get_mut("environments").and_then(Value::as_array_mut) {
        list.retain(|entry| entry.get("id").and_then(Value::as_str) != Some(ID));
    }
    let text = without_section(text);
    let head = head_lines(&text);
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        // Without the entry, a default that names it would be an error.
        let names_entry =
            || line.parse::<Table>().is_ok_and(|line| line.get("default") == Some(&Value::from(ID)));
        if let Some(before) = line.strip_prefix(BEFORE) {
            lines.push(before);
        } else if !(line.ends_with(MARK) || at < head && names_entry()) {
            lines.push(line);
        }
    }
    let changed = lines.join("\n").trim().to_owned();
    let changed = if changed.is_empty() { changed } else { changed + "\n" };
    // The settings of the user stand again; whatever else there is must be as it was.
    let document = parse(&changed)?;
    let rest = |table: &Table| {
        let mut table = table.clone();
        for (key, _) in own_settings() {
            table.remove(key);
        }
        if table.get("environments").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            table.remove("environments");
        }
        table
    };
    if rest(&document) == rest(&expected) && installed_program(&changed).is_none() {
        Ok(changed)
    } else {
        Err(EnvironmentsError::Form)
    }
}

fn checked(changed: String, expected: &Table) -> Result<String, EnvironmentsError> {
    match parse(&changed) {
        Ok(found) if found == *expected => Ok(changed),
        _ => Err(EnvironmentsError::Form),
    }
}

/// Returns the key of a line such as `default = "x"`.
fn header_key(line: &str) -> Option<&str> {
    Some(line.split_once('=')?.0.trim())
}

/// Returns the number of lines above the first table.
fn head_lines(text: &str) -> usize {
    text.lines().take_while(|line| !line.trim_start().starts_with('[')).count()
}

/// Returns `text` with a setting above the first table. A line that was there before stays as a comment.
fn with_setting(text: &str, key: &str, value: &Value) -> String {
    let own = format!("{} {MARK}", line_of(key, value));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let old = lines[..head_lines(text)].iter().position(|line| header_key(line) == Some(key));
    match old {
        Some(at) if lines[at].ends_with(MARK) => lines[at] = own,
        Some(at) => {
            let before = format!("{BEFORE}{}", lines[at]);
            lines.splice(at..=at, [before, own]);
        }
        None => lines.insert(0, own),
    }
    lines.join("\n")
}

/// Returns `text` without the section of this program's entry.
fn without_section(text: &str) -> String {
    sections(text).into_iter().rev().fold(text.to_owned(), |mut text, section| {
        let is_own = text[section.clone()].parse::<Table>().is_ok_and(|table| {
            let entries = table.get("environments").and_then(Value::as_array);
            let first = entries.and_then(|entries| entries.first());
            first.and_then(|entry| entry.get("id")).and_then(Value::as_str) == Some(ID)
        });
        if is_own {
            text.replace_range(section, "");
        }
        text
    })
}

/// Returns the sections `[[environments]]`, each with the tables below it.
fn sections(text: &str) -> Vec<Range<usize>> {
    let mut sections: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    let mut open = false;
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        let trimmed = line.trim();
        if trimmed.starts_with("[[environments]]") {
            sections.push(at..next);
            open = true;
        } else if trimmed.starts_with('[') && !trimmed.starts_with("[environments.") {
            open = false;
        }
        if open && let Some(section) = sections.last_mut() {
            section.end = next;
        }
        at = next;
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Vec<String> {
        ["/opt/mcp-stdio", "--role", "worker", "codex-environment"].map(str::to_owned).to_vec()
    }

    const OWN: &str = "[[environments]]\nid = \"coretools\"\nprogram = \"/opt/mcp-stdio\"\nargs = [\"--role\", \"worker\", \"codex-environment\"]\n";

    #[test]
    fn an_empty_file_gets_the_entry_once_and_is_empty_again() {
        let once = with_entry("", &words()).unwrap();
        assert_eq!(
            once,
            format!("include_local = false # CoreTools\ndefault = \"coretools\" # CoreTools\n\n{OWN}")
        );
        assert_eq!(with_entry(&once, &words()).unwrap(), once);
        assert!(is_only_executor(&once) && others(&once).is_empty());
        assert_eq!(installed_program(&once).as_deref(), Some("/opt/mcp-stdio"));
        assert_eq!(without_entry(&once).unwrap(), "");
    }

    #[test]
    fn the_settings_of_the_user_stay_and_come_back() {
        let text = "# mine\ndefault = \"dev\" # at work\n\n[[environments]]\nid = \"dev\"\nprogram = \"ssh\"\n\n\
                    [environments.env]\nA = \"coretools\"\n";
        let installed = with_entry(text, &words()).unwrap();
        assert!(is_only_executor(&installed), "{installed}");
        assert_eq!(others(&installed), ["dev"]);
        assert!(installed.contains("# before CoreTools: default = \"dev\" # at work\n"), "{installed}");
        assert_eq!(with_entry(&installed, &words()).unwrap(), installed);
        assert_eq!(without_entry(&installed).unwrap(), text);
        let mut other = words();
        other[2] = "dev".to_owned();
        let changed = with_entry(&installed, &other).unwrap();
        assert!(
            changed.contains("\"dev\", \"codex-environment\"") && !changed.contains("worker"),
            "{changed}"
        );
    }

    #[test]
    fn what_cannot_be_changed_without_harm_is_refused() {
        assert!(matches!(with_entry("a =", &words()), Err(EnvironmentsError::Syntax(_))));
        let inline = "environments = [{ id = \"dev\", program = \"ssh\" }]\n";
        assert_eq!(with_entry(inline, &words()), Err(EnvironmentsError::Form));
    }

    #[test]
    fn what_looks_like_an_entry_in_a_text_stays() {
        let text = "note = \"\"\"\n[[environments]]\nid = \"coretools\"\n\"\"\"\n";
        let installed = with_entry(text, &words()).unwrap();
        assert!(is_only_executor(&installed) && installed.contains(text), "{installed}");
    }
}
