//! The catalogue: the documents that each role reads, and the folders where they are looked for. It is data, built in
//! and replaceable.
//!
//! ```
//! use context_compiler::catalogue::Catalogue;
//!
//! let built_in = Catalogue::built_in();
//! assert_eq!(built_in.role("qa").documents, ["CONVENTIONS.md", "REQUIREMENTS.md"]);
//! assert_eq!(built_in.role("a role that is not there").documents, ["CONVENTIONS.md", "ROADMAP.md"]);
//!
//! let own = Catalogue::parse("[roles.reviewer]\nextends = 'qa'\ninclude = ['src/**/*.rs']")?;
//! assert_eq!(own.role("reviewer").documents, own.role("qa").documents);
//! # Ok::<(), context_compiler::catalogue::CatalogueError>(())
//! ```

mod error;
mod path;
mod role;
mod settings;
mod table;

pub use error::CatalogueError;
pub(crate) use path::is_path_beneath_root;
pub(crate) use role::is_role_name;
pub use role::{DiffDetail, RoleProfile};
pub(crate) use settings::PlanningLayout;
pub use table::{BUILT_IN_CATALOGUE, Catalogue};
