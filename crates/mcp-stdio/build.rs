//! Packs the relative relocations of the program where the C library that starts it can read them: a start then reads 1.4 MB
//! less.
#![allow(clippy::disallowed_methods, reason = "a build script learns everything from its environment")]
#![allow(clippy::print_stdout, reason = "cargo reads what a build script prints")]

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let variable = |name| std::env::var(name).unwrap_or_default();
    let links_glibc = variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    // What is built for another system says nothing of the C library there.
    if links_glibc && variable("HOST") == variable("TARGET") && reads_packed_relocations() {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns true for glibc 2.36 and newer. An older one refuses to start such a program.
fn reads_packed_relocations() -> bool {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let version = text.trim().strip_prefix("glibc ").and_then(|version| version.split_once('.'));
    version
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .is_some_and(|version: (u32, u32)| version >= (2, 36))
}
