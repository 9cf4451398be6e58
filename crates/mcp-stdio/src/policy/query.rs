//! Queries about one call: may a role make it, and why?

use crate::error::Error;
use crate::output::print;
use core_tools::mcp::{PreparedCall, Toolset};
use did_you_mean::nearest;
use role_policy::{Call, Caller, Decision, EffectResolver, ExplainVerdict, Policy, Refusal, ToolFacts};
use serde_json::{Map, Value, json};
use server_setup::identity;
use server_setup::settings::Settings;
use std::fmt::Write as _;
use std::process::ExitCode;

/// The exit code for a call that the policy does not allow.
// Neither 1 nor 2, which stand for a failure and for a command that was not done: a script must be able to tell a
// refusal from a fault.
const NOT_ALLOWED: u8 = 3;

/// The exit code for a call that a person must approve.
const ASKS: u8 = 4;

/// The call that a query is about.
pub(super) struct PolicyQuery<'a> {
    policy: Policy,
    caller: Caller,
    tool: ToolFacts<'a>,
    call: Call,
}

impl<'a> PolicyQuery<'a> {
    /// A query about a call of the tool `name` by `caller`, with `arguments` as JSON.
    pub(super) fn new(
        policy: Policy,
        caller: Caller,
        toolsets: &[Toolset],
        name: &'a str,
        arguments: &str,
    ) -> Result<Self, Error> {
        let (tool, arguments) = prepare(toolsets, &policy, name, arguments)?;
        let call = Call::new(tool.name, arguments);
        Ok(Self { policy, caller, tool, call })
    }

    /// A query about a call of a tool of another server, with the facts that are known of it.
    #[cfg(all(feature = "wrap", unix))]
    pub(super) fn of_server(
        policy: Policy,
        caller: Caller,
        tool: ToolFacts<'a>,
        arguments: &str,
    ) -> Result<Self, Error> {
        let call = Call::new(tool.name, read_arguments(arguments)?);
        Ok(Self { policy, caller, tool, call })
    }
}

/// Prints the verdict of the policy on the call, and the rule that decided.
pub(super) fn check(query: PolicyQuery<'_>, effects: &dyn EffectResolver, as_json: bool) -> ExitCode {
    let PolicyQuery { policy, caller, tool, call } = query;
    let decision = policy.authorize(&caller, &tool, call, effects).map(|call| call.decision().clone());
    let (verdict, rule, reason) = match &decision {
        Ok(decision) => ("allowed", &decision.rule, None),
        Err(refusal @ Refusal::Hidden { .. }) => ("hidden", refusal.rule(), None),
        Err(refusal @ Refusal::Approval(_)) => ("ask", refusal.rule(), Some(refusal.to_string())),
        Err(refusal) => ("refused", refusal.rule(), Some(refusal.to_string())),
    };
    let printed = if as_json {
        print(&json!({"role": caller.role(), "tool": tool.name, "verdict": verdict, "rule": &**rule, "reason": reason}).to_string())
    } else {
        let reason = reason.map(|reason| format!("\n{reason}")).unwrap_or_default();
        print(&format!("{verdict}: {rule}{reason}"))
    };
    exit_code(&decision, printed)
}

/// Returns the exit code of a decision; of an allowed call that of printing it.
fn exit_code(decision: &Result<Decision, Refusal>, printed: ExitCode) -> ExitCode {
    match decision {
        Ok(_) => printed,
        Err(Refusal::Approval(_)) => ExitCode::from(ASKS),
        Err(_) => ExitCode::from(NOT_ALLOWED),
    }
}

/// Prints every entry and rule that was evaluated, with its result.
pub(super) fn explain(query: PolicyQuery<'_>, effects: &dyn EffectResolver) -> ExitCode {
    let PolicyQuery { policy, caller, tool, call } = query;
    let explained = policy.explain(&caller, &tool, call, effects);
    let mut text = format!("{} calls {}:\n", caller.role(), tool.name);
    for step in &explained.steps {
        let says = match &step.says {
            ExplainVerdict::NoMatch => "-      ",
            ExplainVerdict::Denies => "DENIES ",
            ExplainVerdict::Allows => "allows ",
            ExplainVerdict::Holds => "holds  ",
            ExplainVerdict::Refuses(_) => "REFUSES",
            ExplainVerdict::Asks(_) => "ASKS   ",
            _ => "?      ",
        };
        let _ = writeln!(text, "  {says}  {}", step.rule);
        if let ExplainVerdict::Refuses(reason) | ExplainVerdict::Asks(Some(reason)) = &step.says {
            let _ = writeln!(text, "           {reason}");
        }
    }
    let _ = match &explained.decision {
        Ok(decision) => write!(text, "allowed: {}", decision.rule),
        Err(refusal @ Refusal::Hidden { .. }) => write!(text, "hidden: {}", refusal.rule()),
        Err(refusal @ Refusal::Approval(_)) => write!(text, "ask: {}", refusal.rule()),
        Err(refusal) => write!(text, "refused: {}", refusal.rule()),
    };
    exit_code(&explained.decision, print(&text))
}

/// Returns the caller that `--role` names, several roles separated by commas, or the one that a server would have.
pub(super) fn caller(settings: &Settings, policy: &Policy, role: Option<&str>) -> Result<Caller, Error> {
    let Some(roles) = role else { return Ok(identity::caller(settings, policy).caller) };
    let mut roles = roles.split(',').map(str::trim);
    for role in roles.clone() {
        if !policy.declares(role) {
            let known: Vec<&str> = policy.roles().collect();
            let suggestion = nearest(role, known.iter().copied())
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            return Err(Error::Argument(format!(
                "the policy declares no role `{role}`{suggestion} (it declares {})",
                known.join(", ")
            )));
        }
    }
    let first = Caller::new(roles.next().unwrap_or_default());
    Ok(roles.fold(first, Caller::narrowed_by))
}

/// Prepares a call as a server would: an alias stands for its tool, and the arguments are brought to their canonical form.
/// Of the tool of another server, which only the policy names, the arguments stay as they are.
fn prepare<'a>(
    toolsets: &[Toolset],
    policy: &Policy,
    name: &'a str,
    arguments: &str,
) -> Result<(ToolFacts<'a>, Map<String, Value>), Error> {
    let arguments = read_arguments(arguments)?;
    match toolsets.iter().find_map(|toolset| toolset.prepare(name, arguments.clone())) {
        Some(Ok(PreparedCall { tool, arguments, .. })) => return Ok((tool, arguments)),
        Some(Err(faults)) => {
            return Err(Error::Argument(format!("invalid arguments for `{name}`:\n{faults}")));
        }
        None => {}
    }
    if policy.known_tools().any(|known| known == name) {
        return Ok((ToolFacts::external(name), arguments));
    }
    let suggestion = nearest(name, policy.known_tools())
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default();
    Err(Error::Argument(format!(
        "no tool is called `{name}`{suggestion} (a policy names the tools of another server in `external_tools`)"
    )))
}

fn read_arguments(text: &str) -> Result<Map<String, Value>, Error> {
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(Error::Argument("--args must be a JSON object".to_owned())),
        Err(error) => Err(Error::Argument(format!("--args is not JSON: {error}"))),
    }
}
