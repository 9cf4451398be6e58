//! The environment of the programs that tools run.

use crate::config::EnvironmentMode;
use crate::confinement::is_full;
use crate::settings::Settings;
use core_tools::ci::EnvironmentPolicy;
use process_runner::Runner;
use role_policy::{Caller, Policy, ToolFacts};

/// Returns the part of the server's environment that the programs of `caller` get, who is the only caller.
pub fn for_caller(
    settings: &Settings,
    runner: &Runner,
    policy: &Policy,
    caller: &Caller,
    tools: &[ToolFacts<'_>],
) -> EnvironmentPolicy {
    match *settings.config.commands.environment {
        // A caller who may do everything can ask for each variable by name. The environment is that of its user.
        EnvironmentMode::Auto if is_full(policy, caller, tools) => EnvironmentPolicy::inherit(),
        _ => for_callers(settings, runner),
    }
}

/// Returns the part of the server's environment that the programs of several callers get. It is the operator's, and no
/// caller's.
pub fn for_callers(settings: &Settings, runner: &Runner) -> EnvironmentPolicy {
    let commands = &settings.config.commands;
    match *commands.environment {
        EnvironmentMode::Inherit => EnvironmentPolicy::inherit(),
        EnvironmentMode::Auto | EnvironmentMode::Minimal => {
            EnvironmentPolicy::minimal(runner, &commands.variables)
        }
    }
}
