//! The shapes of known tokens: a fixed prefix, then so many characters of an alphabet.
//!
//! Sources are the issuers' own pages (GitHub "token formats", GitLab "token overview", AWS "unique
//! identifiers", Slack "token types", Stripe "API keys", and so on) and, where an issuer documents none,
//! tokens that issuer revoked in public. Where a length is given as a minimum, the issuer says that it may grow.

use crate::span::SecretSpan;
use crate::token_runs::{ALNUM, BASE64, CharacterSet, HEX, UPPER, URL, WORD, end_of, is, is_at, start_of};

/// The shape of one kind of token.
#[derive(Clone, Copy)]
struct TokenShape {
    prefix: &'static str,
    kind: &'static str,
    alphabet: CharacterSet,
    /// The fewest characters behind the prefix.
    min_length: usize,
    /// The most characters behind the prefix, or `usize::MAX`. A longer text is no such token.
    max_length: usize,
    /// True if one of the characters must be a digit, for prefixes that words begin with as well.
    needs_digit: bool,
}

const fn at_least(
    prefix: &'static str,
    kind: &'static str,
    alphabet: CharacterSet,
    min_length: usize,
) -> TokenShape {
    TokenShape { prefix, kind, alphabet, min_length, max_length: usize::MAX, needs_digit: false }
}

const fn exactly(
    prefix: &'static str,
    kind: &'static str,
    alphabet: CharacterSet,
    length: usize,
) -> TokenShape {
    TokenShape { prefix, kind, alphabet, min_length: length, max_length: length, needs_digit: false }
}

const fn with_digit(token: TokenShape) -> TokenShape {
    TokenShape { needs_digit: true, ..token }
}

