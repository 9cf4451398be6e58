//! The table of what is a secret and what is not. The secrets are made here from parts, none is real, and no
//! scanner of repositories should find one in this file.

use std::borrow::Cow;

use serde_json::Value;

use crate::mask::{MARK, mark_end};
use crate::{RedactionOptions, Redactor, secret_environment};
use proptest::prelude::*;

const LOWER_HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// `length` characters of `alphabet`, always the same ones for the same `seed`.
fn random(seed: u64, alphabet: &str, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(alphabet.as_bytes()[usize::try_from(state >> 33).unwrap() % alphabet.len()])
        })
        .collect()
}

fn redactor() -> Redactor {
    Redactor::new(RedactionOptions::default()).unwrap()
}

/// A text, the part of it that must go, and the kind that the mark must name.
struct SecretSample {
    text: String,
    secret: String,
    kind: &'static str,
}

fn secrets() -> Vec<SecretSample> {
    let mut all = Vec::new();
    let mut add = |kind: &'static str, before: &str, secret: String, after: &str| {
        all.push(SecretSample { text: format!("{before}{secret}{after}"), secret, kind });
    };
    let token = |prefix: &str, alphabet: &str, length: usize| {
        format!("{prefix}{}", random(prefix.len() as u64 * 31 + length as u64, alphabet, length))
    };

    // Known shapes, in the surroundings where they turn up.
    for prefix in ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"] {
        add("github-token", "remote: ", token(prefix, ALNUM, 36), " rejected");
    }
    add("github-token", "TOKEN=", token("github_pat_", ALNUM, 82), "\n");
    add("github-token", "https://", token("ghp_", ALNUM, 36), "@github.com/a/b.git");
    add("gitlab-token", "PRIVATE-TOKEN: ", token("glpat-", BASE64_URL, 20), "");
    add("gitlab-token", "'", format!("{}.01.{}", token("glpat-", BASE64_URL, 27), "0z1x2c3v4"), "'");
    add("gitlab-token", "runner ", token("glrt-", BASE64_URL, 20), " registered");
    add("coretools-token", "Token: ", token("ctk_0123456789ab_", BASE64_URL, 43), " is for ada");
    add("coretools-token", "curl -H 'X: ", token("ctk_0123456789ab_", BASE64_URL, 49), "'");
    add("bitbucket-token", "x-token-auth:", token("ATBB", ALNUM, 32), " ");
    add("aws-access-key-id", "aws_access_key_id = ", token("AKIA", UPPER, 16), "\n");
    add("aws-access-key-id", "\"AccessKeyId\": \"", token("ASIA", UPPER, 16), "\",");
    add("aws-secret-key", "aws_secret_access_key = ", random(3, BASE64, 40), "\n");
    add("aws-secret-key", &format!("{},", token("AKIA", UPPER, 16)), random(5, BASE64, 40), "\n");
    add("google-api-key", "&key=", token("AIza", BASE64_URL, 35), "&v=3");
    add("google-client-secret", "\"", token("GOCSPX-", BASE64_URL, 28), "\"");
    add("google-oauth-token", "access ", token("ya29.", BASE64_URL, 60), " ok");
    add("slack-token", "slack: ", token("xoxb-1234567890-", ALNUM, 24), "");
    add("slack-token", "slack: ", token("xoxp-1234567890-", ALNUM, 24), "");
    add("slack-token", "app ", token("xapp-1-A0", ALNUM, 40), "");
    add(
        "slack-webhook",
        "https://hooks.slack.com/services/T0AAAAAAA/B0BBBBBBB/",
        random(7, ALNUM, 24),
        " posted",
    );
    add("discord-webhook", "https://discord.com/api/webhooks/1234567890/", random(8, BASE64_URL, 68), "");
    add(
        "discord-token",
        "bot ",
        format!("M{}.{}.{}", random(9, ALNUM, 25), random(10, BASE64_URL, 6), random(11, BASE64_URL, 38)),
        "\n",
    );
    add(
        "telegram-token",
        "https://api.telegram.org/bot",
        format!("123456789:AA{}", random(12, BASE64_URL, 33)),
        "/getMe",
    );
    add("stripe-key", "Stripe.api_key = \"", token("sk_live_", ALNUM, 24), "\"");
    add("stripe-key", "key ", token("rk_live_", ALNUM, 99), ".");
    add("webhook-secret", "(", token("whsec_", BASE64, 32), ")");
    add(
        "openai-key",
        "openai: ",
        format!("{}{}{}", token("sk-", ALNUM, 20), "T3Blbk", random(13, ALNUM, 22)),
        "",
    );
    add("openai-key", "export K=", token("sk-proj-", BASE64_URL, 120), "");
    add("anthropic-key", "x: ", token("sk-ant-api03-", BASE64_URL, 95), "");
    add("openrouter-key", "x: ", token("sk-or-v1-", LOWER_HEX, 64), "");
    add("groq-key", "x: ", token("gsk_", ALNUM, 52), "");
    add("huggingface-token", "login --with ", token("hf_", ALNUM, 34), "");
    add("npm-token", "//registry.npmjs.org/:_authToken=", token("npm_", ALNUM, 36), "\n");
    add("pypi-token", "-p ", token("pypi-AgEIcHlwaS5vcmc", BASE64_URL, 120), "");
    add("crates-io-token", "cargo login ", token("cio", ALNUM, 32), "");
    add("rubygems-key", ":k: ", token("rubygems_", LOWER_HEX, 48), "");
    add("docker-token", "docker login -p ", token("dckr_pat_", BASE64_URL, 27), "");
    add("digitalocean-token", "doctl auth init -t ", token("dop_v1_", LOWER_HEX, 64), "");
    add("databricks-token", "host, ", token("dapi", LOWER_HEX, 32), "");
    add("shopify-token", "X-Shopify-Access-Token: ", token("shpat_", LOWER_HEX, 32), "");
    add("vault-token", "vault login ", token("hvs.", BASE64_URL, 90), "");
    add("age-secret-key", "# public key: age1\n", token("AGE-SECRET-KEY-1", UPPER, 58), "\n");
    add(
        "sendgrid-key",
        "send ",
        format!("{}.{}", token("SG.", BASE64_URL, 22), random(15, BASE64_URL, 43)),
        " ",
    );
    add("twilio-key", "sid ", token("SK", LOWER_HEX, 32), "");
    add("mailgun-key", "api:", token("key-", LOWER_HEX, 32), "");
    add("grafana-token", "g ", token("glsa_", ALNUM, 41), "");
    add("linear-key", "l ", token("lin_api_", ALNUM, 40), "");
    add("atlassian-token", "a ", token("ATATT3xFfGF0", BASE64_URL, 170), "");
    add("doppler-token", "d ", token("dp.pt.", ALNUM, 43), "");
    add("pulumi-token", "p ", token("pul-", LOWER_HEX, 40), "");
    add("tailscale-key", "up --authkey ", token("tskey-auth-k1", ALNUM, 30), "");
    let jwt =
        format!("eyJ{}.eyJ{}.{}", random(16, ALNUM, 33), random(17, ALNUM, 80), random(18, BASE64_URL, 43));
    add("jwt", "Set-Cookie: session=", jwt.clone(), "; Path=/");
    add("jwt", "Authorization: Bearer ", jwt, "\r\n");

    // Credentials in the open.
    add("url-password", "postgres://app:", "s3cret".to_owned(), "@db.example.org:5432/app");
    add("url-password", "DATABASE_URL=mysql://root:", "p%40ss-w0rd".to_owned(), "@127.0.0.1/x");
    add("url-password", "amqp://guest:", "we/ird?pw".to_owned(), "@mq:5672");
    add("url-password", "git clone https://oauth2:", "abc:def".to_owned(), "@gitlab.example.org/a.git");
    add("url-password", "redis://:", "only-a-password".to_owned(), "@cache:6379/0");
    add("basic-credentials", "Authorization: Basic ", "dXNlcjpwYXNzd29yZA==".to_owned(), "\r\n");
    add("basic-credentials", "-H 'authorization: basic ", "YWRtaW46YWRtaW4x".to_owned(), "'");
    add("bearer-token", "Authorization: Bearer ", random(20, ALNUM, 40), "\r\n");
    add("bearer-token", "curl -H \"Authorization: Bearer ", random(21, LOWER_HEX, 40), "\" https://x");

    // Beside a name.
    let value = |seed| random(seed, ALNUM, 24);
    add("password", "DB_PASSWORD=", value(30), "\n");
    add("password", "password: \"", "xK9#mP2$vL5@nQ8!z".to_owned(), "\"\n");
    add("password", "{\"password\":\"", value(31), "\"}");
    add("password", r#"{\"password\":\""#, value(32), r#"\"}"#);
    add("password", "Server=db;User=sa;Password=", value(33), ";Encrypt=true");
    add("password", "machine example.org login me password ", value(34), "\n");
    add("secret", "client_secret = '", value(35), "'");
    add("secret", "export JWT_SECRET=", random(36, LOWER_HEX, 64), "\n");
    add("secret", "  secretKey: ", random(37, BASE64, 44), "\n");
    add("secret", "<clientSecret>", value(38), "</clientSecret>");
    add("secret", "const CLIENT_SECRET: &str = \"", value(39), "\";");
    add("api-key", "let apiKey: string = '", value(40), "';");
    add("api-key", "X-Api-Key: ", random(41, LOWER_HEX, 32), "\r\n");
    add("api-key", "os.environ[\"SERVICE_API_KEY\"] = \"", value(42), "\"");
    add("api-key", "?api_key=", value(43), "&page=2");
    add("api-key", "config.set(\"api.key\", apiKey = \"", value(44), "\")");
    add("api-key", "DATADOG_KEY=", random(45, LOWER_HEX, 32), "\n");
    add("api-key", "HEROKU_API_KEY=", "01234567-89ab-4cde-8f01-23456789abcd".to_owned(), "\n");
    add("token", "access_token=", value(46), "&scope=all");
    add("token", "deploy --token ", value(47), " --now");
    add("token", "\"refreshToken\" : \"", value(48), "\",");
    add("token", "- name: SERVICE_TOKEN\n  value: ", value(49), "\n");
    add("token", "setenv(\"SERVICE_TOKEN\", \"", value(50), "\")");
    add(
        "azure-key",
        "AccountName=x;AccountKey=",
        format!("{}==", random(51, BASE64, 86)),
        ";EndpointSuffix=core.windows.net",
    );
    add("authorization", "_auth=", random(52, BASE64, 40), "\n");
    add("signature", "&X-Amz-Signature=", random(53, LOWER_HEX, 64), "");

    // Made up by a person, beside a name that can hold nothing else.
    for written in
        ["hunter2secret", "kJ8s9dfKJH23kjh", "correct-horse-battery-staple-99", "Tr0ub4dor&3xYz!", "h2s3cr"]
    {
        add("password", "{\"level\":\"error\",\"password\":\"", written.to_owned(), "\",\"n\":1}");
        add("password", "{'passwd': '", written.to_owned(), "'}");
        add("password", "db.password = \"", written.to_owned(), "\"");
    }
    add("password", "level=error msg=x password=", "hunter2secret".to_owned(), " n=1");
    add("password", "msg=\"pay failed\" password=", "hunter2secret".to_owned(), "\n");
    add("password", "login failed, password: ", "hunter2secret".to_owned(), "\n");
    add("password", "jdbc:mysql://db/x?user=a&password=", "kJ8s9dfKJH23".to_owned(), "&ssl=true");
    add("password", "Server=db;User=sa;Password=", "kJ8s9dfKJH23kj".to_owned(), ";Encrypt=true");
    add("password", "{\"pwd\":\"", "12345678901234567890".to_owned(), "\"}");
    add("password", r#"{\"password\":\""#, "hunter2secret".to_owned(), r#"\"}"#);
    add("secret", "{\"clientSecret\": \"", "hunter2secret".to_owned(), "\"}");
    add("token", "{\"token\":\"", "abc123def456".to_owned(), "\"}");
    add("api-key", "{\"apiKey\": \"", "abc123def456".to_owned(), "\"}");
    add("authorization", "{\"authorization\":\"", "Bearer abc123def456".to_owned(), "\"}");
    add("cookie", "{\"cookie\":\"", "sid=s%3AkJ8s9dfKJH23kjhQ72nZ.abcdefgh".to_owned(), "\"}");
    add("cookie", "Set-Cookie: sid=", "kJ8s9dfKJH23".to_owned(), "; Path=/\r\n");
    add("cookie", "Cookie: theme=", "dark; sid=kJ8s9dfKJH23".to_owned(), "\r\n");
    add("authorization", "Authorization: Bearer ", "abc123def456".to_owned(), "\r\n");
    add("session", "GET /;JSESSIONID=", "ab12cd34ef".to_owned(), "");
    all
}

fn harmless() -> Vec<String> {
    let hex40 = random(60, LOWER_HEX, 40);
    let hex64 = random(61, LOWER_HEX, 64);
    let sha512 = format!("sha512-{}==", random(62, BASE64, 86));
    let image = random(63, BASE64, 4000);
    let certificate = (0..12).map(|line| random(70 + line, BASE64, 64)).collect::<Vec<_>>().join("\n");
    let mut all: Vec<String> = [
        // Code about secrets.
        "token = get_token()",
        "let token = self.tokens.next_significant_token_2();",
        "password: \"changeme\"",
        "password = os.environ[\"APPLICATION_DB_PASSWORD_2\"]",
        "api_key = config.get(\"service.api_key\")",
        "const apiKey = process.env.SERVICE_API_KEY_V2;",
        "const apiKey = process.env.MY_COMPANY_SERVICE_API_KEY;",
        "password: ${{ secrets.DOCKERHUB_PASSWORD_2024 }}",
        "password: ${DB_PASSWORD}",
        "export TOKEN=$(cat /run/secrets/service-token-1)",
        "PASSWORD=\"$1\"",
        "fn parse_access_token(input: &str) -> Result<AccessToken, ParseAccessTokenError> {",
        "if (password.length < MINIMUM_PASSWORD_LENGTH_V2) return;",
        "type TokenKind = TokenKind::IdentifierOrKeyword;",
        "#[serde(rename = \"clientSecret\")] client_secret: Option<SecretString>,",
        "secret_name = \"projects/my-project-123456/secrets/database-prod-2\"",
        "secretName: my-application-tls-certificate-2024",
        "secret: my-application-database-credentials-2",
        "token_url: https://login.example.com/oauth2/v2.0/token",
        "\"token_type\": \"urn:ietf:params:oauth:token-type:access_token_v2\"",
        "password_hash_algorithm = \"pbkdf2_sha256_iterations_600000\"",
        "max_output_tokens = 1000000000000000",
        "credentials: 'same-origin'",
        "token: 0000000000000000000000",
        "secret: xxxxxxxxxxxxxxxxxxxxxxxx",
        "password: ************************",
        "api_key: YOUR_API_KEY_GOES_HERE_PLEASE",
        "api_key = \"<your-api-key-from-dashboard-1>\"",
        "publicKeyToken=b77a5c561934e089, Version=4.0.0.0",
        "SECRET_ALPHABET = \"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567\"",
        "next_page_token: \"\"",
        "the password is stored in /etc/application/credentials-v2.toml",
        "return tokenStream.peekNextTokenSkippingWhitespace2();",
        "password_field_placeholder_text_v2_label = 1",
        "pub const NCRYPT_GENERIC_KEY: X509HardwareKeyUsageFlags = 3i32;",
        "pub ImportMasterKey: SslImportMasterKeyFn,",
        "pub const D3D12_FLAG_SUSPENDING_PASS: D3D12_RENDER_PASS_FLAGS = D3D12_RENDER_PASS_FLAGS(2);",
        "pub trait IX509PrivateKey2: IX509PrivateKey_Impl {",
        // Literals that are no secret, expressions and types.
        "password: String256,",
        "password: Uint8Array",
        "password: Uint8Array;",
        "connect(user=user, password=password2)",
        "connect(user=user, password=self.password2, port=1)",
        "let password = password2;",
        "password = read_password_v2()",
        "password=None",
        "password: str",
        "password = argon2id_hash",
        "password=${PASSWORD1}",
        "\"password\": \"Forgot your password?\"",
        "\"password\": \"Kennwort\"",
        "\"password\": \"****\"",
        "\"password\": \"\"",
        "\"password\": null",
        "\"password\": \"changeme1\"",
        "\"password\": \"<password1>\"",
        "\"password\": \"{password1}\"",
        "password: '/run/secrets/db1'",
        "password=[FILTERED]",
        "PASSWORD_V2 = \"DB_PASSWORD_2\"",
        "\"secret\": \"my-tls-secret-2\"",
        "\"secret\": \"tls-certificate-2024\"",
        "\"token\": \"550e8400-e29b-41d4-a716-446655440000\"",
        "\"token\": \"NUMBER_2\"",
        "token = \"abc123def456\"",
        "{\"session_id\":\"s-1a2b3c4d\"}",
        "Cookie: <cookie>",
        "\"cookie\": \"Cookies\"",
        "\"authorization\": \"Bearer ${TOKEN1}\"",
        "authorization: authorizationHeader2,",
        // Identifiers that begin like a token.
        "sk-fading-circle-something-or-other-2",
        ".sk-ant-design-menu-item-selected-title {",
        "npm_config_registry_and_some_more_words_here",
        "npm_lifecycle_event=test",
        "hf_hub_download_with_retries_and_progress_bar",
        "ghp_short",
        "AKIA is a prefix",
        "SKELETON_LOADING_STATE_ANIMATION_DURATION",
        "let ciordering_for_all_the_elements_in_list = 1;",
        "api_organisation_membership_requests_path",
        "glpat-short",
        "ctk_0123456789ab is the id of a token",
        "key-value-store-with-a-very-long-name-2",
        // Addresses without a password.
        "https://example.org:8080/path/to/some/page@2x.png",
        "ssh://git@github.com/owner/repository.git",
        "git@github.com:owner/repository.git",
        "https://user@example.org/",
        "postgres://{user}:{password}@{host}:{port}/{name}",
        "postgres://${USER}:${PASSWORD}@localhost/db",
        "mysql://%s:%s@%s/%s",
        "http://[::1]:8080/a@b",
        "http://localhost:3000, contact: me@example.org",
        "see https://docs.example.org/a:b/c and mail x@y.org",
        // Prose and headers.
        "Use basic authentication or a bearer authentication-token-of-some-kind here.",
        "Authorization: Bearer <token>",
        "Authorization: Bearer $ACCESS_TOKEN_FROM_STEP_1",
        "Basic usage: run it",
        "WWW-Authenticate: Basic realm=\"files\"",
        // Identifiers of other things.
        "id = 550e8400-e29b-41d4-a716-446655440000",
        "token: 550e8400-e29b-41d4-a716-446655440000",
        "2026-01-02T03:04:05.678901234Z INFO request_id=01HQZX3V9K8J7M6N5P4Q3R2S1T done",
        "src/components/authentication/password-reset-form/index.test.tsx:120:33",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "grep -r 'BEGIN RSA PRIVATE KEY' .",
        "[redacted:github-token]",
        "password = [redacted:password]",
        "https://me:[redacted:url-password]@example.org",
    ]
    .map(String::from)
    .to_vec();
    all.extend([
        format!("commit {hex40}"),
        format!("{hex40} refs/heads/token"),
        format!("checksum = \"{hex64}\""),
        format!("\"integrity\": \"{sha512}\","),
        format!("  integrity {sha512}"),
        format!("github.com/a/b v1.2.3 h1:{}=", random(64, BASE64, 43)),
        format!("    --hash=sha256:{hex64} \\"),
        format!("image: example/app@sha256:{hex64}"),
        format!("<img src=\"data:image/png;base64,{image}\">"),
        format!("cache-key: {hex64}"),
        format!("\"key\": \"{hex40}\""),
        format!("etag: \"{hex40}\""),
        format!("-----BEGIN CERTIFICATE-----\n{certificate}\n-----END CERTIFICATE-----"),
        format!("ssh-ed25519 {} me@host", random(65, BASE64, 68)),
        format!("index {}..{} 100644", &hex40[..12], &hex40[20..32]),
        format!("tree-sitter-{}", &hex40[..16]),
        format!("password_hash = \"{hex64}\""),
        format!("integrity of the token list: {hex40}"),
    ]);
    all
}

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

fn key_body() -> Vec<String> {
    (0..8)
        .map(|line| random(100 + line, BASE64, 64))
        .chain([format!("{}==", random(99, BASE64, 10))])
        .collect()
}

fn assert_no_body(redacted: &str) {
    for line in key_body() {
        assert!(!redacted.contains(&line), "{line} is in\n{redacted}");
    }
}

#[test]
fn a_private_key_keeps_its_frame_and_its_number_of_lines() {
    for label in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        let text = format!(
            "before\n-----BEGIN {label}-----\n{}\n-----END {label}-----\nafter\n",
            key_body().join("\n")
        );
        let redacted = redactor().redact(&text).into_owned();
        assert_no_body(&redacted);
        assert_eq!(redacted.lines().count(), text.lines().count());
        assert!(
            redacted.starts_with(&format!("before\n-----BEGIN {label}-----\n[redacted:private-key]\n")),
            "{redacted}"
        );
        assert!(
            redacted.ends_with(&format!("[redacted:private-key]\n-----END {label}-----\nafter\n")),
            "{redacted}"
        );
    }
}

