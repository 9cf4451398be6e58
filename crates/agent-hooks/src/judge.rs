//! [`HookJudge`]: asks the policy about the use of a native tool.

use crate::client::HookClient;
use crate::event::HookEvent;
use crate::shell::ShellSurroundings;
use crate::tool_use::{FileUse, ToolUse};
use crate::web_hosts::check_hosts;
use crate::word_pattern::MAX_EVALUATIONS;
use role_policy::{
    Access, Call, Caller, EffectResolver, PatchedPath, Policy, Refusal, ResolveError, ToolFacts,
};
use serde_json::{Map, Value, json};
use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};
use workspace::Workspace;

/// The decision about a use of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookVerdict {
    /// The policy has no objection.
    Allow,
    /// The tool may not run.
    Deny,
    /// A person must agree first.
    Ask,
}

/// The decision about a use of a tool, and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookDecision {
    /// The decision.
    pub verdict: HookVerdict,
    /// The tool of ours that was judged, or the client's name for a tool that is none of ours.
    pub tool: String,
    /// The rule that decided, for the operator.
    pub rule: String,
    /// The reason of a refusal: what was wrong and what to do, in words for a model.
    pub reason: String,
    /// True if the tool runs programs, so that its command line can be run beneath a supervisor.
    pub runs_programs: bool,
    /// The files and folders that clients load by themselves and that a person who agrees lets the command line change.
    pub opened: Vec<PathBuf>,
}

/// A refusal, on its way to a decision.
pub(crate) struct Denial {
    pub(crate) tool: String,
    pub(crate) rule: String,
    pub(crate) reason: String,
}

/// The parts that decide about a use of a tool. The parts are the same as in a server for the same caller: the policy,
/// its roots and the resolution of paths in them.
#[derive(Clone, Copy)]
pub struct HookJudge<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The caller.
    pub caller: &'a Caller,
    /// The facts of our tools.
    pub tools: &'a [ToolFacts<'a>],
    /// The resolution of paths and programs.
    pub effects: &'a dyn EffectResolver,
    /// The roots, and the files in them that nothing may write.
    pub workspace: &'a Workspace,
    /// The same roots, where only the files are protected that no person's word opens: the policy, the audit, the settings of
    /// clients. What clients load by themselves can be changed in these roots.
    pub workspace_for_asking: &'a Workspace,
    /// The files that a command line may not name to change them.
    pub protected: &'a [PathBuf],
    /// The files among them that clients load by themselves: a person's word opens those, as it opens `protected_folders`.
    pub loaded_files: &'a [PathBuf],
    /// The folders in which a command line may change nothing.
    pub protected_folders: &'a [PathBuf],
    /// The surroundings of command lines.
    pub surroundings: ShellSurroundings<'a>,
    /// True for a caller who may do everything there is: what cannot be judged is then allowed.
    pub is_unrestricted: bool,
    /// The names of the programs that this project installs: a copy with another role would be another caller.
    pub own_programs: &'a [String],
    /// The names that clients have for our own server. That server judges the arguments of its calls itself.
    pub own_servers: &'a [&'a str],
}

impl std::fmt::Debug for HookJudge<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HookJudge").field("caller", self.caller).finish_non_exhaustive()
    }
}

impl HookJudge<'_> {
    /// Decides about the tool that `event` asks for.
    pub fn judge(&self, event: &HookEvent) -> HookDecision {
        self.judge_use(event, &ToolUse::of(event))
    }

    /// Decides about a use of a tool, where another part than [`ToolUse::of`] knows what the tool would do.
    pub fn judge_use(&self, event: &HookEvent, found: &ToolUse) -> HookDecision {
        let judgement = Judgement::new(self);
        let judged = judgement.judge_use(event, found);
        let mut decision = judgement.decision(judged);
        if decision.verdict == HookVerdict::Deny {
            let role = self.caller.role();
            decision.reason =
                format!("refused by the CoreTools policy for the role {role}: {}", decision.reason);
        }
        decision
    }

    /// Decides about a command in words, which runs in `folder`.
    pub fn judge_command(&self, words: &[String], folder: &Path) -> HookDecision {
        let read = crate::shell::read_words(words, self.surroundings);
        let judgement = Judgement::new(self);
        let judged = judgement.line(read, folder, "run_command");
        judgement.decision(judged)
    }
}

