//! `mcp-stdio policy …`: what a policy says, before anybody has to find out.

use crate::cli::PolicyCommand;
use crate::identity;
use crate::print;
use core_tools::ci::Confine;
use core_tools::mcp::WorkspaceEffects;
use role_policy::{Call, Caller, Loaded, Policy, Refusal, Says, ToolFacts};
use serde_json::{Map, Value, json};
use server_setup::settings::Settings;
use server_setup::{sessions, setup, toolsets};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

/// The exit code of a call that the policy does not allow.
const REFUSED: u8 = 3;

/// Runs `mcp-stdio policy COMMAND`. An error is one that kept the work from starting.
pub(crate) fn run(
    settings: &Settings,
    role: Option<&str>,
    command: PolicyCommand,
) -> Result<ExitCode, String> {
    let workspace = Arc::new(setup::workspace(settings)?);
    let facts = setup::facts(settings.program);
    let effects = WorkspaceEffects::new(Arc::clone(&workspace), facts.path.clone());
    let toolsets = toolsets::all(
        settings,
        &workspace,
        &setup::runner(settings)?,
        Confine::off("nothing is run"),
        toolsets::Callers::One(&sessions::of_one(settings)),
    )?;
    let tools: Vec<ToolFacts<'static>> = toolsets.iter().flat_map(core_tools::mcp::Toolset::facts).collect();
    // As a server would: a name from elsewhere is the tool that it calls, and arguments are brought into form.
    let prepare = |name: &str, text: &str| match toolsets
        .iter()
        .find_map(|toolset| toolset.prepare(name, arguments(text).ok()?))
    {
        Some(Ok((found, arguments))) => Ok((Some(found), arguments)),
        Some(Err(faults)) => Err(format!("invalid arguments for `{name}`:\n{faults}")),
        None => Ok((None, arguments(text)?)),
    };
    match command {
        PolicyCommand::Init => Ok(print(settings.program.policy().1.trim_end())),
        PolicyCommand::Lint { strict } => Ok(lint(identity::policy(settings, &tools), strict)),
        PolicyCommand::Test => {
            let Loaded { examples, .. } = identity::policy(settings, &tools)?;
            Ok(print(&format!("{examples} examples hold")))
        }
        PolicyCommand::Check { tool, args, json } => {
            let policy = identity::policy(settings, &tools)?.policy;
            let caller = caller(settings, &policy, role)?;
            let (found, arguments) = prepare(&tool, &args)?;
            let found = known(found, &policy, &tool)?;
            let call = Call::new(found.name, arguments);
            let decision =
                policy.authorize(&caller, &found, call, &effects).map(|call| call.decision().clone());
            let (verdict, rule, reason) = match &decision {
                Ok(decision) => ("allowed", &decision.rule, None),
                Err(refusal @ Refusal::Hidden { .. }) => ("hidden", refusal.rule(), None),
                Err(refusal) => ("refused", refusal.rule(), Some(refusal.to_string())),
            };
            let printed = if json {
                print(&json!({"role": caller.role(), "tool": found.name, "verdict": verdict, "rule": &**rule, "reason": reason}).to_string())
            } else {
                let reason = reason.map(|reason| format!("\n{reason}")).unwrap_or_default();
                print(&format!("{verdict}: {rule}{reason}"))
            };
            Ok(if decision.is_ok() { printed } else { ExitCode::from(REFUSED) })
        }
        PolicyCommand::Explain { tool, args } => {
            let policy = identity::policy(settings, &tools)?.policy;
            let caller = caller(settings, &policy, role)?;
            let (found, arguments) = prepare(&tool, &args)?;
            let found = known(found, &policy, &tool)?;
            let call = Call::new(found.name, arguments);
            let explained = policy.explain(&caller, &found, call, &effects);
            let mut text = format!("{} calls {}:\n", caller.role(), found.name);
            for step in &explained.steps {
                let says = match &step.says {
                    Says::NoMatch => "-      ",
                    Says::Denies => "DENIES ",
                    Says::Allows => "allows ",
                    Says::Holds => "holds  ",
                    Says::Refuses(_) => "REFUSES",
                    _ => "?      ",
                };
                let _ = writeln!(text, "  {says}  {}", step.rule);
                if let Says::Refuses(reason) = &step.says {
                    let _ = writeln!(text, "           {reason}");
                }
            }
            let _ = match &explained.decision {
                Ok(decision) => write!(text, "allowed: {}", decision.rule),
                Err(refusal @ Refusal::Hidden { .. }) => write!(text, "hidden: {}", refusal.rule()),
                Err(refusal) => write!(text, "refused: {}", refusal.rule()),
            };
            let printed = print(&text);
            Ok(if explained.decision.is_ok() { printed } else { ExitCode::from(REFUSED) })
        }
        PolicyCommand::Matrix { markdown, json } => {
            let policy = identity::policy(settings, &tools)?.policy;
            Ok(print(&matrix(&policy, &tools, markdown, json)))
        }
        PolicyCommand::Diff { old, new } => {
            let (old, new) = (identity::load(&old, &tools)?.policy, identity::load(&new, &tools)?.policy);
            Ok(print(&diff(&old, &new, &tools)))
        }
        PolicyCommand::Marker { session, key, ttl, folder } => marker(
            role.ok_or("--role must name the role of the agent")?,
            session.as_deref(),
            key.as_deref(),
            ttl,
            &folder,
        ),
    }
}