#[test]
fn half_a_private_key_is_masked_from_the_end_that_is_there() {
    let body = key_body();
    let first = format!("key:\n-----BEGIN PRIVATE KEY-----\n{}", body[..5].join("\n"));
    let cut = &first[..first.len() - 20];
    let last = format!("{}\n-----END PRIVATE KEY-----\nthen text", body[3..].join("\n"));
    for text in [first.as_str(), cut, &last] {
        let redacted = redactor().redact(text).into_owned();
        assert_no_body(&redacted);
        assert!(!redacted.contains(&body[4][..40]), "{redacted}");
    }
    assert!(redactor().redact(&last).ends_with("-----END PRIVATE KEY-----\nthen text"));
}

#[test]
fn a_page_from_the_middle_of_a_private_key_is_masked_line_by_line() {
    for width in [64, 70] {
        let lines: Vec<_> = (0..5).map(|line| random(200 + line, BASE64, width)).collect();
        for (line_end, last) in [("\n", ""), ("\n", "\n"), ("\r\n", "\r\n"), ("\n", "\n[lines 5-9 of 28]\n")]
        {
            let text = lines.join(line_end) + last;
            let masked = ["[redacted:private-key]"; 5].join(line_end) + last;
            assert_eq!(redactor().redact(&text), masked);
        }
    }
}

