//! `compile_context` and `mcp-stdio context`, against the built server.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod command_line;
mod tool;

use integration_tests::Project;

/// A planned project in a repository of one commit, of which `src/lib.rs` has changed since.
fn project() -> Project {
    let project = Project::with([
        (".yolo-planning/codebase/CONVENTIONS.md", "# Conventions\n\nTabs.\n"),
        (".yolo-planning/codebase/STACK.md", "# Stack\n\nRust.\n"),
        (".yolo-planning/codebase/ARCHITECTURE.md", "# Architecture\n\nArrows point down.\n"),
        (".yolo-planning/ROADMAP.md", "# Roadmap\n\n## Phase 3: Server\n\nIt serves.\n"),
        (".yolo-planning/REQUIREMENTS.md", "# Requirements\n\nFast.\n"),
        (".yolo-planning/phases/03-server/03-01-PLAN.md", "# First\n"),
        (".yolo-planning/phases/03-server/03-02-PLAN.md", "# Second\n"),
        (".yolo-planning/phases/03-server/03-03-PLAN.md", "# Third\n"),
        ("src/lib.rs", "pub fn answer() -> u32 {\n    41\n}\n"),
    ]);
    project.git(&["init", "--quiet", "--initial-branch=main"]);
    project.git(&["config", "user.name", "Ada"]);
    project.git(&["config", "user.email", "ada@example.org"]);
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "--message=first"]);
    project.write("src/lib.rs", "pub fn answer() -> u32 {\n    42\n}\n");
    project
}

/// A policy by which everybody is a tester, who may read plans and sources alone.
fn limiting_policy() -> Project {
    use std::os::unix::fs::PermissionsExt;
    let policy = Project::empty();
    policy.write(
        "roles.toml",
        "version = 1\nmissing_role = \"tester\"\n[roles.tester]\ndescription = \"x\"\nallow = [\"*\"]\n\
         [[roles.tester.require]]\nid = \"rule\"\ntools = [\"*\"]\nread_within = [\".yolo-planning/phases\", \"src\"]\n",
    );
    std::fs::set_permissions(policy.join("roles.toml"), std::fs::Permissions::from_mode(0o600)).unwrap();
    policy
}
