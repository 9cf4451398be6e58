//! The messages of compilers, as data.

#[cfg(feature = "testing")]
mod deno;
mod diagnostic;
mod formats;
mod reader;

pub use diagnostic::{Diagnostic, DiagnosticSeverity};
pub use reader::DiagnosticReader;
