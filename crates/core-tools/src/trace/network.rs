//! Requests and connections, summed up.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Routes, connections and single requests that are told.
const TOLD_ROUTES: usize = 20;
const TOLD_SLOWEST: usize = 5;
#[cfg(target_os = "linux")]
const TOLD_PEERS: usize = 20;

/// Whom an application talked to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NetworkSummary {
    /// Where this comes from: `diagnostics_channel` or `sockets`.
    pub source: &'static str,
    /// Requests seen, in both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Those that failed, or were answered with 500 or above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// Those without an end at the end of the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<u64>,
    /// Those that were too many to be kept.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// Routes, the slowest first: by the time that 95 of 100 requests did not exceed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// The slowest requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<Slow>,
    /// Connections that were made and taken meanwhile, by the application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sockets: Option<[u64; 2]>,
    /// TCP connections by peer, those with most bytes first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Peer>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The requests of one method to one route.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Route {
    /// `in` to the application, or `out` of it.
    pub direction: String,
    /// `GET`.
    pub method: String,
    /// Whom it asked, of those that go out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The path without its query, with `:id` for what looks like a number or key.
    pub route: String,
    /// How many.
    pub count: u64,
    /// By status; `error` and `unfinished` for those that have none.
    pub statuses: BTreeMap<String, u64>,
    /// The time that half of them did not exceed, in milliseconds.
    pub p50_ms: f64,
    /// The time that 95 of 100 did not exceed.
    pub p95_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// One slow request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slow {
    /// Method and route.
    pub request: String,
    /// How it ended.
    pub status: String,
    /// Milliseconds.
    pub ms: f64,
}

/// TCP connections with one peer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peer {
    /// `in` where the peer connected, `out` where the target did.
    pub direction: &'static str,
    /// Its address; with the port of those that go out.
    pub peer: String,
    /// The port of the target, of those that come in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// How many were seen.
    pub connections: u64,
    /// Of them, those that began meanwhile.
    pub opened: u64,
    /// Bytes sent meanwhile, where the system tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_sent: Option<u64>,
    /// Bytes received meanwhile, in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
    /// The longest round trip of those seen, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
}

/// One request and its answer.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Exchange {
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
    /// When it began, in milliseconds of the target's clock.
    #[serde(rename(deserialize = "t", serialize = "start_ms"), default)]
    start: f64,
    #[serde(rename(deserialize = "d", serialize = "ms"), default)]
    took: f64,
}

impl Exchange {
    /// Drops what may be secret, or belongs to one request only.
    pub(super) fn generalise(&mut self) {
        self.route = route(&self.route);
        self.host = self.host.rsplit('@').next().unwrap_or_default().chars().take(100).collect();
        self.method = self.method.chars().filter(char::is_ascii_alphabetic).take(20).collect();
    }

    fn outcome(&self) -> String {
        match (&self.error, self.status) {
            (Some(_), _) => "error".to_owned(),
            (None, Some(status)) => status.to_string(),
            (None, None) => "unfinished".to_owned(),
        }
    }
}

/// `path` without its query, with `:id` for each part that is a number, a key or a token.
fn route(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let part = |part: &str| {
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        let hexadecimal = part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        let is_key = !part.is_empty() && digits == part.len()
            || part.len() >= 8 && hexadecimal && digits > 0
            || part.len() >= 20 && digits > 0
            || part.len() > 48
            || part.contains(['@', '%', '=']);
        if is_key { ":id".to_owned() } else { super::Frame::new(part, None, None).function }
    };
    let parts = path.split('/').map(|text| if text.is_empty() { String::new() } else { part(text) });
    parts.collect::<Vec<_>>().join("/").chars().take(200).collect()
}

fn rounded(milliseconds: f64) -> f64 {
    (milliseconds * 10.0).round() / 10.0
}

impl NetworkSummary {
    pub(super) fn of_exchanges(exchanges: &[Exchange], dropped: u64, sockets: [u64; 2]) -> Self {
        let mut groups: BTreeMap<(&str, &str, &str, &str), Vec<&Exchange>> = BTreeMap::new();
        for exchange in exchanges {
            let key = (&*exchange.direction, &*exchange.method, &*exchange.host, &*exchange.route);
            groups.entry(key).or_default().push(exchange);
        }
        let mut routes: Vec<Route> = groups
            .into_iter()
            .map(|((direction, method, host, route), group)| {
                let mut statuses = BTreeMap::new();
                for exchange in &group {
                    *statuses.entry(exchange.outcome()).or_default() += 1;
                }
                let mut times: Vec<f64> = group.iter().map(|exchange| exchange.took).collect();
                times.sort_by(f64::total_cmp);
                // The nearest rank.
                let at = |percent: usize| {
                    let rank = (times.len() * percent).div_ceil(100).max(1) - 1;
                    rounded(times.get(rank).copied().unwrap_or_default())
                };
                Route {
                    direction: direction.to_owned(),
                    method: method.to_owned(),
                    host: host.to_owned(),
                    route: route.to_owned(),
                    count: group.len() as u64,
                    statuses,
                    p50_ms: at(50),
                    p95_ms: at(95),
                    max_ms: at(100),
                }
            })
            .collect();
        routes.sort_by(|a, b| b.p95_ms.total_cmp(&a.p95_ms));
        routes.truncate(TOLD_ROUTES);
        let mut slow: Vec<&Exchange> = exchanges.iter().collect();
        slow.sort_by(|a, b| b.took.total_cmp(&a.took));
        let slowest = slow.into_iter().take(TOLD_SLOWEST).map(|exchange| Slow {
            request: format!(
                "{} {} {}{}",
                exchange.direction, exchange.method, exchange.host, exchange.route
            ),
            status: exchange.error.clone().unwrap_or_else(|| exchange.outcome()),
            ms: rounded(exchange.took),
        });
        let count =
            |is: &dyn Fn(&Exchange) -> bool| exchanges.iter().filter(|exchange| is(exchange)).count() as u64;
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

    #[cfg(target_os = "linux")]
    pub(super) fn of_peers(mut peers: Vec<Peer>) -> Self {
        let weight = |peer: &Peer| {
            peer.bytes_sent.unwrap_or_default().saturating_add(peer.bytes_received.unwrap_or_default())
        };
        peers.sort_by(|a, b| (weight(b), b.connections, &a.peer).cmp(&(weight(a), a.connections, &b.peer)));
        peers.truncate(TOLD_PEERS);
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
            let mut exchange = Exchange {
                direction: "in".to_owned(),
                method: "GET".to_owned(),
                route: route.to_owned(),
                status,
                took,
                ..Exchange::default()
            };
            exchange.generalise();
            exchange
        };
        let mut exchanges: Vec<_> =
            (0..100).map(|at| exchange(&format!("/fast/{at}"), Some(200), f64::from(at))).collect();
        exchanges.push(exchange("/slow", Some(503), 500.0));
        exchanges.push(exchange("/never", None, 100.0));
        let summary = NetworkSummary::of_exchanges(&exchanges, 3, [1, 2]);
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
            Slow { request: "in GET /slow".into(), status: "503".into(), ms: 500.0 }
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
