//! The permit that a call waits for.

/// The reason why a call waits for a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitReason {
    /// Its caller runs as many calls as it may.
    CallsOfCaller(u64),
    /// Its caller runs as many programs as it may.
    ProgramsOfCaller(u64),
    /// All callers together run as many programs as there may be.
    ProgramsOfServer(u64),
    /// All callers together have as many calls that run a program as there may be.
    ProgramCallsOfServer(u64),
    /// All callers together run as many calls as there may be.
    CallsOfServer(u64),
}