#[test]
fn long_lines_of_base64_are_no_key_where_anything_else_is_there() {
    let lines: Vec<_> = (0..5).map(|line| random(200 + line, BASE64, 64)).collect();
    let body = lines.join("\n");
    for text in [
        format!("-----BEGIN CERTIFICATE-----\n{body}\n"),
        format!("{body}\n-----END CERTIFICATE-----\n"),
        format!("{body}\nAQAB\n"),
        format!("{body}\n\n{body}\n"),
        format!("image: |\n{body}\n"),
        lines[..2].join("\n"),
        lines.iter().map(|line| format!("  {line}\n")).collect(),
        lines.concat(),
        (0..5).map(|line| random(300 + line, BASE64, 76) + "\n").collect(),
        (0..50).map(|line| random(400 + line, "0123456789abcdef", 64) + "\n").collect(),
        format!("{}\n", "A".repeat(64)).repeat(9),
    ] {
        assert!(matches!(redactor().redact(&text), Cow::Borrowed(_)), "{text}");
    }
}

#[test]
fn a_private_key_is_masked_in_json_in_a_diff_and_in_search_results() {
    let block =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", key_body().join("\n"));
    let json = serde_json::to_string(&serde_json::json!({ "private_key": block, "n": 1 })).unwrap();
    let redacted = redactor().redact(&json).into_owned();
    assert_no_body(&redacted);
    serde_json::from_str::<Value>(&redacted).expect("still JSON");
    for prefix in ["+", "- ", "src/keys/server.pem:12:", "   12\t", "    "] {
        let text: String = block.lines().map(|line| format!("{prefix}{line}\n")).collect();
        assert_no_body(&redactor().redact(&text));
    }
}

