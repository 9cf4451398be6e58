//! Paths into the state of an application: `cart.items[0]["unit price"]`.

use std::fmt;

/// The longest path, in bytes.
const MAX_BYTES: usize = 4096;
/// The most names in it.
const MAX_SEGMENTS: usize = 64;

/// A text that is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`path`: {reason}; write a.b, a[0] or a[\"any key\"], and local:FILE/name for a variable of a module"
)]
pub struct InvalidStatePath {
    reason: String,
}

/// A path, name by name. The empty path names the whole state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatePath {
    /// The file whose variables are read: `FILE` in `local:FILE/name`.
    pub file: Option<String>,
    /// The names.
    pub segments: Vec<String>,
    /// For each name, true if it was written as a number: `[1]`, `get(1)`. A map of JavaScript may have entries under `1` and
    /// under `"1"`.
    pub(crate) is_number: Vec<bool>,
}

impl StatePath {
    /// Parses `text`: names with dots between them; a number or a JSON string in brackets. A leading `globalThis` is
    /// dropped.
    ///
    /// # Errors
    /// The text is no path.
    pub fn parse(text: &str) -> Result<Self, InvalidStatePath> {
        let invalid = |reason: &str| InvalidStatePath { reason: reason.to_owned() };
        if text.len() > MAX_BYTES {
            return Err(invalid("it is longer than 4096 bytes"));
        }
        let (file, rest) = match text.strip_prefix("local:") {
            Some(local) => {
                // The path of the file may hold dots and brackets, and a name in brackets may hold slashes. So the last
                // slash that is followed by valid names divides them.
                let divided = local.rmatch_indices('/').find_map(|(slash, _)| {
                    let (file, rest) = (local.get(..slash)?, local.get(slash + 1..)?);
                    (!file.is_empty() && !rest.is_empty() && parse_names(rest).is_ok())
                        .then_some((file, rest))
                });
                let (file, rest) = divided.ok_or_else(|| invalid("`local:` needs a file and a name"))?;
                (Some(file.to_owned()), rest)
            }
            None => (None, text),
        };
        let mut names = parse_names(rest)?;
        if names.len() > MAX_SEGMENTS {
            return Err(invalid("it has more than 64 names"));
        }
        if file.is_none() && names.first().is_some_and(|(first, _)| first == "globalThis") {
            names.remove(0);
        }
        let (segments, is_number) = names.into_iter().unzip();
        Ok(Self { file, segments, is_number })
    }

    /// Returns the name at `index` as a key of JavaScript: a number, or a string.
    pub(crate) fn key(&self, index: usize) -> serde_json::Value {
        let name = self.segments.get(index).map_or("", String::as_str);
        // A longer one is not exact in JavaScript.
        let number = name.parse::<u64>().ok().filter(|_| name.len() < 16);
        let is_number = self.is_number.get(index).copied().unwrap_or_default();
        number.filter(|_| is_number).map_or_else(|| name.into(), Into::into)
    }

    /// Returns the path of the first `count` names, as text.
    pub fn prefix(&self, count: usize) -> String {
        let file = self.file.as_ref().map(|file| format!("local:{file}/")).unwrap_or_default();
        let names = self.segments.iter().take(count).fold(String::new(), |path, name| join(&path, name));
        file + &names
    }

    /// Returns the last name.
    pub fn last(&self) -> Option<&str> {
        self.segments.last().map(String::as_str)
    }
}

impl fmt::Display for StatePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.prefix(usize::MAX))
    }
}