/// One decision on its way: the judge, and what a person must agree to.
pub(crate) struct Judgement<'a> {
    judge: &'a HookJudge<'a>,
    /// The calls that need a person's approval, each with its reason. The rest of the use is judged all the same.
    pub(crate) asks: RefCell<Vec<(String, String)>>,
    /// The files and folders that are open to the command line if a person agrees.
    pub(crate) opened: RefCell<Vec<PathBuf>>,
    /// The words of the line whose values can still be worked out.
    pub(crate) evaluations: Cell<usize>,
    /// The protected files, and the folders above them.
    pub(crate) protected_paths: OnceCell<Vec<ProtectedPath>>,
}

/// A protected file, or a folder above it.
pub(crate) struct ProtectedPath {
    pub(crate) path: String,
    pub(crate) file: PathBuf,
    pub(crate) is_above_root: bool,
}

impl<'a> std::ops::Deref for Judgement<'a> {
    type Target = HookJudge<'a>;

    fn deref(&self) -> &Self::Target {
        self.judge
    }
}

impl<'a> Judgement<'a> {
    fn new(judge: &'a HookJudge<'a>) -> Self {
        Self {
            judge,
            asks: RefCell::default(),
            opened: RefCell::default(),
            evaluations: Cell::new(MAX_EVALUATIONS),
            protected_paths: OnceCell::new(),
        }
    }
}

