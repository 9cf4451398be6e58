//! The documents of a role and the plan of a phase, in one document under a budget of tokens.
//!
//! `cargo run -p context-compiler --example compile -- PROJECT ROLE PHASE`; without arguments it makes a project of its
//! own.
#![allow(clippy::print_stdout, reason = "an example shows what came of it")]
#![allow(clippy::disallowed_methods, reason = "it makes the files that it reads")]

#[cfg(unix)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use context_compiler::cache::{Cache, DEFAULT_LIMIT};
    use context_compiler::{Compiler, Request, count::Estimate, source::Folder};
    use std::path::PathBuf;
    use std::sync::Arc;

    let own = tempfile::tempdir()?;
    std::fs::create_dir(own.path().join("docs"))?;
    std::fs::write(own.path().join("docs/CONVENTIONS.md"), "# Conventions\n\nTabs, not spaces.\n")?;
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let project = arguments.next().map_or_else(|| own.path().to_owned(), PathBuf::from);
    let role = arguments.next().unwrap_or_else(|| "dev".to_owned());
    let phase = arguments.next().map_or(Ok(1), |phase| phase.parse())?;

    let tree = Folder::open(&project)?;
    // Estimates need nothing; `count::O200k` (feature `tokens`) counts exactly. The cache remembers what files were.
    let cache = Cache::new(Arc::new(Estimate), DEFAULT_LIMIT);
    let request = Request { phase: Some(phase), budget: Some(8_000), ..Request::new(&role) };
    let compiled = Compiler::new(&tree, &cache).compile(&request)?;

    // Whoever sends it to a model sends the prefix first: it stays the same from call to call, and is cached.
    println!("{}{}", compiled.prefix, compiled.tail);
    println!("{} of 8000 tokens", compiled.manifest.tokens);
    assert!(compiled.manifest.tokens <= 8_000);
    let again = Compiler::new(&tree, &cache).compile(&request)?;
    assert_eq!((again.prefix, again.tail), (compiled.prefix, compiled.tail));
    Ok(())
}

#[cfg(not(unix))]
fn main() {}

#[test]
#[cfg(unix)]
fn it_runs() {
    main().unwrap();
}
