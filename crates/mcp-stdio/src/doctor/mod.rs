//! The subcommand `doctor`: checks that everything is in place. Each check is a [`DoctorFinding`]; one that is not as it should
//! be says what to do.

mod paths;
mod permissions;
mod programs;

use crate::error::Error;
use crate::output::{name, print};
use crate::terminal::colours;

use core_tools::ci::{Commands, Toolchain, diagnose, toolchains};
use core_tools::workspace::Workspace;
use error_causes::chain;
use process_runner::{Command, Containment, Limits, ResourceControls, Runner};
use role_policy::source::RoleSource;
use server_setup::finding::{
    CheckHealth, DoctorFinding, broken, confinement, is_healthy, json, note, ok, table,
};
use server_setup::settings::Settings;
use server_setup::{identity, policy, resources, setup, toolsets};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Checks everything that the server needs and prints the findings. The exit code is 1 if something is
/// broken.
pub(crate) async fn doctor(settings: Settings, as_json: bool) -> Result<ExitCode, Error> {
    let mut findings = configuration(&settings);
    findings.extend(settings.roots.iter().flat_map(|root| paths::root(root)));
    findings.extend(paths::state(&settings));
    findings.extend(paths::ports(&settings));
    // A check that fails ends no other: one run tells everything that is broken.
    match resources::workspace(&settings) {
        Ok(workspace) => {
            let workspace = Arc::new(workspace);
            #[cfg(feature = "introspection")]
            findings.extend(databases(&settings, &workspace).await);
            let runner = resources::runner(&settings)?;
            let commands = Commands::new(runner.clone(), Arc::clone(&workspace), settings.redactor.clone());
            let facts = resources::server_facts(settings.program);
            let found = toolchains(&commands, &facts, &CancellationToken::new()).await;
            let found = diagnose(&commands, &facts, "orchestrator", found);
            findings.push(ok("system", format!("{}, {} CPUs", found.os, found.cpus)));
            findings.push(programs::git(&found.toolchains));
            findings.extend(found.toolchains.iter().filter(|tool| tool.name != "git").map(toolchain));
            findings.extend(programs::login_shell(&runner).await);
            findings.push(processes(&runner).await);
            #[cfg(all(feature = "hooks", unix))]
            findings.extend(programs::codex_environment(&runner).await);
            findings.extend(role(&settings, &workspace, &runner));
            runner.shutdown(Duration::from_secs(1)).await;
        }
        Err(error) => {
            findings.push(broken("roots", chain(&error), "name folders that are there: --root DIR"));
        }
    }
    #[cfg(feature = "hooks")]
    findings.extend(hooks(&settings));
    findings.extend(permissions::limits());
    findings.extend(permissions::looking_into_processes());
    // The whole setup at last, as a start does it, for faults that no single check looks for.
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
            findings.push(ok("environment", server.environment));
            findings.push(confinement(server.confinement, process_runner::Confinement::available()));
            let in_namespaces = process_runner::Confinement::available()
                .is_ok_and(|status| status.level >= process_runner::ConfinementLevel::Namespaces);
            findings.push(ok("resource limits", ResourceControls::available(in_namespaces).to_string()));
        }
        Err(error) => {
            findings.push(broken(
                "server",
                chain(&error),
                "correct what it names; the server does not start before",
            ));
        }
    }
    Ok(report(&findings, as_json))
}

/// Reports a configuration that cannot be used: nothing else can be checked then.
pub(crate) fn without_settings(error: &server_setup::Error, as_json: bool) -> ExitCode {
    let remedy = "correct it where it says so, or start without it (--config /dev/null); docs/configuration.md lists every key";
    report(&[broken("configuration", chain(error), remedy)], as_json)
}

fn report(findings: &[DoctorFinding], as_json: bool) -> ExitCode {
    let printed = match as_json {
        true => print(&json(findings)),
        false => {
            let colours = colours(&std::io::stdout());
            print(&table(findings, |state, word| match state {
                CheckHealth::Ok => colours.green(word),
                CheckHealth::Note => colours.yellow(word),
                CheckHealth::Broken => colours.red(word),
            }))
        }
    };
    if is_healthy(findings) { printed } else { ExitCode::FAILURE }
}

