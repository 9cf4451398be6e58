#![cfg(unix)]
//! placeholder
