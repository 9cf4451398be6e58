//! Compiles the documents of a role and the plans of a phase into one document under a token budget.
//!
//! `cargo run -p context-compiler --example compile -- PROJECT ROLE PHASE`; without arguments it creates a project of
//! its own.
#![allow(clippy::print_stdout, reason = "an example prints its result")]
#![allow(clippy::disallowed_methods, reason = "it creates the files that it reads")]

#[cfg(unix)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    compile(std::env::args().skip(1))
}

#[cfg(unix)]
fn compile(mut arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn std::error::Error>> {
    use context_compiler::cache::ContentCache;
    use context_compiler::source::FolderTree;
    use context_compiler::{Compiler, ContextRequest};
    use std::path::PathBuf;

    let own = tempfile::tempdir()?;
    std::fs::create_dir(own.path().join("docs"))?;
    std::fs::write(own.path().join("docs/CONVENTIONS.md"), "# Conventions\n\nTabs, not spaces.\n")?;
    let project = arguments.next().map_or_else(|| own.path().to_owned(), PathBuf::from);
    let role = arguments.next().unwrap_or_else(|| "dev".to_owned());
    let phase = arguments.next().map_or(Ok(1), |phase| phase.parse())?;

    let tree = FolderTree::open(&project)?;
    // A cache is optional. Shared between compilers, it saves reading and counting files that have not changed.
    let cache = ContentCache::default();
    let request = ContextRequest::new(&role).phase(phase).budget_tokens(8_000);
    let compiled = Compiler::new(&tree).cache(&cache).compile(&request)?;

    // Send the prefix to the model first: it stays the same from call to call, so the provider can cache it.
    println!("{}{}", compiled.prefix, compiled.tail);
    println!("{} of 8000 tokens", compiled.manifest.tokens);
    assert!(compiled.manifest.tokens <= 8_000);
    let again = Compiler::new(&tree).cache(&cache).compile(&request)?;
    assert_eq!((again.prefix, again.tail), (compiled.prefix, compiled.tail));
    Ok(())
}

#[cfg(not(unix))]
fn main() {}

// Not by `main`: the arguments of a test binary are those of the test runner.
#[test]
#[cfg(unix)]
fn it_runs() {
    compile(std::iter::empty()).unwrap();
}
