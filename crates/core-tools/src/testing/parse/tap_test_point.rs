//! The description of a TAP test point: its name, its directive and its time.

/// The description of a test point, taken apart.
pub(super) struct TapTestPointDescription {
    pub(super) name: String,
    /// The reason of a SKIP or TODO directive, or its word where it gives none.
    pub(super) excuse: Option<String>,
}

impl TapTestPointDescription {
    /// Reads `name # directive`, at a `#` that is not escaped.
    pub(super) fn parse(text: &str) -> Self {
        let mut from = 0;
        while let Some(index) = text[from..].find('#').map(|index| index + from) {
            let before = &text[..index];
            let after = text[index + 1..].trim();
            // Some producers write `# SKIP: reason`, with a colon that TAP does not have.
            let (word, reason) = after.split_once([' ', ':']).unwrap_or((after, ""));
            let word = word.to_ascii_lowercase();
            if ["skip", "skipped", "todo"].contains(&word.as_str()) && !before.ends_with('\\') {
                let reason = reason.trim();
                let excuse = if reason.is_empty() { word } else { reason.to_owned() };
                return Self { name: unescape(before), excuse: Some(excuse) };
            }
            from = index + 1;
        }
        Self { name: unescape(text), excuse: None }
    }

    /// Reads `name in 12ms # skip reason` of bats, where only what follows the time is no part of the name.
    /// Nothing excuses a failure.
    pub(super) fn parse_bats(text: &str, passed: bool) -> Self {
        let name_only = || Self { name: text.trim().to_owned(), excuse: None };
        if !passed {
            return name_only();
        }
        const DIRECTIVE: &str = " # skip";
        let directive =
            text.rmatch_indices(DIRECTIVE).find(|(index, _)| split_time(&text[..*index]).is_some());
        match directive {
            Some((index, _)) => {
                let reason = text[index + DIRECTIVE.len()..].trim();
                let excuse = if reason.is_empty() { "skip" } else { reason };
                Self { name: text[..index].to_owned(), excuse: Some(excuse.to_owned()) }
            }
            None if split_time(text).is_some() => name_only(),
            // Before version 1.5 the time came last, and in seconds.
            None => Self::parse(text),
        }
    }
}

fn unescape(text: &str) -> String {
    text.trim().replace("\\#", "#").replace("\\\\", "\\")
}

/// Splits off the time that bats and node-tap add to a name: `name in 12ms`, `name # time=12.3ms`.
pub(super) fn split_time(name: &str) -> Option<(&str, f64)> {
    let (name, time) = name.rsplit_once(" # time=").or_else(|| name.rsplit_once(" in "))?;
    let time = time.strip_suffix("ms")?.parse().ok()?;
    Some((name, time))
}
