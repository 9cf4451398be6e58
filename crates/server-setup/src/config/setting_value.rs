//! The values that keys take: from TOML, from text, and back to text.

use std::path::PathBuf;

use process_runner::ConfinementLevel;
use role_policy::{AllowedHosts, NetworkAccess};
use toml::de::DeValue;

/// A named choice of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolPreset {
    /// The tools that an agent needs to work on a project. The default.
    Standard,
    /// Every tool of every toolset.
    Full,
    /// The tools for editing a project.
    Edit,
    /// The tools for looking into a running program.
    Introspect,
    /// The fewest tools that are of use.
    Minimal,
    /// Another name of `full`.
    All,
}

/// The choice of the tools that are offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Toolsets {
    /// A preset.
    Preset(ToolPreset),
    /// Exactly these toolsets, by name. The host knows the names.
    Chosen(Vec<String>),
}

/// The form of results: with a structured part or as text only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultFormat {
    /// As each tool's contract says.
    Auto,
    /// Text only, for clients that show nothing else.
    Text,
}

/// The part of the server's own environment that a command gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvironmentMode {
    /// All of it where the one caller may do everything; else what [`Minimal`](Self::Minimal) gives.
    Auto,
    /// All of it, for every caller.
    Inherit,
    /// The variables that programs and toolchains need to work, and those that `commands.variables` names.
    Minimal,
}

/// The treatment of calls while the audit cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditWhenFull {
    /// They run, and lost records are counted.
    Count,
    /// They are refused.
    Refuse,
}

/// The part of the arguments of a call that the audit records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditDetail {
    /// Targets where many callers share the server, else names.
    Auto,
    /// Names and sizes.
    Names,
    /// Also the targets of the call: paths, the command, hosts, the kind of SQL, the role.
    Targets,
    /// Also all of it, masked and bounded.
    Full,
}

/// The confinement of programs to what their caller may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfinementMode {
    /// Where the system has the means, for every role that does not see every tool.
    Auto,
    /// For every role; below the configured level no program runs.
    Required,
    /// For none.
    Off,
}

/// The persons who may approve a call that the policy asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApproversSetting {
    /// The client's user, by elicitation. If the client has none, the operator.
    Auto,
    /// The client's user alone.
    Client,
    /// The operator alone, on the page or in a terminal.
    Operator,
}

/// A type of value that a key takes.
pub(super) trait SettingValue: Sized {
    /// Returns a description of the values, to follow "must be".
    fn expected() -> String;
    fn from_toml(value: &DeValue<'_>) -> Option<Self>;
    fn from_text(text: &str) -> Option<Self>;
    /// Returns the value as TOML.
    fn to_toml(&self) -> String;
}

/// Returns `text` as a basic string of TOML.
// The escapes of Rust's `{:?}` are others: `\u{1}` and `\0` are errors in TOML.
pub(super) fn basic_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

impl SettingValue for bool {
    fn expected() -> String {
        "true or false".to_owned()
    }

