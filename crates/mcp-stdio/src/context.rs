//! The document for a role, from the shell.

use crate::{identity, print, print_error};
use clap::{Args, ValueEnum};
use core_tools::ci::Commands;
use core_tools::context::{Catalogue, Compiled, Documents, Format, Request};
use core_tools::mcp::{Context, WorkspaceEffects};
use core_tools::workspace::Workspace;
use process_runner::Runner;
use role_policy::{Call, Caller, Refusal};
use serde_json::{Map, Value};
use server_setup::settings::{Settings, chain};
use server_setup::{setup, toolsets};
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(crate) const EXAMPLES: &str = "\
Examples:
  mcp-stdio context --role dev --phase 3 --budget 20000
  mcp-stdio context --role qa --include 'src/**/*.rs' --manifest
  cargo test 2>&1 | mcp-stdio context --role dev --failures -

Exit codes:
  0  printed
  1  there is no document: the budget is too small, a plan is missing, a glob is wrong
  2  a bad configuration, or the policy refuses it";

/// How often files are looked at with --watch.
const PAUSE: Duration = Duration::from_millis(500);
/// A larger file of roles, or of failures, is a mistake.
const MAX_BYTES: u64 = 4 << 20;

/// What is asked for.
#[derive(Args, Clone, Debug)]
#[allow(clippy::doc_markdown, reason = "the comments are what --help prints")]
pub(crate) struct Arguments {
    /// Phase whose plans are added
    #[arg(long, value_name = "N")]
    phase: Option<u32>,
    /// A plan by its path, instead of those of the phase
    #[arg(long, value_name = "FILE")]
    plan: Option<String>,
    /// The most tokens that the document may have
    #[arg(long, value_name = "TOKENS", default_value_t = 32_000)]
    budget: usize,
    /// Tokens of the model for each counted one (o200k): 1.35 for Claude up to 4.6, 1.8 from 4.7
    #[arg(long, default_value_t = 1.0)]
    factor: f64,
    /// Glob of source files to add; may be given several times
    #[arg(long, value_name = "GLOB")]
    include: Option<Vec<String>>,
    /// Glob of files to leave out of those
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Form of the document
    #[arg(long, value_enum, default_value_t = Form::Markdown)]
    format: Form,
    /// Revision to tell changes since. Default: HEAD
    #[arg(long, value_name = "REVISION")]
    since: Option<String>,
    /// File with the failures of the last test run; "-" reads standard input
    #[arg(long, value_name = "FILE")]
    failures: Option<PathBuf>,
    /// File of roles and layout, in TOML, beside the built-in ones. Default: what the configuration names
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
    /// Print what is inside, and what is not, instead of the document
    #[arg(long)]
    manifest: bool,
    /// Print both halves and the manifest as JSON
    #[arg(long, conflicts_with = "manifest")]
    json: bool,
    /// Print it again whenever it changes
    #[arg(long)]
    watch: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    Markdown,
    Xml,
    Json,
}

