//! Hosts in one form: names in lower-case ASCII without a trailing dot, and addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use unicode_normalization::UnicodeNormalization;

/// A host as a client or a list of hosts names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NetworkHost {
    /// A name, in lower-case ASCII (IDNA's `xn--` form for other letters), without a trailing dot.
    Name(String),
    /// An address. An IPv4 address inside an IPv6 one (`::ffff:10.0.0.1`) is held as IPv4.
    Address(IpAddr),
}

/// The reason that a text names no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHost {
    /// The text is empty.
    #[error("the host is empty")]
    Empty,
    /// The name is longer than the 253 bytes that DNS allows.
    #[error("the name has {0} bytes; DNS allows 253")]
    TooLong(usize),
    /// A label is empty, longer than 63 bytes, or begins or ends with `-`.
    #[error(
        "`{0}` is no label of a name: a label has 1 to 63 letters, digits, `-` and `_`, and no `-` at its ends"
    )]
    Label(String),
    /// The text looks like an IPv4 address that some programs read differently, such as `127.1` or `0x7f000001`.
    #[error("`{0}` ends in a number and is no IPv4 address of the form 192.0.2.1")]
    AmbiguousAddress(String),
    /// An address in brackets is not an IPv6 address.
    #[error("`{0}` is no IPv6 address")]
    Address(String),
}

/// The text that a client gave for a host, and the reason that it is none.
#[cfg(feature = "proxy")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no host")]
pub(crate) struct UnreadableHost {
    pub(crate) text: String,
    #[source]
    pub(crate) problem: InvalidHost,
}

impl NetworkHost {
    /// Parses a name, an IPv4 address, or an IPv6 address with or without brackets.
    ///
    /// ```
    /// use egress_proxy::NetworkHost;
    ///
    /// assert_eq!(NetworkHost::parse("Git.Example.COM.").unwrap().to_string(), "git.example.com");
    /// assert_eq!(NetworkHost::parse("bücher.example").unwrap().to_string(), "xn--bcher-kva.example");
    /// assert_eq!(NetworkHost::parse("[::ffff:10.0.0.1]").unwrap(), NetworkHost::parse("10.0.0.1").unwrap());
    /// assert!(NetworkHost::parse("0x7f.1").is_err()); // which C libraries read as 127.0.0.1
    /// ```
    ///
    /// # Errors
    /// The text is no host.
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let address = inner.parse::<Ipv6Addr>().map_err(|_| InvalidHost::Address(inner.to_owned()))?;
            return Ok(Self::address(address.into()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::address(address));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() {
            return Err(InvalidHost::Empty);
        }
        let labels = name.split('.').map(ascii_label).collect::<Result<Vec<_>, _>>()?;
        let name = labels.join(".");
        if name.len() > 253 {
            return Err(InvalidHost::TooLong(name.len()));
        }
        // As the URL standard has it: a name whose last label is a number is an IPv4 address or nothing.
        if labels.last().is_some_and(|last| is_number(last)) {
            // `1.2.3.4.`, whose dot was removed, is the address that it names.
            return match name.parse::<Ipv4Addr>() {
                Ok(address) => Ok(Self::address(address.into())),
                Err(_) => Err(InvalidHost::AmbiguousAddress(text.to_owned())),
            };
        }
        Ok(Self::Name(name))
    }

    /// Parses a host as [`parse`](Self::parse) does, and keeps the text of what is none, for the refusal.
    #[cfg(feature = "proxy")]
    pub(crate) fn parse_requested(text: &str) -> Result<Self, UnreadableHost> {
        Self::parse(text).map_err(|problem| UnreadableHost { text: text.to_owned(), problem })
    }

