//! [`ClientNotices`]: tells clients of changes that belong to no call.

use super::log_level::LogLevel;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::broadcast;

/// The most notices that a client may be behind. One that is further behind is told of each resource that it watches.
const MAX_BEHIND: usize = 256;

/// Tells clients of changes that belong to no call, so that they need not ask: resources that have changed, and log
/// messages. Cheap to clone. The part of a program that knows of changes keeps one, and the host is
/// [built with it](super::HostBuilder::client_notices).
#[derive(Clone, Debug)]
pub struct ClientNotices(broadcast::Sender<ClientNotice>);

/// A change that clients are told of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClientNotice {
    pub(super) subject: NoticeSubject,
    /// The one principal whom it concerns. Everybody, if there is none.
    principal: Option<Arc<str>>,
}

/// The subject of a notice.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NoticeSubject {
    /// The resource at this address has changed.
    ResourceUpdated(Arc<str>),
    /// A log message.
    Log(Arc<LogNotice>),
}

/// A log message that belongs to no call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LogNotice {
    pub(super) level: LogLevel,
    /// The part of the server that it is about.
    pub(super) logger: &'static str,
    pub(super) data: Value,
}

impl Default for ClientNotices {
    fn default() -> Self {
        Self(broadcast::Sender::new(MAX_BEHIND))
    }
}

impl ClientNotices {
    /// Tells everybody who has subscribed to `uri` and may read it that the resource there has changed.
    pub fn resource_updated(&self, uri: &str) {
        self.send(NoticeSubject::ResourceUpdated(uri.into()), None);
    }

    /// Tells the subscribers of `uri` who are `principal` that the resource there has changed. A caller without a name
    /// has the empty one.
    pub fn resource_updated_for(&self, principal: &str, uri: &str) {
        self.send(NoticeSubject::ResourceUpdated(uri.into()), Some(principal.into()));
    }

    /// Sends a log message to the clients of `principal` that have set a level at or below `level`, in the `initialize`
    /// era. On 2026-07-28, log messages belong to calls, so clients of that revision get none. `logger` names the part of
    /// the server that the message is about.
    pub fn log_for(&self, principal: &str, level: LogLevel, logger: &'static str, data: impl Into<Value>) {
        let message = LogNotice { level, logger, data: data.into() };
        self.send(NoticeSubject::Log(Arc::new(message)), Some(principal.into()));
    }

    fn send(&self, subject: NoticeSubject, principal: Option<Arc<str>>) {
        // Nobody listens where no client is connected.
        let _ = self.0.send(ClientNotice { subject, principal });
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<ClientNotice> {
        self.0.subscribe()
    }
}

impl ClientNotice {
    /// Returns true if `principal` is told.
    pub(super) fn concerns(&self, principal: Option<&str>) -> bool {
        self.principal.as_deref().is_none_or(|of| of == principal.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_for_one_principal_concerns_no_other() {
        let notices = ClientNotices::default();
        let mut received = notices.subscribe();
        notices.resource_updated("a:b");
        notices.resource_updated_for("ada", "a:c");
        notices.log_for("", LogLevel::Info, "test", "ended");
        let mut next = || received.try_recv().unwrap();
        let concerned = |notice: &ClientNotice| {
            [None, Some("ada"), Some("bob")].map(|principal| notice.concerns(principal))
        };
        assert_eq!(concerned(&next()), [true, true, true]);
        assert_eq!(concerned(&next()), [false, true, false]);
        assert_eq!(concerned(&next()), [true, false, false]);
    }
}
