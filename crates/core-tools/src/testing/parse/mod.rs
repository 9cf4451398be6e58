//! The parsers of the runners' machine formats. Each takes lines or a document, and fills a
//! [`TestResults`](super::results::TestResults).

mod bun_output;
mod ctest;
mod deno_output;
mod events;
mod failure_line;
mod go;
mod go_output;
mod junit;
mod libtest;
mod libtest_output;
mod libtest_suites;
mod line_parser;
mod nextest;
mod phpunit_output;
mod printed_summary;
mod process_events;
mod tap;
mod tap_output;
mod tap_subtests;
mod tap_test_point;
#[cfg(test)]
mod tests;
mod text;
mod trx;
mod xml_attributes;

pub(crate) use ctest::CtestParser;
pub(crate) use events::EventsParser;
pub(crate) use go::{GoModule, GoParser};
pub(crate) use junit::read_xml;
pub(crate) use libtest::LibtestParser;
pub(crate) use line_parser::{IgnoreLines, LineParser};
pub(crate) use nextest::NextestParser;
pub(crate) use process_events::ProcessEvents;
pub(crate) use tap::TapParser;
