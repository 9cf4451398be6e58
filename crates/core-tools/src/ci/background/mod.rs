//! Commands that outlive the call that started them.

mod observer;
mod port;
mod process;
mod quota;
mod registry;
mod report;
mod request;
mod start;
mod wait;

pub use registry::BackgroundCommands;
pub use report::{BackgroundOutput, BackgroundState, BackgroundStatus, CommandList, StartedCommand};
pub use request::{ListCommands, ReadCommandOutput, StartCommand, StopCommand, WriteCommandInput};
pub use start::BackgroundStartContext;
