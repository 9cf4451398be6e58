//! CoreTools for a shared host: the same tools and the same guarded host as `mcp-stdio`, behind HTTP,
//! with an identity, a role, roots and limits for each caller.
//!
//! Nothing is here yet. The place is kept because the workspace's layout and dependency rules already
//! count on it; use `mcp-stdio` until the server arrives.
