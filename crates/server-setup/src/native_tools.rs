//! The judgement of an agent's own tools: by the policy, the roots, the role and the audit that a server has.

use crate::client_settings::{all_project_settings, loaded_files, loaded_folders};
use crate::confinement;
use crate::error::Error;
use crate::protected_files;
use crate::resources::{runner, workspace_without_client_folders};
use crate::settings::Settings;
use crate::{approvals, audit, environment, identity, policy, toolsets};
use agent_hooks::shell::ShellSurroundings;
use agent_hooks::{HookDecision, HookEvent, HookJudge, HookVerdict, ToolUse};
use core_tools::ci::{CommandScope, Commands, EgressLog};
use core_tools::mcp::{
    ApprovalAnswer, ApprovalFolder, ApprovalVerdict, Audit, CallDecision, CallRecord, Outcome,
    WorkspaceEffects, summarize_arguments, workspace_within,
};
use core_tools::redact::Redactor;
use core_tools::workspace::Workspace;
use process_runner::{Command, ResourceLimits, Runner};
use role_policy::{Call, CallFingerprint, CallScope, Caller, Policy, ToolFacts};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The programs of this project, and the names that clients have for its server.
const OWN_PROGRAMS: [&str; 4] = ["mcp-stdio", "mcp-http", "coretools-mcp", "mcp-stdio-shell"];

/// The parts that judge what an agent does with its own tools. They are those of a server with the same settings.
#[derive(Debug)]
pub struct NativeToolHost {
    settings: Settings,
    workspace: Arc<Workspace>,
    effects: WorkspaceEffects,
    policy: Policy,
    caller: Caller,
    facts: Vec<ToolFacts<'static>>,
    audit: Option<Audit>,
    redactor: Redactor,
    /// The same roots without the protection of what clients load by themselves.
    workspace_for_asking: Arc<Workspace>,
    protected: Vec<PathBuf>,
    loaded_files: Vec<PathBuf>,
    protected_folders: Vec<PathBuf>,
    variables: Vec<String>,
    home: Option<String>,
    own_programs: Vec<String>,
    is_unrestricted: bool,
}

/// The decision about a command, and the approval that it rests on.
#[derive(Clone, Debug)]
pub struct CommandDecision {
    /// The decision. A command that a person has approved is allowed.
    pub decision: HookDecision,
    approval: Option<ApprovalAnswer>,
}

