//! The file of tokens, and the commands that change it.

use crate::bearer::{self, Hash, Id};
use crate::cli::{NewToken, TokenCommand};
use crate::file;
use crate::governor::Limits;
use crate::{print, say};
use serde::{Deserialize, Serialize};
use server_setup::settings::Settings;
use server_setup::{identity, setup, toolsets};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// The file, as it is written.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    #[serde(default, rename = "token")]
    tokens: Vec<WrittenToken>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WrittenToken {
    name: String,
    id: String,
    hash: String,
    role: String,
    /// None: all that the server may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    roots: Vec<PathBuf>,
    /// Seconds since 1970.
    created: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calls_per_second: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calls_in_flight: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    processes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes_per_minute: Option<u64>,
}

/// One token that is good.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) name: Arc<str>,
    pub(crate) role: String,
    pub(crate) roots: Arc<[PathBuf]>,
    /// What is its own; the server's for the rest.
    pub(crate) limits: Limits,
    /// Cancelled once it is good no more.
    pub(crate) live: CancellationToken,
    hash: Hash,
    expires: Option<SystemTime>,
}

/// The tokens that are good.
#[derive(Debug, Default)]
pub(crate) struct Tokens(HashMap<Id, Token>);

impl Tokens {
    /// Reads the tokens in the file at `path`. One that was in `before` and is the same keeps its life.
    ///
    /// # Errors
    /// The file cannot be read or trusted, or what is wrong in it.
    pub(crate) fn load(path: &Path, defaults: &Limits, before: &Self) -> Result<Self, String> {
        let mut tokens = HashMap::new();
        for written in read(path)?.tokens {
            let id = Id(written.id);
            let hash = Hash::parse(&written.hash)
                .ok_or_else(|| {
                format!(
                    "{}: the hash of `{}` is no SHA-256 in hexadecimal; remove the entry, and make its token anew with \
                     `mcp-http token new`",
                    path.display(),
                    written.name
                )
            })?;
            let live = before.0.get(&id).filter(|old| old.hash.is(&hash)).map(|old| old.live.clone());
            let own = |own: Option<u64>, least: u64| own.unwrap_or(least);
            let token = Token {
                name: written.name.into(),
                role: written.role,
                roots: written.roots.into(),
                limits: Limits {
                    calls_per_second: own(written.calls_per_second, defaults.calls_per_second),
                    calls_in_flight: own(written.calls_in_flight, defaults.calls_in_flight),
                    processes: own(written.processes, defaults.processes),
                    bytes_per_minute: own(written.bytes_per_minute, defaults.bytes_per_minute),
                    ..defaults.clone()
                },
                live: live.unwrap_or_default(),
                hash,
                expires: written.expires.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
            };
            if token.is_good(SystemTime::now()) {
                tokens.insert(id, token);
            }
        }
        Ok(Self(tokens))
    }

    /// The token that `bearer` is.
    pub(crate) fn find(&self, bearer: &str) -> Option<&Token> {
        let hash = Hash::of(bearer);
        let token = self.0.get(&bearer::id(bearer)?)?;
        (token.hash.is(&hash) && token.is_good(SystemTime::now())).then_some(token)
    }

    /// Whether one of this name is good.
    #[cfg(feature = "sessions")]
    pub(crate) fn has(&self, name: &str) -> bool {
        let now = SystemTime::now();
        self.0.values().any(|token| &*token.name == name && token.is_good(now))
    }

    /// Ends the life of each that is not in `after`, or whose time is over. Their names.
    pub(crate) fn end_others(&self, after: &Self) -> Vec<Arc<str>> {
        let now = SystemTime::now();
        let stays = |id: &Id| after.0.get(id).is_some_and(|token| token.is_good(now));
        let gone = self.0.iter().filter(|(id, token)| !stays(id) && !token.live.is_cancelled());
        gone.map(|(_, token)| {
            token.live.cancel();
            Arc::clone(&token.name)
        })
        .collect()
    }

