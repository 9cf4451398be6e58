//! The table of what is a secret and what is not.

use super::{ALNUM, BASE64, BASE64_URL, LOWER_HEX, UPPER, random};

/// A text, the part of it that must go, and the kind that the mark must name.
pub(super) struct SecretSample {
    pub(super) text: String,
    pub(super) secret: String,
    pub(super) kind: &'static str,
}

pub(super) fn secrets() -> Vec<SecretSample> {
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
    add("command-name", "", token("PROCESS_RUNNER_RUN_", LOWER_HEX, 32), "=1\n");
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

pub(super) fn harmless() -> Vec<String> {
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
