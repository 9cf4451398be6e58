//! [`Place`]: the surroundings of a statement of shell.

/// The surroundings of a statement.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "the facts are independent of each other")]
pub(super) struct Place {
    /// The exit code of the statement becomes that of the whole if it ends with it.
    pub(super) tail: bool,
    /// An exit of the shell with a failure becomes that of the whole.
    pub(super) exit: bool,
    /// A return from the function with a failure becomes that of the whole.
    pub(super) returns: bool,
    /// `set -e` has no effect here: in a condition, before `&&`.
    pub(super) ignores_errexit: bool,
    pub(super) is_condition: bool,
    pub(super) is_background: bool,
    pub(super) depth: usize,
}

impl Place {
    pub(super) const TOP: Self = Self {
        tail: true,
        exit: true,
        returns: true,
        ignores_errexit: false,
        is_condition: false,
        is_background: false,
        depth: 0,
    };

    /// Returns the place of a statement whose exit code nothing passes on.
    pub(super) fn lost(self) -> Self {
        Self { tail: false, exit: false, returns: false, ..self }
    }

    pub(super) fn with_tail(self, tail: bool) -> Self {
        Self { tail, ..self }
    }

    /// Returns the place of a shell of its own, whose exit code is passed on or not.
    pub(super) fn in_subshell(self, passes: bool) -> Self {
        Self { tail: passes, exit: passes, returns: passes, ..self }
    }

    pub(super) fn condition(self, tail: bool) -> Self {
        Self { tail, ignores_errexit: true, is_condition: true, ..self }
    }
}
