//! The faults of a call's arguments.

/// The faults of a call's arguments, one a line, at most 8 of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct InvalidArguments(Vec<String>);

/// More faults than this say no more than the first ones.
const MAX_FAULTS: usize = 8;

/// Collects faults while arguments are checked.
#[derive(Debug, Default)]
pub(super) struct ArgumentFaults(Vec<String>);

impl ArgumentFaults {
    pub(super) fn push(&mut self, fault: String) {
        if self.0.len() < MAX_FAULTS {
            self.0.push(fault);
        }
    }

    /// Returns `value` if there are no faults.
    pub(super) fn into_result<T>(self, value: T) -> Result<T, InvalidArguments> {
        if self.0.is_empty() { Ok(value) } else { Err(InvalidArguments(self.0)) }
    }
}
