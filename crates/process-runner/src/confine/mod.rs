//! The files, the network and the processes that a program may reach.

mod grants;
mod level;
mod protection;

#[cfg(target_os = "linux")]
pub(crate) use grants::AccessGrant;
pub use grants::Confinement;
pub use level::{ConfinementLevel, SystemCallPermission, UnknownConfinementName};
pub(crate) use protection::SupportedProtections;
pub use protection::{ConfinementProblem, ConfinementStatus, ConfinementUnavailable, Protection};