impl Judgement<'_> {
    /// Returns the decision, which is to ask if anything in an allowed use needs an approval.
    fn decision(&self, judged: Result<HookDecision, Denial>) -> HookDecision {
        match judged {
            Ok(mut decision) => {
                let asks = self.asks.borrow();
                if let Some((rule, _)) = asks.first() {
                    decision.verdict = HookVerdict::Ask;
                    rule.clone_into(&mut decision.rule);
                    decision.reason =
                        asks.iter().map(|(_, reason)| reason.as_str()).collect::<Vec<_>>().join("; ");
                    decision.opened = self.opened.take();
                }
                decision
            }
            Err(denial) => HookDecision {
                verdict: HookVerdict::Deny,
                tool: denial.tool,
                rule: denial.rule,
                reason: denial.reason,
                runs_programs: false,
                opened: Vec::new(),
            },
        }
    }

    fn judge_use(&self, event: &HookEvent, found: &ToolUse) -> Result<HookDecision, Denial> {
        let folder = event.folder.as_path();
        match found {
            ToolUse::Internal => Ok(allowed(&event.tool, "the client's own bookkeeping")),
            ToolUse::Unknown if self.is_unrestricted => {
                Ok(allowed(&event.tool, "the role may do everything"))
            }
            ToolUse::Unknown => Err(Denial {
                tool: event.tool.clone(),
                rule: "a tool that is not known".to_owned(),
                reason: format!(
                    "`{}`, with these arguments, is no tool that the policy can judge; use the client's tools for files \
                     and commands, or those of the CoreTools server",
                    event.tool
                ),
            }),
            ToolUse::Web(name) => {
                let facts = ToolFacts::new(name, "agent").read_only(true);
                let rule = self.authorize(&facts, Map::new(), folder, &event.tool)?;
                // The client connects by itself, past the proxy of the role's programs.
                if let Some(scope) = self.policy.scope(self.caller, &facts) {
                    check_hosts(&event.input, scope.network()).map_err(|refusal| Denial {
                        tool: (*name).to_owned(),
                        rule: "the network".to_owned(),
                        reason: refusal.to_string(),
                    })?;
                }
                Ok(allowed(*name, rule))
            }
            ToolUse::Agent => {
                let rule = self.authorize_agent(event.client.as_str(), folder, &event.tool)?;
                Ok(allowed("run_agent_command", rule))
            }
            ToolUse::Server { server, tool } => self.server_tool(event, server, tool),
            // Every file is judged. The first denial ends the loop, and the decision of the last file stands for all.
            ToolUse::Files(files) => {
                let mut decision = allowed(&event.tool, "no file");
                for file in files {
                    decision = allowed(file.tool, self.file(file, folder, &event.tool)?);
                }
                Ok(decision)
            }
            ToolUse::Patch(patch) => self.patch(patch, folder, &event.tool),
            ToolUse::Line { line, folder: named } => {
                let folder = joined(folder, named.as_deref());
                let read = crate::shell::read(line, self.surroundings);
                self.line(read, &folder, &event.tool)
            }
            ToolUse::Words { words, folder: named } => {
                let folder = joined(folder, named.as_deref());
                let read = crate::shell::read_words(words, self.surroundings);
                self.line(read, &folder, &event.tool)
            }
        }
    }

    /// Returns the facts of one of our tools.
    ///
    /// # Errors
    /// This program was built without it.
    pub(crate) fn facts(&self, name: &str) -> Result<ToolFacts<'_>, Denial> {
        self.tools.iter().find(|facts| facts.name == name).copied().ok_or_else(|| Denial {
            tool: name.to_owned(),
            rule: "the tool is not there".to_owned(),
            reason: format!("`{name}`, by which this is judged, is not part of this program"),
        })
    }

    /// Asks the policy. `native` is the client's name for what is judged.
    pub(crate) fn authorize(
        &self,
        facts: &ToolFacts<'_>,
        arguments: Map<String, Value>,
        folder: &Path,
        native: &str,
    ) -> Result<String, Denial> {
        let effects = FolderEffects { inner: self.effects, folder };
        let call = Call::new(facts.name, arguments);
        match self.policy.authorize(self.caller, facts, call, &effects) {
            Ok(call) => Ok(call.decision().rule.to_string()),
            Err(Refusal::Approval(request)) => {
                let rule = request.rule().to_string();
                self.asks.borrow_mut().push((rule.clone(), request.to_string()));
                Ok(rule)
            }
            Err(refusal) => {
                let reason = match &refusal {
                    Refusal::Hidden { .. } => {
                        format!(
                            "this role may not use `{}`, which is what `{native}` does; go on without it",
                            facts.name
                        )
                    }
                    refusal => refusal.to_string(),
                };
                Err(Denial { tool: facts.name.to_owned(), rule: refusal.rule().to_string(), reason })
            }
        }
    }

    /// Asks the policy about the start of another agent.
    pub(crate) fn authorize_agent(&self, agent: &str, folder: &Path, native: &str) -> Result<String, Denial> {
        let name = "run_agent_command";
        // A program without sessions has no such tool; the policy may name it all the same.
        let facts = self.facts(name).unwrap_or_else(|_| ToolFacts::external(name));
        self.authorize(&facts, Map::from_iter([("command".to_owned(), json!(agent))]), folder, native)
    }

    /// Judges a tool of an MCP server.
    fn server_tool(&self, event: &HookEvent, server: &str, tool: &str) -> Result<HookDecision, Denial> {
        if self.own_servers.contains(&server)
            && let Some(facts) = self.tools.iter().find(|facts| facts.name == tool)
        {
            if self.policy.sees(self.caller, facts) {
                // The server judges the arguments, in the form that it runs them in.
                return Ok(allowed(tool, "the server judges the call"));
            }
            self.authorize(facts, Map::new(), &event.folder, &event.tool)?;
        }
        // The event does not name the server, so the tool is judged as ours of the same name.
        if event.client == HookClient::Cursor {
            let facts = self.tools.iter().find(|facts| facts.name == tool).copied();
            let facts = facts.unwrap_or_else(|| ToolFacts::external(tool));
            let rule = self.authorize(&facts, event.input.clone(), &event.folder, &event.tool)?;
            return Ok(allowed(tool, rule));
        }
        // The name of a server may have the separator in it, and then a part of it stands before the tool here: the tool is
        // judged by each name that it could have.
        let separator = match event.client {
            HookClient::Copilot => "-",
            _ if event.tool.starts_with("mcp__") => "__",
            _ => "_",
        };
        let mut name = tool;
        let mut rule =
            self.authorize(&ToolFacts::external(name), event.input.clone(), &event.folder, &event.tool)?;
        while let Some((_, shorter)) = name.split_once(separator) {
            if shorter.is_empty() {
                break;
            }
            name = shorter;
            rule =
                self.authorize(&ToolFacts::external(name), event.input.clone(), &event.folder, &event.tool)?;
        }
        Ok(allowed(tool, rule))
    }

    fn file(&self, file: &FileUse, folder: &Path, native: &str) -> Result<String, Denial> {
        let facts = self.facts(file.tool)?;
        let mut arguments = file.arguments.clone();
        let path = joined(folder, Some(&file.path));
        arguments.insert("path".to_owned(), json!(path.to_string_lossy()));
        let asked_before = self.asks.borrow().len();
        let rule = self.authorize(&facts, arguments, folder, native)?;
        let Err(reason) = self.check_path(&path, file.access) else { return Ok(rule) };
        let reason = format!("`{}`: {reason}", file.path);
        // Where the policy has a person asked about this call, the person can agree to a change of what clients load.
        let is_asked = self.asks.borrow().len() > asked_before;
        if is_asked && self.may_be_asked_about(&path, file.access) {
            self.asks.borrow_mut().push((rule.clone(), reason));
            return Ok(rule);
        }
        Err(Denial { tool: file.tool.to_owned(), rule: "the roots".to_owned(), reason })
    }

    /// Judges a patch, by the tool for patches and by the tools that would do the same to each file.
    fn patch(&self, patch: &str, folder: &Path, native: &str) -> Result<HookDecision, Denial> {
        let facts = self.facts("apply_patch")?;
        let rule =
            self.authorize(&facts, Map::from_iter([("patch".to_owned(), json!(patch))]), folder, native)?;
        let denied =
            |reason: String| Denial { tool: "apply_patch".to_owned(), rule: "the roots".to_owned(), reason };
        let paths =
            self.effects.patched_paths(patch).map_err(|error| denied(format!("the patch: {error}")))?;
        for patched in &paths {
            let (PatchedPath::Edited(path)
            | PatchedPath::Created(path)
            | PatchedPath::Removed(path)
            | PatchedPath::Moved(path)) = patched
            else {
                return Err(denied("the patch does what is not known here".to_owned()));
            };
            self.check_path(&joined(folder, Some(path)), Access::Write)
                .map_err(|reason| denied(format!("`{path}`: {reason}")))?;
        }
        // The policy has judged the parts of the patch above. Only the roots were still to be checked.
        Ok(allowed("apply_patch", rule))
    }

    /// Checks that a path lies in a root, and may be changed if it would be.
    pub(crate) fn check_path(&self, path: &Path, access: Access) -> Result<(), String> {
        check_path(self.workspace, path, access)
    }

    /// Returns true if a person may agree to this access to a path: no person's word opens what else is protected.
    pub(crate) fn may_be_asked_about(&self, path: &Path, access: Access) -> bool {
        check_path(self.workspace_for_asking, path, access).is_ok()
    }
}

