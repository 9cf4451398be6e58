//! Profiles of the application: the tree of calls that each becomes, how it is read, and how it is drawn.

mod calls;
pub mod flame;
pub mod parse;

pub use calls::{CallTree, Frame, Placed, Spent};
