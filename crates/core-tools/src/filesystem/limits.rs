//! Limits that several tools share.

/// The largest text of one answer, in bytes: about 10,000 tokens.
// The unit is bytes and not tokens, so that an answer is the same for every model. More than this in one answer
// crowds out what the model already holds; notes say how to ask for the rest.
pub const MAX_TEXT_BYTES: usize = 40_000;