    fn from_toml(value: &DeValue<'_>) -> Option<Self> {
        value.as_bool()
    }

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        }
    }

    fn to_toml(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for u64 {
    fn expected() -> String {
        "a whole number".to_owned()
    }

    fn from_toml(value: &DeValue<'_>) -> Option<Self> {
        let number = value.as_integer()?;
        // TOML allows `1_000`, and `from_str_radix` does not.
        Self::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn to_toml(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for String {
    fn expected() -> String {
        "a text".to_owned()
    }

    fn from_toml(value: &DeValue<'_>) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn to_toml(&self) -> String {
        basic_string(self)
    }
}

impl SettingValue for Vec<String> {
    fn expected() -> String {
        "a list of texts".to_owned()
    }

    fn from_toml(value: &DeValue<'_>) -> Option<Self> {
        value.as_array()?.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect())
    }

    fn to_toml(&self) -> String {
        format!("[{}]", self.iter().map(|item| basic_string(item)).collect::<Vec<_>>().join(", "))
    }
}

impl SettingValue for Vec<PathBuf> {
    fn expected() -> String {
        "a list of folders".to_owned()
    }

    fn from_toml(value: &DeValue<'_>) -> Option<Self> {
        let paths: Vec<String> = SettingValue::from_toml(value)?;
        Some(paths.into_iter().map(PathBuf::from).collect())
    }

    fn from_text(text: &str) -> Option<Self> {
        // Separated as `PATH` is, since the name of a folder may hold a comma.
        Some(std::env::split_paths(text).filter(|path| !path.as_os_str().is_empty()).collect())
    }

    fn to_toml(&self) -> String {
        self.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().to_toml()
    }
}

impl SettingValue for Option<PathBuf> {
    fn expected() -> String {
        "a path".to_owned()
    }

    fn from_toml(value: &DeValue<'_>) -> Option<Self> {
        value.as_str().and_then(Self::from_text)
    }

    fn from_text(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Some(PathBuf::from(text)))
    }

    fn to_toml(&self) -> String {
        self.as_ref().map_or_else(|| "\"\"".to_owned(), |path| basic_string(&path.display().to_string()))
    }
}

impl SettingValue for Option<String> {
    fn expected() -> String {
        "a text".to_owned()
    }

    fn from_toml(value: &DeValue<'_>) -> Option<Self> {
        value.as_str().and_then(Self::from_text)
    }

    fn from_text(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Some(text.to_owned()))
    }

    fn to_toml(&self) -> String {
        basic_string(self.as_deref().unwrap_or_default())
    }
}

/// A type with one word for each of its values.
trait KeywordValue: Copy + PartialEq + 'static {
    const ALL: &'static [(&'static str, Self)];
}

impl KeywordValue for ToolPreset {
    const ALL: &'static [(&'static str, Self)] = &[
        ("standard", Self::Standard),
        ("full", Self::Full),
        ("edit", Self::Edit),
        ("introspect", Self::Introspect),
        ("minimal", Self::Minimal),
        ("all", Self::All),
    ];
}

impl ToolPreset {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, preset)| *preset == self).map_or("standard", |(name, _)| name)
    }
}

impl KeywordValue for ResultFormat {
    const ALL: &'static [(&'static str, Self)] = &[("auto", Self::Auto), ("text", Self::Text)];
}

impl KeywordValue for EnvironmentMode {
    const ALL: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("inherit", Self::Inherit), ("minimal", Self::Minimal)];
}

impl KeywordValue for AuditDetail {
    const ALL: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("names", Self::Names), ("targets", Self::Targets), ("full", Self::Full)];
}

impl KeywordValue for AuditWhenFull {
    const ALL: &'static [(&'static str, Self)] = &[("count", Self::Count), ("refuse", Self::Refuse)];
}

impl SettingValue for NetworkAccess {
    fn expected() -> String {
        "\"none\", \"allow\", true, false or { hosts = [\"git.example.com\", \"*.packages.example:443\"] }"
            .to_owned()
    }

    fn from_toml(value: &DeValue<'_>) -> Option<Self> {
        match value {
            DeValue::Boolean(true) => Some(Self::Allow),
            DeValue::Boolean(false) => Some(Self::None),
            DeValue::String(text) => keyword_network(text),
            DeValue::Table(table) if table.len() == 1 => {
                let DeValue::Array(entries) = table.get("hosts")?.get_ref() else { return None };
                let entries =
                    entries.iter().map(|entry| entry.get_ref().as_str()).collect::<Option<Vec<_>>>()?;
                AllowedHosts::parse(entries).ok().map(Self::Hosts)
            }
            _ => None,
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        keyword_network(text).or_else(|| match bool::from_text(text) {
            Some(true) => Some(Self::Allow),
            Some(false) => Some(Self::None),
            // As the other lists in variables: separated by commas.
            None => AllowedHosts::parse(text.split(',').map(str::trim)).ok().map(Self::Hosts),
        })
    }

    fn to_toml(&self) -> String {
        match self {
            Self::None => "\"none\"".to_owned(),
            Self::Hosts(hosts) => format!("{{ hosts = {:?} }}", hosts.entries()),
            _ => "\"allow\"".to_owned(),
        }
    }
}

fn keyword_network(text: &str) -> Option<NetworkAccess> {
    match text {
        "none" => Some(NetworkAccess::None),
        "allow" => Some(NetworkAccess::Allow),
        _ => None,
    }
}

impl KeywordValue for ConfinementMode {
    const ALL: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("required", Self::Required), ("off", Self::Off), ("on", Self::Required)];
}

