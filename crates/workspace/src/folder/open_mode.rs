//! The ways in which a file is opened.

/// The mode in which a file is opened. A link in the last place is never followed, and nothing blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OpenMode {
    /// To read an existing regular file.
    Read,
    /// To add to the end of an existing regular file.
    Append,
    /// To write a file that must not exist yet, readable by its owner only if `private`.
    New {
        /// Mode 0600 instead of 0666 less the umask.
        #[cfg_attr(not(unix), allow(dead_code, reason = "there are no modes"))]
        private: bool,
    },
}
