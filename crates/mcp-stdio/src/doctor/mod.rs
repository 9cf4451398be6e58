//! Is everything in place? Each thing that is looked at is a finding; one that is not as it should be says what to do.

mod places;
mod programs;
mod rights;

use core_tools::ci::{Commands, Toolchain, diagnose, toolchains};
use core_tools::workspace::Workspace;
use process_runner::{Command, Containment, Limits, Runner};
use serde::Serialize;
use server_setup::settings::{self, Settings};
use server_setup::{identity, setup, toolsets};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    state: State,
    detail: String,
    /// What to do, where something is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// As it should be.
    Ok,
    /// Works, with something missing that some users need.
    Note,
    /// Does not work.
    Broken,
}

/// Looks at everything the server needs and prints what it finds. The exit code is 1 where something is
/// broken.
pub(crate) async fn doctor(settings: Settings, as_json: bool) -> Result<ExitCode, String> {
    let mut findings = configuration(&settings);
    findings.extend(settings.roots.iter().flat_map(|root| places::root(root)));
    findings.extend(places::state(&settings));
    findings.extend(places::ports(&settings));
    match setup::workspace(&settings) {
        Ok(workspace) => {
            let workspace = Arc::new(workspace);
            #[cfg(feature = "introspection")]
            findings.extend(databases(&settings, &workspace).await);
            let runner = setup::runner(&settings)?;
            let commands = Commands::new(runner.clone(), Arc::clone(&workspace), settings.redactor.clone());
            let facts = setup::facts(settings.program);
            let found = toolchains(&commands, &facts, &CancellationToken::new()).await;
            let found = diagnose(&commands, &facts, "orchestrator", found);
            findings.push(ok("system", format!("{}, {} CPUs", found.os, found.cpus)));
            findings.push(programs::git(&found.toolchains));
            findings.extend(found.toolchains.iter().filter(|tool| tool.name != "git").map(toolchain));
            findings.extend(programs::login_shell(&runner).await);
            findings.push(processes(&runner).await);
            findings.extend(role(&settings, &workspace, &runner));
            runner.shutdown(Duration::from_secs(1)).await;
        }
        Err(error) => findings.push(broken("roots", error, "name folders that are there: --root DIR")),
    }
    findings.extend(rights::limits());
    findings.extend(rights::looking_into_processes());
    match setup::server(settings) {
        Ok(server) => {
            let tools = server.host.list(&server.caller).len();
            findings.push(match tools {
                0 => note(
                    "tools",
                    "none is offered",
                    "widen --toolsets, or give the role more (`policy matrix`)",
                ),
                _ => ok("tools", format!("{tools} are offered")),
            });
            findings.push(rights::confinement(
                server.confinement,
                process_runner::Confinement::available().err(),
            ));
        }
        Err(error) => {
            findings.push(broken("server", error, "mend what it names; until then it does not start"));
        }
    }
    Ok(report(&findings, as_json))
}

/// The same where the configuration cannot be used, so that there is nothing else to look at.
pub(crate) fn without_settings(error: String, as_json: bool) -> ExitCode {
    let remedy =
        "mend it where it says so, or go without (--config /dev/null); docs/configuration.md has every key";
    report(&[broken("configuration", error, remedy)], as_json)
}

fn report(findings: &[Finding], as_json: bool) -> ExitCode {
    let healthy = findings.iter().all(|finding| finding.state != State::Broken);
    let printed = if as_json {
        crate::print(&format!("{:#}", serde_json::json!({"healthy": healthy, "findings": findings})))
    } else {
        crate::print(&table(findings, healthy))
    };
    if healthy { printed } else { ExitCode::FAILURE }
}

fn configuration(settings: &Settings) -> Vec<Finding> {
    let mut findings = vec![match &settings.config.file {
        Some(file) => ok("configuration", file.display().to_string()),
        None => ok("configuration", "no file; the defaults hold"),
    }];
    if let Some(file) = &settings.config.file {
        findings.extend(places::writable_by_others(file));
    }
    let warnings = settings.config.warnings.iter();
    findings.extend(warnings.map(|warning| note("configuration", warning, "see docs/configuration.md")));
    findings
}

