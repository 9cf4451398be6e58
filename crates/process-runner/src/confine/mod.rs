//! The files, the network and the processes that a program may reach.

mod grants;
mod protection;

pub use grants::Confinement;
pub(crate) use protection::SupportedProtections;
pub use protection::{ConfinementProblem, ConfinementStatus, ConfinementUnavailable, Protection};
