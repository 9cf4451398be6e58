//! Name resolution: each name is resolved once, and its addresses are kept.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The future of [`Resolve::resolve`].
pub type ResolvedAddresses<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Finds the addresses of names.
pub trait Resolve: Send + Sync + 'static {
    /// Returns the addresses of a name, the preferred one first.
    fn resolve<'a>(&'a self, name: &'a str) -> ResolvedAddresses<'a>;
}

/// Finds addresses as other programs of this machine do: by its `hosts` file and its name servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> ResolvedAddresses<'a> {
        Box::pin(async move {
            // With a dot at its end a name is complete, so that no domain of the `search` line is put behind it.
            let complete = if name.contains('.') { format!("{name}.") } else { name.to_owned() };
            let found = tokio::net::lookup_host((complete, 0)).await?;
            Ok(found.map(|address| address.ip().to_canonical()).collect())
        })
    }
}

/// The most names that are kept.
const MAX_PINS: usize = 1024;

/// The addresses of names that were resolved before.
#[derive(Debug, Default)]
pub(crate) struct PinnedNames(Mutex<HashMap<String, PinnedName>>);

#[derive(Debug)]
struct PinnedName {
    addresses: Vec<IpAddr>,
    until: Instant,
}

impl PinnedNames {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, PinnedName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the addresses of a name: those that are kept, or else those that `resolver` finds now.
    pub(crate) async fn resolve(
        &self,
        resolver: &dyn Resolve,
        name: &str,
        duration: Duration,
    ) -> io::Result<Vec<IpAddr>> {
        let kept =
            self.lock().get(name).filter(|pin| pin.until > Instant::now()).map(|pin| pin.addresses.clone());
        if let Some(addresses) = kept {
            return Ok(addresses);
        }
        let addresses = resolver.resolve(name).await?;
        let mut pins = self.lock();
        let now = Instant::now();
        if pins.len() >= MAX_PINS {
            pins.retain(|_, pin| pin.until > now);
        }
        if pins.len() >= MAX_PINS {
            pins.clear();
        }
        // If two connections resolved the name at once, both use the answer that came first.
        let pin =
            pins.entry(name.to_owned()).or_insert_with(|| PinnedName { addresses: Vec::new(), until: now });
        if pin.until <= now {
            *pin = PinnedName { addresses, until: now + duration };
        }
        Ok(pin.addresses.clone())
    }

    /// Forgets a name whose addresses could not be reached.
    pub(crate) fn forget(&self, name: &str) {
        self.lock().remove(name);
    }
}
