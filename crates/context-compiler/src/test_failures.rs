//! The section with the failures of the last test run.

use crate::decoded_text::{TextEncoding, normalise, sha256_hex};
use crate::load::FileLoader;
use crate::manifest::SectionKind;
use crate::request::ContextRequest;
use crate::section::{QuotedSection, SourceProvenance};
use crate::text_pieces;
use std::borrow::Cow;

/// The most bytes of the output that are used: the cost of counting tokens and of finding names grows with the text, and no
/// reader has a use for more.
const MAX_BYTES: usize = 256 * 1024;
/// The bytes at the end that are kept, where test runners sum up.
const TAIL_BYTES: usize = 192 * 1024;
/// The most bytes of a task in words.
const MAX_TASK_BYTES: usize = 64 * 1024;

/// Returns the request with no more text of its caller than is used.
pub(crate) fn bounded_request(request: &ContextRequest) -> Cow<'_, ContextRequest> {
    let output = request.test_failures.as_deref().filter(|output| output.len() > MAX_BYTES);
    let task = request.task.as_deref().filter(|task| task.len() > MAX_TASK_BYTES);
    if output.is_none() && task.is_none() {
        return Cow::Borrowed(request);
    }
    let mut bounded = request.clone();
    if let Some(output) = output {
        bounded.test_failures = Some(bounded_output(output));
    }
    if let Some(task) = task {
        bounded.task = Some(task[..boundary_before(task, MAX_TASK_BYTES)].to_owned());
    }
    Cow::Owned(bounded)
}

/// Returns the beginning and the end of `output`, with a line between them that says how much is left out.
fn bounded_output(output: &str) -> String {
    let head = &output[..boundary_before(output, MAX_BYTES - TAIL_BYTES)];
    let tail = &output[boundary_before(output, output.len() - TAIL_BYTES)..];
    let left_out = output.len() - head.len() - tail.len();
    format!("{head}\n[{left_out} bytes are left out here]\n{tail}")
}

/// Returns the last place up to `index` at which no character is cut. The oldest Rust of this crate has no method for that.
fn boundary_before(text: &str, index: usize) -> usize {
    (0..=index).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0)
}

/// Returns the section that quotes `output`, or `None` if it is empty.
pub(crate) fn test_failures_section(loader: &FileLoader<'_>, output: &str) -> Option<QuotedSection> {
    let (text, redactions) = loader.mask(normalise(output));
    (!text.is_empty()).then(|| QuotedSection {
        path: "test failures".to_owned(),
        kind: SectionKind::TestFailures,
        why: "failures of the last test run".to_owned(),
        language: "text",
        pieces: text_pieces::split_plain_text(&text),
        provenance: SourceProvenance {
            bytes: output.len() as u64,
            sha256: sha256_hex(output.as_bytes()),
            encoding: TextEncoding::Utf8,
            redactions,
            ..SourceProvenance::default()
        },
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let output = format!("first{}last", "é".repeat(MAX_BYTES));
        let mut request = ContextRequest::new("dev").test_failures(output);
        request.task = Some("é".repeat(MAX_TASK_BYTES));
        let bounded = bounded_request(&request);
        let text = bounded.test_failures.as_deref().unwrap();
        assert!(text.len() <= MAX_BYTES + 64, "{}", text.len());
        assert!(text.starts_with("firsté") && text.ends_with("élast"));
        assert!(text.contains("bytes are left out here]"));
        assert_eq!(bounded.task.as_ref().unwrap().len(), MAX_TASK_BYTES);
        let short = ContextRequest::new("dev").test_failures("short");
        assert!(matches!(bounded_request(&short), Cow::Borrowed(_)));
    }
}
