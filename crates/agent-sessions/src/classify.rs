//! Finds out why a process ended, from its exit and from the last lines that it printed.

use crate::catalog::{AgentCatalog, AgentLineMeaning, AgentLinePattern};
use crate::decoration::strip_decoration;
use crate::diagnosis::{
    AgentRetryHint, AgentRetrySource, AgentRetryTime, ObservedSessionExit, SessionStopCause,
    SessionStopDiagnosis,
};
use regex::bytes::Captures;

/// The number of last lines in which a process that failed may give its reason.
const FAILURE_LINES: usize = 20;
/// The number of last lines in which a process that exited with 0 may still report a limit. It has recovered from
/// whatever it printed earlier.
const SUCCESS_LINES: usize = 3;
/// The upper bound of the confidence: output never proves a cause.
const MAX_CONFIDENCE: f64 = 0.98;
/// The confidence that each further piece of evidence adds.
const CONFIDENCE_STEP: f64 = 0.03;
/// The number of lines around a reported limit in which the time to wait is looked for. Headers come before the
/// message, advice comes after it.
const RETRY_CONTEXT_LINES: usize = 5;
/// The number of printed lines that are quoted as evidence.
const MAX_QUOTED_LINES: usize = 4;
/// The longest quotation of a line, in characters.
const MAX_QUOTED_CHARS: usize = 200;

/// Diagnoses why a process of `agent` ended whose last lines of output are `lines`.
///
/// Output counts only if it stands at the end and has the form in which the agent itself prints it: a program that the
/// agent ran may have printed anything.
pub(crate) fn classify(
    catalog: &AgentCatalog,
    agent: Option<&str>,
    exit: ObservedSessionExit,
    lines: &[&str],
) -> SessionStopDiagnosis {
    // The frames of a stack trace stand between the reason and the end, and are no lines of the agent's own.
    let says_something = |line: &&str| !line.trim().is_empty() && !is_stack_frame(line);
    let lines: Vec<&str> = lines.iter().copied().filter(says_something).collect();
    let relevant = if exit.code == Some(0) { SUCCESS_LINES } else { FAILURE_LINES };
    // From the last line backward, so that the latest report comes first.
    let matches: Vec<AgentLineMatch<'_>> = (lines.len().saturating_sub(relevant)..lines.len())
        .rev()
        .filter_map(|index| {
            let text = strip_decoration(lines[index]);
            let (pattern, reset) = match_line(catalog, agent, &text)?;
            Some(AgentLineMatch { index, line: lines[index], meaning: pattern.meaning, reset })
        })
        .collect();
    let attention_codes =
        agent.and_then(|agent| catalog.by_name(agent)).map_or(&[][..], |agent| &agent.attention_exit_codes);
    let needs_attention = exit.code.is_some_and(|code| attention_codes.contains(&code));
    let mut diagnosis = diagnose(&matches, exit, needs_attention, lines.last().copied());
    (diagnosis.exit_code, diagnosis.signal) = (exit.code, exit.signal);
    if diagnosis.reason == SessionStopCause::RateLimit {
        diagnosis.retry = retry_hint(catalog, &matches, &lines);
    }
    diagnosis
}

/// A line of output that matches a pattern.
struct AgentLineMatch<'a> {
    index: usize,
    line: &'a str,
    meaning: AgentLineMeaning,
    /// The time to go on that the line itself names.
    reset: Option<AgentRetryTime>,
}

fn match_line<'a>(
    catalog: &'a AgentCatalog,
    agent: Option<&str>,
    text: &str,
) -> Option<(&'a AgentLinePattern, Option<AgentRetryTime>)> {
    catalog.patterns(agent).find_map(|pattern| {
        let captures = pattern.regex.captures(text.as_bytes())?;
        Some((pattern, reset_time(&captures)))
    })
}