/// The caller that `--role` names, several separated by commas, or the one that a server would have.
fn caller(settings: &Settings, policy: &Policy, role: Option<&str>) -> Result<Caller, String> {
    let Some(roles) = role else { return Ok(identity::caller(settings, policy).caller) };
    let mut roles = roles.split(',').map(str::trim);
    for role in roles.clone() {
        if !policy.declares(role) {
            let known: Vec<&str> = policy.roles().collect();
            let meant = core_tools::nearest::nearest(role, known.iter().copied())
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            return Err(format!(
                "the policy declares no role `{role}`{meant} (it declares {})",
                known.join(", ")
            ));
        }
    }
    let first = Caller::new(roles.next().unwrap_or_default());
    Ok(roles.fold(first, Caller::narrowed_by))
}

/// The tool that was asked about: one of ours, or one that the policy names itself.
fn known<'a>(
    found: Option<ToolFacts<'static>>,
    policy: &Policy,
    name: &'a str,
) -> Result<ToolFacts<'a>, String> {
    if let Some(found) = found {
        return Ok(found);
    }
    if policy.known_tools().any(|known| known == name) {
        return Ok(ToolFacts::external(name));
    }
    let meant = core_tools::nearest::nearest(name, policy.known_tools())
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default();
    Err(format!(
        "no tool is called `{name}`{meant} (a policy names the tools of another server in `external_tools`)"
    ))
}

fn arguments(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err("--args must be a JSON object".to_owned()),
        Err(error) => Err(format!("--args is no JSON: {error}")),
    }
}

fn lint(loaded: Result<Loaded, String>, strict: bool) -> ExitCode {
    match loaded {
        Err(error) => {
            print(&error);
            ExitCode::FAILURE
        }
        Ok(loaded) => {
            let lines: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
            let said = match lines.len() {
                0 => "nothing to complain of".to_owned(),
                _ => lines.join("\n"),
            };
            let printed = print(&said);
            if strict && !lines.is_empty() { ExitCode::FAILURE } else { printed }
        }
    }
}

