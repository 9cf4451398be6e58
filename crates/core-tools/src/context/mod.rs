//! The documents and code that a role needs, compiled from the primary root of a workspace.
//!
//! The work is done by [`context_compiler`]; here it gets its files through the workspace, its changes from a
//! git that runs behind the same fence as every command, and its texts without secrets.
#![allow(clippy::doc_markdown, reason = "the comments on inputs are what a client reads")]

mod tree;

pub use context_compiler::catalogue::Catalogue;
pub use context_compiler::{Compiled, Format, Request};
pub use tree::WorkspaceTree;

use crate::ci::Commands;
use crate::git::{self, Repository};
use crate::redact::Redactor;
use crate::workspace::{self, Workspace};
use context_compiler::cache::{Cache, DEFAULT_LIMIT};
use context_compiler::catalogue::Diff;
use context_compiler::changes::{Changes, Outcome};
use context_compiler::count::O200k;
use context_compiler::{Compiler, Redact};
use process_runner::Command;
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// What is asked for.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompileContext {
    /// If not yours
    pub role: Option<String>,
    /// Its plans
    pub phase: Option<u32>,
    /// Or this plan
    pub plan_path: Option<String>,
    /// Or 12000
    pub budget_tokens: Option<u32>,
    /// Code globs
    pub include: Option<Vec<String>>,
    /// Not these
    pub exclude: Option<Vec<String>>,
    /// Of text
    #[serde(default)]
    pub format: Form,
    /// Or HEAD
    pub since: Option<String>,
    /// The prefix_hash of an answer that is still at hand: the prefix is not sent again while it is the same
    #[schemars(extend("unlisted" = true))]
    pub known_prefix: Option<String>,
    /// What the last test run said, for the tail
    #[schemars(extend("unlisted" = true))]
    pub test_failures: Option<String>,
}

/// The form of a document.
// No comments on the members: each would be sent with every list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
#[allow(missing_docs, reason = "see above")]
pub enum Form {
    #[default]
    Markdown,
    Xml,
    Json,
}

impl From<Form> for Format {
    fn from(form: Form) -> Self {
        match form {
            Form::Markdown => Self::Markdown,
            Form::Xml => Self::Xml,
            Form::Json => Self::Json,
        }
    }
}

impl CompileContext {
    /// The request, for `role` where none is named.
    pub fn to_request(&self, role: &str) -> Request {
        Request {
            phase: self.phase,
            plan: self.plan_path.clone(),
            budget: self.budget_tokens.and_then(|tokens| usize::try_from(tokens).ok()),
            format: self.format.into(),
            include: self.include.clone(),
            exclude: self.exclude.clone().unwrap_or_default(),
            known_prefix: self.known_prefix.clone(),
            test_failures: self.test_failures.clone(),
            ..Request::new(self.role.as_deref().unwrap_or(role))
        }
    }
}

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The compiler gave none.
    #[error(transparent)]
    Compile(#[from] context_compiler::Error),
    /// The root cannot be used.
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
    /// The work could not be finished.
    #[error("the work was ended before it was done")]
    Ended,
}

/// Compiles documents from the primary root of a workspace. Cheap to clone; clones share what they remember of files.
#[derive(Clone, Debug)]
pub struct Documents {
    commands: Commands,
    folder: Option<PathBuf>,
    cache: Arc<OnceLock<(Cache, Option<String>)>>,
    catalogue: Arc<Catalogue>,
}

impl Documents {
    /// Documents from the workspace of `commands`, behind their fence, with the built-in
    /// [roles](Catalogue::built_in).
    pub fn new(commands: Commands) -> Self {
        Self {
            commands,
            folder: None,
            cache: Arc::default(),
            catalogue: Arc::new(Catalogue::built_in().clone()),
        }
    }

    /// Which documents a role reads, and where they are looked for.
    #[must_use]
    pub fn catalogue(mut self, catalogue: Catalogue) -> Self {
        self.catalogue = Arc::new(catalogue);
        self
    }

    /// Remembers what files were in `folder` too, for the next process: token counts, outlines and which content a
    /// path had, no content. The folder is made when it is first needed, for its owner alone, and shared by projects
    /// and processes. One that cannot be used is told in [`Manifest::diagnostics`](context_compiler::Manifest).
    #[must_use]
    pub fn cached_in(mut self, folder: impl Into<PathBuf>) -> Self {
        (self.folder, self.cache) = (Some(folder.into()), Arc::default());
        self
    }

