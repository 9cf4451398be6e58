//! Lines and members of logs, in which more is masked than elsewhere.

use super::redactor;
use super::samples::harmless;

#[test]
fn passwords_of_letters_and_ids_of_sessions_are_masked_in_logs() {
    for (before, secret, after, kind) in [
        ("user=a password=", "correcthorse", " n=1", "password"),
        ("{\"level\":\"error\",\"password\":\"", "correcthorse", "\"}", "password"),
        ("{\"db_password\": \"", "correcthorse", "\"}", "password"),
        (r#"body="{\"password\":\""#, "correcthorse", r#"\"}""#, "password"),
        ("POST /login?user=a&password=", "Correcthorse", "&x=1", "password"),
        ("ERROR password: ", "Tr0ub4dor3xyz", "", "password"),
        ("ERROR client_secret: ", "Tr0ub4dor3xyz", ", next", "secret"),
        ("session_id=", "9f8e7d6c5b4a", " up", "session"),
        ("{\"sessionId\":\"", "s-1a2b3c4d", "\"}", "session"),
        ("sid: ", "550e8400-e29b-41d4-a716-446655440000", "", "session"),
        ("connect.sid=", "s%3AkJ8s9dfKJH23kjh", "; x", "session"),
        ("level=error db_password=\"", "quoted pw 33", "\" n=1", "password"),
        ("{\"password\":\"", "purple horse battery staple", "\"}", "password"),
        ("X-Api-Key: ", "zzzzkey88", "", "api-key"),
        ("Cookie: ", "sid=abcdefabcdef; theme=dark", "", "cookie"),
    ] {
        let text = format!("{before}{secret}{after}");
        assert_eq!(redactor().redact_log(&text), format!("{before}[redacted:{kind}]{after}"), "{text}");
    }
}

#[test]
fn nothing_harmless_of_the_table_and_no_word_for_a_password_is_touched_in_logs() {
    // A log has no words of a user interface, and the id of a session is masked there.
    let is_session = |text: &String| text.contains("session_id") || text.contains("Kennwort");
    let lines = [
        "password=None",
        "password=null user=a",
        "password: string",
        "password: incorrect for user bob",
        "login failed: password expired",
        "invalid password: Correcthorse is not allowed",
        "password = read_password()",
        "password=read_password()",
        "password=passwordField",
        "\"password\":\"required\"",
        "{\"password\":\"[FILTERED]\"}",
        "auth method=password user=a",
        "session_id=42 closed",
        "ORACLE_SID=ORCL sid=XE",
        "sid=S-1-5-21-3623811015-3361044348-30300820-1013",
        "Session ID: none",
        "{\"password\":\"must be at least 8 characters\"}",
        "password=\"is too short\"",
        "{\"password\":[\"The password field is required.\"]}",
        "Cookie: none",
        "apiKey=missing apiKey=user-service",
    ];
    for text in harmless().into_iter().filter(|text| !is_session(text)).chain(lines.map(String::from)) {
        assert_eq!(redactor().redact_log(&text), text);
    }
}

#[test]
fn the_members_of_a_log_entry_are_masked_in_lists_too() {
    let mut fields = serde_json::json!({
        "headers": {"Cookie": ["session=8f3kd9sl2m4n5b6v7c8x"], "Set-Cookie": ["sid=8f3kd9sl2m4n5b6v7c8x; Path=/"],
            "X-Api-Key": ["8f3kd9sl2m4n5b6v7c8x", "a1b2c3d4e5f6g7h8i9"], "Accept": ["text/html"]},
        "password": "correcthorse", "db_password": "quoted pw 33", "cookie": "sid=abcdefabcdef", "path": "/login", "n": 1,
        "errors": {"password": "must be at least 8 characters"}
    });
    assert!(redactor().redact_log_member("", &mut fields));
    let text = fields.to_string();
    for secret in
        ["8f3kd9sl2m4n5b6v7c8x", "a1b2c3d4e5f6g7h8i9", "correcthorse", "quoted pw 33", "abcdefabcdef"]
    {
        assert!(!text.contains(secret), "{text}");
    }
    assert!(text.contains("must be at least 8 characters"), "{text}");
    assert!(text.contains("text/html") && text.contains("/login"), "{text}");
}
