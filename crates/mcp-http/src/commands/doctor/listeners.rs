//! Checks of the addresses: free, or those of a server that is healthy.

use crate::commands::health;
use crate::net::address::ListenAddress;
use error_causes::chain;
use server_setup::finding::{DoctorFinding, broken, note, ok};
use server_setup::settings::Settings;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;

/// Checks each address on which the server listens.
pub(super) fn check(settings: &Settings) -> Vec<DoctorFinding> {
    let http = &settings.config.http;
    let healthy = health::answers(settings);
    let mut findings = Vec::new();
    for text in http.listen.iter().chain(http.metrics_listen.as_ref()) {
        findings.push(match ListenAddress::parse(text) {
            Err(error) => broken("listen", chain(&error), "correct http.listen"),
            Ok(address) => check_address(&address, healthy),
        });
    }
    findings
}

fn check_address(address: &ListenAddress, is_healthy: bool) -> DoctorFinding {
    let is_taken = match address {
        ListenAddress::Tcp(socket) => match TcpListener::bind(socket) {
            Ok(_) => false,
            Err(error) if error.kind() == ErrorKind::AddrInUse => true,
            Err(error) => {
                return broken(
                    "listen",
                    format!("{address}: {error}"),
                    "name an address that this machine has",
                );
            }
        },
        // One that nobody answers was left by a server that was killed, and the next takes its place.
        ListenAddress::Unix(path) => {
            let folder = path.parent().is_some_and(std::path::Path::is_dir);
            if !folder {
                return broken("listen", format!("{address}: its folder is missing"), "make the folder");
            }
            UnixStream::connect(path).is_ok()
        }
    };
    match (is_taken, is_healthy) {
        (false, _) => ok("listen", format!("{address} is free")),
        (true, true) => ok("listen", format!("{address}: a server that is healthy listens there")),
        (true, false) => note(
            "listen",
            format!("{address} is taken, and no healthy server answers"),
            "see whose it is: `ss -ltnxp`",
        ),
    }
}
