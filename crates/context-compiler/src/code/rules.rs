//! Ignore files, with the meaning that gitignore(5) gives them.
//!
//! Not by `globset`, whose globs know `{a,b}` and count characters: git's do neither, and a file that is ignored
//! here and not there is a surprise. The tests compare with the real `git check-ignore`.

/// No path is as long (`PATH_MAX` of Linux), and to match goes as deep as a pattern has stars.
const LONGEST: usize = 4096;

/// The rules of one ignore file.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    /// `!`: what it matches is not ignored.
    negated: bool,
    /// A trailing slash: it matches folders only.
    only_folder: bool,
    how: How,
}

#[derive(Debug)]
enum How {
    /// The last part of the path is this.
    Name(Vec<u8>),
    /// The last part of the path ends with this.
    NameEnd(Vec<u8>),
    /// The last part of the path matches this pattern.
    NamePattern(Vec<u8>),
    /// The path, from the folder of the ignore file, begins with the first and matches the second from there.
    Path(Vec<u8>, Vec<u8>),
}

impl Rules {
    /// Reads an ignore file. Every line means something to git, so nothing is an error.
    pub(super) fn parse(text: &[u8]) -> Self {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let lines = text.split(|&byte| byte == b'\n');
        Self(lines.filter_map(|line| Rule::parse(line.strip_suffix(b"\r").unwrap_or(line))).collect())
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `path`, relative to the folder of the ignore file, is ignored; `None` where no rule says so or
    /// otherwise. The last rule that matches decides.
    pub(super) fn ignores(&self, path: &str, is_folder: bool) -> Option<bool> {
        let path = path.as_bytes();
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        let rule =
            self.0.iter().rev().find(|rule| (is_folder || !rule.only_folder) && rule.matches(path, name))?;
        Some(!rule.negated)
    }
}

impl Rule {
    fn parse(line: &[u8]) -> Option<Self> {
        let line = without_trailing_blanks(line);
        if line.is_empty() || line.starts_with(b"#") || line.len() > LONGEST {
            return None;
        }
        let (negated, line) = line.strip_prefix(b"!").map_or((false, line), |rest| (true, rest));
        let (only_folder, line) = line.strip_suffix(b"/").map_or((false, line), |rest| (true, rest));
        let how = if !line.contains(&b'/') {
            match line.strip_prefix(b"*") {
                _ if plain_length(line) == line.len() => How::Name(line.to_vec()),
                Some(end) if plain_length(end) == end.len() => How::NameEnd(end.to_vec()),
                _ => How::NamePattern(line.to_vec()),
            }
        } else {
            let line = line.strip_prefix(b"/").unwrap_or(line);
            // The pattern keeps one byte before its first wildcard: `**` asks what stands before it.
            let plain = plain_length(line);
            let plain = if plain == line.len() { plain } else { plain.saturating_sub(1) };
            How::Path(line[..plain].to_vec(), line[plain..].to_vec())
        };
        Some(Self { negated, only_folder, how })
    }

    fn matches(&self, path: &[u8], name: &[u8]) -> bool {
        match &self.how {
            How::Name(expected) => name == expected,
            How::NameEnd(end) => name.ends_with(end),
            How::NamePattern(pattern) => wildcard(pattern, name, false) == Outcome::Match,
            How::Path(start, pattern) => path
                .strip_prefix(start.as_slice())
                .is_some_and(|rest| wildcard(pattern, rest, true) == Outcome::Match),
        }
    }
}

/// `line` without the blanks at its end, unless a backslash stands before them.
fn without_trailing_blanks(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b' ' => {}
            b'\\' => {
                at += 1;
                end = (at + 1).min(line.len());
            }
            _ => end = at + 1,
        }
        at += 1;
    }
    &line[..end]
}

/// How many bytes of `pattern` stand before its first wildcard or escape.
fn plain_length(pattern: &[u8]) -> usize {
    pattern.iter().position(|byte| b"*?[\\".contains(byte)).unwrap_or(pattern.len())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Match,
    /// Not from here.
    No,
    /// Nor from anywhere later in this text.
    Never,
    /// Nor from anywhere before the next slash: only a `**` further left can still help.
    NotBeforeSlash,
}

/// Whether `pattern` matches the whole of `text`. With `paths`, `*`, `?` and classes match no slash, and a `**` that
/// is a whole part of the path matches any number of parts.
///
/// What cannot match any more is told from what does not match here, so that time grows with the product of the
/// lengths and not with a power.
fn wildcard(pattern: &[u8], text: &[u8], paths: bool) -> Outcome {
    let (mut p, mut t) = (0, 0);
    while p < pattern.len() {
        let byte = text.get(t).copied();
        match (pattern[p], byte) {
            (b'*', _) => return star(pattern, p, &text[t..], paths),
            (_, None) => return Outcome::Never,
            (b'?', Some(byte)) => {
                if paths && byte == b'/' {
                    return Outcome::No;
                }
            }
            (b'[', Some(byte)) => match class(&pattern[p + 1..], byte) {
                None => return Outcome::Never,
                Some((matched, _)) if !matched || (paths && byte == b'/') => return Outcome::No,
                Some((_, length)) => p += length,
            },
            (b'\\', Some(byte)) => {
                p += 1;
                if pattern.get(p) != Some(&byte) {
                    return Outcome::No;
                }
            }
            (expected, Some(byte)) => {
                if expected != byte {
                    return Outcome::No;
                }
            }
        }
        p += 1;
        t += 1;
    }
    if t == text.len() { Outcome::Match } else { Outcome::No }
}

