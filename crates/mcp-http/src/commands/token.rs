//! `mcp-http token`: makes, lists, rotates and revokes tokens.

use crate::auth::bearer::{self, NewToken};
use crate::auth::token_file::{self, PreviousSecret, TokenEntry, TokenFileError, is_name};
use crate::auth::token_usage::{self, TokenUsageError};
use crate::cli::{NewTokenArgs, RotateTokenArgs, TokenCommand};
use crate::console_output::{OutputError, name, print, say};
use crate::server::exposure;
use server_setup::settings::Settings;
use server_setup::{policy, resources, toolsets};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The error of a command that did not make, list or revoke a token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("no file of tokens is named: give --tokens FILE, or set http.tokens")]
    NoFile,
    #[error(transparent)]
    File(#[from] TokenFileError),
    #[error(transparent)]
    Usage(#[from] TokenUsageError),
    #[error("`{0}` is not a name: expected letters, digits, `.`, `_` and `-`, at most 64")]
    Name(String),
    #[error("there is a token `{0}`; revoke it first, or choose another name")]
    NameTaken(String),
    #[error("there is no token `{0}`; `{name} token list` shows the tokens", name = name())]
    NoToken(String),
    #[error("the policy declares no role `{role}`; it has {declared}")]
    Role { role: String, declared: String },
    #[error("--remote: the configuration has no [remotes.{0}]")]
    Remote(String),
    #[error("--only-root {}", .root.display())]
    Root { root: PathBuf, source: std::io::Error },
    #[error("--only-root {} lies in no root of the server; it has {roots}", .root.display())]
    RootOutside { root: PathBuf, roots: String },
    #[error("--expires `{0}` is not a time; expected 90s, 15m, 12h, 30d, 8w or never")]
    Lifetime(String),
    #[error("--overlap `{0}` is not a time; expected 0s, 15m, 1h or 2d")]
    Overlap(String),
    #[error("the system has no random numbers: {0}")]
    Random(getrandom::Error),
    /// The policy, by which the role is checked, cannot be used.
    #[error(transparent)]
    Setup(#[from] server_setup::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Runs `mcp-http token COMMAND`.
pub(crate) fn run(settings: &Settings, command: TokenCommand) -> Result<ExitCode, TokenError> {
    let path = settings.config.http.tokens.as_ref();
    let path = path.ok_or(TokenError::NoFile)?;
    match command {
        TokenCommand::New(arguments) => create(settings, path, &arguments),
        TokenCommand::List { json, all } => list(settings, path, json, all),
        TokenCommand::Rotate(arguments) => rotate(path, &arguments),
        TokenCommand::Revoke { name } => revoke(path, &name),
    }
}

fn create(settings: &Settings, path: &Path, arguments: &NewTokenArgs) -> Result<ExitCode, TokenError> {
    check_new(settings, &arguments.name, &arguments.role)?;
    if let Some(remote) = &arguments.remote {
        check_remote(settings, remote)?;
    }
    let roots = arguments
        .only_roots
        .iter()
        .map(|root| checked_root(settings, root))
        .collect::<Result<Vec<_>, _>>()?;
    let now = seconds(SystemTime::now());
    let expires = parse_lifetime(&arguments.expires)?.map(|lifetime| now.saturating_add(lifetime));
    let NewToken { token, id, hash } = bearer::generate().map_err(TokenError::Random)?;
    token_file::change(path, |file| {
        if file.tokens.iter().any(|token| token.name == arguments.name) {
            return Err(TokenError::NameTaken(arguments.name.clone()));
        }
        file.tokens.push(TokenEntry {
            name: arguments.name.clone(),
            id: id.0.clone(),
            hash: hash.to_string(),
            role: arguments.role.clone(),
            roots: roots.clone(),
            remote: arguments.remote.clone(),
            created: now,
            expires,
            calls_per_second: arguments.calls_per_second,
            calls_in_flight: arguments.calls_in_flight,
            processes: arguments.processes,
            bytes_per_minute: arguments.bytes_per_minute,
            previous: None,
        });
        Ok(())
    })?;
    // Another server may have other roots, so the token is made all the same.
    if let Err(error) = exposure::check_outside_roots(settings, "http.tokens", path) {
        say(&format!(
            "note: a server with this root would not start: {error}, or serve another folder with --root"
        ));
    }
    // Only now, when the file has the hash: a token that was shown and then not stored would never work.
    say(&match expires {
        Some(end) => format!(
            "The token ends in {}, on {}; `{} token rotate {}` gives it a new secret before that.",
            format_span(end - now),
            day(end),
            name(),
            arguments.name
        ),
        None => "The token has no end. Revoke it when it is no longer needed.".to_owned(),
    });
    say("The token is printed this once, and not kept:");
    Ok(print(&token)?)
}

/// Checks that the configuration has a remote.
fn check_remote(settings: &Settings, name: &str) -> Result<(), TokenError> {
    #[cfg(feature = "remotes")]
    if settings.config.remotes.iter().any(|remote| remote.name == name) {
        return Ok(());
    }
    let _ = settings;
    Err(TokenError::Remote(name.to_owned()))
}

/// Checks the name and the role of a token that is to be made.
pub(crate) fn check_new(settings: &Settings, name: &str, role: &str) -> Result<(), TokenError> {
    match is_name(name) {
        true => check_role(settings, role),
        false => Err(TokenError::Name(name.to_owned())),
    }
}

/// Makes the first token in the file at `path`, which ends in 90 days, and returns it.
pub(crate) fn create_first(path: &Path, name: &str, role: &str) -> Result<String, TokenError> {
    let now = seconds(SystemTime::now());
    let NewToken { token, id, hash } = bearer::generate().map_err(TokenError::Random)?;
    token_file::change(path, |file| {
        file.tokens.push(TokenEntry {
            name: name.to_owned(),
            id: id.0.clone(),
            hash: hash.to_string(),
            role: role.to_owned(),
            roots: Vec::new(),
            remote: None,
            created: now,
            expires: Some(now + FIRST_LIFETIME),
            calls_per_second: None,
            calls_in_flight: None,
            processes: None,
            bytes_per_minute: None,
            previous: None,
        });
        Ok::<(), TokenError>(())
    })?;
    Ok(token)
}

/// The life of the first token, as of all that are made without a word about it: 90 days.
const FIRST_LIFETIME: u64 = 90 * 86_400;

/// Gives the token a new secret. The one before holds for a while, so that its bearers can be changed one after the other.
fn rotate(path: &Path, arguments: &RotateTokenArgs) -> Result<ExitCode, TokenError> {
    let overlap = match arguments.overlap.trim_start_matches('0') {
        "s" | "m" | "h" | "d" | "w" => 0,
        _ => parse_span(&arguments.overlap).ok_or_else(|| TokenError::Overlap(arguments.overlap.clone()))?,
    };
    let lifetime = arguments.expires.as_deref().map(parse_lifetime).transpose()?;
    let now = seconds(SystemTime::now());
    let NewToken { token, id, hash } = bearer::generate().map_err(TokenError::Random)?;
    let (mut previous_end, mut expires, mut ends_earlier) = (None, None, false);
    token_file::change(path, |file| {
        let entry = file.tokens.iter_mut().find(|token| token.name == arguments.name);
        let entry = entry.ok_or_else(|| TokenError::NoToken(arguments.name.clone()))?;
        let end = entry.expires.unwrap_or(u64::MAX).min(now.saturating_add(overlap));
        ends_earlier = entry.previous.as_ref().is_some_and(|previous| previous.expires > now);
        entry.previous = (end > now).then(|| PreviousSecret {
            id: std::mem::replace(&mut entry.id, id.0.clone()),
            hash: std::mem::replace(&mut entry.hash, hash.to_string()),
            expires: end,
        });
        // Where none is kept, the new one takes the place of the old one.
        entry.id.clone_from(&id.0);
        entry.hash = hash.to_string();
        let before = entry.expires.map(|end| end.saturating_sub(entry.created));
        (entry.created, entry.expires) =
            (now, lifetime.unwrap_or(before).map(|span| now.saturating_add(span)));
        (previous_end, expires) = (entry.previous.as_ref().map(|previous| previous.expires), entry.expires);
        Ok::<(), TokenError>(())
    })?;
    if ends_earlier {
        say("note: the secret before the last rotation has ended now: a token has two secrets at most.");
    }
    say(&match previous_end {
        Some(end) => format!("The secret before holds for {} more.", format_span(end - now)),
        None => "The secret before has ended.".to_owned(),
    });
    say(&match expires {
        Some(end) => {
            format!("The new one ends in {}, on {}.", format_span(end.saturating_sub(now)), day(end))
        }
        None => "The new one has no end.".to_owned(),
    });
    say("The token is printed this once, and not kept:");
    Ok(print(&token)?)
}

/// Returns the day of a time in seconds since 1970, in UTC.
fn day(seconds: u64) -> String {
    let text = audit_log::timestamp(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    text.split('T').next().unwrap_or_default().to_owned()
}

/// Refuses a role that the policy does not declare: its bearer would get the minimal role.
fn check_role(settings: &Settings, role: &str) -> Result<(), TokenError> {
    let workspace = Arc::new(resources::workspace(settings)?);
    let runner = process_runner::Runner::new();
    let policy = policy::configured(settings, &toolsets::facts(settings, &workspace, &runner)?)?.policy;
    let declared: Vec<&str> = policy.roles().collect();
    match declared.contains(&role) {
        true => Ok(()),
        false => Err(TokenError::Role { role: role.to_owned(), declared: declared.join(", ") }),
    }
}

/// Returns the real path of a root for a token, which must lie in a root of the server.
fn checked_root(settings: &Settings, root: &Path) -> Result<PathBuf, TokenError> {
    let real = root.canonicalize().map_err(|source| TokenError::Root { root: root.to_owned(), source })?;
    let lies_in = |outer: &PathBuf| outer.canonicalize().is_ok_and(|outer| real.starts_with(outer));
    match settings.roots.iter().any(lies_in) {
        true => Ok(real),
        false => {
            let roots: Vec<_> = settings.roots.iter().map(|root| root.display().to_string()).collect();
            Err(TokenError::RootOutside { root: real, roots: roots.join(", ") })
        }
    }
}

fn list(settings: &Settings, path: &Path, json: bool, all: bool) -> Result<ExitCode, TokenError> {
    let usage = settings.config.http.token_usage.as_deref().map(token_usage::read).transpose()?;
    let token_file::TokenFile { tokens, mut revoked, .. } = token_file::read(path)?;
    let now = seconds(SystemTime::now());
    revoked.retain(|token| all && token.is_remembered(now));
    // A token may have had two secrets.
    revoked.dedup_by(|one, other| one.name == other.name && one.at == other.at);
    if json {
        let mut entries: Vec<_> = tokens
            .iter()
            .map(|token| {
                serde_json::json!({
                    "name": token.name, "id": token.id, "role": token.role, "roots": token.roots,
                    "remote": token.remote,
                    "created": token.created, "expires": token.expires,
                    "expired": token.expires.is_some_and(|end| end <= now),
                    "previous_expires":
                        token.previous.as_ref().map(|previous| previous.expires).filter(|end| *end > now),
                    "last_used": usage.as_ref().and_then(|uses| uses.get(&token.name)).map(|used| used.at),
                    "last_used_from": usage.as_ref().and_then(|uses| uses.get(&token.name)).map(|used| &used.from),
                    "calls_per_second": token.calls_per_second, "calls_in_flight": token.calls_in_flight,
                    "processes": token.processes, "bytes_per_minute": token.bytes_per_minute,
                })
            })
            .collect();
        entries.extend(
            revoked
                .iter()
                .map(|token| serde_json::json!({ "name": token.name, "id": token.id, "revoked": token.at })),
        );
        return Ok(print(&format!("{:#}", serde_json::Value::from(entries)))?);
    }
    let mut text = String::new();
    let width =
        |field: fn(&TokenEntry) -> &str| tokens.iter().map(|token| field(token).len()).max().unwrap_or(0);
    let (name, role) = (width(|token| &token.name), width(|token| &token.role));
    for token in &tokens {
        let end = match token.expires {
            None => "no end".to_owned(),
            Some(end) if end <= now => "ended".to_owned(),
            Some(end) => format!("ends in {}", format_span(end - now)),
        };
        let roots: Vec<_> = token.roots.iter().map(|root| root.display().to_string()).collect();
        let roots = match &token.remote {
            Some(remote) => format!("remote {remote}"),
            None if roots.is_empty() => "all roots".to_owned(),
            None => roots.join(", "),
        };
        let previous = token.previous.as_ref().filter(|previous| previous.expires > now);
        let previous = previous.map(|previous| {
            format!("  the secret before holds for {} more", format_span(previous.expires - now))
        });
        let previous = previous.unwrap_or_default();
        let used = match usage.as_ref().map(|uses| uses.get(&token.name)) {
            // Nobody writes it down.
            None => String::new(),
            Some(None) => "  never used".to_owned(),
            Some(Some(used)) => {
                format!("  last used {} ago from {}", format_span(now.saturating_sub(used.at)), used.from)
            }
        };
        let _ = writeln!(text, "{:name$}  {:role$}  {end}  {roots}{used}{previous}", token.name, token.role);
    }
    for token in &revoked {
        let _ = writeln!(text, "{:name$}  {:role$}  revoked on {}", token.name, "", day(token.at));
    }
    if tokens.is_empty() && revoked.is_empty() {
        text.push_str("no tokens\n");
    }
    Ok(print(text.trim_end())?)
}

fn revoke(path: &Path, name: &str) -> Result<ExitCode, TokenError> {
    let mut stays = Vec::new();
    let distrusted = token_file::repair(path, |file| {
        let was_there = file.revoke(name, seconds(SystemTime::now()));
        stays = file.tokens.iter().map(|token| format!("{} ({})", token.name, token.role)).collect();
        match was_there {
            true => Ok(()),
            false => Err(TokenError::NoToken(name.to_owned())),
        }
    })?;
    if let Some(cause) = distrusted {
        let stays = if stays.is_empty() { "none".to_owned() } else { stays.join(", ") };
        say(&format!(
            "note: a private file is in the place of {}: {cause}. Others could have added tokens to it. These stay: \
             {stays}; revoke each that is not yours",
            path.display()
        ));
    }
    Ok(print(&format!("revoked `{name}`"))?)
}

/// Returns the seconds since 1970.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Parses a span of time to seconds, and `never` to `None`.
fn parse_lifetime(text: &str) -> Result<Option<u64>, TokenError> {
    match text {
        "never" => Ok(None),
        text => parse_span(text).map(Some).ok_or_else(|| TokenError::Lifetime(text.to_owned())),
    }
}

/// Parses a span such as `30d` to seconds: one at least, and at most a hundred years.
fn parse_span(text: &str) -> Option<u64> {
    let seconds = audit_log::parse_span(text)?.as_secs();
    (1..=100 * 365 * 86_400).contains(&seconds).then_some(seconds)
}

/// Writes a time in the largest unit that has at least two of it.
fn format_span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", (seconds + 30) / 60),
        7200..172_800 => format!("{} h", (seconds + 1800) / 3600),
        _ => format!("{} d", (seconds + 43_200) / 86_400),
    }
}