fn configuration(settings: &Settings) -> Vec<DoctorFinding> {
    let mut findings = vec![match &settings.config.file {
        Some(file) => ok("configuration", file.display().to_string()),
        None => ok("configuration", "no file; the defaults hold"),
    }];
    if let Some(file) = &settings.config.file {
        findings.extend(paths::untrusted(file));
    }
    let warnings = settings.config.warnings.iter();
    findings.extend(warnings.map(|warning| note("configuration", warning, "see docs/configuration.md")));
    findings
}

/// Checks the policy, the role of the caller, and the evidence of each source of that role.
fn role(settings: &Settings, workspace: &Arc<Workspace>, runner: &Runner) -> Vec<DoctorFinding> {
    let loaded =
        toolsets::facts(settings, workspace, runner).and_then(|facts| policy::configured(settings, &facts));
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            return vec![broken(
                "policy",
                chain(&error),
                format!("`{} policy lint` names all that is wrong in it", name()),
            )];
        }
    };
    let resolved = identity::caller(settings, &loaded.policy);
    let policy = match settings.config.policy.file.as_ref() {
        Some(file) => file.display().to_string(),
        None => "the built-in roles".to_owned(),
    };
    let mut findings = vec![ok("role", format!("{}, by {policy}", resolved.caller.role()))];
    for warning in &loaded.warnings {
        findings.push(note("policy", warning.to_string(), format!("`{} policy lint` shows where", name())));
    }
    let declared: Vec<_> = loaded.policy.roles().collect();
    for evidence in resolved.evidence {
        let Some(why) = evidence.distrust else { continue };
        let remedy = match evidence.source {
            RoleSource::Marker => {
                format!(
                    "have the program that starts the agent write it anew: `{} policy marker --role ROLE FOLDER`",
                    name()
                )
            }
            _ => format!("name one of the roles there are: {}", declared.join(", ")),
        };
        let detail = format!("{}: {why}; the role is {} instead", evidence.source, evidence.role);
        findings.push(note("role", detail, remedy));
    }
    findings
}

/// Checks the hooks that are installed in clients.
#[cfg(feature = "hooks")]
fn hooks(settings: &Settings) -> Vec<DoctorFinding> {
    let found = crate::hook::findings(&settings.roots).into_iter();
    found
        .map(|hook| match hook.problem {
            None => ok("hook", hook.detail),
            Some((problem, remedy)) => note("hook", format!("{}; {problem}", hook.detail), remedy),
        })
        .collect()
}

fn toolchain(tool: &Toolchain) -> DoctorFinding {
    let detail = format!("{}: {} ({})", tool.name, tool.version, tool.path);
    match tool.version.strip_prefix("unusable: ") {
        Some(reason) => note("toolchain", detail, programs::repair(&tool.name, reason)),
        None => ok("toolchain", detail),
    }
}

/// Connects to each configured database, in the way that the tool does.
#[cfg(feature = "introspection")]
async fn databases(settings: &Settings, workspace: &Arc<Workspace>) -> Vec<DoctorFinding> {
    let databases = toolsets::databases(&settings.config, workspace);
    let mut names: Vec<Option<String>> =
        settings.config.databases.connections().map(|(name, _)| Some(name)).collect();
    if ["DB_PATH", "DB_URL"].iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
    {
        // No name stands for the default, which these variables decide.
        names.push(None);
    }
    let mut findings = Vec::new();
    for name in names {
        let display_name = name.as_deref().unwrap_or("$DB_PATH or $DB_URL");
        findings.push(match databases.check(name.as_deref(), &CancellationToken::new()).await {
            Ok(checked) if checked.notes.is_empty() => {
                ok("database", format!("{display_name}: {} answers", checked.engine))
            }
            Ok(checked) => note(
                "database",
                format!("{display_name}: {} answers; {}", checked.engine, checked.notes.join("; ")),
                "a database user who may only read is the surest protection: docs/databases.md",
            ),
            Err(error) => broken(
                "database",
                format!("{display_name}: {}", chain(&error)),
                "start it, or correct where the variable or [databases] says that it is: docs/databases.md",
            ),
        });
    }
    findings
}

/// Starts a process in the way that the tools do.
async fn processes(runner: &Runner) -> DoctorFinding {
    const REMEDY: &str =
        "have /bin/sh in PATH, and let this user start processes (`ulimit -u`, seccomp, containers)";
    let limits = Limits::default().timeout(Duration::from_secs(5));
    // A code that no failure to start has, so that it proves that the program ran.
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
        Err(error) => broken("processes", chain(&error), REMEDY),
    }
}