/// The rest of a match from the star at `pattern[at]`.
fn star(pattern: &[u8], at: usize, text: &[u8], paths: bool) -> Outcome {
    let stars = pattern[at..].iter().take_while(|&&byte| byte == b'*').count();
    let rest = &pattern[at + stars..];
    let is_part = (at == 0 || pattern[at - 1] == b'/')
        && (rest.is_empty() || rest.starts_with(b"/") || rest.starts_with(b"\\/"));
    let over_slashes = !paths || (stars > 1 && is_part);
    if paths
        && stars > 1
        && is_part
        && rest.starts_with(b"/")
        && wildcard(&rest[1..], text, paths) == Outcome::Match
    {
        // `**/` matches no part at all, too.
        return Outcome::Match;
    }
    if rest.is_empty() {
        return if over_slashes || !text.contains(&b'/') { Outcome::Match } else { Outcome::NotBeforeSlash };
    }
    for t in 0..text.len() {
        match wildcard(rest, &text[t..], paths) {
            Outcome::No => {}
            Outcome::NotBeforeSlash if over_slashes => {}
            other => return other,
        }
        if !over_slashes && text[t] == b'/' {
            return Outcome::NotBeforeSlash;
        }
    }
    Outcome::Never
}

/// Whether the class whose inside begins `pattern` holds `byte`, and how many bytes it has with its bracket.
/// `None` where it never ends.
fn class(pattern: &[u8], byte: u8) -> Option<(bool, usize)> {
    let mut at = 0;
    let negated = matches!(pattern.first(), Some(b'!' | b'^'));
    if negated {
        at += 1;
    }
    let (mut matched, mut first, mut previous) = (false, true, 0);
    loop {
        let mut this = *pattern.get(at)?;
        if this == b']' && !first {
            return Some((matched != negated, at + 1));
        }
        first = false;
        let next = pattern.get(at + 1).copied();
        if this == b'\\' {
            at += 1;
            this = *pattern.get(at)?;
            matched |= this == byte;
        } else if this == b'-' && previous != 0 && next.is_some_and(|next| next != b']') {
            at += 1;
            let mut end = *pattern.get(at)?;
            if end == b'\\' {
                at += 1;
                end = *pattern.get(at)?;
            }
            matched |= (previous..=end).contains(&byte);
            this = 0; // No range begins at the end of another.
        } else if this == b'[' && next == Some(b':') {
            let inside = &pattern[at + 2..];
            let end = inside.iter().position(|&byte| byte == b']')?;
            if let Some(name) = inside[..end].strip_suffix(b":") {
                matched |= named_class(name, byte)?;
                at += 2 + end;
                this = 0;
            } else {
                // Not a name: the bracket is itself.
                matched |= byte == b'[';
            }
        } else {
            matched |= this == byte;
        }
        previous = this;
        at += 1;
    }
}

/// Whether a POSIX class holds `byte`; `None` for a name that is none, with which nothing matches.
fn named_class(name: &[u8], byte: u8) -> Option<bool> {
    Some(match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => byte.is_ascii_whitespace() || byte == 0x0b,
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::Rules;

    #[test]
    fn the_last_rule_that_matches_decides_and_no_rule_decides_nothing() {
        let rules =
            Rules::parse(b"\xef\xbb\xbf*.log\r\n!keep.log\n# no\n\\#yes\ntrailing \nkept\\ \n/top\na/**/z\n");
        let cases = [
            ("x/y.log", Some(true)),
            ("x/keep.log", Some(false)),
            ("no", None),
            ("#yes", Some(true)),
            ("trailing", Some(true)),
            ("kept ", Some(true)),
            ("top", Some(true)),
            ("x/top", None),
            ("a/z", Some(true)),
            ("a/b/c/z", Some(true)),
            ("b/a/z", None),
        ];
        for (path, expected) in cases {
            assert_eq!(rules.ignores(path, false), expected, "{path}");
        }
    }

    #[test]
    fn a_pattern_made_to_be_slow_is_not() {
        let pattern = "a*".repeat(200) + "b";
        let path = "a".repeat(4000);
        let started = std::time::Instant::now();
        assert_eq!(Rules::parse(pattern.as_bytes()).ignores(&path, false), None);
        assert!(started.elapsed().as_secs() < 20);
    }
}
