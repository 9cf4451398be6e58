//! `edit_file`: replaces exact pieces of a text file, all or none, and returns the difference.

mod apply;
mod nearest;
mod replace;
mod request;
#[cfg(test)]
mod tests;

pub use apply::edit_file;
pub use request::{Edit, EditFile, EditResult};
