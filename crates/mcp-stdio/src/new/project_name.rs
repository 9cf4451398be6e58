//! The names that a project can have.

/// The reason why a project cannot have a name.
#[derive(Debug, thiserror::Error)]
pub(super) enum NameError {
    #[error("it must have 1 to 64 characters")]
    Length,
    #[error("it must begin with a letter a to z and have only those, digits, - and _")]
    Characters,
    #[error("Rust, Cargo or a library in it is called that")]
    Reserved,
}

/// Refuses what Cargo would not take for the name of a package with a library and a binary.
pub(super) fn check_name(name: &str) -> Result<(), NameError> {
    // Libraries of the project itself, and names that the language or Cargo reserves.
    const RESERVED: [&str; 18] = [
        "core-tools",
        "coretools-mcp",
        "mcp-stdio",
        "mcp-http",
        "server-setup",
        "role-policy",
        "process-runner",
        "context-compiler",
        "schemars",
        "serde",
        "serde-json",
        "std",
        "core",
        "alloc",
        "test",
        "proc-macro",
        "build",
        "deps",
    ];
    const KEYWORDS: [&str; 52] = [
        "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
        "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
        "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self",
        "static", "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
        "virtual", "where", "while", "yield", "examples",
    ];
    if name.is_empty() || name.len() > 64 {
        return Err(NameError::Length);
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(allowed) {
        return Err(NameError::Characters);
    }
    // Cargo replaces `-` by `_` in the name of a library.
    let dashed = name.replace('_', "-");
    if RESERVED.contains(&dashed.as_str()) || KEYWORDS.contains(&name) {
        return Err(NameError::Reserved);
    }
    Ok(())
}
