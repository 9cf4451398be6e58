//! [`LeaseRecord`]: a lease, as it is written down.

use super::invalid::InvalidLease;
use crate::channel::random_hex;
use crate::commands::{CommandValues, RemoteCommands};
use crate::error::Error;
use crate::settings::RemoteSettings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// The beginning of every id.
const ID_PREFIX: &str = "coretools-";

/// A lease, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LeaseRecord {
    /// The id, by which the engine knows what was created.
    pub id: String,
    /// The remote: its name in the configuration, or `KIND:TARGET[:ROOT]`.
    pub remote: String,
    /// The values of the options of its kind.
    pub options: BTreeMap<String, String>,
    /// The caller for whom it was created.
    pub caller: String,
    /// The time at which it was written down.
    pub created_at: SystemTime,
    /// The time at which its life ends, if it does.
    pub ends_at: Option<SystemTime>,
    /// The time at which an engine has created it or never will.
    pub settles_at: SystemTime,
}

/// A lease in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundLease {
    /// The lease.
    pub record: LeaseRecord,
    /// True if a process owns it, which destroys it in the end.
    pub is_owned: bool,
}

/// The result of destroying the leases that nobody owns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reaped {
    /// The ids of the leases that are gone.
    pub destroyed: Vec<String>,
    /// The ids of those that could not be destroyed, with the reasons. They stay in the registry.
    pub failed: Vec<(String, String)>,
    /// The ids of those whose owners died while they were created. They stay in the registry until the engine must have
    /// created them or given up.
    pub unsettled: Vec<String>,
}

/// A lease that nobody owned, and that this process owns now, at its place.
pub(super) struct OrphanedLease<P> {
    pub(super) record: LeaseRecord,
    /// True if its creation is over: its owner has noted that it was created, or the time for the creation has passed.
    pub(super) is_settled: bool,
    pub(super) place: P,
}

impl LeaseRecord {
    /// Makes a lease for `settings`, with the commands that it has. None if the kind destroys nothing.
    pub(super) fn new(
        settings: &RemoteSettings,
        values: &CommandValues<'_>,
    ) -> Result<Option<(Self, RemoteCommands)>, Error> {
        let id = format!("{ID_PREFIX}{}", random_hex::<8>()?);
        let commands = RemoteCommands::new(settings, &CommandValues { lease: Some(&id), ..values.clone() })?;
        if commands.destroy.is_none() {
            return Ok(None);
        }
        let created_at = SystemTime::now();
        let record = Self {
            id,
            remote: settings.name.clone(),
            options: settings.options.clone(),
            caller: values.caller.to_owned(),
            created_at,
            ends_at: settings.life.and_then(|life| created_at.checked_add(life)),
            // `create` is ended at this time. An engine that was still creating is taken to have finished by then.
            settles_at: created_at + settings.create_timeout,
        };
        Ok(Some((record, commands)))
    }

    /// Returns the commands of the remote that it names.
    pub(super) fn commands(&self, configured: &[RemoteSettings]) -> Result<RemoteCommands, Error> {
        let digits = self.id.strip_prefix(ID_PREFIX).unwrap_or_default();
        let is_id =
            digits.len() == 16 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_slug = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !is_id || self.caller.starts_with('-') || !self.caller.bytes().all(is_slug) {
            return Err(InvalidLease::Name.into());
        }
        let settings = RemoteSettings::named(&self.remote, self.options.clone(), configured)
            .map_err(InvalidLease::from)?;
        // What destroys neither copies nor starts a program there.
        let values = CommandValues { program: "", caller: &self.caller, lease: Some(&self.id), copied: None };
        RemoteCommands::new(&settings, &values)
    }
}
