//! [`LostChannel`]: a channel that was lost, whose server there may have outlived it.

use crate::channel::{Channel, random_hex};
use crate::error::Error;
use crate::opening::OpenSession;
use crate::settings::RemoteSettings;
use std::time::{Duration, Instant};

/// The session that a server there keeps without a channel.
#[derive(Clone, Debug)]
pub(crate) struct RemoteSession {
    id: String,
    grace: Duration,
}

/// A channel that was lost.
#[derive(Debug)]
pub(crate) struct LostChannel {
    pub(crate) reason: String,
    /// True if something ran there that outlives calls.
    pub(crate) keeps_state: bool,
    session: Option<RemoteSession>,
    until: Instant,
}

impl RemoteSession {
    /// Returns a new session, if the settings have the server there outlive its channel.
    pub(crate) fn new(settings: &RemoteSettings) -> Result<Option<Self>, Error> {
        match settings.grace {
            None => Ok(None),
            Some(grace) => Ok(Some(Self { id: random_hex::<16>()?, grace })),
        }
    }

    /// Returns the session as the first message names it.
    pub(crate) fn opening(&self, resumes: bool) -> OpenSession {
        OpenSession { id: self.id.clone(), grace_s: self.grace.as_secs(), resumes }
    }
}

impl LostChannel {
    /// Notes that `channel` has ended, whose session there is `session`.
    pub(crate) fn new(channel: &Channel, session: Option<RemoteSession>) -> Self {
        // A channel that was ended here has ended its session.
        let session = session.filter(|_| !channel.is_closed_here());
        let grace = session.as_ref().map(|session| session.grace).unwrap_or_default();
        Self {
            reason: channel.end_reason().unwrap_or_default(),
            keeps_state: channel.keeps_state(),
            session,
            until: Instant::now() + grace,
        }
    }

    /// Returns the session there, if it may still be there.
    pub(crate) fn session(&self) -> Option<&RemoteSession> {
        self.session.as_ref().filter(|_| Instant::now() < self.until)
    }

    /// Returns the time until the session there is over, if it may still be there.
    pub(crate) fn remaining_grace(&self) -> Option<Duration> {
        self.session().map(|_| self.until.saturating_duration_since(Instant::now()))
    }

    /// Notes that there is no session any more.
    pub(crate) fn note_end_of_session(&mut self) {
        self.session = None;
    }
}
