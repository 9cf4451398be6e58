//! The server name in a TLS `ClientHello` (RFC 8446, RFC 6066).

/// The beginning of what a client sends, as far as it is there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FirstBytes {
    /// A TLS handshake of which more is needed.
    Incomplete,
    /// A whole `ClientHello`, with the name of the server that it asks for.
    ClientHello { server_name: Option<String> },
    /// A TLS handshake that cannot be read.
    Malformed,
    /// Another protocol.
    NotTls,
}

const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;
/// The most bytes of a record (RFC 8446, 5.1).
const MAX_RECORD: usize = 1 << 14;

/// Reads what a client has sent so far. `bytes` is not empty.
pub(crate) fn read(bytes: &[u8]) -> FirstBytes {
    if bytes.first() != Some(&HANDSHAKE_RECORD) {
        return FirstBytes::NotTls;
    }
    // The message may be spread over several records.
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        if let Some((header, body)) = message.split_first_chunk::<4>() {
            let [kind, length @ ..] = *header;
            let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            if kind != CLIENT_HELLO {
                return FirstBytes::Malformed;
            }
            if let Some(body) = body.get(..length) {
                return match server_name(body) {
                    Some(server_name) => FirstBytes::ClientHello { server_name },
                    None => FirstBytes::Malformed,
                };
            }
        }
        let Some((header, body)) = rest.split_first_chunk::<5>() else { return FirstBytes::Incomplete };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if header[0] != HANDSHAKE_RECORD || header[1] != 3 || length == 0 || length > MAX_RECORD {
            return FirstBytes::Malformed;
        }
        let Some((fragment, after)) = body.split_at_checked(length) else { return FirstBytes::Incomplete };
        message.extend_from_slice(fragment);
        rest = after;
    }
}

/// Returns the server name of a `ClientHello`, or `None` if the message cannot be read.
#[allow(clippy::option_option, reason = "no name in a good message is not a bad message")]
fn server_name(body: &[u8]) -> Option<Option<String>> {
    let mut message = ClientHelloReader(body);
    message.take(2 + 32)?; // version, random
    message.vector8()?; // session
    message.vector16()?; // cipher suites
    message.vector8()?; // compression
    if message.0.is_empty() {
        return Some(None);
    }
    let mut extensions = ClientHelloReader(message.vector16()?);
    if !message.0.is_empty() {
        return None;
    }
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number16()?;
        let content = extensions.vector16()?;
        if kind != SERVER_NAME {
            continue;
        }
        let mut names = ClientHelloReader(
            ClientHelloReader(content).vector16().filter(|names| names.len() + 2 == content.len())?,
        );
        let kind = *names.take(1)?.first()?;
        let name = std::str::from_utf8(names.vector16()?).ok()?;
        // A second name, or a second extension, would be read in one way here and in another way there.
        if kind != HOST_NAME || !names.0.is_empty() || found.is_some() {
            return None;
        }
        found = Some(name.to_owned());
    }
    Some(found)
}

/// Bytes that are still to be read.
struct ClientHelloReader<'a>(&'a [u8]);

impl<'a> ClientHelloReader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn vector8(&mut self) -> Option<&'a [u8]> {
        let length = *self.take(1)?.first()?;
        self.take(length.into())
    }

    fn vector16(&mut self) -> Option<&'a [u8]> {
        let length = self.number16()?;
        self.take(length.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a `ClientHello` with these extensions in one record.
    fn hello(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        let all: Vec<u8> = extensions
            .iter()
            .flat_map(|(kind, content)| [&kind.to_be_bytes(), &length16(content)[..], content].concat())
            .collect();
        body.extend(length16(&all));
        body.extend(all);
        let mut message = vec![1, 0];
        message.extend(length16(&body));
        message.extend(body);
        record(&message)
    }

    fn length16(bytes: &[u8]) -> [u8; 2] {
        u16::try_from(bytes.len()).unwrap().to_be_bytes()
    }

    fn record(payload: &[u8]) -> Vec<u8> {
        [&[22, 3, 1][..], &length16(payload), payload].concat()
    }

    fn name_extension(name: &str) -> (u16, Vec<u8>) {
        let entry = [&[0][..], &length16(name.as_bytes()), name.as_bytes()].concat();
        (0, [&length16(&entry)[..], &entry].concat())
    }

    #[test]
    fn the_name_is_found_wherever_records_end() {
        let whole = hello(&[(43, vec![2, 3, 4]), name_extension("git.example.com")]);
        let expected = FirstBytes::ClientHello { server_name: Some("git.example.com".to_owned()) };
        assert_eq!(read(&whole), expected);
        for cut in 1..whole.len() {
            assert_eq!(read(&whole[..cut]), FirstBytes::Incomplete, "{cut}");
        }
        let message = &whole[5..];
        for cut in 1..message.len() {
            let (first, second) = message.split_at(cut);
            assert_eq!(read(&[record(first), record(second)].concat()), expected, "{cut}");
        }
    }

    #[test]
    fn what_two_readers_could_read_differently_is_malformed() {
        let two = [name_extension("one.example"), name_extension("two.example")];
        assert_eq!(read(&hello(&two)), FirstBytes::Malformed);
        let (kind, mut content) = name_extension("one.example");
        content.extend([0, 0]);
        assert_eq!(read(&hello(&[(kind, content)])), FirstBytes::Malformed);
        assert_eq!(read(&hello(&[])), FirstBytes::ClientHello { server_name: None });
        assert_eq!(read(&record(&[2, 0, 0, 0])), FirstBytes::Malformed);
        assert_eq!(read(&[22, 3, 1, 0, 0]), FirstBytes::Malformed);
        assert_eq!(read(b"GET / HTTP/1.1"), FirstBytes::NotTls);
        assert_eq!(read(b"SSH-2.0"), FirstBytes::NotTls);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 1..300)) {
            read(&bytes);
            read(&record(&bytes));
            let mut message = vec![1, 0];
            message.extend(length16(&bytes));
            message.extend(&bytes);
            read(&record(&message));
        }
    }
}