/// Tokens whose prefix is made of run characters. The first that fits wins, so longer prefixes come first.
static TOKENS: &[TokenShape] = &[
    // The variable that names the command of a program. Whoever knows the name could count a process to that command.
    exactly("PROCESS_RUNNER_RUN_", "command-name", HEX, 32),
    // Code hosts
    at_least("ghp_", "github-token", WORD, 36),
    at_least("gho_", "github-token", WORD, 36),
    at_least("ghu_", "github-token", WORD, 36),
    at_least("ghs_", "github-token", WORD, 36),
    at_least("ghr_", "github-token", WORD, 36),
    at_least("github_pat_", "github-token", WORD, 36),
    at_least("glpat-", "gitlab-token", URL, 20),
    at_least("gldt-", "gitlab-token", URL, 20),
    at_least("glrt-", "gitlab-token", URL, 20),
    at_least("glrtr-", "gitlab-token", URL, 20),
    at_least("glptt-", "gitlab-token", URL, 20),
    at_least("glcbt-", "gitlab-token", URL, 20),
    at_least("glimt-", "gitlab-token", URL, 20),
    at_least("glsoat-", "gitlab-token", URL, 20),
    at_least("glagent-", "gitlab-token", URL, 20),
    at_least("gloas-", "gitlab-token", URL, 20),
    exactly("ATBB", "bitbucket-token", ALNUM, 32),
    at_least("ATATT3", "atlassian-token", URL, 60),
    at_least("ATCTT3", "atlassian-token", URL, 60),
    at_least("sgp_", "sourcegraph-token", WORD, 40),
    // Clouds
    exactly("AKIA", "aws-access-key-id", UPPER, 16),
    exactly("ASIA", "aws-access-key-id", UPPER, 16),
    exactly("ABIA", "aws-access-key-id", UPPER, 16),
    exactly("ACCA", "aws-access-key-id", UPPER, 16),
    exactly("AIza", "google-api-key", URL, 35),
    at_least("GOCSPX-", "google-client-secret", URL, 28),
    exactly("dop_v1_", "digitalocean-token", HEX, 64),
    exactly("doo_v1_", "digitalocean-token", HEX, 64),
    exactly("dor_v1_", "digitalocean-token", HEX, 64),
    TokenShape {
        prefix: "LTAI",
        kind: "alibaba-access-key-id",
        alphabet: ALNUM,
        min_length: 16,
        max_length: 20,
        needs_digit: true,
    },
    exactly("dapi", "databricks-token", HEX, 32),
    at_least("HRKU-", "heroku-token", URL, 30),
    at_least("nfp_", "netlify-token", ALNUM, 36),
    at_least("fo1_", "fly-token", URL, 43),
    at_least("fm1_", "fly-token", BASE64, 100),
    at_least("fm2_", "fly-token", BASE64, 100),
    exactly("pul-", "pulumi-token", HEX, 40),
    at_least("pscale_tkn_", "planetscale-token", URL, 32),
    at_least("pscale_pw_", "planetscale-token", URL, 32),
    at_least("pscale_oauth_", "planetscale-token", URL, 32),
    exactly("sbp_", "supabase-token", HEX, 40),
    at_least("sb_secret_", "supabase-token", URL, 20),
    with_digit(at_least("tskey-", "tailscale-key", URL, 20)),
    exactly("bkua_", "buildkite-token", HEX, 40),
    at_least("CCIPAT_", "circleci-token", WORD, 40),
    // Talk and mail
    with_digit(at_least("xoxb-", "slack-token", URL, 20)),
    with_digit(at_least("xoxa-", "slack-token", URL, 20)),
    with_digit(at_least("xoxp-", "slack-token", URL, 20)),
    with_digit(at_least("xoxr-", "slack-token", URL, 20)),
    with_digit(at_least("xoxs-", "slack-token", URL, 20)),
    with_digit(at_least("xoxo-", "slack-token", URL, 20)),
    with_digit(at_least("xoxc-", "slack-token", URL, 20)),
    with_digit(at_least("xoxd-", "slack-token", URL, 20)),
    with_digit(at_least("xoxe-", "slack-token", URL, 20)),
    with_digit(at_least("xapp-", "slack-token", URL, 20)),
    exactly("SK", "twilio-key", HEX, 32),
    exactly("key-", "mailgun-key", HEX, 32),
    at_least("xkeysib-", "brevo-key", URL, 64),
    at_least("xsmtpsib-", "brevo-key", URL, 64),
    // Money and shops
    at_least("sk_live_", "stripe-key", ALNUM, 16),
    at_least("sk_test_", "stripe-key", ALNUM, 16),
    at_least("rk_live_", "stripe-key", ALNUM, 16),
    at_least("rk_test_", "stripe-key", ALNUM, 16),
    at_least("whsec_", "webhook-secret", BASE64, 24),
    exactly("shpat_", "shopify-token", ALNUM, 32),
    exactly("shpca_", "shopify-token", ALNUM, 32),
    exactly("shppa_", "shopify-token", ALNUM, 32),
    exactly("shpss_", "shopify-token", ALNUM, 32),
    exactly("shptka_", "shopify-token", ALNUM, 32),
    at_least("sq0atp-", "square-token", URL, 22),
    at_least("sq0csp-", "square-token", URL, 43),
    exactly("shippo_live_", "shippo-token", HEX, 40),
    at_least("FLWSECK-", "flutterwave-key", ALNUM, 32),
    exactly("EZAK", "easypost-key", ALNUM, 54),
    // Models
    with_digit(at_least("sk-ant-", "anthropic-key", URL, 20)),
    with_digit(at_least("sk-proj-", "openai-key", URL, 20)),
    with_digit(at_least("sk-svcacct-", "openai-key", URL, 20)),
    with_digit(at_least("sk-admin-", "openai-key", URL, 20)),
    exactly("sk-or-v1-", "openrouter-key", HEX, 64),
    with_digit(at_least("sk-", "openai-key", ALNUM, 32)),
    at_least("xai-", "xai-key", ALNUM, 60),
    at_least("gsk_", "groq-key", ALNUM, 40),
    at_least("pplx-", "perplexity-key", ALNUM, 40),
    exactly("r8_", "replicate-token", ALNUM, 37),
    at_least("hf_", "huggingface-token", ALNUM, 30),
    exactly("api_org_", "huggingface-token", ALNUM, 34),
    at_least("nvapi-", "nvidia-key", URL, 60),
    at_least("lsv2_pt_", "langsmith-key", WORD, 32),
    at_least("lsv2_sk_", "langsmith-key", WORD, 32),
    // This project's own, of mcp-http: an id of 12 digits, `_`, and 43 characters of secret; 6 of checksum may follow
    with_digit(at_least("ctk_", "coretools-token", URL, 56)),
    // Registries
    exactly("npm_", "npm-token", ALNUM, 36),
    at_least("pypi-AgE", "pypi-token", URL, 40),
    with_digit(exactly("cio", "crates-io-token", ALNUM, 32)),
    exactly("rubygems_", "rubygems-key", HEX, 48),
    exactly("oy2", "nuget-key", ALNUM, 43),
    at_least("dckr_pat_", "docker-token", URL, 27),
    at_least("dckr_oat_", "docker-token", URL, 27),
    at_least("AKCp", "artifactory-key", ALNUM, 69),
    exactly("CLOJARS_", "clojars-token", HEX, 60),
    // Work tools
    at_least("lin_api_", "linear-key", ALNUM, 32),
    at_least("ntn_", "notion-token", ALNUM, 40),
    exactly("secret_", "notion-token", ALNUM, 43),
    at_least("PMAK-", "postman-key", URL, 50),
    at_least("figd_", "figma-token", URL, 40),
    at_least("glsa_", "grafana-token", WORD, 36),
    at_least("glc_", "grafana-token", BASE64, 32),
    at_least("sntrys_", "sentry-token", BASE64, 40),
    exactly("sntryu_", "sentry-token", HEX, 64),
    exactly("NRAK-", "new-relic-key", UPPER, 27),
    exactly("squ_", "sonar-token", HEX, 40),
    exactly("sqp_", "sonar-token", HEX, 40),
    exactly("sqa_", "sonar-token", HEX, 40),
    at_least("tfp_", "typeform-token", URL, 40),
    exactly("CFPAT-", "contentful-token", URL, 43),
    exactly("pnu_", "prefect-key", ALNUM, 36),
    at_least("ops_eyJ", "onepassword-token", URL, 60),
    // Files
    exactly("AGE-SECRET-KEY-1", "age-secret-key", UPPER, 58),
    at_least("AGE-SECRET-KEY-PQ-1", "age-secret-key", UPPER, 58),
];

