//! Compiles the documents and the code that a role needs from the primary root of a workspace.
//!
//! [`context_compiler`] does the work. This area gives it files through the workspace, changes from a git that is confined
//! like every other command, and a redactor.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

mod tree;

pub use context_compiler::catalogue::{Catalogue, CatalogueError};
pub use context_compiler::{CompiledContext, ContextRequest, DocumentFormat};
pub use tree::WorkspaceTree;

use crate::ci::Commands;
use crate::git::{self, Repository};
use crate::redact::Redactor;
use crate::workspace::{self, Workspace};
use context_compiler::cache::ContentCache;
use context_compiler::catalogue::DiffDetail;
use context_compiler::changes::{RepositoryChanges, RepositoryChangesOutcome};
use context_compiler::git::{ChangesQuery, collect_changes};
use context_compiler::tokens::O200kCounter;
use context_compiler::{Compiler, Redact};
use process_runner::Command;
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// The input of the tool `compile_context`.
// The comments on the fields are short because a client gets them with every list of tools.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CompileContext {
    /// The role that the document is for, such as `dev` or `qa`. Your own role by default.
    pub role: Option<String>,
    /// The number of the phase whose plans are included. By default no plan of a phase is.
    pub phase: Option<u32>,
    /// A plan to include instead of those of a phase, as a path below the first root.
    pub plan_path: Option<String>,
    /// The most tokens of the document. 12000 by default.
    pub budget_tokens: Option<u32>,
    /// The work in a sentence: the code that it names is included first.
    pub task: Option<String>,
    /// Globs of source files that are wanted, such as `src/**/*.rs`. By default the task and the changes choose them.
    pub include: Option<Vec<String>>,
    /// Globs of files that are left out.
    pub exclude: Option<Vec<String>>,
    /// The form of the document. `markdown` by default.
    #[serde(default)]
    pub format: DocumentFormatInput,
    /// The revision since which changes are shown. HEAD by default, which shows what is not committed.
    pub since: Option<String>,
    /// The `prefix_hash` of an earlier answer: while the stable part is the same, it is not sent again.
    pub known_prefix: Option<String>,
    /// The output of a failed test run, to be included with the code that it names.
    pub test_failures: Option<String>,
    /// True adds to the last line every section with its tokens and reason, and what was left out. False by default.
    #[serde(default)]
    pub manifest: bool,
}

/// The format of a document, as the tool takes it.
// No comments on the variants: each would be sent with every list of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[allow(missing_docs, reason = "see above")]
#[non_exhaustive]
pub enum DocumentFormatInput {
    #[default]
    Markdown,
    Xml,
    Json,
}

impl From<DocumentFormatInput> for DocumentFormat {
    fn from(format: DocumentFormatInput) -> Self {
        match format {
            DocumentFormatInput::Markdown => Self::Markdown,
            DocumentFormatInput::Xml => Self::Xml,
            DocumentFormatInput::Json => Self::Json,
        }
    }
}

impl CompileContext {
    /// Returns the request, for `default_role` if the input names no role.
    pub fn to_request(&self, default_role: &str) -> ContextRequest {
        let mut request = ContextRequest::new(self.role.as_deref().unwrap_or(default_role));
        request.phase = self.phase;
        request.plan = self.plan_path.clone();
        request.budget_tokens = self.budget_tokens.and_then(|tokens| usize::try_from(tokens).ok());
        request.format = self.format.into();
        request.task = self.task.clone();
        request.include = self.include.clone();
        request.exclude = self.exclude.clone().unwrap_or_default();
        request.known_prefix_hash = self.known_prefix.clone();
        request.test_failures = self.test_failures.clone();
        request
    }
}

/// The reason why there is no document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The compiler returned an error.
    #[error(transparent)]
    Compile(#[from] context_compiler::Error),
    /// The primary root cannot be used.
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
    /// The runtime shut down before the document was compiled.
    #[error("the server is shutting down; the document was not compiled")]
    ShuttingDown,
}

/// Compiles documents from the primary root of a workspace. Cheap to clone; clones share one cache.
#[derive(Clone, Debug)]
pub struct WorkspaceCompiler {
    commands: Commands,
    cache_folder: Option<PathBuf>,
    /// Opened when it is first needed, so that a server that compiles nothing creates no folder.
    cache: Arc<OnceLock<OpenContextCache>>,
    /// None for the built-in one, which is parsed when the first document is compiled.
    catalogue: Option<Arc<Catalogue>>,
}

/// The cache of a compiler.
#[derive(Debug)]
struct OpenContextCache {
    cache: ContentCache,
    /// The reason why the folder for caches is not used, if it cannot be.
    diagnostic: Option<String>,
}

impl WorkspaceCompiler {
    /// A compiler over the workspace of `commands`, which runs git under their confinement, with the built-in
    /// [catalogue](Catalogue::built_in).
    pub fn new(commands: Commands) -> Self {
        Self { commands, cache_folder: None, cache: Arc::default(), catalogue: None }
    }

    /// Takes the documents of each role, and the folders where they are looked for, from `catalogue`.
    #[must_use]
    pub fn catalogue(mut self, catalogue: Catalogue) -> Self {
        self.catalogue = Some(Arc::new(catalogue));
        self
    }

    fn active_catalogue(&self) -> &Catalogue {
        self.catalogue.as_deref().unwrap_or_else(|| Catalogue::built_in())
    }