/// Everything the policy could be asked about: our tools, and those it names itself.
fn all<'a>(policies: &[&'a Policy], tools: &[ToolFacts<'static>]) -> Vec<ToolFacts<'a>> {
    let mut all: Vec<ToolFacts<'a>> = tools.to_vec();
    for name in policies.iter().flat_map(|policy| policy.known_tools()) {
        if !all.iter().any(|tool| tool.name == name) {
            all.push(ToolFacts::external(name));
        }
    }
    all
}

fn matrix(policy: &Policy, tools: &[ToolFacts<'static>], markdown: bool, as_json: bool) -> String {
    let roles: Vec<&str> = policy.roles().collect();
    let cell = |role: &str, tool: &ToolFacts<'_>| {
        if !policy.sees(&Caller::new(role), tool) {
            "hidden"
        } else if policy.requirements(role, tool).is_empty() {
            "allowed"
        } else {
            "limited"
        }
    };
    let tools = all(&[policy], tools);
    if as_json {
        let rows = roles.iter().map(|role| {
            let cells = tools.iter().map(|tool| (tool.name.to_owned(), Value::from(cell(role, tool))));
            ((*role).to_owned(), Value::Object(cells.collect()))
        });
        return format!("{:#}", Value::Object(rows.collect()));
    }
    let sign = |role: &&str, tool: &ToolFacts<'_>| match cell(role, tool) {
        "hidden" => "-",
        "limited" => "limited",
        _ => "yes",
    };
    if markdown {
        let mut text = format!("| tool | {} |\n|---|{}", roles.join(" | "), "---|".repeat(roles.len()));
        for tool in &tools {
            let cells: Vec<&str> = roles.iter().map(|role| sign(role, tool)).collect();
            let _ = write!(text, "\n| {} | {} |", tool.name, cells.join(" | "));
        }
        return text;
    }
    let width = tools.iter().map(|tool| tool.name.len()).max().unwrap_or_default();
    let row = |head: &str, cells: Vec<&str>| {
        let padded = cells.iter().zip(&roles).map(|(cell, role)| {
            let column = role.len().max("limited".len());
            format!("  {cell:<column$}")
        });
        format!("{head:width$}{}", padded.collect::<String>()).trim_end().to_owned()
    };
    let rows = tools.iter().map(|tool| row(tool.name, roles.iter().map(|role| sign(role, tool)).collect()));
    std::iter::once(row("", roles.clone())).chain(rows).collect::<Vec<_>>().join("\n")
}

fn diff(old: &Policy, new: &Policy, tools: &[ToolFacts<'static>]) -> String {
    let mut roles: Vec<&str> = old.roles().collect();
    roles.extend(new.roles().filter(|role| !old.declares(role)));
    let mut lines = Vec::new();
    if old.missing_role() != new.missing_role() {
        lines.push(format!("who has no role: is {} and was {}", new.missing_role(), old.missing_role()));
    }
    for &role in &roles {
        match (old.declares(role), new.declares(role)) {
            (true, false) => lines.push(format!("{role}: is no longer declared, and so is the minimal role")),
            (false, true) => lines.push(format!("{role}: is declared now")),
            _ => {}
        }
        let caller = Caller::new(role);
        for tool in all(&[old, new], tools) {
            let name = tool.name;
            match (old.sees(&caller, &tool), new.sees(&caller, &tool)) {
                (true, false) => lines.push(format!("{role}: - {name}")),
                (false, true) => lines.push(format!("{role}: + {name}")),
                (true, true) if old.requirements(role, &tool) != new.requirements(role, &tool) => {
                    lines.push(format!("{role}: ~ {name}: other requirements"));
                }
                _ => {}
            }
        }
        if old.limits(&caller) != new.limits(&caller) {
            lines.push(format!("{role}: ~ limits"));
        }
        if old.documents(role) != new.documents(role) {
            lines.push(format!("{role}: ~ documents"));
        }
        for other in &roles {
            match (old.may_use(role, other), new.may_use(role, other)) {
                (true, false) => lines.push(format!("{role}: - may use {other}")),
                (false, true) => lines.push(format!("{role}: + may use {other}")),
                _ => {}
            }
        }
    }
    if lines.is_empty() { "nothing changes for anybody".to_owned() } else { lines.join("\n") }
}

#[cfg(unix)]
fn marker(
    role: &str,
    session: Option<&str>,
    key: Option<&std::path::Path>,
    ttl: u64,
    folder: &std::path::Path,
) -> Result<ExitCode, String> {
    use role_policy::source::{read_key, write_marker};
    let key = key.map(read_key).transpose().map_err(|error| format!("the key: {error}"))?;
    let signature = key.as_deref().map(|key| (key, std::time::Duration::from_secs(ttl)));
    let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
    let path = write_marker(&folder, role, session, signature)
        .map_err(|error| format!("no marker was written: {error}"))?;
    Ok(print(&path.display().to_string()))
}

#[cfg(not(unix))]
fn marker(
    _: &str,
    _: Option<&str>,
    _: Option<&std::path::Path>,
    _: u64,
    _: &std::path::Path,
) -> Result<ExitCode, String> {
    Err("markers need a Unix system, where a file can belong to its owner alone".to_owned())
}
