//! CoreTools for a shared host: arguments in, server up, exit code out.

/// With many calls in flight one thread frees what another allocated, for which glibc's allocator takes an eighth of the
/// processor time more, and musl's half of it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    mcp_http::main(mcp_http::Program::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")))
}

#[cfg(not(unix))]
fn main() {}
