//! Masks of secrets, and why they must not be written back.
//!
//! What leaves the server has its secrets masked, as in `[redacted:github-token]`. A model that read such a
//! text takes the mask for the content; writing it back would destroy the secret.

use memchr::memmem;

/// How every mask begins.
const START: &[u8] = b"[redacted:";
/// Longer than any mask: what has no `]` within it is compared as far as this.
const MAX_MASK: usize = 80;

/// The first mask in `text` that `original` does not contain.
pub(super) fn first_new(text: &[u8], original: &[u8]) -> Option<String> {
    masks(text)
        .find(|mask| memmem::find(original, mask).is_none())
        .map(|mask| String::from_utf8_lossy(mask).into_owned())
}

/// Whether `text` contains a mask.
pub(super) fn contains(text: &[u8]) -> bool {
    memmem::find(text, START).is_some()
}

fn masks(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    memmem::find_iter(text, START).map(|start| {
        let rest = &text[start..text.len().min(start + MAX_MASK)];
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
