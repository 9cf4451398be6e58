//! Logs to standard error, with secrets masked. Standard output belongs to the protocol.

use core_tools::redact::Redactor;
use std::io::Write;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging at `level`.
///
/// # Errors
///
/// Where `level` is no level.
pub(crate) fn start(level: &str, redactor: Redactor) -> Result<(), String> {
    let level: LevelFilter = level.parse().map_err(|_| {
        format!("--log {level:?} is no level: expected off, error, warn, info, debug or trace")
    })?;
    // rmcp warns of every request that is answered with an error, which is its client's affair.
    let protocol = if level >= LevelFilter::INFO { level } else { level.min(LevelFilter::ERROR) };
    let targets = Targets::new().with_default(level).with_target("rmcp", protocol);
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Masked(redactor));
    tracing_subscriber::registry().with(layer).with(targets).try_init().map_err(|error| error.to_string())
}

/// Hands out writers that take one record each and mask it whole, so that no secret is cut in two.
struct Masked(Redactor);

struct Record<'a> {
    redactor: &'a Redactor,
    bytes: Vec<u8>,
}

impl<'a> MakeWriter<'a> for Masked {
    type Writer = Record<'a>;

    fn make_writer(&'a self) -> Record<'a> {
        Record { redactor: &self.0, bytes: Vec::new() }
    }
}

impl Write for Record<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.bytes);
        // Nobody is left to tell where standard error cannot be written.
        let _ = std::io::stderr().write_all(self.redactor.redact(&text).as_bytes());
    }
}
