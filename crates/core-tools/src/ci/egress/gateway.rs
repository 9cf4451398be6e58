//! Gateways: a network namespace, and a proxy that listens in it and connects from outside of it.

use super::credentials::add_credentials;
use super::egress_log::{EgressLog, WeakEgressLog};
use super::error::EgressError;
use super::gateway_files::GatewayFiles;
use super::gateway_means::GatewayMeans;
use super::self_test;
use egress_proxy::{AllowedHosts, CredentialRule, DeniedConnection, EgressProxy, proxy_variables};
use process_runner::{Command, Confinement, NetworkNamespace};
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The most gateways. Each has a thread and a namespace.
const MAX_GATEWAYS: usize = 64;

/// The time after which a gateway is removed that no command was started in and in which no program runs.
const IDLE_LIFETIME: Duration = Duration::from_secs(60);

type GatewaySlots = Mutex<HashMap<GatewayKey, Arc<GatewaySlot>>>;

/// The gateways of a server, by the principal whose commands use them and by what they lead to. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct EgressGateways {
    slots: Arc<GatewaySlots>,
    idle_lifetime: Duration,
}

/// The commands that share a gateway.
///
/// Two principals never share one: in its namespace, one would reach what the other listens on, and would be told what the
/// other was refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct GatewayKey {
    pub(super) owner: Option<String>,
    pub(super) hosts: AllowedHosts,
    pub(super) credentials: Vec<Arc<CredentialRule>>,
}

/// The place of a gateway. It is locked while the gateway starts, so that two calls do not start two.
#[derive(Debug, Default)]
struct GatewaySlot(Mutex<Option<Arc<EgressGateway>>>);

/// A network namespace whose only way out is a proxy for some hosts.
#[derive(Debug)]
pub(super) struct EgressGateway {
    namespace: NetworkNamespace,
    address: SocketAddr,
    reports: Arc<DenialReports>,
    files: Option<GatewayFiles>,
    last_use: Mutex<Instant>,
    _shutdown: DropGuard,
}

