//! The server over HTTP: the built program, real sockets, clients that behave and clients that do not.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "calls read better with a `json!` than with a reference to one"
)]

mod approvals;
mod attacks;
mod audit_database;
mod audit_trail;
mod browser;
mod clients;
mod compression;
mod conformance;
mod ending;
mod environment;
mod every_pair;
mod exposure;
mod first_hour;
mod flame_graph;
mod helm;
mod http2;
mod jwt;
mod left_running;
mod limits;
mod metrics;
mod notices;
mod packaging;
mod routes;
#[path = "../database/servers.rs"]
#[allow(dead_code, reason = "the other database, and what other tests ask")]
mod servers;
mod sessions;
mod slow;
mod telemetry;
mod tls;
mod tokens;
mod ui;

use std::time::Duration;

/// For what should be soon, on a machine that has much else to do.
const SOON: Duration = Duration::from_secs(30);
