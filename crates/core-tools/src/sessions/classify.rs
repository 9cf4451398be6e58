//! Why a session's process has ended, from how it ended and what it printed last.

use super::agent::{Agents, Means, Pattern};
use regex::bytes::Captures;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Why a process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Whoever serves the model takes no more for now.
    RateLimit,
    /// The conversation is longer than the model takes.
    ContextExhausted,
    /// It did its work.
    Completed,
    /// Its user ended it.
    UserExit,
    /// It broke.
    Crash,
    /// It was ended by `end_session`, or with the server.
    Ended,
    /// It was gone when the server came back, and nobody saw how it ended.
    Lost,
    /// There is nothing to tell by.
    Unknown,
}

impl Reason {
    /// Its name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::ContextExhausted => "context_exhausted",
            Self::Completed => "completed",
            Self::UserExit => "user_exit",
            Self::Crash => "crash",
            Self::Ended => "ended",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
        }
    }
}

/// Why a process has ended, and how that is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// Why.
    pub reason: Reason,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
    /// What speaks for it, the strongest first.
    pub evidence: Vec<String>,
    /// When to go on, where it was said.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retry: Option<RetryAt>,
    /// What the program passed to `exit`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<u32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signal: Option<i32>,
}

impl Stop {
    /// A reason that needs no finding out.
    pub fn plain(reason: Reason, evidence: impl Into<String>) -> Self {
        Self {
            reason,
            confidence: 1.0,
            evidence: vec![evidence.into()],
            retry: None,
            exit_code: None,
            signal: None,
        }
    }
}

/// Where it was said when to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetrySource {
    /// A header such as `Retry-After: 30`.
    Header,
    /// A key such as `"retry_after": 30`.
    Json,
    /// Words such as `try again in 30 seconds`.
    Words,
    /// A time: `limit reached|1762952400`, `resets 3pm (Europe/Rome)`.
    Reset,
}

/// When to go on, as it was said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryAt {
    /// Where it was said.
    pub source: RetrySource,
    /// When.
    pub when: When,
}

/// A time to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// So many milliseconds after the end.
    In(u64),
    /// At this time, in milliseconds since 1970.
    At(u64),
    /// The next time that a clock shows this, in a zone or in the machine's own.
    Clock {
        /// `15:00`
        time: String,
        /// `Europe/Rome`
        zone: Option<String>,
    },
}

/// How a process ended, as far as somebody saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// What it passed to `exit`.
    pub code: Option<u32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// Where a process that fails says why.
const LAST_LINES: usize = 20;
/// Where one says so that ends as if all were well. What comes earlier it has got over.
const VERY_LAST_LINES: usize = 3;
/// A line is looked at so far.
const LONGEST_LINE: usize = 16 * 1024;
/// More evidence than this makes no difference.
const MOST_CONFIDENT: f64 = 0.98;
/// What each further piece of evidence adds.
const EACH_MORE: f64 = 0.03;

/// Why a process of `agent` has ended that printed `lines` last.
///
/// What the agent printed counts only where it is the last that it said, and only in the form in which the agent itself
/// says it: a program that it ran may have printed anything.
pub fn classify(agents: &Agents, agent: Option<&str>, ending: Ending, lines: &[&str]) -> Stop {
    let lines: Vec<&str> = lines.iter().copied().filter(|line| !line.trim().is_empty()).collect();
    let well = ending.code == Some(0);
    let from = lines.len().saturating_sub(if well { VERY_LAST_LINES } else { LAST_LINES });
    let found: Vec<Found<'_>> = (from..lines.len())
        .rev()
        .filter_map(|at| {
            let words = own_words(lines[at]);
            let (pattern, when) = find(agents, agent, &words)?;
            Some(Found { at, line: lines[at], means: pattern.means, when })
        })
        .collect();
    let mut stop = judge(&found, ending, lines.last().copied());
    (stop.exit_code, stop.signal) = (ending.code, ending.signal);
    if stop.reason == Reason::RateLimit {
        stop.retry = retry(agents, &found, &lines);
    }
    stop
}

