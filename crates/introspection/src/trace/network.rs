//! [`NetworkSummary`]: HTTP requests by route, and TCP connections by peer.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The maximum number of routes, single requests and peers in a summary.
const MAX_ROUTES: usize = 20;
const MAX_SLOWEST: usize = 5;
#[cfg(target_os = "linux")]
const MAX_PEERS: usize = 20;

/// A summary of the network traffic of an application.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct NetworkSummary {
    /// The source of the data: `diagnostics_channel` or `sockets`.
    pub source: &'static str,
    /// The number of requests, in both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// The number of requests that failed or had a status of 500 or above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// The number of requests that were unfinished at the end of the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<u64>,
    /// The number of requests that were left out, as there were too many.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// The routes, in descending order of their 95th percentile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteSummary>,
    /// The slowest requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowHttpRequest>,
    /// The numbers of connections that the application opened and accepted during the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sockets: Option<[u64; 2]>,
    /// The TCP connections by peer, in descending order of their bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<PeerSummary>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The requests with one method to one route.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RouteSummary {
    /// The direction: `in` to the application, or `out` of it.
    pub direction: String,
    /// The method, such as `GET`.
    pub method: String,
    /// The host of outgoing requests; else empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The path without its query, with `:id` for what looks like a number or key.
    pub route: String,
    /// The number of requests.
    pub count: u64,
    /// The number of requests by status; `error` and `unfinished` for requests without one.
    pub statuses: BTreeMap<String, u64>,
    /// The median time, in milliseconds.
    pub p50_ms: f64,
    /// The 95th percentile of the time, in milliseconds.
    pub p95_ms: f64,
    /// The longest time, in milliseconds.
    pub max_ms: f64,
}

/// A slow request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SlowHttpRequest {
    /// The direction, method, host and route.
    pub request: String,
    /// The status, or the error.
    pub status: String,
    /// The time, in milliseconds.
    pub ms: f64,
}

/// The TCP connections with one peer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PeerSummary {
    /// The direction: `in` where the peer connected, `out` where the target did.
    pub direction: &'static str,
    /// The address of the peer, with its port for outgoing connections.
    pub peer: String,
    /// The port of the target, for incoming connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The number of connections.
    pub connections: u64,
    /// The number of connections that were opened during the capture.
    pub opened: u64,
    /// The bytes sent during the capture, where the system reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_sent: Option<u64>,
    /// The bytes received during the capture, where the system reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
    /// The longest round-trip time of the connections, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
}