impl KeywordValue for ConfinementLevel {
    const ALL: &'static [(&'static str, Self)] = &[
        ("filesystem", Self::Filesystem),
        ("system_calls", Self::SystemCalls),
        ("namespaces", Self::Namespaces),
        ("strict", Self::Strict),
    ];
}

impl KeywordValue for ApproversSetting {
    const ALL: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("client", Self::Client), ("operator", Self::Operator)];
}

impl<T: KeywordValue> SettingValue for T {
    fn expected() -> String {
        let words: Vec<String> = T::ALL.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        words.join(" or ")
    }

    fn from_toml(value: &DeValue<'_>) -> Option<Self> {
        value.as_str().and_then(Self::from_text)
    }

    fn from_text(text: &str) -> Option<Self> {
        T::ALL.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
    }

    fn to_toml(&self) -> String {
        T::ALL
            .iter()
            .find(|(_, value)| value == self)
            .map(|(word, _)| format!("\"{word}\""))
            .unwrap_or_default()
    }
}

impl SettingValue for Toolsets {
    fn expected() -> String {
        format!("{} or a list of toolsets that is not empty", ToolPreset::expected())
    }

    fn from_toml(value: &DeValue<'_>) -> Option<Self> {
        if value.is_str() {
            ToolPreset::from_toml(value).map(Self::Preset)
        } else {
            SettingValue::from_toml(value).and_then(Self::chosen)
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        match ToolPreset::from_text(text) {
            Some(preset) => Some(Self::Preset(preset)),
            None => SettingValue::from_text(text).and_then(Self::chosen),
        }
    }

    fn to_toml(&self) -> String {
        match self {
            Self::Preset(preset) => preset.to_toml(),
            Self::Chosen(names) => names.to_toml(),
        }
    }
}

impl Toolsets {
    /// Returns the choice of these toolsets, or `None` for an empty list.
    // It reads like "no tools", and must not come to mean all of them.
    fn chosen(names: Vec<String>) -> Option<Self> {
        (!names.is_empty()).then_some(Self::Chosen(names))
    }
}

/// Describes a TOML value, to follow "not".
pub(super) fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {:?}", text.chars().take(60).collect::<String>()),
        DeValue::Integer(number) => format!("the number {}", number.as_str()),
        DeValue::Float(number) => format!("the number {}", number.as_str()),
        DeValue::Boolean(value) => format!("{value}"),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(items) if items.is_empty() => "an empty list".to_owned(),
        DeValue::Array(items) => match items.iter().find(|item| !item.get_ref().is_str()) {
            Some(item) => format!("a list that holds {}", describe(item.get_ref())),
            None => "a list".to_owned(),
        },
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Splits `name=value` into its two sides. `None` if one of them is empty.
pub(super) fn split_named(entry: &str) -> Option<(String, String)> {
    let (name, value) = entry.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_toml_reads_back_whatever_it_has() {
        let every: String = (0..0x300).filter_map(char::from_u32).chain(['\u{feff}', '\u{1f58a}']).collect();
        for text in ["", "a \"b\" \\c\\", "\0\u{1}\u{7f}\u{85}\u{301}", every.as_str()] {
            let document =
                format!("key = {}\nkeys = {}\n", text.to_owned().to_toml(), vec![text.to_owned()].to_toml());
            let read: toml::Table = document.parse().unwrap();
            assert_eq!(read["key"].as_str(), Some(text), "{document}");
            assert_eq!(read["keys"][0].as_str(), Some(text), "{document}");
        }
    }
}