/// Tokens whose prefix ends in a full stop, which ends a run: the run behind it is looked at.
static DOTTED: &[TokenShape] = &[
    at_least("SG.", "sendgrid-key", URL, 20),
    at_least("hvs.", "vault-token", URL, 24),
    at_least("hvb.", "vault-token", URL, 24),
    at_least("hvr.", "vault-token", URL, 24),
    at_least("dp.pt.", "doppler-token", ALNUM, 40),
    at_least("dp.st.", "doppler-token", ALNUM, 40),
    at_least("ya29.", "google-oauth-token", URL, 20),
    at_least("dt0c01.", "dynatrace-token", UPPER, 24),
    at_least(".atlasv1.", "terraform-token", URL, 60),
    at_least("sk.eyJ", "mapbox-token", URL, 40),
    at_least("sl.", "dropbox-token", URL, 100),
];

/// A bit for each hash of the first three characters of a prefix, so that most places need no comparison.
const FILTER: [u64; 64] = filter();

const fn slot(first: u8, second: u8, third: u8) -> usize {
    (first as usize + second as usize * 37 + third as usize * 1009) % 4096
}

const fn filter() -> [u64; 64] {
    let mut bits = [0u64; 64];
    let mut index = 0;
    while index < TOKENS.len() {
        let prefix = TOKENS[index].prefix.as_bytes();
        let mut third = 0;
        while third < 256 {
            // A prefix of two characters is followed by one of its alphabet.
            if prefix.len() == 2 || prefix[2] as usize == third {
                #[allow(clippy::cast_possible_truncation, reason = "the loop ends at 256")]
                let at = slot(prefix[0], prefix[1], third as u8);
                bits[at / 64] |= 1 << (at % 64);
            }
            third += 1;
        }
        index += 1;
    }
    bits
}

/// Appends to `spans` the known tokens in the run from `start` to `end`. Returns true if there was one.
pub(crate) fn find(bytes: &[u8], start: usize, end: usize, spans: &mut Vec<SecretSpan>) -> bool {
    let before = spans.len();
    if start > 0 {
        match bytes[start - 1] {
            b'.' => spans.extend(dotted(bytes, start)),
            b':' => spans.extend(telegram(bytes, start)),
            _ => {}
        }
    }
    spans.extend(web_token(bytes, start, end).or_else(|| discord(bytes, start, end)));
    if let Some(span) = webhook(bytes, start, end) {
        spans.push(span);
    }
    let mut at = start;
    while at + 16 <= end {
        let [first, second, third] = [bytes[at], bytes[at + 1], bytes[at + 2]];
        let slot = slot(first, second, third);
        if FILTER[slot / 64] >> (slot % 64) & 1 == 1
            && let Some(span) = TOKENS.iter().find_map(|token| token.at(bytes, at, end))
        {
            at = span.end;
            spans.push(span);
        }
        // The next place is behind the next sign: a token does not begin within a word.
        at = end_of(bytes, at, ALNUM, usize::MAX) + 1;
    }
    spans.len() > before
}

impl TokenShape {
    fn at(&self, bytes: &[u8], start: usize, run_end: usize) -> Option<SecretSpan> {
        let body = start + self.prefix.len();
        if bytes[start] != self.prefix.as_bytes()[0]
            || !bytes[start..run_end].starts_with(self.prefix.as_bytes())
        {
            return None;
        }
        self.body(bytes, start, body)
    }

