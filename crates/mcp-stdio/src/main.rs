//! CoreTools for a local agent: arguments in, server up, exit code out.

fn main() -> std::process::ExitCode {
    mcp_stdio::main(mcp_stdio::Program::new(env!("CARGO_BIN_NAME"), env!("CARGO_PKG_VERSION")))
}
