//! The subcommand `context`: the document for a role.

use crate::error::Error;
use crate::output::{name, print, print_error};
use clap::{Args, ValueEnum};
use core_tools::ci::Commands;
use core_tools::context::{Catalogue, CompiledContext, ContextRequest, DocumentFormat, WorkspaceCompiler};
use core_tools::mcp::{CallContext, WorkspaceEffects};
use core_tools::workspace::Workspace;
use error_causes::chain;
use process_runner::Runner;
use role_policy::{Call, Caller, Refusal};
use serde_json::{Map, Value};
use server_setup::settings::Settings;
use server_setup::{identity, policy, resources, toolsets};
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
  mcp-stdio context --task 'parse_args loses the last flag'
  mcp-stdio context --role qa --include 'src/**/*.rs' --manifest
  cargo test 2>&1 | mcp-stdio context --role dev --failures -

Exit codes:
  0  printed
  1  there is no document: the budget is too small, a plan is missing, a glob is wrong
  2  the configuration cannot be used, or the policy refuses it";

/// The time between two compilations with `--watch`.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);
/// The largest file of roles, or of failures; a larger one is a mistake.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The arguments of `context`.
#[derive(Args, Clone, Debug)]
#[allow(clippy::doc_markdown, reason = "the comments are what --help prints")]
pub(crate) struct ContextArguments {
    /// Phase whose plans to add
    #[arg(long, value_name = "N")]
    phase: Option<u32>,
    /// Plan to add instead of those of the phase
    #[arg(long, value_name = "FILE")]
    plan: Option<String>,
    /// Largest number of tokens in the document
    #[arg(long, value_name = "TOKENS", default_value_t = 32_000)]
    budget: usize,
    /// Tokens of the model for each token of o200k, which are counted: 1.35 for Claude up to 4.6, 1.8 from 4.7
    #[arg(long, default_value_t = 1.0)]
    factor: f64,
    /// Task at hand, in words: source files that match it come first
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// Glob of source files to add; repeat it for several. Default: those that changes, failures and the task concern
    #[arg(long, value_name = "GLOB")]
    include: Option<Vec<String>>,
    /// Glob of source files to leave out; repeat it for several
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Format of the document
    #[arg(long, value_enum, default_value_t = FormatArgument::Markdown)]
    format: FormatArgument,
    /// Revision since which to include changes. Default: HEAD
    #[arg(long, value_name = "REVISION")]
    since: Option<String>,
    /// File with the failures of the last test run; "-" reads standard input
    #[arg(long, value_name = "FILE")]
    failures: Option<PathBuf>,
    /// TOML file of roles and layout, in addition to the built-in ones. Default: the one in the configuration
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
    /// Print the list of what is included and what is left out, instead of the document
    #[arg(long)]
    manifest: bool,
    /// Print prefix, tail and manifest as JSON
    #[arg(long, conflicts_with = "manifest")]
    json: bool,
    /// Print it again whenever it changes
    #[arg(long)]
    watch: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArgument {
    Markdown,
    Xml,
    Json,
}

/// Prints the document for `role`, or for the role that the server would give the caller, as far as the policy allows.
pub(crate) async fn context(
    settings: &Settings,
    role: Option<&str>,
    arguments: &ContextArguments,
) -> Result<ExitCode, Error> {
    // Before anything that may wait, so that an interrupt ends it too.
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    let workspace = Arc::new(resources::workspace(settings)?);
    let runner = resources::runner(settings)?;
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
        Ok::<_, Error>((catalogue, failures))
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
        let catalogue = Catalogue::parse(&text)
            .map_err(|error| Error::Argument(format!("{}: {error}", path.display())))?;
        documents = documents.catalogue(catalogue);
    }
    let cancel = CancellationToken::new();
    let authorized = authorize(settings, role, arguments, &workspace, &runner, &cancel)?;
    let role = role.unwrap_or_else(|| documents.select_role(authorized.caller.roles()));
    let mut request = request(arguments, role)?;
    request.test_failures = failures;
    let code = tokio::select! {
        code = show(&documents, &request, arguments, authorized.limited.as_ref(), &cancel) => code,
        _ = interrupted => ExitCode::SUCCESS,
    };
    cancel.cancel();
    // After an interrupt, git may still run for the compilation.
    runner.shutdown(Duration::from_secs(2)).await;
    Ok(code)
}

/// The caller, and what it may read.
struct AuthorizedReader {
    caller: Caller,
    /// The workspace, where not all of it may be read.
    limited: Option<Arc<Workspace>>,
}