/// Prints the document for `role`, or for whom the server would take the caller for, as far as the policy allows.
pub(crate) async fn context(
    settings: &Settings,
    role: Option<&str>,
    arguments: &Arguments,
) -> Result<ExitCode, String> {
    // Before anything that may wait.
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    let workspace = Arc::new(setup::workspace(settings)?);
    let runner = setup::runner(settings)?;
    let commands = Commands::new(runner.clone(), Arc::clone(&workspace), settings.redactor.clone());
    let files = async {
        let catalogue = match &arguments.catalogue {
            Some(path) => Some(read(path.clone()).await?),
            None => None,
        };
        let failures = match &arguments.failures {
            Some(path) => Some(read(path.clone()).await?),
            None => None,
        };
        Ok::<_, String>((catalogue, failures))
    };
    let (catalogue, failures) = tokio::select! {
        files = files => files?,
        _ = &mut interrupted => return Ok(ExitCode::SUCCESS),
    };
    let mut documents = match &arguments.catalogue {
        Some(_) => toolsets::documents(commands),
        None => toolsets::project_documents(&settings.config, &workspace, commands)?,
    };
    if let (Some(path), Some(text)) = (&arguments.catalogue, catalogue) {
        let catalogue = Catalogue::read(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        documents = documents.catalogue(catalogue);
    }
    let cancel = CancellationToken::new();
    let allowed = allowed(settings, role, arguments, &workspace, &runner, &cancel)?;
    let role = role.unwrap_or_else(|| documents.role_of(allowed.caller.roles()));
    let request = Request { test_failures: failures, ..request(arguments, role)? };
    let code = tokio::select! {
        code = show(&documents, &request, arguments, allowed.limited.as_ref(), &cancel) => code,
        _ = interrupted => ExitCode::SUCCESS,
    };
    cancel.cancel();
    runner.shutdown(Duration::from_secs(2)).await;
    Ok(code)
}

/// Who asks, and how far that may reach.
struct Allowed {
    caller: Caller,
    /// The workspace, where not all of it may be read.
    limited: Option<Arc<Workspace>>,
}

/// Judges the call of the tool that does the same.
fn allowed(
    settings: &Settings,
    role: Option<&str>,
    arguments: &Arguments,
    workspace: &Arc<Workspace>,
    runner: &Runner,
    cancel: &CancellationToken,
) -> Result<Allowed, String> {
    const TOOL: &str = "compile_context";
    let facts = toolsets::facts(settings, workspace, runner)?;
    let loaded = identity::policy(settings, &facts)?;
    let resolved = identity::caller(settings, &loaded.policy);
    let caller = resolved.caller;
    // The built-in policy cannot declare the roles of a catalogue, and nothing else limits who asks.
    let is_free = settings.config.policy.file.is_none()
        && resolved.evidence.len() == 1
        && role.is_some_and(|role| !loaded.policy.declares(role));
    if is_free {
        return Ok(Allowed { caller, limited: None });
    }
    let effects = WorkspaceEffects::new(Arc::clone(workspace), std::env::var_os("PATH"));
    identity::check_places(&loaded.policy, &caller, workspace, &effects)?;
    let mut judged: Map<String, Value> = Map::new();
    for (name, value) in [("role", role), ("plan_path", arguments.plan.as_deref())] {
        judged.extend(value.map(|value| (name.to_owned(), Value::from(value))));
    }
    let tool = facts.iter().find(|facts| facts.name == TOOL).ok_or("there is no such tool")?;
    let call = loaded.policy.authorize(&caller, tool, Call::new(TOOL, judged), &effects);
    let call = call.map_err(|refusal| match refusal {
        Refusal::Arguments { reason, .. } => format!("the policy refuses it: {reason}"),
        _ => format!("the policy does not let the role {} use `{TOOL}`", caller.role()),
    })?;
    let mut context = Context::new(caller, cancel.clone());
    context.scope = call.scope().clone();
    let limited = match context.scope.reaches_all_paths() {
        true => None,
        false => Some(context.within(workspace).map_err(|error| error.to_string())?),
    };
    Ok(Allowed { caller: context.caller, limited })
}

/// Prints the document, and with `--watch` again as long as there is somebody to read it.
async fn show(
    documents: &Documents,
    request: &Request,
    arguments: &Arguments,
    limited: Option<&Arc<Workspace>>,
    cancel: &CancellationToken,
) -> ExitCode {
    let mut shown = None;
    loop {
        let since = arguments.since.as_deref();
        let text = match documents.compile(request.clone(), since, limited.cloned(), cancel).await {
            Ok(compiled) => Ok(rendered(&compiled, arguments)),
            Err(error) => Err(format!("{}: {}", crate::name(), chain(&error))),
        };
        if shown.as_ref() != Some(&text) {
            let code = match &text {
                // It ends with a line feed already.
                Ok(text) => print(text.strip_suffix('\n').unwrap_or(text)),
                Err(error) => {
                    print_error(error);
                    ExitCode::FAILURE
                }
            };
            if !arguments.watch || (text.is_ok() && code != ExitCode::SUCCESS) {
                return code;
            }
            shown = Some(text);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn request(arguments: &Arguments, role: &str) -> Result<Request, String> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to lie between")]
    let factor = match (arguments.factor * 1_000.0).round() {
        factor if (1.0..=10_000.0).contains(&factor) => factor as u32,
        _ => return Err(format!("--factor must be 0.001 to 10, not {}", arguments.factor)),
    };
    Ok(Request {
        phase: arguments.phase,
        plan: arguments.plan.clone(),
        budget: Some(arguments.budget),
        factor,
        format: match arguments.format {
            Form::Markdown => Format::Markdown,
            Form::Xml => Format::Xml,
            Form::Json => Format::Json,
        },
        include: arguments.include.clone(),
        exclude: arguments.exclude.clone(),
        ..Request::new(role)
    })
}

/// A file that the operator names; `-` is standard input. A pipe may have nothing to read for long, so it is read on a
/// thread that nothing waits for, not even the end of the program.
async fn read(path: PathBuf) -> Result<String, String> {
    let failed = format!("cannot read {}", path.display());
    let (done, read) = tokio::sync::oneshot::channel();
    let work = move || done.send(read_now(&path));
    let started = std::thread::Builder::new().name("read".to_owned()).spawn(work);
    started.map_err(|error| format!("{failed}: {error}"))?;
    read.await.map_err(|_| failed)?
}

fn read_now(path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(MAX_BYTES + 1).read_to_end(&mut bytes)
    } else {
        #[allow(
            clippy::disallowed_methods,
            reason = "a file that the operator names, not one that is requested"
        )]
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)
    };
    if read.map_err(failed)? as u64 > MAX_BYTES {
        return Err(format!("{} has more than {MAX_BYTES} bytes", path.display()));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn rendered(compiled: &Compiled, arguments: &Arguments) -> String {
    if arguments.json {
        return serde_json::to_string_pretty(compiled).unwrap_or_default();
    }
    if arguments.manifest { table(compiled) } else { compiled.text() }
}

/// The manifest as a table.
fn table(compiled: &Compiled) -> String {
    let manifest = &compiled.manifest;
    let mut text = String::new();
    let width = manifest.sections.iter().map(|section| section.path.len()).max().unwrap_or(0).min(72);
    for section in &manifest.sections {
        let path = section.path.escape_debug();
        let _ = writeln!(
            text,
            "{:6} {:7} {:>7} tokens {:>8} bytes  {path:width$}  {}",
            section.half, section.level, section.tokens, section.bytes, section.why
        );
    }
    for left in &manifest.left_out {
        let _ = writeln!(
            text,
            "{:6} {:7} {}: {}",
            "-",
            "-",
            left.path.escape_debug(),
            left.reason.escape_debug()
        );
    }
    for note in &manifest.diagnostics {
        let _ = writeln!(text, "note: {}", note.escape_debug());
    }
    let _ = writeln!(
        text,
        "\n{} of {} tokens ({}, factor {}): prefix {} tokens, {} bytes; tail {} tokens, {} bytes\nprefix_hash {}",
        manifest.tokens,
        manifest.budget,
        manifest.counter,
        manifest.factor,
        manifest.prefix_tokens,
        manifest.prefix_bytes,
        manifest.volatile_tokens,
        manifest.volatile_bytes,
        manifest.prefix_hash
    );
    text
}
