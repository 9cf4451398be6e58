//! The limit of open files.

/// Raises the soft limit of open files towards the hard one (getrlimit(2)): connections and sessions have several each.
#[cfg(unix)]
pub fn raise() {
    const WANTED_FILES: u64 = 8192;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(WANTED_FILES, |maximum| maximum.min(WANTED_FILES));
    if current.is_some_and(|current| current < wanted)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
    {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}
