//! Compares a confinement with what the running system can enforce.

use super::supported_protections;
use crate::confine::{
    Confinement, ConfinementProblem, ConfinementStatus, ConfinementUnavailable, Protection,
};

impl Confinement {
    /// Returns everything that this system can enforce.
    ///
    /// The first call asks the kernel, by a thread that confines itself. Later calls return the same answer.
    ///
    /// # Errors
    /// If nothing can be enforced: another system than Linux, a kernel without Landlock, a container that
    /// refuses it.
    pub fn available() -> Result<ConfinementStatus, ConfinementUnavailable> {
        let system = supported_protections()?;
        Ok(ConfinementStatus {
            landlock_abi: Some(system.abi),
            enforced: system.protections.clone(),
            missing: Vec::new(),
        })
    }

    /// Returns which of the protections that this asks for will hold for a program that is started with it.
    pub fn status(&self) -> ConfinementStatus {
        let requested = Protection::ALL
            .into_iter()
            .filter(|protection| !(self.allows_network() && *protection == Protection::Tcp));
        let Ok(system) = supported_protections() else {
            return ConfinementStatus {
                landlock_abi: None,
                enforced: Vec::new(),
                missing: requested.collect(),
            };
        };
        let (enforced, missing) = requested.partition(|protection| system.protections.contains(protection));
        ConfinementStatus { landlock_abi: Some(system.abi), enforced, missing }
    }

    /// Checks that everything that was asked for can be enforced, unless best effort was chosen.
    pub(crate) fn check(&self) -> Result<(), ConfinementProblem> {
        if self.is_best_effort() {
            return Ok(());
        }
        supported_protections().map_err(ConfinementProblem::Unavailable)?;
        let status = self.status();
        match status.missing.is_empty() {
            true => Ok(()),
            false => Err(ConfinementProblem::NotEnforced(status)),
        }
    }
}
