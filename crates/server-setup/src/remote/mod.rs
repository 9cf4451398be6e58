//! Both ends of a remote: the server in front, whose tools are those of this program and whose work is done there, and the
//! server there, which is told by the one in front what it may do.

mod chosen;
mod far_end;
mod forward;
mod front;
mod notices;

pub(crate) use chosen::ChosenParts;
pub use chosen::{ChosenRemotes, USE_REMOTE};
pub use far_end::{FarEndLimits, far_end_settings, open_answer, session_folder};
pub use forward::policy_has_changed;
pub(crate) use front::remote_options;
pub use front::{
    ForwardedTools, connect_for, forwarded_tools, lease_folder, open_request, runner, server, start_warm,
    version,
};
