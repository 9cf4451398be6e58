//! The way from what a caller requests to a runner, a project and a part of its tests.

mod go_name;
mod select;
mod test_target;

pub(crate) use go_name::GoTestName;
pub(crate) use select::select;
pub(crate) use test_target::{TestFilter, TestTarget};
