//! The front matter of session files: how far an agent's work is.

/// The part of a session file's YAML front matter that says how far the session is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionFrontMatter {
    /// The completed steps: `stepsCompleted`.
    pub(crate) steps_completed: Vec<String>,
    /// The number of the last step: `lastStep`.
    pub(crate) last_step: Option<u64>,
    /// The status: `status`.
    pub(crate) status: Option<String>,
}

impl SessionFrontMatter {
    /// Reads what stands between the first two lines of `---`. Returns nothing if a text does not begin so.
    ///
    /// It understands the two forms of lists and the quotes that agents write, and skips every other key.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.trim_start_matches('\u{feff}').lines();
        // `trim_end`, as the file may have the line ends of Windows.
        if lines.next()?.trim_end() != "---" {
            return None;
        }
        let mut front = Self::default();
        let mut in_steps = false;
        for line in lines {
            if line.trim_end() == "---" {
                return Some(front);
            }
            if in_steps && let Some(item) = line.trim_start().strip_prefix("- ") {
                front.steps_completed.push(unquoted(item));
                continue;
            }
            in_steps = false;
            // Indented lines belong to a key that is skipped.
            let Some((key, value)) = line.split_once(':').filter(|_| !line.starts_with([' ', '\t', '#']))
            else {
                continue;
            };
            // A `#` begins a comment only after a blank (YAML 1.2, section 6.6).
            let value = value.split(" #").next().unwrap_or(value).trim();
            match key.trim() {
                "stepsCompleted" | "steps_completed" => {
                    in_steps = value.is_empty();
                    let inside = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                    let items = inside.unwrap_or(value).split(',').map(unquoted);
                    front.steps_completed = items.filter(|item| !item.is_empty()).collect();
                }
                "lastStep" | "last_step" => front.last_step = unquoted(value).parse().ok(),
                "status" => front.status = Some(unquoted(value)).filter(|status| !status.is_empty()),
                _ => {}
            }
        }
        // Without its end it is no front matter, but text that begins with a line.
        None
    }

    /// Tells whether the session is done: its status says so, or is not in progress and the completed steps have
    /// reached the last.
    pub(crate) fn is_complete(&self) -> bool {
        let status = self.status.as_deref().unwrap_or_default().to_ascii_lowercase();
        if matches!(status.as_str(), "complete" | "completed" | "done") {
            return true;
        }
        let in_progress = matches!(status.as_str(), "in-progress" | "in_progress" | "in progress");
        let done = self.steps_completed.len() as u64;
        !in_progress && self.last_step.is_some_and(|last| last > 0 && done >= last)
    }

    /// Returns the number of the step that follows the last completed one.
    pub(crate) fn next_step(&self) -> u64 {
        // By the numbers and not by their count: an agent may have skipped a step.
        let numbers = self.steps_completed.iter().filter_map(|step| step.parse::<u64>().ok());
        numbers.max().map_or(1, |last| last + 1)
    }
}

fn unquoted(text: &str) -> String {
    text.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(text: &str) -> SessionFrontMatter {
        SessionFrontMatter::parse(text).unwrap()
    }

    #[test]
    fn front_matter_tells_how_far_a_session_is() {
        let read = front(
            "---\nstepsCompleted: [1, 2, \"3\"]\nlastStep: 5\nstatus: 'in-progress' # now\nproject_name: x\n---\nText",
        );
        assert_eq!((read.steps_completed.len(), read.last_step), (3, Some(5)));
        assert_eq!((read.status.as_deref(), read.next_step()), (Some("in-progress"), 4));
        let listed = front("---\r\nsteps_completed:\r\n  - 1\r\n  - two\r\nlast_step: 2\r\n---\r\n");
        assert_eq!(listed.steps_completed, ["1", "two"]);
        assert!(listed.is_complete());
        for (text, complete) in [
            ("---\nstatus: complete\n---\n", true),
            ("---\nstatus: in-progress\nstepsCompleted: [1,2]\nlastStep: 2\n---\n", false),
            ("---\nstepsCompleted: [1]\nlastStep: 2\n---\n", false),
            ("---\nstepsCompleted: []\nlastStep: 0\n---\n", false),
        ] {
            assert_eq!(front(text).is_complete(), complete, "{text}");
        }
        assert_eq!(SessionFrontMatter::parse("no front matter"), None);
        assert_eq!(SessionFrontMatter::parse("---\nstatus: complete\n"), None, "it never ends");
    }
}