fn check_path(workspace: &Workspace, path: &Path, access: Access) -> Result<(), String> {
    let located = workspace.locate(path).map_err(|error| outside(workspace, &error))?;
    located.resolved().map_err(|error| outside(workspace, &error))?;
    if access == Access::Write {
        located.check_changeable().map_err(|error| error.to_string())?;
        let changeable = match located.target() {
            Ok(target) => target.check_changeable(),
            // Its folder does not exist either, and would be made with it.
            Err(error) if error.is_not_found() => located.check_creatable(),
            Err(error) => Err(error),
        };
        changeable.map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn outside(workspace: &Workspace, error: &workspace::Error) -> String {
    if !error.is_outside() {
        return error.to_string();
    }
    let roots: Vec<String> = workspace.roots().map(|root| format!("`{}`", root.display())).collect();
    format!("it lies outside the folders that this agent may use, which are {}", roots.join(", "))
}

pub(crate) fn allowed(tool: impl Into<String>, rule: impl Into<String>) -> HookDecision {
    HookDecision {
        verdict: HookVerdict::Allow,
        tool: tool.into(),
        rule: rule.into(),
        reason: String::new(),
        runs_programs: false,
        opened: Vec::new(),
    }
}

/// Returns `path` as it would be opened in `folder`.
pub(crate) fn joined(folder: &Path, path: Option<&str>) -> PathBuf {
    match path {
        // The workspace knows the home folder that `~` stands for.
        Some(path) if path == "~" || path.starts_with("~/") => PathBuf::from(path),
        Some(path) => folder.join(path),
        None => folder.to_owned(),
    }
}

/// Resolves relative paths in the folder of the session instead of the primary root.
pub(crate) struct FolderEffects<'a> {
    pub(crate) inner: &'a dyn EffectResolver,
    pub(crate) folder: &'a Path,
}

impl FolderEffects<'_> {
    fn located(&self, path: &str) -> String {
        // An empty path is an error of its own.
        if path.is_empty() {
            String::new()
        } else {
            joined(self.folder, Some(path)).to_string_lossy().into_owned()
        }
    }
}

impl EffectResolver for FolderEffects<'_> {
    fn resolve_path(&self, path: &str) -> Result<String, ResolveError> {
        self.inner.resolve_path(&self.located(path))
    }

    fn resolve_name(&self, path: &str) -> Result<String, ResolveError> {
        self.inner.resolve_name(&self.located(path))
    }

    fn resolve_program(&self, word: &str) -> Result<String, ResolveError> {
        self.inner.resolve_program(word)
    }

    fn split_command(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        self.inner.split_command(line)
    }

    fn vector_words(&self, words: Vec<String>) -> Result<Vec<String>, ResolveError> {
        self.inner.vector_words(words)
    }

    fn shell_words(&self, line: &str) -> Result<Vec<String>, ResolveError> {
        self.inner.shell_words(line)
    }

    fn patched_paths(&self, patch: &str) -> Result<Vec<PatchedPath>, ResolveError> {
        self.inner.patched_paths(patch)
    }
}
