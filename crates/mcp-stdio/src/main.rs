//! CoreTools for a local agent.
fn main() {}
