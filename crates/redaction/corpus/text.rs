// The corpus as texts: the lines of the files beside this one, with what their placeholders stand for.

/// A text with a secret, and that secret.
pub struct SecretText {
    pub text: String,
    pub secret: String,
}

/// Returns the texts with a secret.
pub fn secrets() -> Vec<SecretText> {
    let lines = samples(include_str!("secrets.txt"));
    let split = |line: String| {
        let (before, rest) = line.split_once('«').unwrap_or((&line, ""));
        let (secret, after) = rest.split_once('»').unwrap_or((rest, ""));
        SecretText { text: format!("{before}{secret}{after}"), secret: secret.to_owned() }
    };
    lines.map(split).collect()
}

/// Returns the texts without a secret.
pub fn harmless() -> Vec<String> {
    samples(include_str!("harmless.txt")).collect()
}

fn samples(file: &'static str) -> impl Iterator<Item = String> {
    let lines = file.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    (1..).zip(lines).map(|(number, line)| expand(number, line))
}

/// Returns `line` with line ends and with characters in the place of its placeholders.
fn expand(number: u64, line: &str) -> String {
    // A backslash before another one stays, as in a text that is quoted itself.
    let line =
        line.replace("\\\\n", "\u{1}").replace("\\n", "\n").replace("\\t", "\t").replace('\u{1}', "\\n");
    let mut expanded = String::new();
    let mut rest = line.as_str();
    while let Some((before, behind)) = rest.split_once('{') {
        expanded.push_str(before);
        match placeholder(behind) {
            Some((alphabet, length, after)) => {
                expanded.push_str(&random(number * 31 + length as u64, alphabet, length));
                rest = after;
            }
            None => {
                expanded.push('{');
                rest = behind;
            }
        }
    }
    expanded + rest
}

/// Returns the alphabet, the length and the text behind `alnum:36}…`.
fn placeholder(text: &str) -> Option<(&'static str, usize, &str)> {
    let (inside, after) = text.split_once('}')?;
    let (name, length) = inside.split_once(':')?;
    let alphabet = match name {
        "hex" => "0123456789abcdef",
        "upper" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        "lower" => "abcdefghijklmnopqrstuvwxyz0123456789",
        "alnum" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "base64" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "url" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
        _ => return None,
    };
    Some((alphabet, length.parse().ok()?, after))
}

/// Returns `length` characters of `alphabet`, always the same ones for the same `seed`.
fn random(seed: u64, alphabet: &str, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let number = usize::try_from(state >> 33).unwrap_or_default();
        char::from(alphabet.as_bytes()[number % alphabet.len()])
    };
    (0..length).map(|_| next()).collect()
}