    /// The roots that they name.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &Arc<[PathBuf]>> {
        self.0.values().map(|token| &token.roots)
    }
}

impl Token {
    fn is_good(&self, now: SystemTime) -> bool {
        self.expires.is_none_or(|end| now < end)
    }
}

fn read(path: &Path) -> Result<Written, String> {
    let shown = path.display();
    let text = identity::read(path).map_err(|error| format!("cannot use the tokens {shown}: {error}"))?;
    let written: Written =
        toml::from_str(&text).map_err(|error| format!("{shown}: {}", error.to_string().trim_end()))?;
    if written.version != 1 {
        return Err(format!("{shown}: version {} is none that is known; expected 1", written.version));
    }
    let (mut names, mut ids) = (HashSet::new(), HashSet::new());
    for token in &written.tokens {
        if !is_name(&token.name) || !Id(token.id.clone()).is_wellformed() {
            return Err(format!("{shown}: `{}` or its id is no name", token.name.escape_debug()));
        }
        // The audit tells them apart by name.
        if !names.insert(&token.name) || !ids.insert(&token.id) {
            return Err(format!("{shown}: there are two tokens `{}`", token.name));
        }
        if token.role.is_empty() {
            return Err(format!("{shown}: the token `{}` has no role", token.name));
        }
        if let Some(root) = token.roots.iter().find(|root| !root.is_absolute()) {
            return Err(format!("{shown}: the root {} of `{}` is not absolute", root.display(), token.name));
        }
    }
    Ok(written)
}

/// Whether a token may be called so. No name of a caller of another kind looks like this: those have a colon.
fn is_name(name: &str) -> bool {
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    letters && (1..=64).contains(&name.len())
}

/// Runs `mcp-http token COMMAND`.
pub(crate) fn run(settings: &Settings, command: TokenCommand) -> Result<ExitCode, String> {
    let path = settings.config.http.tokens.as_ref();
    let path = path.ok_or("no file of tokens is named; give --tokens FILE or set http.tokens")?;
    match command {
        TokenCommand::New(new) => make(settings, path, &new),
        TokenCommand::List { json } => list(path, json),
        TokenCommand::Revoke { name } => revoke(path, &name),
    }
}

fn make(settings: &Settings, path: &Path, new: &NewToken) -> Result<ExitCode, String> {
    if !is_name(&new.name) {
        return Err(format!("`{}` is no name: letters, digits, `.`, `_` and `-`, at most 64", new.name));
    }
    check_role(settings, &new.role)?;
    let roots = new.only_roots.iter().map(|root| inside(settings, root)).collect::<Result<Vec<_>, _>>()?;
    let now = seconds(SystemTime::now());
    let expires = new.expires.as_deref().map(time).transpose()?.map(|time| now.saturating_add(time));
    let (token, id, hash) = bearer::new()?;
    change(path, |written| {
        if written.tokens.iter().any(|token| token.name == new.name) {
            return Err(format!("there is a token `{}`; revoke it first, or choose another name", new.name));
        }
        written.tokens.push(WrittenToken {
            name: new.name.clone(),
            id: id.0.clone(),
            hash: hash.to_string(),
            role: new.role.clone(),
            roots: roots.clone(),
            created: now,
            expires,
            calls_per_second: new.calls_per_second,
            calls_in_flight: new.calls_in_flight,
            processes: new.processes,
            bytes_per_minute: new.bytes_per_minute,
        });
        Ok(())
    })?;
    say("The token is printed this once, and not kept:");
    print(&token)
}

/// A role that the policy does not declare would be the minimal one.
fn check_role(settings: &Settings, role: &str) -> Result<(), String> {
    let workspace = Arc::new(setup::workspace(settings)?);
    let runner = process_runner::Runner::new();
    let policy = identity::policy(settings, &toolsets::facts(settings, &workspace, &runner)?)?.policy;
    let declared: Vec<&str> = policy.roles().collect();
    match declared.contains(&role) {
        true => Ok(()),
        false => Err(format!("the policy declares no role `{role}`; it has {}", declared.join(", "))),
    }
}

