//! The size of reads and writes of pipes.

/// The most bytes that one read or write of a pipe moves. It is the size of a Linux pipe (pipe(7)), so that a larger
/// buffer would gain nothing.
pub(super) const PIPE_CHUNK: usize = 64 * 1024;
