//! [`DeadlineOwner`]: who ends a call that takes too long.

/// The deadline that ends a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeadlineOwner {
    /// The host's.
    Host,
    /// The tool's own, a time limit among its parameters. The host's is only a backstop.
    Own,
    /// Those of the calls that the tool makes. The host's is longer than all of them together.
    InnerCalls,
}