#[test]
fn text_after_the_beginning_of_a_key_that_has_no_end_is_kept() {
    let text = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\nfn main() {{}}\n// and so on\n",
        key_body()[..3].join("\n")
    );
    assert!(redactor().redact(&text).ends_with("\nfn main() {}\n// and so on\n"));
}

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

#[test]
fn hostile_text_takes_time_by_its_length() {
    let unit = 1 << 18;
    let hostile = [
        "sk-",
        "eyJ-",
        "://a:b",
        "://a:",
        "PRIVATE KEY",
        "-----BEGIN PRIVATE KEY-----\n",
        "-----END PRIVATE KEY-----\n",
        "password=",
        "password: \"a",
        "secret",
        "AKIA",
        "asic ",
        "Basic aaaa",
        "[redacted:",
        "[redacted:x]",
        "eyJa.",
        "a/",
        "_-",
        "token=",
        "value: name: ",
        "-----BEGIN PRIVATE KEY-----AAAA",
        "\\n",
    ];
    for piece in hostile {
        let text = piece.repeat(unit / piece.len());
        let start = std::time::Instant::now();
        let redacted = redactor().redact(&text).into_owned();
        let took = start.elapsed();
        // Quadratic time would be minutes.
        assert!(took.as_secs() < 10, "{piece:?} took {took:?}");
        drop(redacted);
    }
}