    /// The span of a token that begins at `start`, if what stands at `body` fits.
    fn body(&self, bytes: &[u8], start: usize, body: usize) -> Option<SecretSpan> {
        let mut end = end_of(bytes, body, self.alphabet, self.max_length);
        if end - body < self.min_length || (self.max_length != usize::MAX && is_at(bytes, end, ALNUM)) {
            return None;
        }
        if self.needs_digit && !bytes[body..end].iter().any(u8::is_ascii_digit) {
            return None;
        }
        if self.max_length == usize::MAX {
            // Newer tokens carry a second part or a checksum behind a full stop.
            while bytes.get(end) == Some(&b'.') {
                let part = end_of(bytes, end + 1, URL, usize::MAX);
                if !bytes[end + 1..part].iter().any(u8::is_ascii_digit) {
                    break;
                }
                end = part;
            }
            if matches!(self.alphabet, URL | BASE64) {
                end += bytes[end..].iter().take(2).take_while(|&&byte| byte == b'=').count();
            }
        }
        Some(SecretSpan { start, end, kind: self.kind })
    }
}

/// Finds a token whose prefix ends in a full stop right before `run`.
fn dotted(bytes: &[u8], run: usize) -> Option<SecretSpan> {
    DOTTED.iter().find_map(|token| {
        let head = token.prefix.strip_suffix("eyJ").unwrap_or(token.prefix);
        let start = run.checked_sub(head.len())?;
        let fits = bytes[start..].starts_with(token.prefix.as_bytes())
            && (head.starts_with('.') || start == 0 || !is(bytes[start - 1], WORD));
        fits.then(|| token.body(bytes, start, run)).flatten()
    })
}

/// Finds a JSON web token (RFC 7519): `eyJ…` is `{"…` in base64url, and so begin header and claims.
fn web_token(bytes: &[u8], start: usize, end: usize) -> Option<SecretSpan> {
    // The header is all of what is left of the run, so only one place can be its start.
    if bytes.get(end) != Some(&b'.') || !bytes[end + 1..].starts_with(b"eyJ") {
        return None;
    }
    let header = start_of(bytes, end, URL, end - start);
    let begin = (header..end.saturating_sub(12))
        .find(|&at| bytes[at..end].starts_with(b"eyJ") && (at == header || !is(bytes[at - 1], ALNUM)))?;
    let claims = end_of(bytes, end + 1, URL, usize::MAX);
    let signature =
        if bytes.get(claims) == Some(&b'.') { end_of(bytes, claims + 1, URL, usize::MAX) } else { claims };
    (claims - end > 10).then_some(SecretSpan { start: begin, end: signature, kind: "jwt" })
}

/// Finds a Telegram bot's token: its number, a colon, 35 characters that begin with `AA`.
fn telegram(bytes: &[u8], run: usize) -> Option<SecretSpan> {
    let digits = bytes[..run - 1].iter().rev().take(11).take_while(|byte| byte.is_ascii_digit()).count();
    let start = run - 1 - digits;
    let end = end_of(bytes, run, URL, 36);
    ((8..=10).contains(&digits) && end - run == 35 && bytes[run..].starts_with(b"AA")).then_some(SecretSpan {
        start,
        end,
        kind: "telegram-token",
    })
}

/// Finds a Discord bot's token: its number in base64, six characters, a signature; full stops between.
fn discord(bytes: &[u8], start: usize, end: usize) -> Option<SecretSpan> {
    if !(24..=28).contains(&(end - start)) || !matches!(bytes[start], b'M' | b'N' | b'O') {
        return None;
    }
    let middle = end + 1;
    let signature = middle + 7;
    let stop = |at: usize| bytes.get(at) == Some(&b'.');
    if !stop(end) || !stop(signature - 1) || end_of(bytes, middle, URL, 7) != signature - 1 {
        return None;
    }
    let last = end_of(bytes, signature, URL, 41);
    (27..=40).contains(&(last - signature)).then_some(SecretSpan { start, end: last, kind: "discord-token" })
}

/// Finds the secret part of the address of a Slack or Discord webhook.
fn webhook(bytes: &[u8], start: usize, end: usize) -> Option<SecretSpan> {
    let (host, run) = (&bytes[..start], &bytes[start..end]);
    let kind = if host.ends_with(b"hooks.slack.") && run.starts_with(b"com/") {
        "slack-webhook"
    } else if (host.ends_with(b"discord.") || host.ends_with(b"discordapp."))
        && run.starts_with(b"com/api/")
        && memchr::memmem::find(run, b"/webhooks/").is_some()
    {
        "discord-webhook"
    } else {
        return None;
    };
    let secret = end - run.iter().rev().take_while(|&&byte| byte != b'/').count();
    (end - secret >= 20).then_some(SecretSpan { start: secret, end, kind })
}
