//! [`CodexExecutorPolicy`]: the decisions of the executor that Codex is given, by the policy, the roots, the confinement and
//! the audit that a server has.

use crate::error::Error;
use crate::native_tools::{NativeToolHost, NativeToolPermit};
use crate::resources::runner;
use crate::settings::Settings;
use crate::settings_snapshot::SettingsSnapshot;
use agent_hooks::{FileUse, HookClient, HookEvent, ToolUse};
use codex_executor::{
    CodexCommand, ExecutorPolicy, ExecutorRefusal, FileOperation, FileRequest, SandboxLimits,
};
use core_tools::ci::{CommandScope, Commands, NetworkAccess};
use core_tools::workspace::ConfinedPath;
use error_causes::chain;
use process_runner::{Command, Limits, Runner};
use role_policy::Access;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The decisions about what Codex asks its executor for.
#[derive(Debug)]
pub struct CodexExecutorPolicy {
    host: NativeToolHost,
    commands: Commands,
    runner: Runner,
    timeout: Duration,
}

/// Something that was allowed, until it has ended.
#[derive(Debug)]
pub struct CodexPermit {
    permit: NativeToolPermit,
    /// The settings of clients as they were before a command ran.
    settings: Option<SettingsSnapshot>,
}

impl CodexExecutorPolicy {
    /// Builds the policy that `settings` describe. `timeout` is the time limit of each command, by default the longest that a
    /// caller may ask for.
    ///
    /// # Errors
    /// Something that the settings name cannot be used, or does not fit the rest.
    pub fn new(settings: Settings, timeout: Option<Duration>) -> Result<Self, Error> {
        let runner = runner(&settings)?;
        let timeout = timeout.unwrap_or(Duration::from_millis(*settings.config.limits.max_timeout_ms));
        let host = NativeToolHost::new(settings)?;
        let commands = host.commands(&runner)?;
        Ok(Self { host, commands, runner, timeout })
    }

    /// Returns the runner of the commands.
    pub fn runner(&self) -> &Runner {
        &self.runner
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        self.host.settings()
    }

    /// Returns what a command may reach in a sandbox that Codex asks for.
    fn scope(&self, sandbox: Option<&SandboxLimits>) -> Result<CommandScope, ExecutorRefusal> {
        let mut scope = self.host.command_scope().map_err(|error| ExecutorRefusal::new(chain(&error)))?;
        let Some(sandbox) = sandbox else { return Ok(scope) };
        if (sandbox.writable.is_some() || !sandbox.network) && !self.commands.is_confined() {
            return Err(ExecutorRefusal::new(format!(
                "Codex asks for a sandbox, and commands are not confined here ({}), so it cannot be kept; the user can \
                 give this executor a role or `policy.confinement`, or Codex another `sandbox_mode`",
                self.commands.confinement_summary()
            )));
        }
        if let Some(writable) = &sandbox.writable {
            let base = scope.write.as_ref().or(scope.read.as_ref());
            // What lies outside the roots is granted to no command.
            scope.write = Some(base.map_or_else(|| writable.clone(), |base| common(base, writable)));
        }
        if !sandbox.network {
            scope.network = NetworkAccess::None;
        }
        Ok(scope)
    }
}

/// Returns the folders that lie in both lists.
fn common(folders: &[PathBuf], others: &[PathBuf]) -> Vec<PathBuf> {
    let smaller = |one: &PathBuf, other: &PathBuf| {
        if one.starts_with(other) { Some(one.clone()) } else { other.starts_with(one).then(|| other.clone()) }
    };
    folders.iter().flat_map(|one| others.iter().filter_map(move |other| smaller(one, other))).collect()
}

fn text(path: &Path) -> Result<&str, ExecutorRefusal> {
    path.to_str()
        .ok_or_else(|| ExecutorRefusal::new(format!("the path `{}` is not valid UTF-8", path.display())))
}

impl ExecutorPolicy for CodexExecutorPolicy {
    type Permit = CodexPermit;

    fn command(&self, request: &CodexCommand<'_>) -> Result<(Command, CodexPermit), ExecutorRefusal> {
        let mut event = HookEvent::new(HookClient::Codex, "exec_command", request.folder);
        event.session = request.session.map(str::to_owned);
        event.input.insert("command".to_owned(), json!(request.words));
        let found = ToolUse::Words { words: request.words.to_vec(), folder: None };
        let permit =
            self.host.permit(event, &found).map_err(|decision| ExecutorRefusal::new(decision.reason))?;
        let ready = self.scope(request.sandbox).and_then(|scope| {
            let commands = self.commands.narrowed(&scope);
            let folder = commands.workspace().locate(text(request.folder)?);
            let folder = folder.map_err(|error| ExecutorRefusal::new(chain(&error)))?;
            commands
                .command_of_words(request.words, &folder)
                .map_err(|error| ExecutorRefusal::new(chain(&error)))
        });
        let mut command = match ready {
            Ok(command) => command.limits(Limits::default().timeout(self.timeout)),
            Err(refusal) => {
                self.host.finish(&permit, false);
                return Err(refusal);
            }
        };
        if let Some(role) = self.host.caller().roles().next() {
            // Another copy of this program below is then in this role at most.
            command = command.env("CORETOOLS_ROLE", role);
        }
        // A role that may do everything may change settings too.
        let settings =
            (!self.host.is_unrestricted()).then(|| SettingsSnapshot::take(&self.host.settings().roots, &[]));
        Ok((command, CodexPermit { permit, settings }))
    }

    fn file(&self, request: &FileRequest<'_>) -> Result<(ConfinedPath, CodexPermit), ExecutorRefusal> {
        let (tool, access) = match request.operation {
            FileOperation::Read => ("read_file", Access::Read),
            FileOperation::Write => ("write_file", Access::Write),
            FileOperation::CreateFolder => ("create_directory", Access::Write),
            FileOperation::Describe => ("get_file_info", Access::Read),
            FileOperation::List => ("list_directory", Access::Read),
            FileOperation::Remove => ("delete_file", Access::Write),
            _ => return Err(ExecutorRefusal::new("this operation is not known to the policy")),
        };
        let path = text(request.path)?;
        let mut event = HookEvent::new(HookClient::Codex, request.method, "/");
        event.input.insert("path".to_owned(), json!(path));
        let found = ToolUse::Files(vec![FileUse::new(tool, access, path)]);
        let permit =
            self.host.permit(event, &found).map_err(|decision| ExecutorRefusal::new(decision.reason))?;
        let located = self
            .host
            .workspace_of(tool)
            .map_err(|error| chain(&error))
            .and_then(|workspace| workspace.locate(path).map_err(|error| chain(&error)));
        match located {
            Ok(path) => Ok((path, CodexPermit { permit, settings: None })),
            Err(reason) => {
                self.host.finish(&permit, false);
                Err(ExecutorRefusal::new(reason))
            }
        }
    }

    fn ended(&self, permit: CodexPermit, succeeded: bool) -> Vec<String> {
        let told = permit.settings.iter().flat_map(SettingsSnapshot::restore_and_tell);
        let notices = told.map(|told| format!("[{told}]")).collect();
        self.host.finish(&permit.permit, succeeded);
        notices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_in_common_the_smaller_of_two_that_nest() {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
        let roots = paths(&["/a", "/b/c"]);
        assert_eq!(common(&roots, &paths(&["/a/x", "/b", "/d"])), paths(&["/a/x", "/b/c"]));
        assert_eq!(common(&roots, &[]), paths(&[]));
    }
}