impl NativeToolHost {
    /// Builds the host that `settings` describe.
    ///
    /// # Errors
    /// Something that the settings name cannot be used, or does not fit the rest.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let project_settings = all_project_settings(&settings.roots);
        let unprotected = workspace_without_client_folders(&settings, &settings.roots)?;
        let mut workspace = Arc::new(unprotected.protect(project_settings.clone()));
        let facts = toolsets::facts(&settings, &workspace, &runner(&settings)?)?;
        let loaded = policy::at_start(&settings, &facts)?;
        protected_files::check_marker_key(&settings, &workspace)?;
        let caller = identity::caller(&settings, &loaded.policy).caller;
        let is_unrestricted = confinement::is_full(&loaded.policy, &caller, &facts);
        let mut protected = protected_files::protected(&settings);
        protected.extend(project_settings.iter().cloned());
        let (mut protected_folders, mut opened_by_a_person) = (Vec::new(), Vec::new());
        let workspace_for_asking = Arc::clone(&workspace);
        if !is_unrestricted {
            let loaded_files = loaded_files(&settings.roots);
            protected_folders = loaded_folders(&settings.roots);
            workspace = Arc::new(
                Workspace::clone(&workspace)
                    .protect(loaded_files.clone())
                    .protect_folders(protected_folders.clone()),
            );
            protected.extend(loaded_files.iter().cloned());
            // Nobody's word opens a file that is among the settings as well.
            opened_by_a_person =
                loaded_files.into_iter().filter(|file| !project_settings.contains(file)).collect();
        }
        let effects = WorkspaceEffects::new(Arc::clone(&workspace), std::env::var_os("PATH"));
        policy::check_exclusions(&loaded.policy, &caller, &workspace, &effects)?;
        let mut own_programs = OWN_PROGRAMS.to_vec();
        own_programs.push(settings.program.name);
        // The file may have a name of its own.
        let executable = std::env::current_exe().map_err(Error::CurrentExecutable)?;
        let executable = executable.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Self {
            audit: audit::open(&settings)?,
            redactor: settings.redactor.clone(),
            variables: std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect(),
            // A relative home folder would mean another folder after every `cd`.
            home: std::env::var("HOME").ok().filter(|home| home.starts_with('/')),
            is_unrestricted,
            policy: loaded.policy,
            own_programs: own_programs.into_iter().map(str::to_owned).chain(executable).collect(),
            protected,
            loaded_files: opened_by_a_person,
            protected_folders,
            settings,
            workspace,
            workspace_for_asking,
            effects,
            caller,
            facts,
        })
    }

    /// Returns the caller.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns true if the caller may do everything there is.
    pub fn is_unrestricted(&self) -> bool {
        self.is_unrestricted
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn judge(&self) -> HookJudge<'_> {
        HookJudge {
            policy: &self.policy,
            caller: &self.caller,
            tools: &self.facts,
            effects: &self.effects,
            workspace: &self.workspace,
            workspace_for_asking: &self.workspace_for_asking,
            protected: &self.protected,
            loaded_files: &self.loaded_files,
            protected_folders: &self.protected_folders,
            surroundings: ShellSurroundings { home: self.home.as_deref(), variables: &self.variables },
            is_unrestricted: self.is_unrestricted,
            own_programs: &self.own_programs,
            own_servers: &["coretools"],
        }
    }

    /// Decides about the tool that `event` asks for, and records the decision in the audit. `changes_lines` is true if the
    /// answer puts another line in the place of one that runs programs.
    pub fn decide(&self, event: &HookEvent, changes_lines: bool) -> HookDecision {
        let began = Instant::now();
        let mut decision = self.judge().judge(event);
        decision.reason = self.redactor.redact(&decision.reason).into_owned();
        let session = event.session.as_deref();
        let can_ask = match changes_lines && decision.runs_programs {
            true => event.client.can_ask_about_changed_arguments(),
            false => event.client.can_ask(),
        };
        if decision.verdict == HookVerdict::Ask && !can_ask {
            // The answer to such a client refuses the tool.
            let mut refused = decision.clone();
            refused.verdict = HookVerdict::Deny;
            self.record(&mut refused, &event.input, session, began.elapsed());
        } else {
            self.record(&mut decision, &event.input, session, began.elapsed());
        }
        decision
    }

    /// Decides about a tool without a record, for a trial.
    pub fn explain(&self, event: &HookEvent) -> HookDecision {
        self.judge().judge(event)
    }

    /// Decides about a command in words that another process is to run in `folder`, which decides again. A refusal is recorded.
    pub fn check_command(&self, words: &[String], folder: &Path) -> CommandDecision {
        let began = Instant::now();
        let mut decision = self.judge().judge_command(words, folder);
        decision.reason = self.redactor.redact(&decision.reason).into_owned();
        if decision.verdict != HookVerdict::Allow {
            decision.verdict = HookVerdict::Deny;
            let record = self.command_record(words);
            self.end(&decision, &self.caller, &record, Outcome::NotRun, began.elapsed());
        }
        CommandDecision { decision, approval: None }
    }

    /// Decides about a command in words, which is to run in `folder`, with the id of a grant if a person was asked. A refusal
    /// is recorded here, and so is the start of a command that may run; its end by [`ended`](Self::ended).
    pub fn decide_command(&self, words: &[String], folder: &Path, grant: Option<&str>) -> CommandDecision {
        let began = Instant::now();
        let mut decision = self.judge().judge_command(words, folder);
        let mut approval = None;
        // A grant is redeemed only where it is needed, so that an allowed command does not use it up.
        if let (HookVerdict::Ask, Some(id)) = (decision.verdict, grant) {
            match self.redeem(id, words, folder) {
                Ok(answer) => {
                    decision.verdict = HookVerdict::Allow;
                    approval = Some(answer);
                }
                Err(error) => decision.reason = format!("{}: {error}", decision.reason),
            }
        }
        decision.reason = self.redactor.redact(&decision.reason).into_owned();
        let mut decided = CommandDecision { decision, approval };
        let record = self.command_record(words);
        if decided.decision.verdict == HookVerdict::Allow {
            self.start(&mut decided.decision, &self.caller, &record);
        }
        if decided.decision.verdict != HookVerdict::Allow {
            // Nobody is asked here.
            decided.decision.verdict = HookVerdict::Deny;
            self.end(&decided.decision, &self.caller, &record, Outcome::NotRun, began.elapsed());
        }
        decided
    }

    /// Records the end of a command that was allowed, and the connections that were refused to it.
    pub fn ended(
        &self,
        decided: &CommandDecision,
        words: &[String],
        succeeded: bool,
        duration: Duration,
        refused: &[String],
    ) {
        let Some(audit) = &self.audit else { return };
        let outcome = if succeeded { Outcome::Ok } else { Outcome::Failed };
        let (summary, bytes) = self.command_record(words);
        let record = CallRecord::new(&self.caller, &decided.decision.tool, CallDecision::Allowed, outcome)
            .rule(&decided.decision.rule)
            .duration(duration)
            .arguments(&summary, bytes)
            .refused_connections(refused)
            .approval(decided.approval.as_ref());
        audit.end(&record);
    }

    /// Leaves a grant for a command that `client` asks its user about. Returns its id.
    ///
    /// # Errors
    /// There is no folder for grants outside the roots, or it cannot be used.
    pub fn grant(&self, words: &[String], folder: &Path, client: &str) -> Result<String, Error> {
        let lifetime = Duration::from_millis(*self.settings.config.policy.approval_timeout_ms);
        let approver = format!("the user of {client}");
        let fingerprint = self.fingerprint(words, folder).to_string();
        Ok(self.grants()?.grant(&fingerprint, &approver, lifetime)?)
    }

    fn redeem(&self, id: &str, words: &[String], folder: &Path) -> Result<ApprovalAnswer, Error> {
        let approver = self.grants()?.redeem(id, &self.fingerprint(words, folder).to_string())?;
        Ok(ApprovalAnswer::now(ApprovalVerdict::AllowOnce, approver))
    }

    fn grants(&self) -> Result<ApprovalFolder, Error> {
        approvals::folder_outside(&self.workspace).ok_or(Error::NoApprovalFolder)
    }

    /// Returns the identity of a command: the caller, every word, and the folder it runs in.
    fn fingerprint(&self, words: &[String], folder: &Path) -> CallFingerprint {
        // The same folder under another name must have the same fingerprint. A missing folder fails later, at the
        // start.
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let arguments = Map::from_iter([
            ("command".to_owned(), json!(words)),
            ("cwd".to_owned(), json!(folder.to_string_lossy())),
        ]);
        CallFingerprint::of(&self.caller, &Call::new("run_command", arguments))
    }

    fn command_record(&self, words: &[String]) -> (String, usize) {
        summarized(&Map::from_iter([("command".to_owned(), json!(words))]))
    }

    /// Decides about a use of a tool that this program carries out itself. A refusal is recorded here, and the end of what is
    /// allowed by [`finish`](Self::finish).
    ///
    /// # Errors
    /// The policy refuses it, a person would have to agree, or the audit cannot be written.
    pub fn permit(&self, event: HookEvent, found: &ToolUse) -> Result<NativeToolPermit, HookDecision> {
        let began = Instant::now();
        let mut decision = self.judge().judge_use(&event, found);
        if decision.verdict == HookVerdict::Ask {
            decision.verdict = HookVerdict::Deny;
            decision.reason = format!(
                "refused by the CoreTools policy for the role {}: a person would have to agree, and here nobody can be \
                 asked: {}",
                self.caller.role(),
                decision.reason
            );
        }
        decision.reason = self.redactor.redact(&decision.reason).into_owned();
        let (caller, record) = (self.caller_in(event.session.as_deref()), summarized(&event.input));
        if decision.verdict == HookVerdict::Allow {
            self.start(&mut decision, &caller, &record);
        }
        if decision.verdict == HookVerdict::Allow {
            return Ok(NativeToolPermit { decision, event, began });
        }
        self.end(&decision, &caller, &record, Outcome::NotRun, began.elapsed());
        Err(decision)
    }

    /// Records the end of what was permitted.
    pub fn finish(&self, permit: &NativeToolPermit, succeeded: bool) {
        let NativeToolPermit { decision, event, began } = permit;
        let outcome = if succeeded { Outcome::Ok } else { Outcome::Failed };
        let (caller, record) = (self.caller_in(event.session.as_deref()), summarized(&event.input));
        self.end(decision, &caller, &record, outcome, began.elapsed());
    }

    /// Returns the part of the workspace that a permitted use of the tool `name` may reach: every path is judged again when it
    /// is opened.
    ///
    /// # Errors
    /// A root can no longer be opened.
    pub fn workspace_of(&self, name: &str) -> Result<Arc<Workspace>, Error> {
        Ok(workspace_within(&self.call_scope(name), &self.workspace)?)
    }

    /// Returns the commands of this caller, with their environment and their confinement, started by `runner`.
    ///
    /// # Errors
    /// The settings demand confinement, and it cannot be set up.
    pub fn commands(&self, runner: &Runner) -> Result<Commands, Error> {
        let confine =
            confinement::confine(&self.settings, &self.workspace, &self.policy, &self.caller, &self.facts)?;
        if let Some(audit) = &self.audit {
            audit.set_confinement(confine.achieved_level());
        }
        let environment =
            environment::for_caller(&self.settings, runner, &self.policy, &self.caller, &self.facts);
        let commands = Commands::new(runner.clone(), Arc::clone(&self.workspace), self.redactor.clone());
        Ok(commands.environment(environment).confined(confine))
    }

    /// Returns what the commands of this caller may reach.
    ///
    /// # Errors
    /// A root can no longer be opened.
    pub fn command_scope(&self) -> Result<CommandScope, Error> {
        let scope = self.call_scope("run_command");
        let mut commands =
            core_tools::mcp::ci::policy_scope(&self.policy, &self.caller, &scope, &self.workspace);
        commands.workspace = Some(workspace_within(&scope, &self.workspace)?);
        Ok(commands)
    }

    /// Returns what the programs of a command of this caller may use.
    pub fn resource_limits(&self) -> ResourceLimits {
        let scope = self.call_scope("run_command");
        core_tools::mcp::ci::policy_scope(&self.policy, &self.caller, &scope, &self.workspace).resource_limits
    }

    fn call_scope(&self, name: &str) -> CallScope {
        let facts = self.facts.iter().find(|facts| facts.name == name);
        facts.and_then(|facts| self.policy.scope(&self.caller, facts)).unwrap_or_default()
    }

    /// Returns `command`, which is to run in the foreground of this process, behind the confinement, the limits and the network
    /// of the commands of this caller. They last as long as the value beside it, which holds the temporary folder and the
    /// proxy of the command. `refused` receives the connections that the proxy refuses.
    ///
    /// `is_kept` is true if the background of the command goes on beneath a supervisor, which has set the limits.
    ///
    /// # Errors
    /// The settings demand confinement, and it cannot be set up; or the role's network cannot be limited here.
    pub fn foreground_command(
        &self,
        command: Command,
        is_kept: bool,
        refused: &EgressLog,
    ) -> Result<(Command, Box<dyn std::any::Any>), Error> {
        let policy =
            confinement::confine(&self.settings, &self.workspace, &self.policy, &self.caller, &self.facts)?;
        let scope = self.call_scope("run_command");
        let mut scope =
            core_tools::mcp::ci::policy_scope(&self.policy, &self.caller, &scope, &self.workspace);
        let command = if is_kept {
            match policy.confinement_within(&scope)? {
                Some(confinement) => command.confined(confinement.outliving()),
                None => command,
            }
        } else {
            scope.egress_log = Some(refused.clone());
            policy.apply_in_foreground(command, &scope, Runner::new)?
        };
        Ok((command, Box::new(policy)))
    }

    /// Writes the decision about an event to the audit. If it must not be lost and cannot be written, the decision becomes a
    /// refusal.
    fn record(
        &self,
        decision: &mut HookDecision,
        arguments: &Map<String, Value>,
        session: Option<&str>,
        duration: Duration,
    ) {
        let caller = self.caller_in(session);
        let record = summarized(arguments);
        if decision.verdict == HookVerdict::Allow {
            self.start(decision, &caller, &record);
        }
        let outcome = if decision.verdict == HookVerdict::Allow { Outcome::Ok } else { Outcome::NotRun };
        self.end(decision, &caller, &record, outcome, duration);
    }

    /// Records that something is about to run. If that must not be lost and cannot be written, the decision becomes a
    /// refusal.
    fn start(&self, decision: &mut HookDecision, caller: &Caller, (summary, bytes): &(String, usize)) {
        let Some(audit) = &self.audit else { return };
        let starting = CallRecord::new(caller, &decision.tool, CallDecision::Allowed, Outcome::NotRun)
            .arguments(summary, *bytes);
        if let Err(error) = audit.start(&starting) {
            decision.verdict = HookVerdict::Deny;
            decision.reason = format!("the audit cannot be written, so nothing may run: {error}");
        }
    }

    fn end(
        &self,
        decision: &HookDecision,
        caller: &Caller,
        (summary, bytes): &(String, usize),
        outcome: Outcome,
        duration: Duration,
    ) {
        let Some(audit) = &self.audit else { return };
        let verdict = match decision.verdict {
            HookVerdict::Allow => CallDecision::Allowed,
            HookVerdict::Ask => CallDecision::Asked,
            _ => CallDecision::Refused,
        };
        let record = CallRecord::new(caller, &decision.tool, verdict, outcome)
            .rule(&decision.rule)
            .duration(duration)
            .arguments(summary, *bytes);
        audit.end(&record);
    }

    fn caller_in(&self, session: Option<&str>) -> Caller {
        match (self.caller.session(), session) {
            (None, Some(session)) => self.caller.clone().with_session(session),
            _ => self.caller.clone(),
        }
    }
}

/// Returns true for the names of arguments, which are the client's.
fn is_parameter(name: &str) -> bool {
    // A client decides the names of its arguments, so that only what looks like a name is recorded.
    name.len() <= 32 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A use of a tool that was allowed, until its end is recorded.
#[derive(Debug)]
pub struct NativeToolPermit {
    decision: HookDecision,
    event: HookEvent,
    began: Instant,
}

/// Returns the names and sizes of arguments, and their size in bytes.
fn summarized(arguments: &Map<String, Value>) -> (String, usize) {
    summarize_arguments(arguments, is_parameter)
}