struct Found<'a> {
    at: usize,
    line: &'a str,
    means: Means,
    when: Option<When>,
}

fn find<'a>(agents: &'a Agents, agent: Option<&str>, words: &str) -> Option<(&'a Pattern, Option<When>)> {
    agents.patterns(agent).find_map(|pattern| {
        let captures = pattern.regex.captures(words.as_bytes())?;
        Some((pattern, reset(&captures)))
    })
}

fn judge(found: &[Found<'_>], ending: Ending, last: Option<&str>) -> Stop {
    let count = |means: Means| found.iter().filter(|found| found.means == means).count();
    let (limits, contexts) = (count(Means::RateLimit), count(Means::ContextExhausted));
    let (done, quits) = (count(Means::Completed), count(Means::UserExit));
    let status = status(ending);
    let well = ending.code == Some(0);
    let asked_to_end = asked_to_end(ending);
    // Of the two that something is done about, the later one is why it ended.
    let later = found.iter().find(|found| matches!(found.means, Means::RateLimit | Means::ContextExhausted));
    let (reason, base, pieces) = match later.map(|found| found.means) {
        Some(Means::RateLimit) => (Reason::RateLimit, 0.85, limits),
        Some(_) => (Reason::ContextExhausted, 0.78, contexts),
        None if asked_to_end => (Reason::UserExit, 0.9, 1 + quits),
        None if done > 0 && (well || ending == Ending::default()) => (Reason::Completed, 0.95, done),
        None if quits > 0 && (well || ending == Ending::default()) => (Reason::UserExit, 0.75, quits),
        None if well => (Reason::Completed, 0.75, 1),
        None if ending == Ending::default() => (Reason::Unknown, 0.2, 1),
        None => (Reason::Crash, 0.85, 1),
    };
    // An exit code that says so too is evidence as well.
    let agrees = match reason {
        Reason::RateLimit | Reason::ContextExhausted => !well && ending != Ending::default(),
        Reason::Completed => well && done > 0,
        _ => false,
    };
    #[allow(clippy::cast_precision_loss, reason = "there are at most 20")]
    let confidence =
        (base + EACH_MORE * (pieces.saturating_sub(1) + usize::from(agrees)) as f64).min(MOST_CONFIDENT);
    let means = match reason {
        Reason::RateLimit => Some(Means::RateLimit),
        Reason::ContextExhausted => Some(Means::ContextExhausted),
        Reason::Completed => Some(Means::Completed),
        Reason::UserExit => Some(Means::UserExit),
        _ => None,
    };
    let of_it = found.iter().filter(|found| Some(found.means) == means).take(4);
    let mut evidence: Vec<String> = of_it.map(|found| format!("it printed: {}", shown(found.line))).collect();
    evidence.push(status);
    if matches!(reason, Reason::Crash | Reason::Unknown)
        && let Some(last) = last
    {
        evidence.push(format!("its last line: {}", shown(last)));
    }
    Stop { reason, confidence, evidence, retry: None, exit_code: None, signal: None }
}

/// SIGHUP, SIGINT and SIGTERM, and what a shell makes of them: 128 and the signal (bash(1), "EXIT STATUS").
fn asked_to_end(ending: Ending) -> bool {
    matches!(ending.code, Some(129 | 130 | 143)) || matches!(ending.signal, Some(1 | 2 | 15))
}

fn status(ending: Ending) -> String {
    match (ending.code, ending.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => match process_runner::signal_name(signal) {
            Some(name) => format!("ended by {name}"),
            None => format!("ended by signal {signal}"),
        },
        (None, None) => "nobody saw how it ended".to_owned(),
    }
}

/// A line, short enough for an answer.
fn shown(line: &str) -> String {
    const LONGEST: usize = 200;
    let line = line.trim();
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

/// What an agent says, without what it puts in front of it: colours, bullets, frames, blanks.
pub(super) fn own_words(line: &str) -> Cow<'_, str> {
    let mut text = match line.contains(['\u{1b}', '\r']) {
        true => Cow::Owned(process_runner::clean(line).into_owned()),
        false => Cow::Borrowed(line),
    };
    if text.contains('\u{2019}') {
        text = Cow::Owned(text.replace('\u{2019}', "'"));
    }
    let decoration = |c: char| c.is_whitespace() || "│┃|⎿●•■⚠✗✘×◆▪❯└─╰╭*\u{fe0f}".contains(c);
    let start = text.len() - text.trim_start_matches(decoration).len();
    let mut end = text.trim_end_matches(|c: char| c.is_whitespace() || "│┃".contains(c)).len().max(start);
    if end - start > LONGEST_LINE {
        end = (0..=start + LONGEST_LINE).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(start);
    }
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[start..end]),
        Cow::Owned(text) => Cow::Owned(text[start..end].to_owned()),
    }
}