/// Weighs the matches, the latest first, against the exit. `needs_attention` is true where the exit code means that.
fn diagnose(
    matches: &[AgentLineMatch<'_>],
    exit: ObservedSessionExit,
    needs_attention: bool,
    last_line: Option<&str>,
) -> SessionStopDiagnosis {
    let count = |meaning: AgentLineMeaning| matches.iter().filter(|found| found.meaning == meaning).count();
    let (completions, quits) = (count(AgentLineMeaning::Completed), count(AgentLineMeaning::UserExit));
    let succeeded = exit.code == Some(0);
    let unobserved = exit == ObservedSessionExit::default();
    // Of the causes that an agent reports, the latest ended the process.
    let latest_cause = matches.iter().map(|found| found.meaning).find(|meaning| {
        matches!(
            meaning,
            AgentLineMeaning::RateLimit
                | AgentLineMeaning::ContextExhausted
                | AgentLineMeaning::NeedsAttention
        )
    });
    let (reason, base, pieces) = match latest_cause {
        _ if needs_attention => (SessionStopCause::NeedsAttention, 0.9, 1),
        Some(meaning @ AgentLineMeaning::NeedsAttention) => {
            (SessionStopCause::NeedsAttention, 0.85, count(meaning))
        }
        Some(meaning @ AgentLineMeaning::RateLimit) => (SessionStopCause::RateLimit, 0.85, count(meaning)),
        Some(meaning) => (SessionStopCause::ContextExhausted, 0.78, count(meaning)),
        None if was_asked_to_end(exit) => (SessionStopCause::UserExit, 0.9, 1 + quits),
        None if completions > 0 && (succeeded || unobserved) => {
            (SessionStopCause::Completed, 0.95, completions)
        }
        None if quits > 0 && (succeeded || unobserved) => (SessionStopCause::UserExit, 0.75, quits),
        None if succeeded => (SessionStopCause::Completed, 0.75, 1),
        None if unobserved => (SessionStopCause::Unknown, 0.2, 1),
        None => (SessionStopCause::Crash, 0.85, 1),
    };
    // An exit code that agrees with the output is one more piece of evidence.
    let exit_agrees = match reason {
        SessionStopCause::RateLimit
        | SessionStopCause::ContextExhausted
        | SessionStopCause::NeedsAttention => !succeeded && !unobserved,
        SessionStopCause::Completed => succeeded && completions > 0,
        _ => false,
    };
    let further = pieces.saturating_sub(1) + usize::from(exit_agrees);
    #[allow(clippy::cast_precision_loss, reason = "there are at most 20")]
    let confidence = (base + CONFIDENCE_STEP * further as f64).min(MAX_CONFIDENCE);
    let meaning = match reason {
        SessionStopCause::RateLimit => Some(AgentLineMeaning::RateLimit),
        SessionStopCause::ContextExhausted => Some(AgentLineMeaning::ContextExhausted),
        SessionStopCause::NeedsAttention => Some(AgentLineMeaning::NeedsAttention),
        SessionStopCause::Completed => Some(AgentLineMeaning::Completed),
        SessionStopCause::UserExit => Some(AgentLineMeaning::UserExit),
        _ => None,
    };
    let supporting = matches.iter().filter(|found| Some(found.meaning) == meaning).take(MAX_QUOTED_LINES);
    let mut evidence: Vec<String> =
        supporting.map(|found| format!("it printed: {}", quoted(found.line))).collect();
    evidence.push(exit_text(exit));
    let is_unexplained = matches!(reason, SessionStopCause::Crash | SessionStopCause::Unknown)
        || (reason == SessionStopCause::NeedsAttention && evidence.len() == 1);
    if is_unexplained && let Some(last_line) = last_line {
        evidence.push(format!("its last line: {}", quoted(last_line)));
    }
    SessionStopDiagnosis { reason, confidence, evidence, retry: None, exit_code: None, signal: None }
}

/// Returns true for a frame of the stack trace that Node.js prints below an error.
fn is_stack_frame(line: &str) -> bool {
    line.starts_with(' ') && line.trim_start().starts_with("at ")
}

/// Tells whether the process was asked to end: by SIGHUP, SIGINT or SIGTERM, or by the exit codes that a shell gives
/// for them, 128 plus the signal (bash(1), "EXIT STATUS").
fn was_asked_to_end(exit: ObservedSessionExit) -> bool {
    matches!(exit.code, Some(129 | 130 | 143)) || matches!(exit.signal, Some(1 | 2 | 15))
}

fn exit_text(exit: ObservedSessionExit) -> String {
    match (exit.code, exit.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => match process_runner::signal_name(signal) {
            Some(name) => format!("ended by {name}"),
            None => format!("ended by signal {signal}"),
        },
        (None, None) => "nobody saw how it ended".to_owned(),
    }
}

/// Returns a line shortened for an answer.
fn quoted(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

/// Returns the point in time that the line itself names.
fn reset_time(captures: &Captures<'_>) -> Option<AgentRetryTime> {
    let text = |name: &str| {
        let group = captures.name(name)?;
        std::str::from_utf8(group.as_bytes()).ok().map(str::to_owned)
    };
    if let Some(unix) = text("unix").and_then(|unix| unix.parse::<u64>().ok()) {
        return Some(AgentRetryTime::At(unix * 1000));
    }
    let time = time_of_day(&text("clock")?)?;
    Some(AgentRetryTime::Clock { time, zone: text("zone") })
}

/// Converts `3pm` or `1:30 AM` into `15:00` or `01:30`.
fn time_of_day(text: &str) -> Option<String> {
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
    // On a clock of twelve hours 12 comes before 1.
    let hour = hour % 12 + if afternoon { 12 } else { 0 };
    Some(format!("{hour:02}:{minute:02}"))
}

/// Finds the time to go on: in the line that reported the limit, or else in that line and those around it.
fn retry_hint(
    catalog: &AgentCatalog,
    matches: &[AgentLineMatch<'_>],
    lines: &[&str],
) -> Option<AgentRetryHint> {
    let limits = || matches.iter().filter(|found| found.meaning == AgentLineMeaning::RateLimit);
    if let Some(when) = limits().find_map(|found| found.reset.clone()) {
        return Some(AgentRetryHint { source: AgentRetrySource::Reset, when });
    }
    let index = limits().next()?.index;
    let context = index.saturating_sub(RETRY_CONTEXT_LINES)..lines.len().min(index + RETRY_CONTEXT_LINES + 1);
    // The patterns stand in the order of their reliability, so the first that matches anywhere wins.
    catalog.retry_patterns().iter().find_map(|pattern| {
        let millis = lines[context.clone()].iter().rev().find_map(|line| {
            let text = strip_decoration(line);
            let captures = pattern.regex.captures(text.as_bytes())?;
            captured_millis(&captures, pattern.in_milliseconds)
        })?;
        Some(AgentRetryHint { source: pattern.source, when: AgentRetryTime::In(millis) })
    })
}

fn captured_millis(captures: &Captures<'_>, in_milliseconds: bool) -> Option<u64> {
    let number = |name: &str| -> Option<f64> {
        std::str::from_utf8(captures.name(name)?.as_bytes()).ok()?.parse().ok()
    };
    let total = match number("n") {
        Some(n) => n * if in_milliseconds { 1.0 } else { 1000.0 },
        None => {
            // Words such as `2 hours 30 minutes` have a group for each unit, and the groups are added.
            let units = [("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0), ("seconds", 1.0)];
            let parts: Vec<f64> =
                units.iter().filter_map(|(name, seconds)| Some(number(name)? * seconds)).collect();
            if parts.is_empty() {
                return None;
            }
            parts.iter().sum::<f64>() * 1000.0
        }
    };
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a range that fits"
    )]
    let whole = total.clamp(0.0, 1e12).ceil() as u64;
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> &'static AgentCatalog {
        static CATALOG: std::sync::LazyLock<AgentCatalog> =
            std::sync::LazyLock::new(|| AgentCatalog::builtin().unwrap());
        &CATALOG
    }

    fn diagnosed(agent: &str, code: u32, output: &str) -> SessionStopDiagnosis {
        let lines: Vec<&str> = output.lines().collect();
        classify(catalog(), Some(agent), ObservedSessionExit { code: Some(code), signal: None }, &lines)
    }

    #[test]
    fn each_agent_is_understood_in_its_own_words() {
        for (agent, code, output, reason) in [
            ("claude", 1, "Claude AI usage limit reached|1762952400\n", SessionStopCause::RateLimit),
            (
                "claude",
                1,
                "  ⎿  You’ve hit your session limit · resets 12:50am (America/Los_Angeles)",
                SessionStopCause::RateLimit,
            ),
            ("claude", 1, "API Error: Repeated 529 Overloaded errors", SessionStopCause::RateLimit),
            ("claude", 0, "5-hour limit reached ∙ resets 3pm\n\n", SessionStopCause::RateLimit),
            ("claude", 1, "Prompt is too long", SessionStopCause::ContextExhausted),
            (
                "codex",
                1,
                "ERROR: You've hit your usage limit. Upgrade to Pro or try again in 5 minutes.",
                SessionStopCause::RateLimit,
            ),
            (
                "codex",
                1,
                "ERROR: exceeded retry limit, last status: 429 Too Many Requests, request id: x",
                SessionStopCause::RateLimit,
            ),
            (
                "codex",
                1,
                "■ Codex ran out of room in the model's context window. Start a new thread.",
                SessionStopCause::ContextExhausted,
            ),
            (
                "opencode",
                1,
                "\u{1b}[91mError: \u{1b}[0mToo Many Requests: slow down",
                SessionStopCause::RateLimit,
            ),
            (
                "opencode",
                1,
                "AI_APICallError: prompt is too long: 210171 tokens > 200000 maximum",
                SessionStopCause::ContextExhausted,
            ),
            (
                "claude",
                0,
                r#"{"type":"result","subtype":"success","is_error":false,"result":"Done."}"#,
                SessionStopCause::Completed,
            ),
            ("codex", 0, "tokens used: 12,345", SessionStopCause::Completed),
            ("claude", 130, "", SessionStopCause::UserExit),
            ("codex", 143, "working", SessionStopCause::UserExit),
            ("opencode", 0, "> /exit", SessionStopCause::UserExit),
            ("claude", 1, "TypeError: Cannot read properties of undefined", SessionStopCause::Crash),
            ("claude", 0, "I have changed the three files.", SessionStopCause::Completed),
        ] {
            let stop = diagnosed(agent, code, output);
            assert_eq!(stop.reason, reason, "{agent} {code} {output}: {stop:?}");
            assert!(stop.confidence > 0.0 && stop.confidence <= MAX_CONFIDENCE && !stop.evidence.is_empty());
        }
    }

    #[test]
    fn the_exit_code_of_gemini_for_a_login_is_enough() {
        let stop = diagnosed("gemini", 41, "some words of a later version");
        assert_eq!(stop.reason, SessionStopCause::NeedsAttention);
        assert!(stop.evidence[1].contains("some words of a later version"), "{stop:?}");
        assert_eq!(diagnosed("codex", 41, "").reason, SessionStopCause::Crash);
    }

    #[test]
    fn the_quota_of_gemini_is_a_limit_with_its_time() {
        let message =
            "You have exhausted your capacity on this model. Your quota will reset after 15h48m23s.";
        for line in
            [format!("[API Error: {message}]"), format!("TerminalQuotaError: {message}"), message.to_owned()]
        {
            let stop = diagnosed("gemini", 1, &line);
            assert_eq!(stop.reason, SessionStopCause::RateLimit, "{line}: {stop:?}");
            let wait = AgentRetryTime::In(((15 * 60 + 48) * 60 + 23) * 1000);
            assert_eq!(
                stop.retry,
                Some(AgentRetryHint { source: AgentRetrySource::Words, when: wait }),
                "{line}"
            );
        }
        let retry = "[API Error: You exceeded your current quota, please check your plan and billing details. \
                     Please retry in 12.5s.]";
        let stop = diagnosed("gemini", 1, retry);
        assert_eq!(
            stop.retry,
            Some(AgentRetryHint { source: AgentRetrySource::Words, when: AgentRetryTime::In(12_500) })
        );
        let daily = diagnosed("gemini", 1, "Error: You have exhausted your daily quota on this model.");
        assert_eq!((daily.reason, daily.retry), (SessionStopCause::RateLimit, None));
    }

    /// Output of Claude Code 2.1.197, Codex 0.169.0 and opencode 1.18.33, run as sessions are: without an account,
    /// and against a server on this machine that answered 401, 429, 529 and 400.
    #[test]
    fn agents_without_an_account_need_attention_and_limits_are_limits() {
        let codex = "OpenAI Codex v0.169.0\n--------\nmodel: gpt-5\nprovider: fake\nsandbox: read-only\n\
                     session id: 01a20324-5d82-7d63-93c0-eb923a716f36\n--------\nuser\nsay hello\n\
                     warning: Model metadata for `gpt-5` not found. Defaulting to fallback metadata; this can degrade \
                     performance and cause issues.\n";
        let twice = |line: &str| format!("{codex}ERROR: Reconnecting... 1/1\n{line}\n{line}");
        for (agent, output, reason) in [
            ("claude", "Not logged in · Please run /login".to_owned(), SessionStopCause::NeedsAttention),
            ("claude", "Invalid API key · Fix external API key".to_owned(), SessionStopCause::NeedsAttention),
            (
                "codex",
                "Reading additional input from stdin...\nNot inside a trusted directory and --skip-git-repo-check was \
                 not specified."
                    .to_owned(),
                SessionStopCause::NeedsAttention,
            ),
            (
                "gemini",
                "Please set an Auth method in your /home/ann/.gemini/settings.json or specify one of the following \
                 environment variables before running: GEMINI_API_KEY, GOOGLE_GENAI_USE_VERTEXAI, GOOGLE_GENAI_USE_GCA"
                    .to_owned(),
                SessionStopCause::NeedsAttention,
            ),
            (
                "claude",
                "No conversation found with session ID: 00000000-0000-4000-8000-000000000003".to_owned(),
                SessionStopCause::Crash,
            ),
            (
                "claude",
                "API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try \
                 again later."
                    .to_owned(),
                SessionStopCause::RateLimit,
            ),
            (
                "claude",
                "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If \
                 it persists, check your inference gateway (127.0.0.1:8529)."
                    .to_owned(),
                SessionStopCause::RateLimit,
            ),
            (
                "claude",
                "Prompt is too long · the request is ~210171 tokens (limit 200000) but this conversation is only ~1536 \
                 tokens — the rest is system prompt, tool definitions, and attachment content."
                    .to_owned(),
                SessionStopCause::ContextExhausted,
            ),
            (
                "codex",
                twice(
                    "ERROR: unexpected status 401 Unauthorized: Incorrect API key provided: sk-invalid., url: \
                     http://127.0.0.1:9401/v1/responses",
                ),
                SessionStopCause::NeedsAttention,
            ),
            ("codex", twice("ERROR: exceeded retry limit, last status: 429 Too Many Requests"), SessionStopCause::RateLimit),
            (
                "codex",
                twice(
                    "ERROR: rate limit exceeded: Rate limit reached for gpt-5 in organization org-x on tokens per min \
                     (TPM): Limit 30000. Please try again in 2s.",
                ) + "\ntokens used\n2",
                SessionStopCause::RateLimit,
            ),
            (
                "gemini",
                "Error when talking to Gemini API Full report available at: /tmp/gemini-client-error.json \
                 TerminalQuotaError: You have exhausted your daily quota on this model.\n"
                    .to_owned()
                    + &"    at classifyGoogleError (file:///srv/bundle/chunk.js:307344:16)\n".repeat(FAILURE_LINES)
                    + "  cause: {\n    code: 429\n  },\n  status: 429\n}\n\
                       An unexpected critical error occurred:[object Object]",
                SessionStopCause::RateLimit,
            ),
            ("codex", twice("ERROR: Quota exceeded. Check your plan and billing details."), SessionStopCause::RateLimit),
            (
                "codex",
                twice(
                    "ERROR: Codex ran out of room in the model's context window. Start a new thread or clear earlier \
                     history before retrying.",
                ) + "\ntokens used\n0",
                SessionStopCause::ContextExhausted,
            ),
            (
                "opencode",
                "\u{1b}[0m\n> build · m\n\u{1b}[0m\n\u{1b}[91m\u{1b}[1mError: \u{1b}[0mIncorrect API key provided: \
                 sk-invalid."
                    .to_owned(),
                SessionStopCause::NeedsAttention,
            ),
            (
                "opencode",
                "\u{1b}[0m\n> build · m\n\u{1b}[0m\n\u{1b}[91m\u{1b}[1mError: \u{1b}[0mYour input exceeds the context \
                 window of this model. Please adjust your input and try again."
                    .to_owned(),
                SessionStopCause::ContextExhausted,
            ),
        ] {
            let stop = diagnosed(agent, 1, &output);
            assert_eq!(stop.reason, reason, "{agent}: {output}: {stop:?}");
            let last = output.lines().next_back().unwrap();
            let expected = process_runner::clean(last).chars().take(40).collect::<String>();
            let evidence = stop.evidence.join("\n");
            let is_quoted = matches!(reason, SessionStopCause::Crash | SessionStopCause::NeedsAttention);
            assert!(!is_quoted || process_runner::clean(&evidence).contains(&expected), "{agent}: {evidence}");
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
                let stop = diagnosed(agent, 1, output);
                assert_eq!(stop.reason, SessionStopCause::Crash, "{agent}: {output}: {stop:?}");
                assert_eq!(
                    diagnosed(agent, 0, output).reason,
                    SessionStopCause::Completed,
                    "{agent}: {output}"
                );
            }
        }
    }

    #[test]
    fn a_limit_that_the_agent_got_over_is_not_why_it_stopped() {
        let mut output = "API Error: 529 {\"type\":\"error\"}\n".to_owned();
        output += "Trying again.\nAll tests pass.\nI have committed the change.\n";
        assert_eq!(diagnosed("claude", 0, &output).reason, SessionStopCause::Completed);
        let mut long = "API Error: 529 {\"type\":\"error\"}\n".to_owned();
        (0..FAILURE_LINES).for_each(|line| long += &format!("compiling {line}\n"));
        assert_eq!(diagnosed("claude", 1, &long).reason, SessionStopCause::Crash);
    }

    #[test]
    fn how_long_to_wait_is_taken_from_where_it_is_said_and_the_place_is_kept() {
        let limit = "ERROR: exceeded retry limit, last status: 429 Too Many Requests";
        let retry =
            |output: &str| diagnosed("codex", 1, output).retry.map(|retry| (retry.source, retry.when));
        for (said, source, millis) in [
            (format!("Retry-After: 37\n{limit}"), AgentRetrySource::Header, 37_000),
            (format!("retry-after-ms: 1500\n{limit}"), AgentRetrySource::Header, 1_500),
            (format!("{limit} {{\"retry_after\": 12}}"), AgentRetrySource::Json, 12_000),
            (format!("{limit}\nPlease try again in 1.2s."), AgentRetrySource::Words, 1_200),
            (
                format!("{limit}. Try again in 2 days 3 hours 5 minutes."),
                AgentRetrySource::Words,
                183_900_000,
            ),
            (format!("try again in 9 s\nRetry-After: 37\n{limit}"), AgentRetrySource::Header, 37_000),
        ] {
            assert_eq!(retry(&said), Some((source, AgentRetryTime::In(millis))), "{said}");
        }
        assert_eq!(retry(limit), None, "what nobody said is not made up");
        assert_eq!(retry(&format!("Retry-After: 37\n{}{limit}", "work\n".repeat(9))), None, "too far away");
    }

    #[test]
    fn a_time_of_reset_is_kept_as_it_was_said() {
        let retry = |output: &str| diagnosed("claude", 1, output).retry.unwrap().when;
        assert_eq!(retry("Claude AI usage limit reached|1762952400"), AgentRetryTime::At(1_762_952_400_000));
        let clock = |time: &str, zone: Option<&str>| AgentRetryTime::Clock {
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
        let one = diagnosed("claude", 0, "API Error: Repeated 529 Overloaded errors");
        assert!((one.confidence - 0.85).abs() < 1e-9);
        let failed = diagnosed("claude", 1, "API Error: Repeated 529 Overloaded errors");
        assert!((failed.confidence - 0.88).abs() < 1e-9);
        let many = diagnosed("claude", 1, &"API Error: Repeated 529 Overloaded errors\n".repeat(15));
        assert!((many.confidence - MAX_CONFIDENCE).abs() < 1e-9);
    }

    #[test]
    fn an_end_that_nobody_saw_is_told_by_what_was_printed_or_is_unknown() {
        let catalog = catalog();
        let exit = ObservedSessionExit::default();
        let stop = classify(catalog, Some("claude"), exit, &["Claude AI usage limit reached|1762952400"]);
        assert_eq!(stop.reason, SessionStopCause::RateLimit);
        let stop = classify(catalog, None, exit, &["working"]);
        assert_eq!((stop.reason, stop.confidence), (SessionStopCause::Unknown, 0.2));
        assert!(stop.evidence.contains(&"nobody saw how it ended".to_owned()));
        let killed = classify(catalog, None, ObservedSessionExit { code: None, signal: Some(11) }, &[]);
        assert_eq!(
            (killed.reason, killed.evidence[0].as_str()),
            (SessionStopCause::Crash, "ended by SIGSEGV")
        );
    }

    proptest::proptest! {
        #[test]
        fn no_output_breaks_the_classification(text in "(?s).{0,400}", code in proptest::option::of(0u32..256)) {
            let lines: Vec<&str> = text.lines().collect();
            let stop = classify(catalog(), Some("claude"), ObservedSessionExit { code, signal: None }, &lines);
            proptest::prop_assert!(stop.confidence <= MAX_CONFIDENCE && !stop.evidence.is_empty());
        }
    }
}