/// Asks the policy for a call of the tool that does the same.
fn authorize(
    settings: &Settings,
    role: Option<&str>,
    arguments: &ContextArguments,
    workspace: &Arc<Workspace>,
    runner: &Runner,
    cancel: &CancellationToken,
) -> Result<AuthorizedReader, Error> {
    const TOOL: &str = "compile_context";
    let facts = toolsets::facts(settings, workspace, runner)?;
    let loaded = policy::configured(settings, &facts)?;
    let resolved = identity::caller(settings, &loaded.policy);
    let caller = resolved.caller;
    // The built-in policy cannot declare the roles of a catalogue, and here nothing else limits the caller.
    let is_unlimited = settings.config.policy.file.is_none()
        && resolved.evidence.len() == 1
        && role.is_some_and(|role| !loaded.policy.declares(role));
    if is_unlimited {
        return Ok(AuthorizedReader { caller, limited: None });
    }
    let effects = WorkspaceEffects::new(Arc::clone(workspace), std::env::var_os("PATH"));
    policy::check_exclusions(&loaded.policy, &caller, workspace, &effects)?;
    let mut call_arguments: Map<String, Value> = Map::new();
    for (name, value) in [("role", role), ("plan_path", arguments.plan.as_deref())] {
        call_arguments.extend(value.map(|value| (name.to_owned(), Value::from(value))));
    }
    let tool = facts
        .iter()
        .find(|facts| facts.name == TOOL)
        .ok_or_else(|| Error::Failed(format!("there is no tool `{TOOL}`")))?;
    let call = loaded.policy.authorize(&caller, tool, Call::new(TOOL, call_arguments), &effects);
    let call = call.map_err(|refusal| {
        Error::Forbidden(match refusal {
            Refusal::Arguments { reason, .. } => format!("the policy refuses it: {reason}"),
            Refusal::Approval(request) => {
                format!("{request}; nobody is asked on the command line, so call the tool through the server")
            }
            _ => format!("the policy does not let the role {} use `{TOOL}`", caller.role()),
        })
    })?;
    let mut context = CallContext::new(caller, cancel.clone());
    context.scope = call.scope().clone();
    let limited = match context.scope.reaches_all_paths() {
        true => None,
        false => Some(context.within(workspace).map_err(|error| Error::Failed(error.to_string()))?),
    };
    Ok(AuthorizedReader { caller: context.caller, limited })
}

/// Prints the document; with `--watch` again at each change, for as long as somebody reads.
async fn show(
    documents: &WorkspaceCompiler,
    request: &ContextRequest,
    arguments: &ContextArguments,
    limited: Option<&Arc<Workspace>>,
    cancel: &CancellationToken,
) -> ExitCode {
    let mut printed = None;
    loop {
        let since = arguments.since.as_deref();
        let text = match documents.compile(request.clone(), since, limited.cloned(), cancel).await {
            Ok(compiled) => Ok(render(&compiled, arguments)),
            Err(error) => Err(format!("{}: {}", name(), chain(&error))),
        };
        // An error is compared too, so that one that lasts is printed once.
        if printed.as_ref() != Some(&text) {
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
            printed = Some(text);
        }
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
}

fn request(arguments: &ContextArguments, role: &str) -> Result<ContextRequest, Error> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to lie between")]
    let factor = match (arguments.factor * 1_000.0).round() {
        factor if (1.0..=10_000.0).contains(&factor) => factor as u32,
        _ => return Err(Error::Argument(format!("--factor must be 0.001 to 10, not {}", arguments.factor))),
    };
    let mut request = ContextRequest::new(role);
    request.phase = arguments.phase;
    request.plan = arguments.plan.clone();
    request.budget_tokens = Some(arguments.budget);
    request.token_factor_permille = factor;
    request.format = match arguments.format {
        FormatArgument::Markdown => DocumentFormat::Markdown,
        FormatArgument::Xml => DocumentFormat::Xml,
        FormatArgument::Json => DocumentFormat::Json,
    };
    request.task = arguments.task.clone();
    request.include = arguments.include.clone();
    request.exclude = arguments.exclude.clone();
    Ok(request)
}

/// Reads a file that the user names; `-` is standard input. A pipe may have nothing to read for long, so it is read on a
/// thread that nothing waits for: the runtime waits for those of its own pool.
async fn read(path: PathBuf) -> Result<String, Error> {
    let action = format!("cannot read {}", path.display());
    let (done, read) = tokio::sync::oneshot::channel();
    let work = move || done.send(read_now(&path));
    let started = std::thread::Builder::new().name("read".to_owned()).spawn(work);
    started.map_err(Error::system(action.clone()))?;
    read.await.map_err(|_| Error::Failed(action))?
}

fn read_now(path: &Path) -> Result<String, Error> {
    let failed = || Error::system(format!("cannot read {}", path.display()));
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)
    } else {
        #[allow(
            clippy::disallowed_methods,
            reason = "a file that the user names, not one that a client requests"
        )]
        let file = std::fs::File::open(path).map_err(failed())?;
        // One byte more than the limit tells a file that is too long from one that just fits.
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)
    };
    if read.map_err(failed())? as u64 > MAX_FILE_BYTES {
        return Err(Error::Argument(format!("{} has more than {MAX_FILE_BYTES} bytes", path.display())));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn render(compiled: &CompiledContext, arguments: &ContextArguments) -> String {
    if arguments.json {
        return serde_json::to_string_pretty(compiled).unwrap_or_default();
    }
    if arguments.manifest { table(compiled) } else { compiled.text() }
}

/// The manifest as a table.
fn table(compiled: &CompiledContext) -> String {
    let manifest = &compiled.manifest;
    let mut text = String::new();
    let width = manifest.sections.iter().map(|section| section.path.len()).max().unwrap_or(0).min(72);
    for section in &manifest.sections {
        // A name may hold characters that a terminal obeys.
        let path = section.path.escape_debug();
        let _ = writeln!(
            text,
            "{:6} {:7} {:>7} tokens {:>8} bytes  {path:width$}  {}",
            section.segment, section.level, section.tokens, section.bytes, section.why
        );
    }
    for omission in &manifest.left_out {
        let _ = writeln!(
            text,
            "{:6} {:7} {}: {}",
            "-",
            "-",
            omission.path.escape_debug(),
            omission.reason.escape_debug()
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
