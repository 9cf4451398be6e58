//! The documents a role needs, in one deterministic order.
//!
//! What exists so far is the catalogue: which planning documents each role reads.
//!
//! ```
//! use context_compiler::catalogue::documents_for;
//!
//! assert_eq!(documents_for("qa"), ["CONVENTIONS.md", "REQUIREMENTS.md"]);
//! assert_eq!(documents_for("somebody else"), ["CONVENTIONS.md", "ROADMAP.md"]);
//! ```

pub mod catalogue;
pub mod count;
