//! Compares a confinement with what the running system can enforce.

use super::supported_protections;
use crate::confine::{
    Confinement, ConfinementLevel, ConfinementProblem, ConfinementStatus, ConfinementUnavailable, Protection,
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
        let all = Protection::ALL.into_iter();
        Ok(ConfinementStatus::new(ConfinementLevel::Strict, Some(system.abi), all, |protection| {
            system.protections.contains(&protection)
        }))
    }

    /// Returns which of the protections that this asks for will hold for a program that is started with it.
    pub fn status(&self) -> ConfinementStatus {
        let level = self.chosen_level();
        let requested = Protection::ALL.into_iter().filter(|protection| {
            let is_for_network = matches!(protection, Protection::Tcp | Protection::Network);
            protection.level() <= level && !(is_for_network && self.allows_network())
        });
        match supported_protections() {
            Ok(system) => ConfinementStatus::new(level, Some(system.abi), requested, |protection| {
                let ends_with_us = protection.level() == ConfinementLevel::Namespaces;
                system.protections.contains(&protection) && !(ends_with_us && self.must_outlive())
            }),
            Err(_) => ConfinementStatus::new(level, None, requested, |_| false),
        }
    }

    /// Checks that everything that was asked for can be enforced, unless best effort was chosen.
    pub(crate) fn check(&self) -> Result<(), ConfinementProblem> {
        if self.is_best_effort() || self.chosen_level() == ConfinementLevel::None {
            return Ok(());
        }
        supported_protections().map_err(ConfinementProblem::Unavailable)?;
        let status = self.status();
        match status.missing.is_empty() {
            true => Ok(()),
            false => Err(ConfinementProblem::NotEnforced(Box::new(status))),
        }
    }
}
