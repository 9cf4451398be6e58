//! CoreTools for a shared host: arguments in, server up, exit code out.

/// With many calls in flight one thread frees what another has allocated: glibc's allocator then takes an eighth more of the
/// processors' time, and musl's twice as much.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    mcp_http::main(mcp_http::Program::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")))
}

#[cfg(not(unix))]
fn main() {}
