//! A finding of the doctor.

use serde::Serialize;

/// One thing that was checked.
#[derive(Debug, Serialize)]
pub(super) struct DoctorFinding {
    pub(super) what: &'static str,
    pub(super) state: CheckHealth,
    pub(super) detail: String,
    /// The remedy, if something is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CheckHealth {
    /// As it should be.
    Ok,
    /// Works, with something missing that some users need.
    Note,
    /// Does not work.
    Broken,
}

/// Something is as it should be.
pub(super) fn ok(what: &'static str, detail: impl Into<String>) -> DoctorFinding {
    DoctorFinding { what, state: CheckHealth::Ok, detail: detail.into(), remedy: None }
}

/// Something is missing that some users need.
pub(super) fn note(
    what: &'static str,
    detail: impl Into<String>,
    remedy: impl Into<String>,
) -> DoctorFinding {
    DoctorFinding { what, state: CheckHealth::Note, detail: detail.into(), remedy: Some(remedy.into()) }
}

/// Something does not work.
pub(super) fn broken(
    what: &'static str,
    detail: impl Into<String>,
    remedy: impl Into<String>,
) -> DoctorFinding {
    DoctorFinding { what, state: CheckHealth::Broken, detail: detail.into(), remedy: Some(remedy.into()) }
}
