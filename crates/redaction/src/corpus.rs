//! The corpus of `corpus/`: how many of 200 secrets are masked, and how many of 200 harmless texts are not.

use crate::{RedactionOptions, Redactor};
use std::borrow::Cow;

#[path = "../corpus/text.rs"]
#[allow(unreachable_pub, reason = "an example has the same module")]
mod text;

fn redactor() -> Redactor {
    Redactor::new(RedactionOptions::default()).unwrap()
}

#[test]
fn each_of_200_secrets_is_masked() {
    let secrets = text::secrets();
    assert_eq!(secrets.len(), 200);
    let redactor = redactor();
    let missed: Vec<_> = secrets
        .iter()
        .filter(|sample| redactor.redact(&sample.text).contains(&sample.secret))
        .map(|sample| format!("{:?}\n    {:?}", sample.text, redactor.redact(&sample.text)))
        .collect();
    assert!(secrets.iter().all(|sample| !sample.secret.is_empty()));
    assert!(missed.is_empty(), "{} of 200 are missed:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn none_of_200_harmless_texts_is_touched() {
    let harmless = text::harmless();
    assert_eq!(harmless.len(), 200);
    let alarms: Vec<_> = harmless
        .iter()
        .filter_map(|text| match redactor().redact(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(redacted) => Some(format!("{text:?}\n    became {redacted:?}")),
        })
        .collect();
    assert!(alarms.is_empty(), "{} false alarms:\n{}", alarms.len(), alarms.join("\n"));
}

/// The text around a secret stays: masks take the secret and no more, so that the text can still be read.
#[test]
fn what_is_beside_a_secret_stays() {
    let spoiled: Vec<_> = text::secrets()
        .into_iter()
        .filter(|sample| !sample.text.contains('\n') && sample.text.matches(&sample.secret).count() == 1)
        .filter_map(|sample| {
            let redacted = redactor().redact(&sample.text).into_owned();
            let (before, after) = sample.text.split_once(&sample.secret)?;
            let stays = redacted.starts_with(before) && redacted.ends_with(after);
            // Another secret beside it, such as the id of an access key, goes too.
            let is_only = redacted.matches("[redacted:").count() == 1;
            (!stays && is_only).then_some(format!("{:?}\n    became {redacted:?}", sample.text))
        })
        .collect();
    assert!(spoiled.is_empty(), "{}:\n{}", spoiled.len(), spoiled.join("\n"));
}

#[test]
fn the_hash_of_a_commit_near_an_access_key_is_no_secret() {
    let id = format!("{}{}", "AKIA", "IOSFODNN7EXAMPLE");
    let hash = "3f5a9c1e7b2d4860fa13c5e79b0d2f4681a3c5e7";
    let redacted = redactor().redact(&format!("{id} leaked in commit {hash}\n")).into_owned();
    assert!(redacted.contains(hash) && !redacted.contains(&id), "{redacted}");
}
