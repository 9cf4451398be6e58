//! The rules for the sources themselves: arrows that point down, sizes, and how they are written.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod docs;
mod layers;
mod module_map;
mod modules;
mod sources;
mod threat_model;
