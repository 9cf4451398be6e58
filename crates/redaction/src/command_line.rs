//! Passwords on command lines: `mysql -pSECRET`, `curl -u user:SECRET`, `--password SECRET`, and the words of `.netrc`.
//!
//! A short option means something else to each program, so it counts only behind the program that takes a password by
//! it. The words are read as a shell has them, and as an array of strings has them.

use crate::password_values;
use crate::span::SecretSpan;
use crate::template::is_template;
use crate::token_runs::{ALNUM, WORD, is};

/// The number of bytes of a command that are read.
const MAX_COMMAND_BYTES: usize = 1024;
const KIND: &str = "password";

/// How a program takes a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PasswordOption {
    /// Behind the option: `-pSECRET`. A number is something else, such as a port.
    Attached(&'static str),
    /// The word after the option, or behind it: `-p SECRET`, `-pSECRET`.
    Next(&'static str),
    /// The part of that word behind the separator: `-u user:SECRET`.
    AfterSeparator(&'static str, u8),
    /// The rest of a word that begins so: `pass:SECRET`.
    Prefix(&'static str),
}

/// A program and the ways in which it takes a password.
struct PasswordProgram {
    /// A name, which may be the beginning of that of its relatives: `mysql`, `mysqldump`.
    name: &'static str,
    /// A word that its command line must have: a subcommand.
    subcommand: Option<&'static str>,
    options: &'static [PasswordOption],
}

const fn program(name: &'static str, options: &'static [PasswordOption]) -> PasswordProgram {
    PasswordProgram { name, subcommand: None, options }
}

const fn login(name: &'static str) -> PasswordProgram {
    PasswordProgram { name, subcommand: Some("login"), options: &[Next("-p")] }
}

use PasswordOption::{AfterSeparator, Attached, Next, Prefix};

const PROGRAMS: [PasswordProgram; 16] = [
    program("mysql", &[Attached("-p")]),
    program("mariadb", &[Attached("-p")]),
    program(
        "curl",
        &[
            AfterSeparator("-u", b':'),
            AfterSeparator("--user", b':'),
            AfterSeparator("-U", b':'),
            AfterSeparator("--proxy-user", b':'),
        ],
    ),
    program("sshpass", &[Next("-p")]),
    login("docker"),
    login("podman"),
    login("helm"),
    login("skopeo"),
    login("buildah"),
    login("az"),
    program("redis-cli", &[Next("-a")]),
    program("ldap", &[Next("-w")]),
    program("smbclient", &[AfterSeparator("-U", b'%')]),
    program("mongo", &[Next("-p")]),
    program("lftp", &[AfterSeparator("-u", b',')]),
    program("openssl", &[Prefix("pass:")]),
];

/// The texts by which [`find`] is called: names of programs, with what follows them, that are rare elsewhere.
pub(crate) const SIGNS: [&str; 16] = [
    "mysql",
    "mariadb",
    "curl",
    "sshpass",
    "docker",
    "podman",
    "helm",
    "skopeo",
    "buildah",
    "az login",
    "redis-cli",
    "ldap",
    "smbclient",
    "mongo",
    "lftp",
    "openssl",
];

/// A word of a command line, as the offsets of its text without quotes around it.
#[derive(Clone, Copy, Debug)]
struct CommandWordSpan {
    start: usize,
    end: usize,
}

/// Appends the passwords in the arguments of the program number `index` of [`SIGNS`], whose name is at `at`.
pub(crate) fn find(bytes: &[u8], index: usize, at: usize, spans: &mut Vec<SecretSpan>) {
    let Some(program) = PROGRAMS.get(index) else { return };
    let begins = at == 0 || !is(bytes[at - 1], WORD) && !matches!(bytes[at - 1], b'-' | b'.' | b'@');
    let name_end = bytes[at..]
        .iter()
        .take(40)
        .position(|&byte| !is(byte, ALNUM) && !matches!(byte, b'-' | b'_'))
        .map_or(bytes.len(), |length| at + length);
    // Of relatives the name is longer, and their options are the same; `curly` and `docker-compose` are others.
    let is_relative = matches!(program.name, "mysql" | "mariadb" | "ldap" | "mongo");
    if !begins || !is_relative && name_end != at + program.name.len() || !ends_name(bytes, name_end) {
        return;
    }
    let words = words(bytes, name_end);
    let text = |word: &CommandWordSpan| bytes.get(word.start..word.end).unwrap_or_default();
    if let Some(subcommand) = program.subcommand
        && !words.iter().any(|word| text(word) == subcommand.as_bytes())
    {
        return;
    }
    for (number, word) in words.iter().enumerate() {
        let next = words.get(number + 1);
        for option in program.options {
            let found = match option {
                Attached(option) => rest(bytes, *word, option).filter(|value| !is_number(text(value))),
                Next(option) if text(word) == option.as_bytes() => next.copied(),
                Next(option) => rest(bytes, *word, option).filter(|_| !option.starts_with("--")),
                AfterSeparator(option, separator) => {
                    let whole = match text(word) == option.as_bytes() {
                        true => next.copied(),
                        false if option.starts_with("--") => {
                            rest(bytes, *word, option).filter(|rest| bytes[rest.start - 1] == b'=')
                        }
                        false => rest(bytes, *word, option),
                    };
                    whole.and_then(|whole| after(bytes, whole, *separator))
                }
                Prefix(prefix) => rest(bytes, *word, prefix),
            };
            let found = found.filter(|value| is_password(text(value)));
            spans.extend(found.map(|value| SecretSpan { start: value.start, end: value.end, kind: KIND }));
        }
    }
}

/// Returns the password behind a name without a sign between them: `--password SECRET`, and in `.netrc`
/// `login me password SECRET`.
pub(crate) fn at_flag(bytes: &[u8], name_start: usize, name_end: usize) -> Option<SecretSpan> {
    let name = bytes.get(name_start..name_end)?;
    let behind = quote_end(bytes, name_end);
    let words = words(bytes, behind);
    let word = words.first()?;
    // The word follows a blank or the end of a string of an array.
    if word.start == behind {
        return None;
    }
    let value = bytes.get(word.start..word.end)?;
    let is_flag =
        bytes[..name_start].iter().rev().take(64).take_while(|&&byte| is(byte, WORD) || byte == b'-').count();
    let is_flag = bytes[name_start - is_flag..name_start].starts_with(b"--");
    let has_name = password_values::is_strong(name);
    let is_of_netrc = || name == b"password" && has_login(bytes, name_start) && has_mixture(value);
    let is_value = password_values::is_written_out(value) && !value.contains(&b'=') && !value.contains(&b',');
    (is_flag && has_name && is_value || is_of_netrc() && is_password(value)).then_some(SecretSpan {
        start: word.start,
        end: word.end,
        kind: if has_name { password_values::strong_kind(name) } else { KIND },
    })
}

/// Returns the password behind a directive of a configuration file that ends at `at`: `requirepass SECRET`.
pub(crate) fn directive(bytes: &[u8], at: usize) -> Option<SecretSpan> {
    let word = *words(bytes, at).first()?;
    let value = bytes.get(word.start..word.end)?;
    (is_password(value) && has_mixture(value)).then_some(SecretSpan {
        start: word.start,
        end: word.end,
        kind: KIND,
    })
}

/// Returns true if the words before `at` are those of an entry of `.netrc`: `login` and a name.
fn has_login(bytes: &[u8], at: usize) -> bool {
    let before = &bytes[at.saturating_sub(120)..at];
    let mut words = before.rsplit(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.next().is_some() && words.next() == Some(b"login")
}

fn has_mixture(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic)
}

fn is_number(value: &[u8]) -> bool {
    value.iter().all(u8::is_ascii_digit)
}

/// Returns true if `value` is written out, and neither a variable nor a word for a password.
fn is_password(value: &[u8]) -> bool {
    const WORDS: [&[u8]; 8] =
        [b"password", b"passwd", b"pass", b"pwd", b"secret", b"token", b"prompt", b"stdin"];
    let lower = value.to_ascii_lowercase();
    !value.is_empty()
        && !is_template(value)
        && !WORDS.contains(&lower.as_slice())
        && !lower.starts_with(b"your")
        && !value.iter().any(|byte| matches!(byte, b'$' | b'`' | b'(' | b'{' | b'<' | b'[' | b'\\'))
        && !matches!(value.first(), Some(b'-' | b'/'))
}

/// Returns true if a program's name may end at `at`: its arguments follow.
fn ends_name(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at), Some(b' ' | b'\t' | b'"' | b'\''))
}

/// Returns what follows `option` in `word`, if there is something; quotes around it left out.
fn rest(bytes: &[u8], word: CommandWordSpan, option: &str) -> Option<CommandWordSpan> {
    let start = word.start + option.len();
    let behind = bytes.get(word.start..word.end)?.strip_prefix(option.as_bytes())?;
    let start = start + usize::from(behind.first() == Some(&b'=') && option.starts_with("--"));
    let quoted = matches!(bytes.get(start), Some(b'\'' | b'"'));
    let end = if quoted && word.end > start + 1 && bytes[word.end - 1] == bytes[start] {
        word.end - 1
    } else {
        word.end
    };
    let start = start + usize::from(quoted);
    (start < end).then_some(CommandWordSpan { start, end })
}

/// Returns the part of `word` behind the first `separator`.
fn after(bytes: &[u8], word: CommandWordSpan, separator: u8) -> Option<CommandWordSpan> {
    let at = bytes.get(word.start..word.end)?.iter().position(|&byte| byte == separator)?;
    let start = word.start + at + 1;
    (at > 0 && start < word.end).then_some(CommandWordSpan { start, end: word.end })
}

/// Returns `at`, or the offset behind the quote there.
fn quote_end(bytes: &[u8], at: usize) -> usize {
    at + usize::from(matches!(bytes.get(at), Some(b'"' | b'\'')))
}

/// Returns the words from `at` to the end of the command: the end of the line, or a sign that ends a command in a shell.
fn words(bytes: &[u8], at: usize) -> Vec<CommandWordSpan> {
    let limit = bytes.len().min(at + MAX_COMMAND_BYTES);
    let mut words = Vec::new();
    let mut at = quote_end(bytes, at);
    while at < limit {
        match bytes[at] {
            // An array's comma is a separator as a blank is.
            b',' => at += 1,
            byte if byte <= b' ' && byte != b'\n' => at += 1,
            // A file of `.netrc` may go on in the next line, where a command does not.
            b'\n' | b'|' | b';' | b'&' | b']' | b')' | b'<' | b'>' => break,
            quote @ (b'"' | b'\'') => {
                let start = at + 1;
                let length = bytes[start..limit].iter().position(|&byte| byte == quote || byte == b'\n');
                let end = length.map_or(limit, |length| start + length);
                words.push(CommandWordSpan { start, end });
                at = end + 1;
            }
            _ => {
                let start = at;
                let mut quote = None;
                while at < limit {
                    let byte = bytes[at];
                    match quote {
                        Some(open) if byte == open => quote = None,
                        Some(_) if byte == b'\n' => break,
                        Some(_) => {}
                        None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
                        None if byte <= b' ' || matches!(byte, b'|' | b';' | b')') => break,
                        None => {}
                    }
                    at += 1;
                }
                words.push(CommandWordSpan { start, end: at });
            }
        }
    }
    words
}
