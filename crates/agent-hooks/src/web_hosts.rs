//! The hosts that a tool of the web would reach, by the URLs in its arguments.

use egress_proxy::{InvalidHost, NetworkAccess, NetworkHost};
use serde_json::{Map, Value};

/// The schemes of URLs that clients fetch, with the port that each means.
const SCHEMES: [(&str, u16); 4] = [("http", 80), ("https", 443), ("ws", 80), ("wss", 443)];

/// The reason that a tool of the web may not run for a role whose network is limited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WebRefusal {
    /// The role has no network at all.
    #[error("this role has no network")]
    NoNetwork,
    /// Nothing names the host that the tool would reach, as in a search.
    #[error(
        "this role reaches only the hosts of its list, and the call names no URL whose host can be judged"
    )]
    NoUrl,
    /// The URL has another host for some readers of it than for others.
    #[error("`{text}` is no host of a URL: {problem}")]
    Host {
        /// The text.
        text: String,
        /// The reason.
        problem: InvalidHost,
    },
    /// The port is no number.
    #[error("`{0}` is no port of a URL")]
    Port(String),
    /// The host is not in the list.
    #[error("`{host}:{port}` is not in this role's hosts")]
    NotListed {
        /// The host.
        host: NetworkHost,
        /// The port.
        port: u16,
    },
}

/// Checks that `access` lets the tool with these arguments reach every host that they name.
pub(crate) fn check_hosts(arguments: &Map<String, Value>, access: &NetworkAccess) -> Result<(), WebRefusal> {
    let hosts = match access {
        NetworkAccess::Allow => return Ok(()),
        NetworkAccess::Hosts(hosts) => hosts,
        _ => return Err(WebRefusal::NoNetwork),
    };
    let mut texts = Vec::new();
    match arguments.get("url") {
        // Other arguments say what to do with the page.
        Some(url) => collect_texts(url, &mut texts),
        None => arguments.values().for_each(|value| collect_texts(value, &mut texts)),
    }
    let mut is_named = false;
    for text in texts {
        // Readers of URLs drop these, wherever they stand.
        let text: String =
            text.chars().filter(|character| !matches!(character, '\t' | '\n' | '\r')).collect();
        for (authority, default_port) in authorities(&text) {
            is_named = true;
            let (host, port) = host_and_port(authority, default_port)?;
            if hosts.check(&host, port).is_err() {
                return Err(WebRefusal::NotListed { host, port });
            }
        }
    }
    if is_named { Ok(()) } else { Err(WebRefusal::NoUrl) }
}

fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|member| collect_texts(member, texts)),
        _ => {}
    }
}

/// Returns the part with the host of each URL in a text, and the port that its scheme means.
fn authorities(text: &str) -> impl Iterator<Item = (&str, u16)> {
    text.match_indices(':').filter_map(move |(colon, _)| {
        let before = text.get(..colon)?;
        let start = before.rfind(|character: char| !character.is_ascii_alphanumeric()).map_or(0, |end| {
            end + before.get(end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
        });
        let scheme = before.get(start..)?;
        let (_, port) = SCHEMES.iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name))?;
        let rest = text.get(colon + 1..)?;
        // Readers of URLs take any number of slashes in either direction, or none.
        let rest = rest.trim_start_matches(['/', '\\']);
        // A host may have quotation marks, brackets and commas: a client connects to what stands behind them too.
        let end = rest.find(|character: char| {
            matches!(character, '/' | '\\' | '?' | '#' | '<' | '>')
                || character.is_whitespace()
                || character.is_control()
        });
        let authority = rest.get(..end.unwrap_or(rest.len()))?;
        // The end of a sentence. A text such as `http: see below` is no URL.
        let authority = authority.trim_end_matches(['.', ';', '!', ',', ')', '"', '\'', '`']);
        (!authority.is_empty()).then_some((authority, *port))
    })
}

fn host_and_port(authority: &str, default_port: u16) -> Result<(NetworkHost, u16), WebRefusal> {
    // Behind the last `@`, as in the URL standard.
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (place, ""),
    };
    let parsed = NetworkHost::parse(host);
    let parsed = parsed.map_err(|problem| WebRefusal::Host { text: host.to_owned(), problem })?;
    let port = match port {
        "" => default_port,
        port => port.parse().map_err(|_| WebRefusal::Port(port.to_owned()))?,
    };
    Ok((parsed, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use egress_proxy::AllowedHosts;
    use serde_json::json;

    fn check(arguments: &Value, hosts: &[&str]) -> Result<(), WebRefusal> {
        let access = NetworkAccess::Hosts(AllowedHosts::parse(hosts).unwrap());
        check_hosts(arguments.as_object().unwrap(), &access)
    }

    #[test]
    fn the_host_of_a_url_is_the_one_that_a_client_connects_to() {
        for url in [
            "https://docs.example/a?b#c",
            "http://Docs.Example:80",
            "HTTPS:\\\\docs.example\\@other.example/",
            "https:docs.example",
            "https://user:other.example@docs.example",
            "ht\ntps://docs.exa\tmple",
        ] {
            assert_eq!(
                check(&json!({"url": url, "prompt": "as on https://other.example"}), &["docs.example"]),
                Ok(()),
                "{url}"
            );
        }
        for url in [
            "https://other.example",
            "https://docs.example:8443",
            "https://docs.example@other.example/",
            "https://docs.example.other.example",
            "https:/other.example",
            "https://%64ocs.example",
            "https://0x7f.1",
            "https://docs.example,.other.example/",
            "https://docs.example'.other.example",
            "https://docs.example`.other.example",
            "https://docs.example).other.example",
            "https://docs.example\".other.example",
            "https://docs.example:port",
            "docs.example",
            "file:///etc/passwd",
            "",
        ] {
            assert!(check(&json!({ "url": url }), &["docs.example"]).is_err(), "{url}");
        }
    }

    #[test]
    fn each_url_in_a_text_counts_and_a_search_names_none() {
        let prompt = |text: &str| check(&json!({ "prompt": text }), &["docs.example", "[::1]:8080"]);
        assert_eq!(prompt("Read (https://docs.example/a), and http://[::1]:8080."), Ok(()));
        assert_eq!(
            prompt("Read 'https://docs.example', `https://docs.example` and \"https://docs.example\"."),
            Ok(())
        );
        let refused = prompt("Read https://docs.example and http://other.example, please").unwrap_err();
        assert_eq!(refused.to_string(), "`other.example:80` is not in this role's hosts");
        assert_eq!(check(&json!({"query": "weather"}), &["docs.example"]), Err(WebRefusal::NoUrl));
        let none = check_hosts(&Map::new(), &NetworkAccess::None);
        assert_eq!(none, Err(WebRefusal::NoNetwork));
        assert_eq!(check_hosts(&Map::new(), &NetworkAccess::Allow), Ok(()));
    }
}
