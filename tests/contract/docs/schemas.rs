//! The stored schemas of the library's tools, which a server need not find out at each start.

use core_tools::ci::{ConfinementPolicy, EnvironmentPolicy};
use core_tools::mcp::{Toolset, schemas_of, stored_schemas};
use role_policy::Policy;
use server_setup::toolsets::{self, ServedCallers};
use server_setup::{Program, read_settings, resources, sessions};
use std::path::Path;
use std::sync::Arc;

/// Every tool of the library.
fn library() -> Vec<Toolset> {
    let settings = read_settings::defaults(Program::new("test", "1")).unwrap();
    let workspace = Arc::new(resources::workspace(&settings).unwrap());
    let runner = resources::runner(&settings).unwrap();
    let confine = ConfinementPolicy::off("nothing is run");
    let sessions = sessions::of_one(&settings);
    let environment = EnvironmentPolicy::default();
    toolsets::all(&settings, &workspace, &runner, confine, environment, ServedCallers::One(&sessions))
        .unwrap()
}

#[test]
fn the_stored_schemas_are_those_of_the_types() {
    let generated = schemas_of(&library());
    if generated == stored_schemas() {
        return;
    }
    let different = generated.lines().zip(stored_schemas().lines()).find(|(line, stored)| line != stored);
    assert!(
        std::env::var_os("UPDATE_DOCS").is_some(),
        "schemas.tsv is stale; UPDATE_DOCS=1 on this test writes it\n{different:#?}"
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/core-tools/src/mcp/schemas.tsv");
    std::fs::write(file, generated).unwrap();
}

/// A server loads the built-in policy unchecked: here it is checked.
#[test]
fn the_builtin_policy_holds_for_the_library_and_is_the_same_unchecked() {
    let toolsets = library();
    let facts: Vec<_> = toolsets.iter().flat_map(Toolset::facts).collect();
    assert!(facts.len() > 60, "{} tools", facts.len());
    let checked = Policy::builtin(&facts).unwrap();
    let unchecked = Policy::builtin_unchecked(&facts).unwrap();
    assert_eq!(checked.examples, unchecked.examples);
    for role in checked.policy.roles() {
        for tool in &facts {
            let [one, other] = [&checked.policy, &unchecked.policy]
                .map(|policy| (policy.access(role, tool), policy.requirements(role, tool)));
            assert_eq!(one, other, "{role}: {}", tool.name);
        }
    }
}