/// An HTTP request with the status of its response.
// The hook in the target sends short keys, as it holds thousands of exchanges; the file gets readable ones.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct HttpExchange {
    #[serde(rename(deserialize = "k", serialize = "direction"))]
    direction: String,
    #[serde(rename(deserialize = "m", serialize = "method"), default)]
    method: String,
    #[serde(
        rename(deserialize = "h", serialize = "host"),
        default,
        skip_serializing_if = "String::is_empty"
    )]
    host: String,
    #[serde(rename(deserialize = "p", serialize = "route"), default)]
    route: String,
    #[serde(
        rename(deserialize = "s", serialize = "status"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    status: Option<u16>,
    #[serde(
        rename(deserialize = "e", serialize = "error"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    error: Option<String>,
    /// The time it began, in milliseconds of the target's clock.
    #[serde(rename(deserialize = "t", serialize = "start_ms"), default)]
    start: f64,
    #[serde(rename(deserialize = "d", serialize = "ms"), default)]
    took: f64,
}

impl HttpExchange {
    /// Removes everything that may be secret or is specific to one request.
    pub(super) fn redact(&mut self) {
        self.route = route(&self.route);
        // The part before `@` is the user and password.
        self.host = self.host.rsplit('@').next().unwrap_or_default().chars().take(100).collect();
        // A client may send any token as its method.
        self.method = self.method.chars().filter(char::is_ascii_alphabetic).take(20).collect();
    }

    /// Returns the key under which the request is counted.
    fn outcome(&self) -> String {
        match (&self.error, self.status) {
            (Some(_), _) => "error".to_owned(),
            (None, Some(status)) => status.to_string(),
            (None, None) => "unfinished".to_owned(),
        }
    }
}

/// Returns `path` without its query, with `:id` for each part that is a number, a key or a token.
fn route(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let part = |part: &str| {
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        let hexadecimal = part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        // Numbers, hashes and UUIDs, tokens, and everything that an address or an escape may hide. A word of a route has
        // few digits and is short.
        let is_key = !part.is_empty() && digits == part.len()
            || part.len() >= 8 && hexadecimal && digits > 0
            || part.len() >= 20 && digits > 0
            || part.len() > 48
            || part.contains(['@', '%', '=']);
        if is_key {
            ":id".to_owned()
        } else {
            super::call_tree::ProfiledFunction::new(part, None, None).function
        }
    };
    let parts = path.split('/').map(|text| if text.is_empty() { String::new() } else { part(text) });
    parts.collect::<Vec<_>>().join("/").chars().take(200).collect()
}

/// Rounds to one decimal.
fn rounded(milliseconds: f64) -> f64 {
    (milliseconds * 10.0).round() / 10.0
}

impl NetworkSummary {
    /// Summarises requests by route.
    pub(super) fn from_exchanges(exchanges: &[HttpExchange], dropped: u64, sockets: [u64; 2]) -> Self {
        let mut groups: BTreeMap<(&str, &str, &str, &str), Vec<&HttpExchange>> = BTreeMap::new();
        for exchange in exchanges {
            let key = (&*exchange.direction, &*exchange.method, &*exchange.host, &*exchange.route);
            groups.entry(key).or_default().push(exchange);
        }
        let mut routes: Vec<RouteSummary> = groups
            .into_iter()
            .map(|((direction, method, host, route), group)| {
                let mut statuses = BTreeMap::new();
                for exchange in &group {
                    *statuses.entry(exchange.outcome()).or_default() += 1;
                }
                let mut times: Vec<f64> = group.iter().map(|exchange| exchange.took).collect();
                times.sort_by(f64::total_cmp);
                // The nearest-rank method: every percentile is a time that was measured.
                let percentile = |percent: usize| {
                    let rank = (times.len() * percent).div_ceil(100).max(1) - 1;
                    rounded(times.get(rank).copied().unwrap_or_default())
                };
                RouteSummary {
                    direction: direction.to_owned(),
                    method: method.to_owned(),
                    host: host.to_owned(),
                    route: route.to_owned(),
                    count: group.len() as u64,
                    statuses,
                    p50_ms: percentile(50),
                    p95_ms: percentile(95),
                    max_ms: percentile(100),
                }
            })
            .collect();
        routes.sort_by(|a, b| b.p95_ms.total_cmp(&a.p95_ms));
        routes.truncate(MAX_ROUTES);
        let mut slow: Vec<&HttpExchange> = exchanges.iter().collect();
        slow.sort_by(|a, b| b.took.total_cmp(&a.took));
        let slowest = slow.into_iter().take(MAX_SLOWEST).map(|exchange| SlowHttpRequest {
            request: format!(
                "{} {} {}{}",
                exchange.direction, exchange.method, exchange.host, exchange.route
            ),
            status: exchange.error.clone().unwrap_or_else(|| exchange.outcome()),
            ms: rounded(exchange.took),
        });
        let count = |is: &dyn Fn(&HttpExchange) -> bool| {
            exchanges.iter().filter(|exchange| is(exchange)).count() as u64
        };
        Self {
            source: "diagnostics_channel",
            requests: Some(exchanges.len() as u64),
            errors: Some(count(&|exchange| {
                exchange.error.is_some() || exchange.status.is_some_and(|status| status >= 500)
            })),
            unfinished: Some(count(&|exchange| exchange.error.is_none() && exchange.status.is_none())),
            dropped,
            routes,
            slowest: slowest.collect(),
            sockets: Some(sockets),
            connections: Vec::new(),
        }
    }

    /// Summarises connections by peer.
    #[cfg(target_os = "linux")]
    pub(super) fn from_peers(mut peers: Vec<PeerSummary>) -> Self {
        let weight = |peer: &PeerSummary| {
            peer.bytes_sent.unwrap_or_default().saturating_add(peer.bytes_received.unwrap_or_default())
        };
        peers.sort_by(|a, b| (weight(b), b.connections, &a.peer).cmp(&(weight(a), a.connections, &b.peer)));
        peers.truncate(MAX_PEERS);
        Self { source: "sockets", connections: peers, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_route_keeps_its_words_and_nothing_of_one_request() {
        for (path, expected) in [
            ("/users/42/orders?token=secret", "/users/:id/orders"),
            ("/a/550e8400-e29b-41d4-a716-446655440000#x", "/a/:id"),
            ("/reset/eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "/reset/:id"),
            ("/by-mail/me%40example.org/", "/by-mail/:id/"),
            ("/by-mail/me@example.org", "/by-mail/:id"),
            ("/v1/checkout", "/v1/checkout"),
            ("/deadbeef01", "/:id"),
            ("", ""),
        ] {
            assert_eq!(route(path), expected);
        }
    }

    #[test]
    fn requests_are_told_by_route_the_slowest_first() {
        let exchange = |route: &str, status, took| {
            let mut exchange = HttpExchange {
                direction: "in".to_owned(),
                method: "GET".to_owned(),
                route: route.to_owned(),
                status,
                took,
                ..HttpExchange::default()
            };
            exchange.redact();
            exchange
        };
        let mut exchanges: Vec<_> =
            (0..100).map(|at| exchange(&format!("/fast/{at}"), Some(200), f64::from(at))).collect();
        exchanges.push(exchange("/slow", Some(503), 500.0));
        exchanges.push(exchange("/never", None, 100.0));
        let summary = NetworkSummary::from_exchanges(&exchanges, 3, [1, 2]);
        assert_eq!((summary.requests, summary.errors, summary.unfinished), (Some(102), Some(1), Some(1)));
        let routes: Vec<_> = summary
            .routes
            .iter()
            .map(|route| (&*route.route, route.count, route.p50_ms, route.p95_ms, route.max_ms))
            .collect();
        assert_eq!(
            routes,
            [
                ("/slow", 1, 500.0, 500.0, 500.0),
                ("/never", 1, 100.0, 100.0, 100.0),
                ("/fast/:id", 100, 49.0, 94.0, 99.0)
            ]
        );
        assert_eq!(
            summary.slowest[0],
            SlowHttpRequest { request: "in GET /slow".into(), status: "503".into(), ms: 500.0 }
        );
    }

    proptest! {
        #[test]
        fn no_path_is_a_panic_and_no_query_stays(path in "(?s).{0,400}", query in "[a-z]{30}") {
                let asked = [path, "?".to_owned(), query.clone()].concat();
                prop_assert!(!route(&asked).contains(&query));
        }
    }
}
