//! Sessions of coding agents: real processes that are supervised.

mod agent;
mod clock;
mod directory;
mod log;
mod classify;
mod plan;
mod state;
mod store;

pub use agent::{Agent, Agents, AgentsError, Filling};
pub use classify::{Ending, Reason, RetryAt, RetrySource, Stop, When, classify};
pub use plan::{Decision, Past, Plan};
pub use state::{Action, Event, Illegal, Machine, Next, Process, State, Transition};
pub use directory::{Markers, SessionFolder, StateFolder, safe_name};
pub use log::{Log, LogLevel, LogLimits, LogPage, LogQuery};
pub use store::{Kept, Record, Stats, Store};
