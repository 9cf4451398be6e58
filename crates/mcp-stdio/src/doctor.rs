//! Is everything in place?

use crate::setup::{self, Settings};
use core_tools::ci::{Commands, diagnose, toolchains};
#[cfg(feature = "introspection")]
use core_tools::workspace::Workspace;
use process_runner::{Command, Limits};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
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
    let mut findings = vec![configuration(&settings)];
    findings.extend(settings.config.warnings.iter().map(|warning| note("configuration", warning)));
    findings.extend(settings.roots.iter().map(|root| folder(root)));
    match setup::workspace(&settings) {
        Ok(workspace) => {
            let workspace = Arc::new(workspace);
            #[cfg(feature = "introspection")]
            findings.extend(databases(&settings, &workspace).await);
            let runner = setup::runner(settings.secrets.clone())?;
            let commands = Commands::new(runner.clone(), workspace, settings.redactor.clone());
            let facts = setup::facts(settings.program);
            let found = toolchains(&commands, &facts, &CancellationToken::new()).await;
            let found = diagnose(&commands, &facts, "orchestrator", found);
            findings.push(ok("system", format!("{}, {} CPUs", found.os, found.cpus)));
            if !found.toolchains.iter().any(|tool| tool.name == "git") {
                findings.push(note("git", "not found in PATH; the git tools will not work"));
            }
            for tool in found.toolchains {
                let detail = format!("{} ({})", tool.version, tool.path);
                findings.push(match tool.version.starts_with("unusable") {
                    true => Finding {
                        what: "toolchain",
                        state: State::Note,
                        detail: format!("{}: {detail}", tool.name),
                    },
                    false => ok("toolchain", format!("{}: {detail}", tool.name)),
                });
            }
            findings.push(processes(&runner).await);
            runner.shutdown(Duration::from_secs(1)).await;
        }
        Err(error) => findings.push(broken("roots", error)),
    }
    match setup::server(settings) {
        Ok(server) => {
            let tools = server.host.list(&server.caller).len();
            findings.push(ok("tools", format!("{tools} are offered")));
            let policy = server
                .policy_file
                .as_ref()
                .map_or_else(|| "the built-in roles".to_owned(), |file| file.display().to_string());
            findings.push(ok("role", format!("{}, by {policy}", server.caller.role())));
            findings.push(ok("confinement", server.confinement));
        }
        Err(error) => findings.push(broken("tools", error)),
    }
    let healthy = findings.iter().all(|finding| finding.state != State::Broken);
    let printed = if as_json {
        crate::print(&format!("{:#}", serde_json::json!({"healthy": healthy, "findings": findings})))
    } else {
        crate::print(&table(&findings, healthy))
    };
    Ok(if healthy { printed } else { ExitCode::FAILURE })
}

fn configuration(settings: &Settings) -> Finding {
    match &settings.config.file {
        Some(file) => ok("configuration", file.display().to_string()),
        None => ok("configuration", "no file; the defaults hold"),
    }
}

/// A root has to be a folder that can be listed; one that cannot be written to is worth knowing.
fn folder(root: &Path) -> Finding {
    let shown = root.display();
    match std::fs::read_dir(root) {
        Err(error) => broken("root", format!("{shown}: {error}")),
        Ok(_) => match tempfile_in(root) {
            Ok(()) => ok("root", format!("{shown}: readable, writable")),
            Err(error) => note("root", &format!("{shown}: readable, not writable: {error}")),
        },
    }
}

fn tempfile_in(root: &Path) -> std::io::Result<()> {
    let path = root.join(format!(".mcp-stdio-doctor-{}", std::process::id()));
    std::fs::File::options().write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)
}

/// Connects to each database that is set, in the way that the tool does.
#[cfg(feature = "introspection")]
async fn databases(settings: &Settings, workspace: &Arc<Workspace>) -> Vec<Finding> {
    let databases = setup::databases(&settings.config, workspace);
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
                &format!("{shown}: {} answers; {}", checked.engine, checked.notes.join("; ")),
            ),
            Err(error) => broken("database", format!("{shown}: {}", setup::chain(&error))),
        });
    }
    findings
}

/// Starts a process for real, the way the tools do.
async fn processes(runner: &process_runner::Runner) -> Finding {
    let limits = Limits::default().timeout(Duration::from_secs(5));
    match runner.run(Command::new("sh", "/").args(["-c", "exit 7"]).limits(limits)).await {
        Ok(output) if output.code() == Some(7) => ok(
            "processes",
            format!("can be started and ended; what they start is found by {:?}", output.containment),
        ),
        Ok(output) => broken("processes", output.summary()),
        Err(error) => broken("processes", setup::chain(&error)),
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
    }
    text.push_str(if healthy { "everything is in place" } else { "something is broken" });
    text
}

fn ok(what: &'static str, detail: impl Into<String>) -> Finding {
    Finding { what, state: State::Ok, detail: detail.into() }
}

fn note(what: &'static str, detail: &str) -> Finding {
    Finding { what, state: State::Note, detail: detail.to_owned() }
}

fn broken(what: &'static str, detail: impl Into<String>) -> Finding {
    Finding { what, state: State::Broken, detail: detail.into() }
}