    /// Returns the host of an address.
    pub fn address(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

impl fmt::Display for NetworkHost {
    /// Writes the host as it stands before a port: an IPv6 address is in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Returns true for what a C library reads as a number: decimal, octal or hexadecimal digits.
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// Returns a label in lower-case ASCII.
fn ascii_label(label: &str) -> Result<String, InvalidHost> {
    let invalid = || InvalidHost::Label(label.chars().take(80).collect());
    let folded: String = label.nfkc().flat_map(char::to_lowercase).nfc().collect();
    let ascii = if folded.is_ascii() {
        folded
    } else {
        let fits = |letter: char| letter.is_alphanumeric() || letter == '-' || is_combining(letter);
        if !folded.chars().all(fits) || folded.chars().count() > 63 {
            return Err(invalid());
        }
        format!("xn--{}", punycode(&folded).ok_or_else(invalid)?)
    };
    let has_only_host_bytes =
        ascii.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    let is_valid = has_only_host_bytes
        && (1..=63).contains(&ascii.len())
        && !ascii.starts_with('-')
        && !ascii.ends_with('-');
    if is_valid { Ok(ascii) } else { Err(invalid()) }
}

fn is_combining(letter: char) -> bool {
    unicode_normalization::char::is_combining_mark(letter)
}

/// Encodes a label (RFC 3492). `None` if it is too long to be encoded.
fn punycode(label: &str) -> Option<String> {
    const BASE: u32 = 36;
    const T_MIN: u32 = 1;
    const T_MAX: u32 = 26;
    const SKEW: u32 = 38;
    const DAMP: u32 = 700;
    let letters: Vec<u32> = label.chars().map(u32::from).collect();
    let mut output: String = label.chars().filter(char::is_ascii).collect();
    let basic = u32::try_from(output.len()).ok()?;
    if basic > 0 {
        output.push('-');
    }
    let (mut next, mut delta, mut bias, mut handled) = (128_u32, 0_u32, 72_u32, basic);
    let total = u32::try_from(letters.len()).ok()?;
    while handled < total {
        let smallest = letters.iter().copied().filter(|letter| *letter >= next).min()?;
        delta = delta.checked_add((smallest - next).checked_mul(handled + 1)?)?;
        next = smallest;
        for letter in &letters {
            if *letter < next {
                delta = delta.checked_add(1)?;
            }
            if *letter != next {
                continue;
            }
            let (mut rest, mut at) = (delta, BASE);
            loop {
                let threshold = at.saturating_sub(bias).clamp(T_MIN, T_MAX);
                if rest < threshold {
                    break;
                }
                output.push(digit(threshold + (rest - threshold) % (BASE - threshold)));
                rest = (rest - threshold) / (BASE - threshold);
                at += BASE;
            }
            output.push(digit(rest));
            // The bias is adapted to how far the letters are apart.
            let mut adapted = if handled == basic { delta / DAMP } else { delta / 2 };
            adapted += adapted / (handled + 1);
            let mut steps = 0;
            while adapted > ((BASE - T_MIN) * T_MAX) / 2 {
                adapted /= BASE - T_MIN;
                steps += BASE;
            }
            bias = steps + (BASE * adapted) / (adapted + SKEW);
            delta = 0;
            handled += 1;
        }
        delta = delta.checked_add(1)?;
        next += 1;
    }
    Some(output)
}

/// Returns the digit of a value below 36: `a` to `z`, `0` to `9`.
fn digit(value: u32) -> char {
    char::from_digit(if value < 26 { value + 10 } else { value - 26 }, 36).unwrap_or('a')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> String {
        NetworkHost::parse(text).unwrap().to_string()
    }

    #[test]
    fn spellings_of_one_name_are_one_host() {
        for spelling in ["git.example.com", "GIT.Example.com", "git.example.com.", "ｇｉｔ.example.com"] {
            assert_eq!(name(spelling), "git.example.com", "{spelling}");
        }
        // From RFC 3492 and IANA's test domains.
        for (spelling, ascii) in [
            ("bücher.example", "xn--bcher-kva.example"),
            ("BÜCHER.example", "xn--bcher-kva.example"),
            ("bu\u{308}cher.example", "xn--bcher-kva.example"),
            ("испытание.test", "xn--80akhbyknj4f.test"),
            ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(name(spelling), ascii, "{spelling}");
        }
    }

    #[test]
    fn what_a_c_library_reads_as_an_address_is_no_name() {
        for text in ["127.1", "0x7f000001", "2130706433", "0177.0.0.1", "1.2.3.256", "example.0x1", "a.1"] {
            assert!(matches!(NetworkHost::parse(text), Err(InvalidHost::AmbiguousAddress(_))), "{text}");
        }
        assert_eq!(NetworkHost::parse("127.0.0.1."), Ok(NetworkHost::Address([127, 0, 0, 1].into())));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let long = "a".repeat(64);
        for text in [
            "",
            ".",
            "a..b",
            "-a.example",
            "a-.example",
            "a b",
            "a/b",
            "a@b",
            "a\0b",
            "a:1",
            "[::1",
            "[1.2.3.4]",
            "fe80::1%eth0",
            "*.example",
            "a\u{200d}b.example",
            "a。b",
            &long,
        ] {
            // The ideographic full stop becomes a dot by compatibility folding, and is no letter of a label.
            assert!(NetworkHost::parse(text).is_err(), "{text:?}");
        }
    }
}