/// Appends a name to `path`, in the form that [`StatePath::parse`] reads.
pub(super) fn join(path: &str, name: &str) -> String {
    let plain =
        !name.is_empty() && !name.contains(['.', '[', ']', '"', '/']) && !name.chars().any(char::is_control);
    let number = !name.is_empty() && name.len() < 10 && name.bytes().all(|byte| byte.is_ascii_digit());
    if number && !path.is_empty() {
        format!("{path}[{name}]")
    } else if !plain {
        format!("{path}[{}]", serde_json::Value::from(name))
    } else if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Parses the names of a path.
fn parse_names(text: &str) -> Result<Vec<(String, bool)>, InvalidStatePath> {
    let invalid = |reason: String| InvalidStatePath { reason };
    let mut names = Vec::new();
    let mut rest = text;
    let mut after_dot = false;
    while !rest.is_empty() {
        if let Some((name, remainder)) = entry_of_map(rest).filter(|_| after_dot) {
            let is_number =
                rest.strip_prefix("get(").is_some_and(|key| !key.trim_start().starts_with(['"', '\'']));
            names.push((name, is_number));
            rest = remainder;
        } else if let Some(inner) = rest.strip_prefix('[').filter(|_| !after_dot) {
            let end = if inner.starts_with('"') {
                // The parser of JSON finds the end of the string: it may hold brackets and escaped quotes.
                let mut strings = serde_json::Deserializer::from_str(inner).into_iter::<String>();
                match strings.next() {
                    Some(Ok(name)) => names.push((name, false)),
                    _ => return Err(invalid(format!("`[{}` has no end", excerpt(inner)))),
                }
                strings.byte_offset()
            } else if let Some((name, end)) = single_quoted(inner) {
                names.push((name.to_owned(), false));
                end
            } else {
                let end = inner.find(']').unwrap_or(inner.len());
                let name = inner.get(..end).unwrap_or_default();
                if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(invalid(format!(
                        "`[{}` is neither a number nor a string in quotes",
                        excerpt(inner)
                    )));
                }
                names.push((name.to_owned(), true));
                end
            };
            rest = inner
                .get(end..)
                .and_then(|rest| rest.strip_prefix(']'))
                .ok_or_else(|| invalid(format!("`[{}` has no end", excerpt(inner))))?;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, remainder) = rest.split_at(end);
            if name.is_empty() {
                return Err(invalid(format!("there is no name before `{}`", excerpt(rest))));
            }
            if name.contains(['(', ')']) {
                return Err(invalid(format!(
                    "`{}` is a call, and nothing of the application is run: name properties only; an entry of a Map is \
                     [KEY] or get(KEY), its number of entries size",
                    excerpt(name)
                )));
            }
            if name.contains([']', '"']) {
                return Err(invalid(format!("`{}` must be written in brackets and quotes", excerpt(name))));
            }
            names.push((name.to_owned(), false));
            rest = remainder;
        }
        after_dot = rest.starts_with('.');
        if after_dot {
            rest = rest.get(1..).unwrap_or_default();
            if rest.is_empty() {
                return Err(invalid("it ends with a dot".to_owned()));
            }
        } else if !rest.is_empty() && !rest.starts_with('[') {
            return Err(invalid(format!("a dot is missing before `{}`", excerpt(rest))));
        }
    }
    Ok(names)
}

/// Reads `get(KEY)` at the beginning of `text`, as JavaScript names an entry of a `Map`; `KEY` is a number or a string in
/// quotes. Returns the key and what follows.
fn entry_of_map(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix("get(")?.trim_start();
    let (key, end) = if inner.starts_with('"') {
        let mut strings = serde_json::Deserializer::from_str(inner).into_iter::<String>();
        (strings.next()?.ok()?, strings.byte_offset())
    } else if let Some((key, end)) = single_quoted(inner) {
        (key.to_owned(), end)
    } else {
        let end = inner.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
        (inner.get(..end)?.to_owned(), end)
    };
    Some((key, inner.get(end..)?.trim_start().strip_prefix(')')?))
}

/// Reads a text in single quotes without escapes. Returns it, and the offset after it.
fn single_quoted(text: &str) -> Option<(&str, usize)> {
    let inner = text.strip_prefix('\'')?;
    let end = inner.find('\'').filter(|end| !inner[..*end].contains('\\'))?;
    Some((inner.get(..end)?, end + 2))
}

