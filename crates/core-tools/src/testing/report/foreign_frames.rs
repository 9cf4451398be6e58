//! Leaves the frames of dependencies out of traces of JavaScript: they are most of a trace, and say nothing of the failure.

use std::borrow::Cow;

/// The beginnings of a frame: of V8, and of vitest's own form.
const FRAMES: [&str; 2] = ["at ", "❯ "];
/// The words in a frame of a dependency, or of Node itself.
const FOREIGN: [&str; 3] = ["node_modules/", "node:internal", "(node:"];

/// Returns a message without the frames of dependencies that follow the first frame of the project, and with their number.
pub(super) fn without_foreign_frames(message: &str) -> Cow<'_, str> {
    let is_frame = |line: &str| FRAMES.iter().any(|frame| line.trim_start().starts_with(frame));
    let is_foreign = |line: &str| is_frame(line) && FOREIGN.iter().any(|word| line.contains(word));
    let Some(first_own) = message.lines().position(|line| is_frame(line) && !is_foreign(line)) else {
        return Cow::Borrowed(message);
    };
    let is_left_out = |(index, line): &(usize, &str)| *index > first_own && is_foreign(line);
    let count = message.lines().enumerate().filter(is_left_out).count();
    if count == 0 {
        return Cow::Borrowed(message);
    }
    let kept = message.lines().enumerate().filter(|line| !is_left_out(line)).map(|(_, line)| line);
    let kept = kept.collect::<Vec<_>>().join("\n");
    let plural = if count == 1 { "" } else { "s" };
    let note = format!("[{count} frame{plural} of dependencies left out]");
    Cow::Owned(format!("{}\n    {note}", kept.trim_end_matches('\n')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_dependencies_behind_an_own_one_are_left_out() {
        let message = "AssertionError: 1 == 2\n    at f (a.test.js:3:5)\n    at file://node_modules/@vitest/runner/x.js:1:2\n    at file:///p/node_modules/@vitest/runner/x.js:1:2\n    at new Promise (<anonymous>)\n    at run (node:internal/test:1:1)\n\nexpected";
        let expected = "AssertionError: 1 == 2\n    at f (a.test.js:3:5)\n    at new Promise (<anonymous>)\n\nexpected\n    [3 frames of dependencies left out]";
        assert_eq!(without_foreign_frames(message), expected);
        for same in ["", "at last\n", "x\n    at y (/p/node_modules/z.js:1:1)", "x\n    at f (a.js:1:1)"] {
            assert_eq!(without_foreign_frames(same), same);
        }
    }
}
