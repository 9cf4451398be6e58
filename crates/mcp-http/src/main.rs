//! CoreTools for a shared host: arguments in, server up, exit code out.

/// musl's own allocator makes threads wait for each other.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    mcp_http::main(mcp_http::Program::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")))
}

#[cfg(not(unix))]
fn main() {}
