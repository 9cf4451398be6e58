//! Arguments as a client sends them, brought to the one form that is judged and run.
//!
//! The schema that is listed is the schema that is checked, member by member, so that a range a client is
//! shown is a range that holds, and so that an error can say where it is, what was there, what is allowed,
//! and what the writer probably meant. Models write the same call in many ways, so a key may be spelt in camelCase or be
//! another word for a parameter (`synonyms`), a value may have another type that says the same (`coerce`), and some say
//! in two members what the tool takes in one (`rewrite`). All of it comes out under the names that are listed, before
//! any policy judges it. What can mean two things is an error that has the corrected call.

mod background;
mod check;
mod coerce;
mod correct;
mod describe;
mod faults;
#[cfg(test)]
mod model_tests;
mod rewrite;
mod synonyms;
#[cfg(test)]
mod tests;
mod units;

pub(crate) use check::normalise;
pub use faults::InvalidArguments;
pub(crate) use faults::to_short_json;
