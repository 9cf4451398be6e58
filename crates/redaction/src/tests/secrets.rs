//! Every secret of the table is masked, and nothing harmless is.

use super::samples::{SecretSample, harmless, secrets};
use super::{ALNUM, BASE64, BASE64_URL, LOWER_HEX, random, redactor};
use crate::mask::MARK;
use std::borrow::Cow;

#[test]
fn every_secret_of_the_table_is_masked_and_nothing_beside_it() {
    let all = secrets();
    assert!(all.len() >= 60, "{} examples", all.len());
    let failures: Vec<String> = all
        .iter()
        .filter_map(|SecretSample { text, secret, kind }| {
            let redacted = redactor().redact(text).into_owned();
            // An access key id before the secret goes as well.
            let expected = text.replace(secret.as_str(), &format!("[redacted:{kind}]"));
            let fits = redacted == expected
                || (!redacted.contains(secret.as_str())
                    && redacted.ends_with(&expected[expected.rfind(MARK).unwrap()..]));
            (!fits).then(|| format!("{kind}: {text:?}\n    became {redacted:?}"))
        })
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), all.len(), failures.join("\n"));
}

#[test]
fn of_a_thousand_values_made_by_chance_few_pass() {
    // How many of each may: short ones and those without capitals look more like words.
    let lower = "abcdefghijklmnopqrstuvwxyz0123456789";
    for (alphabet, length, most) in [
        (LOWER_HEX, 32, 8),
        (LOWER_HEX, 64, 0),
        (ALNUM, 16, 100),
        (ALNUM, 24, 12),
        (ALNUM, 32, 6),
        (BASE64, 44, 4),
        (BASE64_URL, 43, 4),
        (lower, 24, 90),
        (lower, 32, 70),
    ] {
        let passed = (0..1000)
            .map(|seed| format!("api_key = \"{}\"", random(1000 + seed, alphabet, length)))
            .filter(|text| matches!(redactor().redact(text), Cow::Borrowed(_)))
            .count();
        assert!(passed <= most, "{passed} of 1000 values of {length} from {} characters", alphabet.len());
    }
}

#[test]
fn nothing_harmless_of_the_table_is_touched() {
    let all = harmless();
    assert!(all.len() >= 60, "{} examples", all.len());
    let failures: Vec<String> = all
        .iter()
        .filter_map(|text| match redactor().redact(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(redacted) => Some(format!("{text:?}\n    became {redacted:?}")),
        })
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), all.len(), failures.join("\n"));
}

#[test]
fn passwords_in_lists_with_signs_and_in_lines_of_variables_are_masked() {
    for (text, secret) in [
        ("password: Tr0ub4dor&3xyz\n", "Tr0ub4dor&3xyz"),
        ("db_password: abc123&def\n", "abc123&def"),
        ("passwords: [hunter22x, s3cretwort]\n", "hunter22x"),
        ("passwords: [hunter22x, s3cretwort]\n", "s3cretwort"),
        ("\"passwords\": [\n  \"hunter22x\",\n  \"pa&&wort!\"\n]\n", "pa&&wort!"),
        ("admin_passwords:\n  - hunter22x\n  - 's3cret wort'\n  - wort!99\nnext: a\n", "hunter22x"),
        ("admin_passwords:\r\n  - hunter22x\r\n  - wort!99\r\n", "wort!99"),
        ("DB_PASSWORD=correcthorse\n", "correcthorse"),
        ("A=1\nexport DB_PASSWORD=correcthorse\nB=2\n", "correcthorse"),
    ] {
        let masked = redactor().redact(text).into_owned();
        assert!(!masked.contains(secret), "{text:?} became {masked:?}");
    }
    for text in [
        "fn login(password: &str, secret: &'static str) {}\n",
        "password: &default_password\n",
        "passwords: [password1(), get(2)]\n",
        "let passwords: [String; 2] = make();\n",
        "passwords: [required, optional]\n",
        "secrets: [db_password2, api_key_1]\n",
        "passwords:\n  - ${DB_PASSWORD}\n  - <password>\n",
        "passwords: []\n",
        "DB_PASSWORD=required\n",
        "DB_PASSWORD=changeme\n",
        "DB_PASSWORD=$(cat /run/secret)\n",
        "DB_PASSWORD=\n",
        "PASSWORD=value docker run image\n",
    ] {
        assert_eq!(redactor().redact(text), text);
    }
}