/// Who the caller is, and what each source of that said.
fn role(settings: &Settings, workspace: &Arc<Workspace>, runner: &Runner) -> Vec<Finding> {
    let loaded =
        toolsets::facts(settings, workspace, runner).and_then(|facts| identity::policy(settings, &facts));
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            return vec![broken("policy", error, "`mcp-stdio policy lint` names all that is wrong in it")];
        }
    };
    let resolved = identity::caller(settings, &loaded.policy);
    let policy = match settings.config.policy.file.as_ref() {
        Some(file) => file.display().to_string(),
        None => "the built-in roles".to_owned(),
    };
    let mut findings = vec![ok("role", format!("{}, by {policy}", resolved.caller.role()))];
    for warning in &loaded.warnings {
        findings.push(note("policy", warning.to_string(), "`mcp-stdio policy lint` shows where"));
    }
    let declared: Vec<_> = loaded.policy.roles().collect();
    for evidence in resolved.evidence {
        let Some(why) = evidence.distrust else { continue };
        let remedy = match evidence.source.contains("marker") {
            true => {
                "have whoever starts the agent write it anew: `mcp-stdio policy marker --role ROLE FOLDER`"
                    .to_owned()
            }
            false => format!("name one of the roles there are: {}", declared.join(", ")),
        };
        let detail = format!("{}: {why}; the role is {} instead", evidence.source, evidence.role);
        findings.push(note("role", detail, remedy));
    }
    findings
}

fn toolchain(tool: &Toolchain) -> Finding {
    let detail = format!("{}: {} ({})", tool.name, tool.version, tool.path);
    match tool.version.starts_with("unusable") {
        true => note("toolchain", detail, format!("install {} anew, or take it out of PATH", tool.name)),
        false => ok("toolchain", detail),
    }
}

/// Connects to each database that is set, in the way that the tool does.
#[cfg(feature = "introspection")]
async fn databases(settings: &Settings, workspace: &Arc<Workspace>) -> Vec<Finding> {
    let databases = toolsets::databases(&settings.config, workspace);
    let mut names: Vec<Option<String>> =
        settings.config.databases.connections().map(|(name, _)| Some(name)).collect();
    if ["DB_PATH", "DB_URL"].iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
    {
        names.push(None);
    }
    let mut findings = Vec::new();
    for name in names {
        let shown = name.as_deref().unwrap_or("$DB_PATH or $DB_URL");
        findings.push(match databases.check(name.as_deref(), &CancellationToken::new()).await {
            Ok(checked) if checked.notes.is_empty() => {
                ok("database", format!("{shown}: {} answers", checked.engine))
            }
            Ok(checked) => note(
                "database",
                format!("{shown}: {} answers; {}", checked.engine, checked.notes.join("; ")),
                "a user who may only read is the surest fence: docs/databases.md",
            ),
            Err(error) => broken(
                "database",
                format!("{shown}: {}", settings::chain(&error)),
                "start it, or correct where the variable or [databases] says that it is: docs/databases.md",
            ),
        });
    }
    findings
}

/// Starts a process for real, the way the tools do.
async fn processes(runner: &Runner) -> Finding {
    const REMEDY: &str =
        "have /bin/sh in PATH, and let this user start processes (`ulimit -u`, seccomp, containers)";
    let limits = Limits::default().timeout(Duration::from_secs(5));
    match runner.run(Command::new("sh", "/").args(["-c", "exit 7"]).limits(limits)).await {
        Ok(output) if output.code() == Some(7) => ok(
            "processes",
            match output.containment {
                Containment::SessionAndMarker | Containment::JobObject => {
                    "can be started, and ended with all that they have started"
                }
                _ => "can be started and ended; one that leaves its session is not found",
            }
            .to_owned(),
        ),
        Ok(output) => broken("processes", output.summary(), REMEDY),
        Err(error) => broken("processes", settings::chain(&error), REMEDY),
    }
}

fn table(findings: &[Finding], healthy: bool) -> String {
    let mut text = String::new();
    for finding in findings {
        let mark = match finding.state {
            State::Ok => "ok    ",
            State::Note => "note  ",
            State::Broken => "BROKEN",
        };
        let _ = writeln!(text, "{mark}  {:13}  {}", finding.what, finding.detail);
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "{:23}-> {remedy}", "");
        }
    }
    let notes = findings.iter().filter(|finding| finding.state == State::Note).count();
    match (healthy, notes) {
        (true, 0) => text.push_str("everything is in place"),
        (true, _) => text
            .push_str("everything that is needed is in place; a note matters to who needs what it is about"),
        (false, _) => text.push_str("something is broken"),
    }
    text
}

fn ok(what: &'static str, detail: impl Into<String>) -> Finding {
    Finding { what, state: State::Ok, detail: detail.into(), remedy: None }
}

fn note(what: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { what, state: State::Note, detail: detail.into(), remedy: Some(remedy.into()) }
}

fn broken(what: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { what, state: State::Broken, detail: detail.into(), remedy: Some(remedy.into()) }
}