/// The logs that get the refusals of a gateway.
#[derive(Debug, Default)]
struct DenialReports(Mutex<Vec<WeakEgressLog>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for EgressGateways {
    fn default() -> Self {
        Self::new(IDLE_LIFETIME)
    }
}

impl EgressGateways {
    /// Returns a place for gateways, each of which is removed when it was not in use for `idle_lifetime`.
    pub(super) fn new(idle_lifetime: Duration) -> Self {
        Self { slots: Arc::default(), idle_lifetime }
    }

    /// Returns the gateway for `key`. The first call starts and tests it, which takes some milliseconds.
    pub(super) fn open(
        &self,
        key: &GatewayKey,
        means: &GatewayMeans<'_>,
    ) -> Result<Arc<EgressGateway>, EgressError> {
        let slot = self.slot(key)?;
        // Only calls that need the same gateway wait for its start.
        let mut gateway = lock(&slot.0);
        if let Some(gateway) = &*gateway {
            *lock(&gateway.last_use) = Instant::now();
            return Ok(Arc::clone(gateway));
        }
        // A start that failed is tried again by the next command: what was in its way may be gone.
        let started = Arc::new(EgressGateway::start(key, means, self)?);
        *gateway = Some(Arc::clone(&started));
        Ok(started)
    }

    /// Returns the place of a gateway. If there are too many, the one that was not in use for the longest time makes room.
    fn slot(&self, key: &GatewayKey) -> Result<Arc<GatewaySlot>, EgressError> {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(key) {
            return Ok(Arc::clone(slot));
        }
        let removed = if slots.len() < MAX_GATEWAYS {
            None
        } else {
            let mut candidates: Vec<_> =
                slots.iter().filter_map(|(key, slot)| Some((slot.last_use()?, key))).collect();
            candidates.sort_unstable_by_key(|(last_use, _)| *last_use);
            let unused = candidates.into_iter().map(|(_, key)| key).find(|key| slots[*key].is_unused());
            let unused = unused.cloned().ok_or(EgressError::TooManyLists(MAX_GATEWAYS))?;
            slots.remove(&unused)
        };
        let slot = Arc::new(GatewaySlot::default());
        slots.insert(key.clone(), Arc::clone(&slot));
        // The end of a gateway takes a while, and nobody waits for it.
        drop(slots);
        drop(removed);
        Ok(slot)
    }
}

/// Removes a gateway that was not in use for `idle_lifetime`.
fn remove_idle(slots: &Weak<GatewaySlots>, key: &GatewayKey, idle_lifetime: Duration) {
    let Some(slots) = slots.upgrade() else { return };
    let mut slots = lock(&slots);
    let is_idle = |slot: &Arc<GatewaySlot>| {
        slot.last_use().is_some_and(|last_use| last_use.is_none_or(|at| at.elapsed() >= idle_lifetime))
            && slot.is_unused()
    };
    let removed = if slots.get(key).is_some_and(is_idle) { slots.remove(key) } else { None };
    drop(slots);
    drop(removed);
}

impl GatewaySlot {
    /// Returns the time of the last use, or `Some(None)` if no gateway is here. `None` while a call is at it.
    #[allow(
        clippy::option_option,
        reason = "an empty place, and one that cannot be looked at, are two things"
    )]
    fn last_use(self: &Arc<Self>) -> Option<Option<Instant>> {
        // Whoever holds the place holds the lock of all places for it, or is at it already.
        if Arc::strong_count(self) > 1 {
            return None;
        }
        match self.0.try_lock() {
            Ok(gateway) => Some(gateway.as_ref().map(|gateway| *lock(&gateway.last_use))),
            Err(TryLockError::Poisoned(gateway)) => {
                Some(gateway.into_inner().as_ref().map(|gateway| *lock(&gateway.last_use)))
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Returns true if nobody holds the gateway, no command waits to start in it, and no program is in its namespace.
    fn is_unused(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
            && lock(&self.0)
                .as_ref()
                .is_none_or(|gateway| Arc::strong_count(gateway) == 1 && gateway.namespace.is_unused())
    }
}

impl EgressGateway {
    fn start(
        key: &GatewayKey,
        means: &GatewayMeans<'_>,
        gateways: &EgressGateways,
    ) -> Result<Self, EgressError> {
        let namespace = NetworkNamespace::create()?;
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = namespace.run(bind).and_then(|listener| listener).map_err(EgressError::Proxy)?;
        let address = listener.local_addr().map_err(EgressError::Proxy)?;
        listener.set_nonblocking(true).map_err(EgressError::Proxy)?;
        let reports = Arc::new(DenialReports::default());
        let proxy = {
            let reports = Arc::clone(&reports);
            EgressProxy::new(key.hosts.clone()).on_denied(move |denial| reports.add(denial))
        };
        let (proxy, authorities) = add_credentials(proxy, &key.credentials, means)?;
        let ssh_proxy = key.hosts.has_other_ports().then_some(address);
        let files =
            GatewayFiles::write(means.temp, authorities.as_deref(), ssh_proxy).map_err(EgressError::Files)?;
        // A runtime of its own: commands may outlive the runtime that started them, and a busy server must not slow
        // their connections.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(EgressError::Proxy)?;
        let shutdown = CancellationToken::new();
        let token = shutdown.clone();
        let (slots, key, idle_lifetime) =
            (Arc::downgrade(&gateways.slots), key.clone(), gateways.idle_lifetime);
        let serve = move || {
            runtime.block_on(async {
                let look_after = async {
                    loop {
                        tokio::time::sleep(idle_lifetime).await;
                        remove_idle(&slots, &key, idle_lifetime);
                    }
                };
                // It fails only without a runtime, and this is in one.
                if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                    tokio::select! {
                        () = proxy.serve(listener, token) => {}
                        () = look_after => {}
                    }
                }
            });
            // A name that is being resolved must not hold the end up.
            runtime.shutdown_background();
        };
        std::thread::Builder::new()
            .name("egress-proxy".to_owned())
            .spawn(serve)
            .map_err(EgressError::Proxy)?;
        let last_use = Mutex::new(Instant::now());
        let _shutdown = shutdown.drop_guard();
        let gateway = Self { namespace, address, reports, files, last_use, _shutdown };
        self_test::run(&gateway.namespace, gateway.address)?;
        Ok(gateway)
    }

    /// Returns `command` inside the namespace, with the variables that lead it to the proxy.
    pub(super) fn apply(&self, command: Command, confinement: Confinement) -> Command {
        let command = command.network_namespace(self.namespace.clone()).envs(proxy_variables(self.address));
        match &self.files {
            Some(files) => files.apply(command, confinement),
            None => command.confined(confinement),
        }
    }

    /// Adds the refusals from now on to `log`, as long as there is one.
    pub(super) fn report_to(&self, log: &EgressLog) {
        self.reports.subscribe(log);
    }
}

impl DenialReports {
    fn subscribe(&self, log: &EgressLog) {
        let mut logs = lock(&self.0);
        logs.retain(|other| other.upgrade().is_some());
        if !logs.iter().any(|other| other.is(log)) {
            logs.push(log.downgrade());
        }
    }

    fn add(&self, denial: &DeniedConnection) {
        let logs = lock(&self.0);
        logs.iter().filter_map(WeakEgressLog::upgrade).for_each(|log| log.add(denial));
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use process_runner::{ConfinementLevel, Runner, Stdin};
    use skipped_tests::require;
    use tempfile::TempDir;

    /// A place for gateways, and what their start needs.
    struct GatewayFixture {
        gateways: EgressGateways,
        folder: TempDir,
        runner: Runner,
    }

    impl GatewayFixture {
        fn new(idle_lifetime: Duration) -> Option<Self> {
            let namespace = NetworkNamespace::create();
            let missing = namespace.as_ref().err().map(ToString::to_string).unwrap_or_default();
            require(namespace.ok(), &missing)?;
            let gateways = EgressGateways::new(idle_lifetime);
            Some(Self { gateways, folder: tempfile::tempdir().unwrap(), runner: Runner::new() })
        }

        fn open(&self, key: &GatewayKey) -> Result<Arc<EgressGateway>, EgressError> {
            let temp = self.folder.path();
            let readable = &Confinement::default();
            self.gateways.open(key, &GatewayMeans { readable, temp, runner: &self.runner })
        }

        fn count(&self) -> usize {
            lock(&self.gateways.slots).len()
        }

        fn remove_idle(&self, key: &GatewayKey) {
            remove_idle(&Arc::downgrade(&self.gateways.slots), key, Duration::ZERO);
        }
    }

    fn key(host: &str) -> GatewayKey {
        let hosts = AllowedHosts::parse([host]).unwrap();
        GatewayKey { owner: None, hosts, credentials: Vec::new() }
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn a_gateway_is_removed_once_no_program_is_in_it() {
        let Some(fixture) = GatewayFixture::new(HOUR) else { return };
        let key = key("a.example");
        let gateway = fixture.open(&key).unwrap();
        fixture.remove_idle(&key);
        assert_eq!(fixture.count(), 1, "a call is about to use it");
        let folder = fixture.folder.path();
        let confinement =
            Confinement::project([folder], folder).network(true).level(ConfinementLevel::Filesystem);
        let command = gateway.apply(Command::new("cat", folder).stdin(Stdin::Piped), confinement);
        drop(gateway);
        fixture.remove_idle(&key);
        assert_eq!(fixture.count(), 1, "a command is about to start in it");
        let mut run = fixture.runner.start(command).await.unwrap();
        fixture.remove_idle(&key);
        assert_eq!(fixture.count(), 1, "a program runs in it");
        assert!(Arc::ptr_eq(&fixture.open(&key).unwrap(), &fixture.open(&key).unwrap()));
        run.kill();
        run.wait().await.unwrap();
        drop(run);
        let deadline = Instant::now() + Duration::from_secs(30);
        while fixture.count() > 0 {
            assert!(Instant::now() < deadline, "it is not removed");
            tokio::task::yield_now().await;
            fixture.remove_idle(&key);
        }
        assert!(fixture.open(&key).is_ok());
    }

    #[test]
    fn a_gateway_looks_after_its_own_end() {
        let Some(fixture) = GatewayFixture::new(Duration::from_millis(20)) else { return };
        fixture.open(&key("a.example")).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while fixture.count() > 0 {
            assert!(Instant::now() < deadline, "it is not removed");
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_start_of_one_holds_no_other_up() {
        let Some(fixture) = GatewayFixture::new(HOUR) else { return };
        let slot = fixture.gateways.slot(&key("slow.example")).unwrap();
        // As a call does that starts it.
        let starting = lock(&slot.0);
        assert!(fixture.open(&key("other.example")).is_ok());
        drop(starting);
    }

    #[test]
    fn beyond_the_limit_one_that_is_not_in_use_makes_room() {
        let Some(fixture) = GatewayFixture::new(HOUR) else { return };
        let keys: Vec<_> = (0..=MAX_GATEWAYS).map(|number| key(&format!("h{number}.example"))).collect();
        let mut in_use: Vec<_> = keys[..MAX_GATEWAYS].iter().map(|key| fixture.open(key).unwrap()).collect();
        let error = fixture.open(&keys[MAX_GATEWAYS]).unwrap_err();
        assert!(matches!(error, EgressError::TooManyLists(MAX_GATEWAYS)), "{error}");
        // The one in the middle is let go, and the others are still there.
        let gone = in_use.remove(MAX_GATEWAYS / 2);
        let left = Arc::downgrade(&gone);
        drop(gone);
        let opened = fixture.open(&keys[MAX_GATEWAYS]).unwrap();
        assert!(left.upgrade().is_none() && fixture.count() == MAX_GATEWAYS);
        assert!(Arc::ptr_eq(&opened, &fixture.open(&keys[MAX_GATEWAYS]).unwrap()));
        assert!(Arc::ptr_eq(&in_use[0], &fixture.open(&keys[0]).unwrap()));
    }
}
