//! Finds masks of secrets in text that is about to be written.
//!
//! Secrets are masked in everything that leaves the server, as in `[redacted:github-token]`. A model that reads such
//! a text takes the mask for the content; writing it back would destroy the secret.

use memchr::memmem;

/// The beginning of every mask.
const START: &[u8] = b"[redacted:";
/// The most bytes of a mask: more than any mask has.
const MAX_MASK_BYTES: usize = 80;

/// Returns the first mask in `text` that `original` does not contain.
pub(super) fn first_new(text: &[u8], original: &[u8]) -> Option<String> {
    masks(text)
        .find(|mask| memmem::find(original, mask).is_none())
        .map(|mask| String::from_utf8_lossy(mask).into_owned())
}

/// Returns true if `text` contains a mask.
pub(super) fn contains(text: &[u8]) -> bool {
    memmem::find(text, START).is_some()
}

/// Iterates over the masks in `text`. One that is not closed on its line counts as [`START`] alone, so that a mask
/// which the model mangled is found too.
fn masks(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    memmem::find_iter(text, START).map(|start| {
        let rest = &text[start..text.len().min(start + MAX_MASK_BYTES)];
        let end = memchr::memchr2(b']', b'\n', rest)
            .map_or(START.len(), |end| if rest[end] == b']' { end + 1 } else { START.len() });
        &rest[..end]
    })
}

#[cfg(test)]
mod tests {
    use super::first_new;

    #[test]
    fn only_a_mask_that_the_original_lacks_is_found() {
        assert_eq!(
            first_new(b"key = [redacted:aws-key]\n", b"key = AKIA"),
            Some("[redacted:aws-key]".into())
        );
        assert_eq!(first_new(b"a [redacted:x] b", b"docs: [redacted:x]"), None);
        assert_eq!(first_new(b"[redacted:x] [redacted:y]", b"[redacted:x]"), Some("[redacted:y]".into()));
        assert_eq!(first_new(b"none", b""), None);
    }

    #[test]
    fn an_unfinished_mask_counts() {
        assert_eq!(first_new(b"[redacted:\nx]", b""), Some("[redacted:".into()));
        assert_eq!(first_new(b"[redacted:", b""), Some("[redacted:".into()));
    }
}
