//! [`caller_slug`]: the name of a caller as engines take names.

use sha2::{Digest, Sha256};

/// The most characters of the part of a name that is kept.
const MAX_KEPT: usize = 24;

/// Returns the name of a caller as containers, jobs and users are named: 1 to 40 of `a-z`, `0-9` and `-`. Two names have
/// two slugs. One that had to be changed ends in a part of its hash.
///
/// ```
/// assert_eq!(remotes::caller_slug("ada"), "ada");
/// assert!(remotes::caller_slug("Ada Lovelace").starts_with("ada-lovelace-"));
/// ```
pub fn caller_slug(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if !name.is_empty() && name.len() <= MAX_KEPT && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let mut slug = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        match is_plain(c) {
            true => slug.push(c),
            false if slug.is_empty() || slug.ends_with('-') => {}
            false => slug.push('-'),
        }
        // One character is left for the hyphen before the hash.
        if slug.len() == MAX_KEPT - 1 {
            break;
        }
    }
    if !slug.is_empty() && !slug.ends_with('-') {
        slug.push('-');
    }
    // A plain name has no `-`, so that no changed name is one.
    let digest = Sha256::digest(name.as_bytes());
    slug.extend(digest[..8].iter().map(|byte| format!("{byte:02x}")));
    // Nothing of the name was kept. Without a `-`, the hash alone could be the slug of a plain name.
    if slug.len() == 16 {
        slug.insert_str(0, "x-");
    }
    slug
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn different_callers_have_different_slugs_that_every_engine_takes() {
        let names = [
            "ada",
            "Ada",
            "ada-",
            "ada@example.com",
            "",
            "-",
            "ä",
            "o",
            "0",
            "a b",
            "a  b",
            &"x".repeat(24),
            &"x".repeat(25),
            &"é".repeat(100),
        ];
        let slugs: Vec<String> = names.iter().map(|name| caller_slug(name)).collect();
        assert_eq!(slugs.iter().collect::<HashSet<_>>().len(), names.len(), "{slugs:?}");
        for slug in &slugs {
            assert!(
                (1..=40).contains(&slug.len()) && !slug.starts_with('-') && !slug.ends_with('-'),
                "{slug}"
            );
            assert!(
                slug.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
                "{slug}"
            );
        }
        assert_eq!(slugs[0], "ada");
    }
}
