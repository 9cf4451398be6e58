//! smuggling
