//! The code of a project: which files, what is in them, and how to say it shorter.
//!
//! [`select`] finds the files, [`survey`] measures them, [`outline`] keeps the signatures of one, and [`map`]
//! names what each of many exports. All of it is a function of the files' content: the number of threads, the
//! order in which a file system lists, and what a cache holds change how long it takes and nothing else.

mod languages;
mod map;
mod outline;
mod rules;
mod select;
pub(crate) mod survey;
pub(crate) mod workers;

pub use languages::Language;
pub use map::{Map, MapFile, MapName, Referrer, map};
pub use outline::{Item, ItemKind, Outline, outline};
pub use select::{Error, LeftOut, Options as SelectOptions, Reason, Selection, select};
pub(crate) use select::{Kept, is_sensitive};
pub use survey::{FileFacts, Kind, Options as SurveyOptions, Survey, survey};
