//! CoreTools for a local agent: arguments in, server up, exit code out.

/// musl's own allocator makes threads wait for each other.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    mcp_stdio::main(mcp_stdio::Program::new(env!("CARGO_BIN_NAME"), env!("CARGO_PKG_VERSION")))
}