/// A time that stands in the line itself.
fn reset(captures: &Captures<'_>) -> Option<When> {
    let text = |name: &str| {
        let found = captures.name(name)?;
        std::str::from_utf8(found.as_bytes()).ok().map(str::to_owned)
    };
    if let Some(unix) = text("unix").and_then(|unix| unix.parse::<u64>().ok()) {
        return Some(When::At(unix * 1000));
    }
    let time = clock(&text("clock")?)?;
    Some(When::Clock { time, zone: text("zone") })
}

/// `3pm` and `1:30 AM` on a clock of 24 hours.
fn clock(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let (time, afternoon) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(time), _) => (time, false),
        (_, Some(time)) => (time, true),
        _ => return None,
    };
    let (hour, minute) = time.trim().split_once(':').unwrap_or((time.trim(), "0"));
    let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
    if !(1..=12).contains(&hour) || minute > 59 {
        return None;
    }
    let hour = hour % 12 + if afternoon { 12 } else { 0 };
    Some(format!("{hour:02}:{minute:02}"))
}

/// When to go on: what the line itself says, or else what is said in it or around it.
fn retry(agents: &Agents, found: &[Found<'_>], lines: &[&str]) -> Option<RetryAt> {
    /// How far from the line it may stand: headers come before a message, advice after it.
    const AROUND: usize = 5;
    let limits = || found.iter().filter(|found| found.means == Means::RateLimit);
    if let Some(when) = limits().find_map(|found| found.when.clone()) {
        return Some(RetryAt { source: RetrySource::Reset, when });
    }
    let at = limits().next()?.at;
    let near = at.saturating_sub(AROUND)..lines.len().min(at + AROUND + 1);
    agents.retries().iter().find_map(|retry| {
        let found = lines[near.clone()].iter().rev().find_map(|line| {
            let words = own_words(line);
            let captures = retry.regex.captures(words.as_bytes())?;
            milliseconds(&captures, retry.milliseconds)
        })?;
        Some(RetryAt { source: retry.source, when: When::In(found) })
    })
}

fn milliseconds(captures: &Captures<'_>, in_milliseconds: bool) -> Option<u64> {
    let number = |name: &str| -> Option<f64> {
        std::str::from_utf8(captures.name(name)?.as_bytes()).ok()?.parse().ok()
    };
    let total = match number("n") {
        Some(n) => n * if in_milliseconds { 1.0 } else { 1000.0 },
        None => {
            let parts = [("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0), ("seconds", 1.0)];
            let given: Vec<f64> =
                parts.iter().filter_map(|(name, seconds)| Some(number(name)? * seconds)).collect();
            if given.is_empty() {
                return None;
            }
            given.iter().sum::<f64>() * 1000.0
        }
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both ends are cut off first")]
    let whole = total.clamp(0.0, 1e12).ceil() as u64;
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents() -> &'static Agents {
        static AGENTS: std::sync::LazyLock<Agents> = std::sync::LazyLock::new(|| Agents::builtin().unwrap());
        &AGENTS
    }

    fn told(agent: &str, code: u32, output: &str) -> Stop {
        let lines: Vec<&str> = output.lines().collect();
        classify(agents(), Some(agent), Ending { code: Some(code), signal: None }, &lines)
    }

    #[test]
    fn each_agent_is_understood_in_its_own_words() {
        for (agent, code, output, reason) in [
            ("claude", 1, "Claude AI usage limit reached|1762952400\n", Reason::RateLimit),
            (
                "claude",
                1,
                "  ⎿  You’ve hit your session limit · resets 12:50am (America/Los_Angeles)",
                Reason::RateLimit,
            ),
            ("claude", 1, "API Error: Repeated 529 Overloaded errors", Reason::RateLimit),
            ("claude", 0, "5-hour limit reached ∙ resets 3pm\n\n", Reason::RateLimit),
            ("claude", 1, "Prompt is too long", Reason::ContextExhausted),
            (
                "codex",
                1,
                "ERROR: You've hit your usage limit. Upgrade to Pro or try again in 5 minutes.",
                Reason::RateLimit,
            ),
            (
                "codex",
                1,
                "ERROR: exceeded retry limit, last status: 429 Too Many Requests, request id: x",
                Reason::RateLimit,
            ),
            (
                "codex",
                1,
                "■ Codex ran out of room in the model's context window. Start a new thread.",
                Reason::ContextExhausted,
            ),
            ("opencode", 1, "\u{1b}[91mError: \u{1b}[0mToo Many Requests: slow down", Reason::RateLimit),
            (
                "opencode",
                1,
                "AI_APICallError: prompt is too long: 210171 tokens > 200000 maximum",
                Reason::ContextExhausted,
            ),
            (
                "claude",
                0,
                r#"{"type":"result","subtype":"success","is_error":false,"result":"Done."}"#,
                Reason::Completed,
            ),
            ("codex", 0, "tokens used: 12,345", Reason::Completed),
            ("claude", 130, "", Reason::UserExit),
            ("codex", 143, "working", Reason::UserExit),
            ("opencode", 0, "> /exit", Reason::UserExit),
            ("claude", 1, "TypeError: Cannot read properties of undefined", Reason::Crash),
            ("claude", 0, "I have changed the three files.", Reason::Completed),
        ] {
            let stop = told(agent, code, output);
            assert_eq!(stop.reason, reason, "{agent} {code} {output}: {stop:?}");
            assert!(stop.confidence > 0.0 && stop.confidence <= MOST_CONFIDENT && !stop.evidence.is_empty());
        }
    }

    /// What Claude Code 2.1.197, Codex 0.169.0 and opencode 1.18.33 printed, run as sessions are: without an account,
    /// and against a server on this machine that answered 401, 429, 529 and 400.
    #[test]
    fn what_agents_without_an_account_print_is_a_crash_and_no_limit_and_limits_are_limits() {
        let codex = "OpenAI Codex v0.169.0\n--------\nmodel: gpt-5\nprovider: fake\nsandbox: read-only\n\
                     session id: 01a20324-5d82-7d63-93c0-eb923a716f36\n--------\nuser\nsay hello\n\
                     warning: Model metadata for `gpt-5` not found. Defaulting to fallback metadata; this can degrade \
                     performance and cause issues.\n";
        let twice = |line: &str| format!("{codex}ERROR: Reconnecting... 1/1\n{line}\n{line}");
        for (agent, output, reason) in [
            ("claude", "Not logged in · Please run /login".to_owned(), Reason::Crash),
            ("claude", "Invalid API key · Fix external API key".to_owned(), Reason::Crash),
            (
                "claude",
                "No conversation found with session ID: 00000000-0000-4000-8000-000000000003".to_owned(),
                Reason::Crash,
            ),
            (
                "claude",
                "API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try \
                 again later."
                    .to_owned(),
                Reason::RateLimit,
            ),
            (
                "claude",
                "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If \
                 it persists, check your inference gateway (127.0.0.1:8529)."
                    .to_owned(),
                Reason::RateLimit,
            ),
            (
                "claude",
                "Prompt is too long · the request is ~210171 tokens (limit 200000) but this conversation is only ~1536 \
                 tokens — the rest is system prompt, tool definitions, and attachment content."
                    .to_owned(),
                Reason::ContextExhausted,
            ),
            (
                "codex",
                twice(
                    "ERROR: unexpected status 401 Unauthorized: Incorrect API key provided: sk-invalid., url: \
                     http://127.0.0.1:9401/v1/responses",
                ),
                Reason::Crash,
            ),
            ("codex", twice("ERROR: exceeded retry limit, last status: 429 Too Many Requests"), Reason::RateLimit),
            ("codex", twice("ERROR: Quota exceeded. Check your plan and billing details."), Reason::RateLimit),
            (
                "codex",
                twice(
                    "ERROR: Codex ran out of room in the model's context window. Start a new thread or clear earlier \
                     history before retrying.",
                ) + "\ntokens used\n0",
                Reason::ContextExhausted,
            ),
            (
                "opencode",
                "\u{1b}[0m\n> build · m\n\u{1b}[0m\n\u{1b}[91m\u{1b}[1mError: \u{1b}[0mIncorrect API key provided: \
                 sk-invalid."
                    .to_owned(),
                Reason::Crash,
            ),
            (
                "opencode",
                "\u{1b}[0m\n> build · m\n\u{1b}[0m\n\u{1b}[91m\u{1b}[1mError: \u{1b}[0mYour input exceeds the context \
                 window of this model. Please adjust your input and try again."
                    .to_owned(),
                Reason::ContextExhausted,
            ),
        ] {
            let stop = told(agent, 1, &output);
            assert_eq!(stop.reason, reason, "{agent}: {output}: {stop:?}");
            let last = output.lines().next_back().unwrap();
            let said = process_runner::clean(last).chars().take(40).collect::<String>();
            let told = stop.evidence.join("\n");
            assert!(reason != Reason::Crash || process_runner::clean(&told).contains(&said), "{agent}: {told}");
        }
    }

    #[test]
    fn what_the_agent_works_on_is_not_why_it_stopped() {
        for output in [
            "test retry::gives_up ... expected 429, got 200",
            "HTTP/1.1 429 Too Many Requests\nassertion failed",
            "I added a test for error 429: too many requests are now retried.",
            "    if status == 429 { return Err(RateLimited) }",
            "grep: rate limit exceeded",
            "The docs say \"You've hit your usage limit\" is shown then.",
            "curl: (22) The requested URL returned error: 429",
            "- Prompt is not too long",
        ] {
            for agent in ["claude", "codex", "opencode", "another"] {
                let stop = told(agent, 1, output);
                assert_eq!(stop.reason, Reason::Crash, "{agent}: {output}: {stop:?}");
                assert_eq!(told(agent, 0, output).reason, Reason::Completed, "{agent}: {output}");
            }
        }
    }

    #[test]
    fn a_limit_that_the_agent_got_over_is_not_why_it_stopped() {
        let mut output = "API Error: 529 {\"type\":\"error\"}\n".to_owned();
        output += "Trying again.\nAll tests pass.\nI have committed the change.\n";
        assert_eq!(told("claude", 0, &output).reason, Reason::Completed);
        let mut long = "API Error: 529 {\"type\":\"error\"}\n".to_owned();
        (0..LAST_LINES).for_each(|line| long += &format!("compiling {line}\n"));
        assert_eq!(told("claude", 1, &long).reason, Reason::Crash);
    }

    #[test]
    fn how_long_to_wait_is_taken_from_where_it_is_said_and_the_place_is_kept() {
        let limit = "ERROR: exceeded retry limit, last status: 429 Too Many Requests";
        let retry = |output: &str| told("codex", 1, output).retry.map(|retry| (retry.source, retry.when));
        for (said, source, millis) in [
            (format!("Retry-After: 37\n{limit}"), RetrySource::Header, 37_000),
            (format!("retry-after-ms: 1500\n{limit}"), RetrySource::Header, 1_500),
            (format!("{limit} {{\"retry_after\": 12}}"), RetrySource::Json, 12_000),
            (format!("{limit}\nPlease try again in 1.2s."), RetrySource::Words, 1_200),
            (format!("{limit}. Try again in 2 days 3 hours 5 minutes."), RetrySource::Words, 183_900_000),
            (format!("try again in 9 s\nRetry-After: 37\n{limit}"), RetrySource::Header, 37_000),
        ] {
            assert_eq!(retry(&said), Some((source, When::In(millis))), "{said}");
        }
        assert_eq!(retry(limit), None, "what nobody said is not made up");
        assert_eq!(retry(&format!("Retry-After: 37\n{}{limit}", "work\n".repeat(9))), None, "too far away");
    }

    #[test]
    fn a_time_of_reset_is_kept_as_it_was_said() {
        let retry = |output: &str| told("claude", 1, output).retry.unwrap().when;
        assert_eq!(retry("Claude AI usage limit reached|1762952400"), When::At(1_762_952_400_000));
        let clock = |time: &str, zone: Option<&str>| When::Clock {
            time: time.to_owned(),
            zone: zone.map(str::to_owned),
        };
        assert_eq!(
            retry("You've hit your limit · resets 1:30am (Asia/Dhaka)"),
            clock("01:30", Some("Asia/Dhaka"))
        );
        assert_eq!(
            retry("Claude usage limit reached. Your limit will reset at 12pm (America/Santiago)."),
            clock("12:00", Some("America/Santiago"))
        );
        assert_eq!(retry("5-hour limit reached ∙ resets 12:05 AM"), clock("00:05", None));
    }

    #[test]
    fn more_evidence_is_more_confidence_and_never_certainty() {
        let one = told("claude", 0, "API Error: Repeated 529 Overloaded errors");
        assert!((one.confidence - 0.85).abs() < 1e-9);
        let failed = told("claude", 1, "API Error: Repeated 529 Overloaded errors");
        assert!((failed.confidence - 0.88).abs() < 1e-9);
        let many = told("claude", 1, &"API Error: Repeated 529 Overloaded errors\n".repeat(15));
        assert!((many.confidence - MOST_CONFIDENT).abs() < 1e-9);
    }

    #[test]
    fn an_end_that_nobody_saw_is_told_by_what_was_printed_or_is_unknown() {
        let agents = agents();
        let ending = Ending::default();
        let stop = classify(agents, Some("claude"), ending, &["Claude AI usage limit reached|1762952400"]);
        assert_eq!(stop.reason, Reason::RateLimit);
        let stop = classify(agents, None, ending, &["working"]);
        assert_eq!((stop.reason, stop.confidence), (Reason::Unknown, 0.2));
        assert!(stop.evidence.contains(&"nobody saw how it ended".to_owned()));
        let killed = classify(agents, None, Ending { code: None, signal: Some(11) }, &[]);
        assert_eq!((killed.reason, killed.evidence[0].as_str()), (Reason::Crash, "ended by SIGSEGV"));
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_is_printed_can_break_it(text in "(?s).{0,400}", code in proptest::option::of(0u32..256)) {
            let lines: Vec<&str> = text.lines().collect();
            let stop = classify(agents(), Some("claude"), Ending { code, signal: None }, &lines);
            proptest::prop_assert!(stop.confidence <= MOST_CONFIDENT && !stop.evidence.is_empty());
        }
    }
}
