//! Runs programs for servers: never hangs, never leaks a process, never runs out of memory.
