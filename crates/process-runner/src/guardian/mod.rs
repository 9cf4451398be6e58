//! A helper process that ends the runs when this process cannot: after a `SIGKILL`, a crash, or out of memory.
//!
//! A runner ends what it has started at a timeout, when a future is dropped, and at
//! [`Runner::shutdown`](crate::Runner::shutdown). It cannot when its own process is killed, and Linux has no safe way
//! to do it: the parent-death signal belongs to the *thread* that started the child, and a runtime's threads come and
//! go. So a program may opt in to one more process, the guardian, which holds the other end of a pipe. When that closes
//! while runs are live, it kills them.
//!
//! ```no_run
//! # use process_runner::{Runner, guardian::{self, GuardianProgram}};
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     guardian::run_if_requested(); // first of all: it does not return in the guardian
//!     let runner = Runner::builder().guardian(GuardianProgram::current_exe()?).build();
//!     // ...
//!     # drop(runner);
//!     Ok(())
//! }
//! ```
//!
//! # Guarantees
//!
//! - With a guardian: when this process dies in any way, every program of a live run is killed within about
//!   100 ms, with everything in its session or with its marker; on macOS, with its process group. A process
//!   that a *finished* run left alive, such as a gpg-agent, stays alive, unless this process
//!   [adopts orphans](crate::RunnerBuilder::adopt_orphans).
//! - There is one guardian for each [`Runner`](crate::Runner), not for each run. It is started before the first run,
//!   and a run does not start without it. It has a session of its own and `/dev/null` for its output, keeps none
//!   of our descriptors, and ignores `SIGTERM`, `SIGINT`, `SIGHUP` and `SIGQUIT`. It ends with the runner.
//! - A guardian that is killed first cannot help, for example if someone kills processes by name. Killing by cgroup
//!   (a container that stops, a systemd unit) ends the programs too.
//! - Without a guardian: the programs of live runs outlive a `SIGKILL` of this process; they get `SIGPIPE`
//!   when they next write.
//! - On Windows a job object does all this without help, and a guardian is not started.

#[cfg(unix)]
mod link;
#[cfg(unix)]
mod message;
mod program;
#[cfg(not(unix))]
mod unsupported;
#[cfg(unix)]
mod watch;

#[cfg(unix)]
pub(crate) use link::{GuardianLink, SupervisedTree};
pub use program::GuardianProgram;
#[cfg(not(unix))]
pub use unsupported::run_if_requested;
#[cfg(not(unix))]
pub(crate) use unsupported::{GuardianLink, SupervisedTree};
#[cfg(unix)]
pub use watch::run_if_requested;
