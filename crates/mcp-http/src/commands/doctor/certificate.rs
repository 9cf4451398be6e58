//! Checks of the certificate: it fits its key, and when it ends.

use crate::net::tls::{ReloadableTls, certificate_end};
use error_causes::chain;
use server_setup::finding::{DoctorFinding, broken, note, ok};
use server_setup::settings::Settings;
use std::time::{Duration, SystemTime};

/// A certificate that ends within this time is worth a note: those who renew it do so 30 days before.
const SOON: Duration = Duration::from_secs(21 * 86_400);

/// Checks the certificate, if there is one.
pub(super) fn check(settings: &Settings) -> Option<DoctorFinding> {
    let http = &settings.config.http;
    let (certificate, key) = match (http.tls_certificate.value.clone(), http.tls_key.value.clone()) {
        (None, None) => return None,
        (Some(certificate), Some(key)) => (certificate, key),
        _ => {
            return Some(broken(
                "tls",
                "only one of http.tls_certificate and http.tls_key is set",
                "set both, or none",
            ));
        }
    };
    if let Err(error) = ReloadableTls::load(certificate.clone(), key) {
        return Some(broken("tls", chain(&error), "correct the files"));
    }
    let shown = certificate.display();
    Some(match certificate_end(&certificate) {
        None => note("tls", format!("{shown}: its end cannot be read"), "see `openssl x509 -enddate`"),
        Some(end) => match end.duration_since(SystemTime::now()) {
            Err(_) => broken("tls", format!("{shown} has ended"), "renew it"),
            Ok(left) if left < SOON => {
                note("tls", format!("{shown} ends within {} d", days(left) + 1), "renew it")
            }
            Ok(left) => ok("tls", format!("{shown} ends in {} d", days(left))),
        },
    })
}

/// Returns a span of time in days.
fn days(span: Duration) -> u64 {
    span.as_secs() / 86_400
}
