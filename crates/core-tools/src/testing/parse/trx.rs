//! The results of Visual Studio's TRX.

use super::xml_attributes::text;
use crate::testing::results::{TestCase, TestStatus};
use quick_xml::events::BytesStart;

/// Reads the attributes of a `UnitTestResult`. Its duration is `hh:mm:ss.fffffff`.
pub(super) fn test_case(element: &BytesStart<'_>) -> TestCase {
    let status = match text(element, "outcome").as_deref() {
        Some("Passed") => TestStatus::Passed,
        Some("Failed") => TestStatus::Failed,
        Some("Timeout") => TestStatus::TimedOut,
        Some("Error" | "Aborted") => TestStatus::Errored,
        _ => TestStatus::Skipped,
    };
    let duration = text(element, "duration").and_then(|duration| {
        duration.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))
    });
    TestCase {
        duration_ms: duration.map(|seconds| (seconds * 1_000_000.0).round() / 1000.0),
        ..TestCase::new(text(element, "testName").unwrap_or_default(), status)
    }
}