/// A root of a token must lie in one of the server's.
fn inside(settings: &Settings, root: &Path) -> Result<PathBuf, String> {
    let real = root.canonicalize().map_err(|error| format!("--only-root {}: {error}", root.display()))?;
    let lies_in = |outer: &PathBuf| outer.canonicalize().is_ok_and(|outer| real.starts_with(outer));
    match settings.roots.iter().any(lies_in) {
        true => Ok(real),
        false => {
            let roots: Vec<_> = settings.roots.iter().map(|root| root.display().to_string()).collect();
            Err(format!(
                "--only-root {} lies in no root of the server; it has {}",
                real.display(),
                roots.join(", ")
            ))
        }
    }
}

fn list(path: &Path, json: bool) -> Result<ExitCode, String> {
    let tokens = read(path)?.tokens;
    let now = seconds(SystemTime::now());
    if json {
        let shown: Vec<_> = tokens
            .iter()
            .map(|token| {
                serde_json::json!({
                    "name": token.name, "id": token.id, "role": token.role, "roots": token.roots,
                    "created": token.created, "expires": token.expires,
                    "expired": token.expires.is_some_and(|end| end <= now),
                })
            })
            .collect();
        return print(&format!("{:#}", serde_json::Value::from(shown)));
    }
    let mut text = String::new();
    let width =
        |field: fn(&WrittenToken) -> &str| tokens.iter().map(|token| field(token).len()).max().unwrap_or(0);
    let (name, role) = (width(|token| &token.name), width(|token| &token.role));
    for token in &tokens {
        let end = match token.expires {
            None => "no end".to_owned(),
            Some(end) if end <= now => "ended".to_owned(),
            Some(end) => format!("ends in {}", span(end - now)),
        };
        let roots: Vec<_> = token.roots.iter().map(|root| root.display().to_string()).collect();
        let roots = if roots.is_empty() { "all roots".to_owned() } else { roots.join(", ") };
        let _ = writeln!(text, "{:name$}  {:role$}  {end}  {roots}", token.name, token.role);
    }
    if tokens.is_empty() {
        text.push_str("there are none\n");
    }
    print(text.trim_end())
}

fn revoke(path: &Path, name: &str) -> Result<ExitCode, String> {
    change(path, |written| {
        let before = written.tokens.len();
        written.tokens.retain(|token| token.name != name);
        match written.tokens.len() == before {
            true => Err(format!("there is no token `{name}`; `mcp-http token list` shows those there are")),
            false => Ok(()),
        }
    })?;
    print(&format!("revoked `{name}`"))
}

/// Changes the file, which is made where it is missing.
fn change(path: &Path, change: impl FnOnce(&mut Written) -> Result<(), String>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot change the tokens {}: {error}", path.display());
    let _lock = file::lock(path).map_err(failed)?;
    let mut written = match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Written { version: 1, tokens: Vec::new() }
        }
        _ => read(path)?,
    };
    change(&mut written)?;
    let text = toml::to_string(&written).map_err(|error| error.to_string())?;
    let text =
        format!("# Tokens of mcp-http; `mcp-http token` changes this file. Only hashes are kept.\n{text}");
    // A link stays one: what it leads to is replaced.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    file::replace(&real, text.as_bytes()).map_err(failed)
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Reads `90s`, `15m`, `12h`, `30d` or `8w`.
fn time(text: &str) -> Result<u64, String> {
    let wrong = || format!("--expires `{text}` is no time; expected 90s, 15m, 12h, 30d or 8w");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|seconds| (1..=100 * 365 * 86_400).contains(seconds)).ok_or_else(wrong)
}

fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}
