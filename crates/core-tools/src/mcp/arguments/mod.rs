//! Arguments as a client sends them, brought to the one form that is judged and run.
//!
//! The schema that is listed is the schema that is checked, member by member, so that a range a client is
//! shown is a range that holds, and so that an error can say where it is, what was there, what is allowed,
//! and what the writer probably meant. Keys may be spelt in camelCase; they come out in `snake_case`. A list
//! or an object may be sent as JSON in a string, as models often do.

mod check;
mod coerce;
mod describe;
mod faults;
#[cfg(test)]
mod tests;

pub(crate) use check::normalise;
pub use faults::InvalidArguments;