    /// Keeps the cache in `folder` as well, for the next process: token counts, outlines, and which content a path had, but
    /// no content. The folder is created when it is first needed, accessible to its owner only, and projects and processes
    /// share it. If it cannot be used, [`Manifest::diagnostics`](context_compiler::Manifest::diagnostics) says so.
    #[must_use]
    pub fn cached_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache_folder = Some(folder.into());
        self.cache = Arc::default();
        self
    }

    fn open_cache(&self) -> &OpenContextCache {
        self.cache.get_or_init(|| {
            let counter = Arc::new(O200kCounter);
            #[cfg(unix)]
            if let Some(folder) = &self.cache_folder {
                let project = self.commands.workspace().locate(".").map(|root| root.to_absolute());
                let project = project.unwrap_or_default();
                return match ContentCache::in_folder(counter.clone(), folder, &project.to_string_lossy()) {
                    Ok(cache) => OpenContextCache { cache, diagnostic: None },
                    Err(error) => OpenContextCache {
                        cache: ContentCache::new(counter),
                        diagnostic: Some(format!("the folder for caches cannot be used: {error}")),
                    },
                };
            }
            OpenContextCache { cache: ContentCache::new(counter), diagnostic: None }
        })
    }

    /// Returns the workspace whose primary root documents are compiled from.
    pub fn workspace(&self) -> &Arc<Workspace> {
        self.commands.workspace()
    }

    /// Returns the role of `roles`, all of them the caller's, that a document is for: the first one in the catalogue, else
    /// the last one.
    pub fn select_role<'r>(&self, roles: impl Iterator<Item = &'r str> + Clone) -> &'r str {
        let in_catalogue = roles.clone().find(|role| self.active_catalogue().has_role(role));
        in_catalogue.or_else(|| roles.last()).unwrap_or("default")
    }

    /// Compiles the document that `request` asks for, with the changes since the revision `since`, by default `HEAD`.
    ///
    /// `limited` is the part of the workspace that the caller may read, if that is not all of it. git is then not asked,
    /// because its answer tells about every file.
    ///
    /// # Errors
    /// The request or the revision is invalid, the root cannot be used, or the budget is too small.
    pub async fn compile(
        &self,
        mut request: ContextRequest,
        since: Option<&str>,
        limited: Option<Arc<Workspace>>,
        cancel: &CancellationToken,
    ) -> Result<CompiledContext, Error> {
        let detail = request.diff_detail.unwrap_or(self.active_catalogue().role(&request.role).diff);
        if detail != DiffDetail::Off {
            request.changes = Some(match &limited {
                None => self.changes(since, detail, cancel).await?,
                Some(_) => RepositoryChanges::new(
                    since.unwrap_or("HEAD"),
                    failed("this role may not read every file"),
                ),
            });
        }
        let tree = match limited {
            None => WorkspaceTree::new(Arc::clone(self.commands.workspace())),
            Some(workspace) => WorkspaceTree::new(workspace).limited(),
        };
        let this = self.clone();
        // Reading, parsing and counting block for up to seconds, so they run on a thread of their own.
        let work = move || {
            let redact = SharedRedactor(&this.commands.redactor);
            let OpenContextCache { cache, diagnostic } = this.open_cache();
            let compiler =
                Compiler::new(&tree).cache(cache).catalogue(this.active_catalogue()).redact(&redact);
            let mut compiled = compiler.compile(&request)?;
            compiled.manifest.diagnostics.extend(diagnostic.clone());
            #[cfg(unix)]
            if let Err(error) = cache.save() {
                compiled.manifest.diagnostics.push(format!("the cache could not be written: {error}"));
            }
            Ok(compiled)
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(compiled) => compiled,
            // Passed on, because the tool host answers a panic of any tool in the same way.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Error::ShuttingDown),
        }
    }

    /// Asks git for the changes of the primary root.
    async fn changes(
        &self,
        since: Option<&str>,
        detail: DiffDetail,
        cancel: &CancellationToken,
    ) -> Result<RepositoryChanges, Error> {
        let workspace = self.commands.workspace();
        let since = since.unwrap_or("HEAD");
        let outcome = match Repository::discover(workspace, None) {
            Ok(_) => None,
            Err(git::Error::NoRepository(_)) => Some(RepositoryChangesOutcome::NotARepository),
            Err(git::Error::Path(error)) => return Err(error.into()),
            // The repository lies partly outside the roots, or has a layout that is not supported.
            Err(error) => Some(failed(error.to_string())),
        };
        if let Some(outcome) = outcome {
            return Ok(RepositoryChanges::new(since, outcome));
        }
        let root = workspace.locate(".")?;
        // git runs several times. Through the handle, each run starts in the folder that was checked.
        #[cfg(unix)]
        let handle = Arc::new(root.folder_handle()?);
        let path = root.to_absolute();
        let command = || {
            let command = context_compiler::git::command(&path);
            #[cfg(unix)]
            let command = command.folder_handle(Arc::clone(&handle));
            command
        };
        let run = |command: Command| {
            let command = self.commands.confine_offline(command.cancel(cancel.clone()));
            async move { self.commands.runner.run(command).await }
        };
        let query = ChangesQuery::new().since(since).detail(detail);
        Ok(collect_changes(command, run, &query).await?)
    }
}

fn failed(reason: impl Into<String>) -> RepositoryChangesOutcome {
    RepositoryChangesOutcome::Failed { reason: reason.into() }
}

/// The redactor of the server behind the trait of the compiler.
struct SharedRedactor<'a>(&'a Redactor);

impl Redact for SharedRedactor<'_> {
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.0.redact(text)
    }

    // One number is enough: the cache of a `WorkspaceCompiler` is used with its redactor only.
    fn cache_key(&self) -> Option<u64> {
        Some(1)
    }
}