/// Returns the start of a text, for an error message.
fn excerpt(text: &str) -> String {
    text.chars().take(30).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<String> {
        StatePath::parse(text).unwrap().segments
    }

    #[test]
    fn names_are_divided_by_dots_and_brackets() {
        assert_eq!(parsed(""), [""; 0]);
        assert_eq!(parsed("globalThis"), [""; 0]);
        assert_eq!(parsed("globalThis.a"), ["a"]);
        assert_eq!(parsed("a.b"), ["a", "b"]);
        assert_eq!(parsed("a[0][12].b"), ["a", "0", "12", "b"]);
        assert_eq!(parsed(r#"["a.b"].c["\n]\"x"]"#), ["a.b", "c", "\n]\"x"]);
        assert_eq!(parsed("__proto__.a b-c"), ["__proto__", "a b-c"]);
        assert_eq!(parsed("ключ.日本"), ["ключ", "日本"]);
    }

    #[test]
    fn an_entry_of_a_map_is_named_as_javascript_does() {
        assert_eq!(parsed("shop.carts.get(42).items[0]"), ["shop", "carts", "42", "items", "0"]);
        assert_eq!(parsed(r#"a.get("x.y)").get('z')['q.r']"#), ["a", "x.y)", "z", "q.r"]);
        assert_eq!(parsed(r#"a["get(42)"]"#), ["a", "get(42)"]);
        assert_eq!(parsed("a.get.b"), ["a", "get", "b"]);
        let path = StatePath::parse(r#"a.get(1).get("1")[1]["1"].1"#).unwrap();
        let keys: Vec<_> = (0..6).map(|index| path.key(index)).collect();
        assert_eq!(serde_json::Value::from(keys), serde_json::json!(["a", 1, "1", 1, "1", "1"]));
        let error = StatePath::parse("shop.carts.values().next()").unwrap_err().to_string();
        assert!(error.contains("`values()` is a call") && error.contains("[KEY] or get(KEY)"), "{error}");
        assert!(StatePath::parse("a.get(42").is_err() && StatePath::parse("a.get(x)").is_err());
    }

    #[test]
    fn a_local_has_a_file_and_names() {
        let path = StatePath::parse("local:src/app.test.js/cart.items[0]").unwrap();
        assert_eq!(path.file.as_deref(), Some("src/app.test.js"));
        assert_eq!(path.segments, ["cart", "items", "0"]);
        let path = StatePath::parse("local:pages/[id].js/a").unwrap();
        assert_eq!((path.file.as_deref(), path.last()), (Some("pages/[id].js"), Some("a")));
        let path = StatePath::parse(r#"local:app.mjs/routes["/a/b"]"#).unwrap();
        assert_eq!((path.file.as_deref(), path.last()), (Some("app.mjs"), Some("/a/b")));
        assert_eq!(path.to_string(), r#"local:app.mjs/routes["/a/b"]"#);
    }

    #[test]
    fn what_is_no_path_is_told_why() {
        for text in [
            "a.",
            ".a",
            "a..b",
            "a[",
            "a[x]",
            "a[]",
            "a[\"x]",
            "a[\"x\"",
            "a[0]b",
            "a.[0]",
            "local:app.js",
            "local:/x",
        ] {
            assert!(StatePath::parse(text).is_err(), "{text}");
        }
        assert!(StatePath::parse(&"a.".repeat(65)).is_err());
        assert!(
            StatePath::parse(&format!("{}a", "a.".repeat(64))).unwrap_err().to_string().contains("64 names")
        );
        assert!(StatePath::parse(&"a".repeat(5000)).unwrap_err().to_string().contains("4096"));
    }

    #[test]
    fn a_path_reads_as_it_was_written() {
        for text in ["a.b[0].c", r#"["a.b"]["\n"].x"#, "local:app.js/a"] {
            assert_eq!(StatePath::parse(text).unwrap().to_string(), text);
        }
    }
}
