//! The places at which a file narrows its tests with `.only`, for a runner that does not tell of the others.

use crate::ci::project::Project;
use crate::testing::results::TestCase;
use std::collections::BTreeSet;

/// The number of places that are named.
const MAX_NAMED: usize = 5;

/// Returns a note on the `.only` in the files of tests that ran.
pub(super) fn only_note(project: &Project, tests: &[TestCase], runner: &str) -> Option<String> {
    let files: BTreeSet<_> = tests.iter().filter_map(|test| test.file.as_deref()).collect();
    let places: Vec<_> = files
        .into_iter()
        .filter_map(|file| Some(format!("{file}:{}", focused_line(&project.read(file)?)?)))
        .collect();
    let named = places.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = places.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more files") } else { String::new() };
    (!places.is_empty()).then(|| {
        format!(
            "only {} tests ran because of `.only` ({named}{more}); {runner} does not tell of the others",
            tests.len()
        )
    })
}

/// Returns the number of the first line that narrows the tests of a file. A line of comment is none.
fn focused_line(text: &str) -> Option<usize> {
    const WORDS: [&str; 3] = ["describe.only", "it.only", "test.only"];
    let is_part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
    let narrows = |line: &str| {
        WORDS.iter().any(|word| {
            line.match_indices(word).any(|(index, _)| {
                let after = &line[index + word.len()..];
                !line[..index].ends_with(is_part_of_name) && (after.starts_with(['(', '.']))
            })
        })
    };
    let is_comment = |line: &str| ["//", "*", "/*"].iter().any(|mark| line.starts_with(mark));
    text.lines()
        .map(str::trim_start)
        .position(|line| !is_comment(line) && narrows(line))
        .map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_narrows_the_tests_is_found_and_no_other() {
        assert_eq!(focused_line("// test.only('a')\n  test.only('a', () => {});\n"), Some(2));
        assert_eq!(focused_line("x;describe.only.each([1])('a', () => {});\n"), Some(1));
        for text in ["latest.only(1)", "a.it.only()", "test.onlyIf(1)", "test('only')", " * it.only()"] {
            assert_eq!(focused_line(text), None, "{text}");
        }
    }
}
