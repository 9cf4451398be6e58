//! The messages of compilers, as data.

mod deno;
mod diagnostic;
mod formats;
mod reader;

pub use diagnostic::{Diagnostic, DiagnosticSeverity};
pub use reader::DiagnosticReader;