/// Texts with pieces of secrets in any order, next to each other and cut.
fn text() -> impl Strategy<Value = String> {
    let mut pieces: Vec<String> =
        secrets().into_iter().flat_map(|secret| [secret.text, secret.secret]).collect();
    pieces.extend(
        [
            "password",
            "=",
            ": \"",
            "\"",
            "\n",
            "://",
            "@",
            "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----",
            "[redacted:",
            "jwt]",
            "[redacted:jwt]",
            "ä",
            "🦀",
            "-",
            "_",
            ".",
            "token",
            "hunter2-known",
            "eyJ",
            "Basic ",
            "AKIA",
            "\\",
            "x:",
        ]
        .map(String::from),
    );
    pieces.push(key_body().join("\n"));
    let piece = prop_oneof![
        4 => proptest::sample::select(pieces.clone()),
        1 => (proptest::sample::select(pieces), 0usize..40).prop_map(|(piece, cut)| piece.chars().skip(cut).collect()),
        1 => ".{0,12}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn redacting_twice_is_redacting_once_and_marks_are_whole(text in text()) {
        let redactor = Redactor::new(RedactionOptions { values: vec!["hunter2-known".to_owned()], ..RedactionOptions::default() }).unwrap();
        let once = redactor.redact(&text).into_owned();
        let twice = redactor.redact(&once).into_owned();
        prop_assert_eq!(&once, &twice);
        prop_assert!(!once.contains("hunter2-known"));
        let whole = |text: &str| memchr::memmem::find_iter(text.as_bytes(), MARK).filter(|at| mark_end(text.as_bytes(), *at).is_none()).count();
        prop_assert!(whole(&once) <= whole(&text), "a broken mark in {}", once);
    }

    #[test]
    fn any_text_is_taken(text in ".{0,200}") {
        let _ = redactor().redact(&text);
    }
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
