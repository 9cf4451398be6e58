//! The fields of the head of a request or a response.

use super::message::{BodyFraming, HeadError};

/// The most header fields of a head.
const MAX_FIELDS: usize = 200;

/// The refusal of a line that some readers would end elsewhere.
pub(super) const NOT_CR_LF: &str = "a line of the head does not end in CR LF, or has a NUL byte";

/// The names and values of a head, in its order.
#[derive(Debug)]
pub(crate) struct HeaderFields(Vec<(String, Vec<u8>)>);

/// The names of the fields that are for the next hop alone.
pub(crate) struct HopByHop(Vec<String>);

pub(super) fn is_token(text: &[u8]) -> bool {
    !text.is_empty()
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// Returns the lines of a whole head without its empty line.
pub(super) fn head_lines(bytes: &[u8]) -> Result<Vec<&[u8]>, HeadError> {
    let mut rest = bytes.strip_suffix(b"\r\n\r\n").ok_or(HeadError::Malformed("the head has no end"))?;
    let mut lines = Vec::new();
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\r\n") {
        lines.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    lines.push(rest);
    if lines.iter().any(|line| line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0))) {
        return Err(HeadError::Malformed(NOT_CR_LF));
    }
    Ok(lines)
}

impl HeaderFields {
    pub(super) fn parse(lines: &[&[u8]]) -> Result<Self, HeadError> {
        if lines.len() > MAX_FIELDS {
            return Err(HeadError::Malformed("the head has too many fields"));
        }
        let field = |line: &&[u8]| {
            let colon = line
                .iter()
                .position(|byte| *byte == b':')
                .ok_or(HeadError::Malformed("a field has no colon"))?;
            // Also refuses a blank before the colon, and a field that goes on from the line before.
            if !is_token(&line[..colon]) {
                return Err(HeadError::Malformed("the name of a field is no token"));
            }
            let name = String::from_utf8_lossy(&line[..colon]).into_owned();
            Ok((name, line[colon + 1..].trim_ascii().to_vec()))
        };
        lines.iter().map(field).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0
            .iter()
            .filter(move |(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }

    /// Returns where the body ends, or `None` if no field says so.
    pub(crate) fn framing(&self) -> Result<Option<BodyFraming>, HeadError> {
        let mut encodings = self.values("Transfer-Encoding");
        let mut lengths = self.values("Content-Length");
        match (encodings.next(), lengths.next()) {
            (None, None) => Ok(None),
            (Some(encoding), None)
                if encodings.next().is_none() && encoding.eq_ignore_ascii_case(b"chunked") =>
            {
                Ok(Some(BodyFraming::Chunked))
            }
            (Some(_), None) => {
                Err(HeadError::Malformed("the only Transfer-Encoding that is taken is `chunked`"))
            }
            (None, Some(length)) if lengths.next().is_none() && length.iter().all(u8::is_ascii_digit) => {
                std::str::from_utf8(length)
                    .ok()
                    .and_then(|digits| digits.parse().ok())
                    .map(|length| Some(BodyFraming::Length(length)))
                    .ok_or(HeadError::Malformed("Content-Length is no number"))
            }
            _ => Err(HeadError::Malformed("the length of the body is given twice or not as a number")),
        }
    }

    /// Returns the fields that are for the next hop alone: those that HTTP knows, and those that `Connection` names.
    pub(crate) fn hop_by_hop(&self) -> HopByHop {
        let named = self
            .values("Connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned())
            // These two say where the body ends, and must not be lost on a client's word.
            .filter(|name| {
                !name.eq_ignore_ascii_case("Transfer-Encoding")
                    && !name.eq_ignore_ascii_case("Content-Length")
            })
            .collect();
        HopByHop(named)
    }

    /// Returns true if the sender closes the connection after this message.
    #[cfg(feature = "credentials")]
    pub(crate) fn closes_connection(&self) -> bool {
        let mut options = self.values("Connection").flat_map(|value| value.split(|byte| *byte == b','));
        options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
    }

    /// Appends the fields to a head, without those whose name `is_left_out`.
    pub(crate) fn write_without(&self, head: &mut Vec<u8>, is_left_out: impl Fn(&str) -> bool) {
        for (name, value) in self.0.iter().filter(|(name, _)| !is_left_out(name)) {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
    }
}

impl HopByHop {
    pub(crate) fn contains(&self, name: &str) -> bool {
        const KNOWN: [&str; 8] = [
            "Connection",
            "Keep-Alive",
            "Proxy-Authenticate",
            "Proxy-Authorization",
            "Proxy-Connection",
            "TE",
            "Trailer",
            "Upgrade",
        ];
        KNOWN.iter().any(|other| name.eq_ignore_ascii_case(other))
            || self.0.iter().any(|other| name.eq_ignore_ascii_case(other))
    }
}
