//! The prompt of a session that continues the work of another: the next step.

use crate::front_matter::SessionFrontMatter;
use crate::record::SessionRecord;
use crate::session_file::{NEXT_STEP_NAME, read_text};
use std::path::Path;

/// The next step, as a `Next-step.md` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NextStepFile {
    /// The number of the step.
    number: Option<u64>,
    /// The description of the step.
    description: String,
}

/// Reads the step that a `Next-step.md` names: the first line of the form `Step 3: …` or `3. …`, or else its first
/// plain line.
fn parse_next_step(text: &str) -> Option<NextStepFile> {
    let lines = || {
        text.lines().map(|line| line.trim().trim_start_matches(['#', '*', '-', ' ']).trim_end_matches('*'))
    };
    let numbered = lines().find_map(|line| {
        let lower = line.to_ascii_lowercase();
        let rest = if lower.starts_with("step ") { &line[5..] } else { line };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[..digits].parse().ok()?;
        let description = rest[digits..].trim_start_matches(['.', ':', ')', '-', '–', '—', ' ']).trim();
        Some(NextStepFile { number: Some(number), description: description.to_owned() })
    });
    let plain = || lines().find(|line| !line.is_empty() && *line != "---").map(str::to_owned);
    match numbered {
        Some(step) if !step.description.is_empty() => Some(step),
        Some(step) => {
            let after = lines().skip_while(|line| !line.to_ascii_lowercase().starts_with("step")).skip(1);
            let description = after.map(str::to_owned).find(|line| !line.is_empty());
            Some(NextStepFile { description: description.unwrap_or_default(), ..step })
        }
        None => plain().map(|description| NextStepFile { number: None, description }),
    }
}

/// Returns the prompt for a session that continues the work of `record`, whose session file is `file`.
///
/// It is the step that a `Next-step.md` names, beside the session file or in the session's folder; else the step after
/// the last that the session file lists as completed; else the prompt of the earlier session.
pub(crate) fn next_prompt(file: Option<&Path>, record: &SessionRecord) -> Option<String> {
    // The file beside the session file first: an agent that keeps session files keeps its plan there.
    let beside_session_file = file.and_then(Path::parent).map(|folder| folder.join(NEXT_STEP_NAME));
    let candidates = beside_session_file.into_iter().chain([record.cwd.join(NEXT_STEP_NAME)]);
    let text = candidates.filter_map(|path| read_text(&path).ok()).find(|text| !text.trim().is_empty());
    if let Some(text) = text {
        let step = parse_next_step(&text)?;
        let number =
            step.number.map_or_else(|| "the next step".to_owned(), |number| format!("step {number}"));
        return Some(format!("Continue with {number}: {}\n\n{}", step.description, text.trim()));
    }
    let front = file.and_then(|file| SessionFrontMatter::parse(&read_text(file).ok()?));
    match (front, file) {
        (Some(front), Some(file)) => Some(format!(
            "Continue with step {} of the work that {} describes.",
            front.next_step(),
            file.display()
        )),
        _ => record.prompt.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test looks at the files as everybody does")]
    use super::*;
    use std::fs;

    #[test]
    fn the_next_step_is_read_from_its_file() {
        let step = |text: &str| parse_next_step(text).map(|step| (step.number, step.description));
        assert_eq!(
            step("# Plan\n\nStep 3: Write the tests\nmore"),
            Some((Some(3), "Write the tests".to_owned()))
        );
        assert_eq!(step("**Step 4 - Review**"), Some((Some(4), "Review".to_owned())));
        assert_eq!(step("7. Deploy"), Some((Some(7), "Deploy".to_owned())));
        assert_eq!(step("## Step 2\n\nTidy up"), Some((Some(2), "Tidy up".to_owned())));
        assert_eq!(step("Just go on"), Some((None, "Just go on".to_owned())));
        assert_eq!(step(" \n"), None);
    }

    #[test]
    fn a_new_session_is_told_the_next_step_or_what_the_other_was_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("session.md");
        let mut record = crate::session_store::tests::record("s1");
        record.cwd = folder.path().to_owned();
        assert_eq!(next_prompt(None, &record).as_deref(), Some("do it"));
        fs::write(&file, "---\nstepsCompleted: [1, 2]\nlastStep: 5\n---\n").unwrap();
        assert!(
            next_prompt(Some(&file), &record).unwrap().starts_with("Continue with step 3 of the work that ")
        );
        fs::write(folder.path().join(NEXT_STEP_NAME), "Step 4: Write\nwith care").unwrap();
        assert_eq!(
            next_prompt(Some(&file), &record).as_deref(),
            Some("Continue with step 4: Write\n\nStep 4: Write\nwith care")
        );
    }
}
