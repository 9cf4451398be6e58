//! Paths on other machines in the arguments of calls, such as `build-box:/src/lib.rs`: the call is made there.
//!
//! `places` finds what names a machine in arguments, `routes` chooses the machine of a call, `lists` has the lists of what
//! runs on all machines, `effects` judges paths wherever they are, and `routed` puts all of it into the tools.

mod effects;
mod lists;
mod places;
mod routed;
mod routes;

pub use effects::RoutedEffects;
pub use places::COMMAND_IDS;
pub use routes::CallRoutes;
