//! Known values, secret variables, JSON, and redaction that is off.

use super::samples::{SecretSample, secrets};
use super::{ALNUM, random, redactor};
use crate::{RedactionOptions, Redactor, secret_environment};
use std::borrow::Cow;

#[test]
fn exact_values_are_masked_in_every_form() {
    let value = "hunter2 \"quoted\" & more";
    let redactor = Redactor::new(RedactionOptions {
        values: vec![value.to_owned(), "short".to_owned()],
        ..RedactionOptions::default()
    })
    .unwrap();
    let json = serde_json::json!({ "x": value }).to_string();
    for text in [value, &json, "q=hunter2%20%22quoted%22%20%26%20more", "aHVudGVyMiAicXVvdGVkIiAmIG1vcmU="] {
        let redacted = redactor.redact(text);
        assert!(redacted.contains("[redacted:environment]"), "{redacted}");
    }
    assert_eq!(redactor.redact("a short text"), "a short text", "values under 8 bytes are ignored");
}

#[test]
fn the_values_of_secret_variables_are_chosen_by_name() {
    let value = "value-of-12";
    for name in [
        "GITHUB_TOKEN",
        "Api_Key",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "MY_CREDENTIALS",
        "APIKEY",
        "PRIVATE_THING",
        "HTTP_AUTH",
        "CONNECTION_STRING",
        "ConnectionString",
        "PGPASSWORD",
        "DB_PASS",
    ] {
        assert_eq!(secret_environment([(name, value)]), [value], "{name}");
    }
    for name in [
        "PATH",
        "HOME",
        "GIT_AUTHOR_NAME",
        "SSH_AUTH_SOCK",
        "XAUTHORITY",
        "KEYMAP",
        "OLDPWD",
        "PWD",
        "GPG_PUBLIC_KEY",
        "TOKEN_FILE",
        "MAX_TOKENS",
    ] {
        assert!(secret_environment([(name, value)]).is_empty(), "{name}");
    }
    for value in ["short", "postgres", "10000000", "        "] {
        assert!(secret_environment([("DB_PASSWORD", value)]).is_empty(), "{value:?}");
    }
    assert!(secret_environment([("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json")]).is_empty());
}

#[test]
fn json_is_redacted_by_the_name_of_the_member_and_keeps_its_shape() {
    let secret = random(80, ALNUM, 24);
    let token = format!("ghp_{}", random(81, ALNUM, 36));
    let mut value = serde_json::json!({
        "password": secret, "count": 3, "ok": true, "none": null, "path": "src/main.rs",
        "list": [format!("a {token} b"), { "apiKey": secret }], token.as_str(): "as a name",
    });
    redactor().redact_json(&mut value);
    insta::assert_json_snapshot!(value, @r#"
    {
      "password": "[redacted:password]",
      "count": 3,
      "ok": true,
      "none": null,
      "path": "src/main.rs",
      "list": [
        "a [redacted:github-token] b",
        {
          "apiKey": "[redacted:api-key]"
        }
      ],
      "[redacted:github-token]": "as a name"
    }
    "#);
}

#[test]
fn a_redactor_that_is_off_returns_the_text_as_it_is() {
    let redactor =
        Redactor::new(RedactionOptions { enabled: false, values: vec!["known-value".to_owned()] }).unwrap();
    for SecretSample { text, .. } in secrets() {
        assert!(matches!(redactor.redact(&text), Cow::Borrowed(same) if same == text));
    }
    let mut value = serde_json::json!({ "password": random(80, ALNUM, 24) });
    let before = value.clone();
    redactor.redact_json(&mut value);
    assert_eq!(value, before);
}

#[test]
fn neither_options_nor_redactor_print_a_value() {
    let options = RedactionOptions { values: vec!["known-value".to_owned()], ..RedactionOptions::default() };
    let shown = format!("{options:?} {:?}", Redactor::new(options.clone()).unwrap());
    assert!(!shown.contains("known-value"), "{shown}");
}