    /// What is known of files, and why not from the folder.
    fn cache(&self) -> &(Cache, Option<String>) {
        self.cache.get_or_init(|| {
            let in_memory = || Cache::new(Arc::new(O200k), DEFAULT_LIMIT);
            #[cfg(unix)]
            if let Some(folder) = &self.folder {
                let project = self.commands.workspace().locate(".").map(|root| root.to_absolute());
                let project = project.unwrap_or_default();
                let opened =
                    Cache::in_folder(Arc::new(O200k), DEFAULT_LIMIT, folder, &project.to_string_lossy());
                return match opened {
                    Ok(cache) => (cache, None),
                    Err(error) => {
                        (in_memory(), Some(format!("the folder for caches cannot be used: {error}")))
                    }
                };
            }
            (in_memory(), None)
        })
    }

    /// The roots that documents are compiled from.
    pub fn workspace(&self) -> &Arc<Workspace> {
        self.commands.workspace()
    }

    /// Which of `roles`, all of them the caller's, a document is for: the first that reads something of its own,
    /// else the last.
    pub fn role_of<'r>(&self, roles: impl Iterator<Item = &'r str> + Clone) -> &'r str {
        let known = roles.clone().find(|role| self.catalogue.knows(role));
        known.or_else(|| roles.last()).unwrap_or("default")
    }

    /// The document that `request` asks for, with what changed since `since`, or since `HEAD`. `limited` is the
    /// workspace as far as the caller may reach, where that is not all of it: then git is not asked, which tells of
    /// every file.
    ///
    /// # Errors
    /// What was asked for cannot be used, or the budget is too small.
    pub async fn compile(
        &self,
        mut request: Request,
        since: Option<&str>,
        limited: Option<Arc<Workspace>>,
        cancel: &CancellationToken,
    ) -> Result<Compiled, Error> {
        let diff = request.diff.unwrap_or(self.catalogue.role(&request.role).diff);
        if diff != Diff::Off {
            request.changes = Some(match &limited {
                None => self.changes(since, diff, cancel).await?,
                Some(_) => Changes {
                    outcome: Outcome::Failed { said: "this role may not read every file".to_owned() },
                    base: since.unwrap_or("HEAD").to_owned(),
                    ..Changes::default()
                },
            });
        }
        let tree = match limited {
            None => WorkspaceTree::new(Arc::clone(self.commands.workspace())),
            Some(workspace) => WorkspaceTree::new(workspace).limited(),
        };
        let this = self.clone();
        let work = move || {
            let secrets = Secrets(&this.commands.redactor);
            let (cache, unusable) = this.cache();
            let compiler = Compiler::new(&tree, cache).catalogue(&this.catalogue).redact(&secrets);
            let mut compiled = compiler.compile(&request)?;
            compiled.manifest.diagnostics.extend(unusable.clone());
            #[cfg(unix)]
            if let Err(error) = cache.save() {
                compiled.manifest.diagnostics.push(format!("the cache could not be written: {error}"));
            }
            Ok(compiled)
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(compiled) => compiled,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Error::Ended),
        }
    }

    async fn changes(
        &self,
        since: Option<&str>,
        diff: Diff,
        cancel: &CancellationToken,
    ) -> Result<Changes, Error> {
        let workspace = self.commands.workspace();
        let ask = context_compiler::git::Ask {
            since: since.map(str::to_owned),
            diff,
            ..context_compiler::git::Ask::default()
        };
        let base = since.unwrap_or("HEAD").to_owned();
        let outcome = match Repository::find(workspace, None) {
            Ok(_) => None,
            Err(git::Error::NoRepository(_)) => Some(Outcome::NotARepository),
            Err(git::Error::Path(error)) => return Err(error.into()),
            // It reaches outside the roots, or is laid out in a way that is not followed.
            Err(error) => Some(Outcome::Failed { said: error.to_string() }),
        };
        if let Some(outcome) = outcome {
            return Ok(Changes { outcome, base, ..Changes::default() });
        }
        let root = workspace.locate(".")?;
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
            let command = self.commands.confine.apply(command.cancel(cancel.clone()));
            async move { self.commands.runner.run(command).await }
        };
        Ok(context_compiler::git::changes(command, run, &ask).await?)
    }
}

/// The server's redactor, as the compiler asks for it.
struct Secrets<'a>(&'a Redactor);

impl Redact for Secrets<'_> {
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.0.redact(text)
    }

    /// A cache of [`Documents`] is used with their redactor alone.
    fn key(&self) -> Option<u64> {
        Some(1)
    }
}
