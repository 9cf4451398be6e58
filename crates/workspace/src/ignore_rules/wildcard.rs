//! Matching of wildcards as git's `wildmatch` does it.

/// The result of matching a pattern at one place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WildcardMatch {
    Yes,
    /// The pattern does not match here.
    No,
    /// The pattern does not match here or anywhere later in the text.
    Never,
    /// The pattern does not match before the next slash: only a `**` further left can still match.
    NotBeforeSlash,
}

/// Returns true if `pattern` matches the whole of `name`, in which `*`, `?` and classes match a slash as any other byte.
pub(super) fn matches_name(pattern: &[u8], name: &[u8]) -> bool {
    match_at(pattern, name, false) == WildcardMatch::Yes
}

/// Returns true if `pattern` matches the whole of `path`. `*`, `?` and classes match no slash, and a `**` that is a whole
/// component matches any number of components.
pub(super) fn matches_path(pattern: &[u8], path: &[u8]) -> bool {
    match_at(pattern, path, true) == WildcardMatch::Yes
}

/// Matches `pattern` with the whole of `text`.
///
/// [`WildcardMatch::Never`] ends the search of every star to the left, so that the time grows with the product of the lengths and
/// not exponentially with the number of stars.
fn match_at(pattern: &[u8], text: &[u8], is_path: bool) -> WildcardMatch {
    let (mut pattern_at, mut text_at) = (0, 0);
    while pattern_at < pattern.len() {
        let byte = text.get(text_at).copied();
        match (pattern[pattern_at], byte) {
            (b'*', _) => return match_star(pattern, pattern_at, &text[text_at..], is_path),
            (_, None) => return WildcardMatch::Never,
            (b'?', Some(byte)) => {
                if is_path && byte == b'/' {
                    return WildcardMatch::No;
                }
            }
            (b'[', Some(byte)) => match match_class(&pattern[pattern_at + 1..], byte) {
                None => return WildcardMatch::Never,
                Some((matched, _)) if !matched || (is_path && byte == b'/') => return WildcardMatch::No,
                Some((_, length)) => pattern_at += length,
            },
            (b'\\', Some(byte)) => {
                pattern_at += 1;
                if pattern.get(pattern_at) != Some(&byte) {
                    return WildcardMatch::No;
                }
            }
            (expected, Some(byte)) => {
                if expected != byte {
                    return WildcardMatch::No;
                }
            }
        }
        pattern_at += 1;
        text_at += 1;
    }
    if text_at == text.len() { WildcardMatch::Yes } else { WildcardMatch::No }
}

/// Matches the rest of a pattern from the star at `pattern[at]`.
fn match_star(pattern: &[u8], at: usize, text: &[u8], is_path: bool) -> WildcardMatch {
    let stars = pattern[at..].iter().take_while(|&&byte| byte == b'*').count();
    let rest = &pattern[at + stars..];
    let is_component = (at == 0 || pattern[at - 1] == b'/')
        && (rest.is_empty() || rest.starts_with(b"/") || rest.starts_with(b"\\/"));
    let crosses_slashes = !is_path || (stars > 1 && is_component);
    if is_path
        && stars > 1
        && is_component
        && rest.starts_with(b"/")
        && match_at(&rest[1..], text, is_path) == WildcardMatch::Yes
    {
        // `**/` also matches no component at all.
        return WildcardMatch::Yes;
    }
    if rest.is_empty() {
        return if crosses_slashes || !text.contains(&b'/') {
            WildcardMatch::Yes
        } else {
            WildcardMatch::NotBeforeSlash
        };
    }
    // Most starts of the rest can be passed over by its first byte alone.
    let first = Some(rest[0]).filter(|byte| !b"*?[\\".contains(byte));
    for start in 0..text.len() {
        let is_candidate = first.is_none_or(|first| first == text[start]);
        let result = if is_candidate { match_at(rest, &text[start..], is_path) } else { WildcardMatch::No };
        match result {
            WildcardMatch::No => {}
            WildcardMatch::NotBeforeSlash if crosses_slashes => {}
            other => return other,
        }
        if !crosses_slashes && text[start] == b'/' {
            return WildcardMatch::NotBeforeSlash;
        }
    }
    WildcardMatch::Never
}

/// Returns the length of the class whose inside `pattern` begins with, with its closing bracket. `None` if it matches nothing.
pub(super) fn class_len(pattern: &[u8]) -> Option<usize> {
    // The length is the same for every byte.
    match_class(pattern, 0).map(|(_, length)| length)
}

/// Matches `byte` with a class; `pattern` begins after the opening bracket. Returns true if the class contains `byte`,
/// and the length of the class with its closing bracket. `None` if there is no closing bracket.
fn match_class(pattern: &[u8], byte: u8) -> Option<(bool, usize)> {
    let mut at = 0;
    let negated = matches!(pattern.first(), Some(b'!' | b'^'));
    if negated {
        at += 1;
    }
    let (mut matched, mut first, mut previous) = (false, true, 0);
    loop {
        let mut this = *pattern.get(at)?;
        // A bracket that comes first is a member of the class and not its end.
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
            this = 0; // The end of one range does not begin another.
        } else if this == b'[' && next == Some(b':') {
            let inside = &pattern[at + 2..];
            let end = inside.iter().position(|&byte| byte == b']')?;
            if let Some(name) = inside[..end].strip_suffix(b":") {
                matched |= match_named_class(name, byte)?;
                at += 2 + end;
                this = 0;
            } else {
                // Not a named class: the bracket stands for itself.
                matched |= byte == b'[';
            }
        } else {
            matched |= this == byte;
        }
        previous = this;
        at += 1;
    }
}

/// Returns true if the POSIX class `name` contains `byte`; `None` for an unknown name, with which nothing matches.
fn match_named_class(name: &[u8], byte: u8) -> Option<bool> {
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
