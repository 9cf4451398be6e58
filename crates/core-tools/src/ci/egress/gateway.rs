//! Gateways: a network namespace, and a proxy that listens in it and connects from outside of it.

use super::error::EgressError;
use super::log::{EgressLog, WeakEgressLog};
use super::self_test;
use egress_proxy::{AllowedHosts, Denial, EgressProxy, proxy_variables};
use process_runner::{Command, NetworkNamespace};
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The most gateways. Each has a thread and a namespace.
const MAX_GATEWAYS: usize = 64;

/// The gateways of a server, by the principal whose commands use them and by their hosts. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct EgressGateways(Arc<Mutex<HashMap<GatewayKey, Arc<EgressGateway>>>>);

/// Two principals never share a gateway: in its namespace, one would reach what the other listens on, and would be told
/// what the other was refused.
type GatewayKey = (Option<String>, AllowedHosts);

/// A network namespace whose only way out is a proxy for some hosts.
#[derive(Debug)]
pub(super) struct EgressGateway {
    namespace: NetworkNamespace,
    address: SocketAddr,
    reports: Arc<DenialReports>,
    _shutdown: DropGuard,
}

/// The logs that get the refusals of a gateway.
#[derive(Debug, Default)]
struct DenialReports(Mutex<Vec<WeakEgressLog>>);

impl EgressGateways {
    /// Returns the gateway of `owner` for `hosts`. The first call starts and tests it, which takes some milliseconds.
    pub(super) fn open(
        &self,
        owner: Option<&str>,
        hosts: &AllowedHosts,
    ) -> Result<Arc<EgressGateway>, EgressError> {
        let key = (owner.map(str::to_owned), hosts.clone());
        // Held during the start, so that two calls do not start two.
        let mut gateways = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gateway) = gateways.get(&key) {
            return Ok(Arc::clone(gateway));
        }
        if gateways.len() >= MAX_GATEWAYS {
            return Err(EgressError::TooManyLists(MAX_GATEWAYS));
        }
        // A start that failed is tried again by the next command: what was in its way may be gone.
        let gateway = Arc::new(EgressGateway::start(hosts)?);
        gateways.insert(key, Arc::clone(&gateway));
        Ok(gateway)
    }
}

impl EgressGateway {
    fn start(hosts: &AllowedHosts) -> Result<Self, EgressError> {
        let namespace = NetworkNamespace::create()?;
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = namespace.run(bind).and_then(|listener| listener).map_err(EgressError::Proxy)?;
        let address = listener.local_addr().map_err(EgressError::Proxy)?;
        listener.set_nonblocking(true).map_err(EgressError::Proxy)?;
        let reports = Arc::new(DenialReports::default());
        let proxy = {
            let reports = Arc::clone(&reports);
            EgressProxy::new(hosts.clone()).on_denied(move |denial| reports.add(denial))
        };
        // A runtime of its own: commands may outlive the runtime that started them, and a busy server must not slow
        // their connections.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(EgressError::Proxy)?;
        let shutdown = CancellationToken::new();
        let token = shutdown.clone();
        let serve = move || {
            runtime.block_on(async {
                // It fails only without a runtime, and this is in one.
                if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                    proxy.serve(listener, token).await;
                }
            });
            // A name that is being resolved must not hold the end up.
            runtime.shutdown_background();
        };
        std::thread::Builder::new()
            .name("egress-proxy".to_owned())
            .spawn(serve)
            .map_err(EgressError::Proxy)?;
        let gateway = Self { namespace, address, reports, _shutdown: shutdown.drop_guard() };
        self_test::run(&gateway.namespace, gateway.address)?;
        Ok(gateway)
    }

    /// Returns `command` inside the namespace, with the variables that lead it to the proxy.
    pub(super) fn apply(&self, command: Command) -> Command {
        command.network_namespace(self.namespace.clone()).envs(proxy_variables(self.address))
    }

    /// Adds the refusals from now on to `log`, as long as there is one.
    pub(super) fn report_to(&self, log: &EgressLog) {
        self.reports.subscribe(log);
    }
}

impl DenialReports {
    fn subscribe(&self, log: &EgressLog) {
        let mut logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logs.retain(|other| other.upgrade().is_some());
        if !logs.iter().any(|other| other.is(log)) {
            logs.push(log.downgrade());
        }
    }

    fn add(&self, denial: &Denial) {
        let logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logs.iter().filter_map(WeakEgressLog::upgrade).for_each(|log| log.add(denial));
    }
}
