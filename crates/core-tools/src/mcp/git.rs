//! The definitions of the git tools.

use super::answer::{Answer, ToolError};
use super::call_context::CallContext;
use super::ci::command_scope;
use super::tool::Tool;
use super::toolset::Toolset;
use crate::ci::Commands;
use crate::git::{
    self, BranchList, CommitLog, CurrentBranch, Git, GitAdd, GitBlame, GitCheckout, GitCommit,
    GitCreateBranch, GitCurrentBranch, GitDiff, GitListBranches, GitLog, GitRestore, GitShow, GitStash,
    GitStatus, WorkTreeStatus,
};
use role_policy::Effect;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

impl From<git::Error> for ToolError {
    fn from(error: git::Error) -> Self {
        Self::from_error(&error)
    }
}

/// Returns the toolset `git`, for repositories beneath the roots of `commands`.
pub fn toolset(commands: &Commands) -> Toolset {
    Toolset {
        name: "git",
        tools: vec![
            git_status(commands),
            git_log(commands),
            git_diff(commands),
            git_show(commands),
            git_blame(commands),
            git_list_branches(commands),
            git_current_branch(commands),
            git_add(commands),
            git_commit(commands),
            git_create_branch(commands),
            git_checkout(commands),
            git_restore(commands),
            git_stash(commands),
        ],
    }
}

/// The effects of a tool that reads: any file of the repository may be shown.
const READS_REPOSITORY: &[Effect] = &[Effect::Reads("repository_path")];
/// The effects of a tool that changes the repository or its files.
const WRITES_REPOSITORY: &[Effect] = &[Effect::Writes("repository_path")];

/// Defines a tool that calls one function of the area, with the reach of its caller.
fn tool<I, F, R>(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    commands: &Commands,
    run: F,
) -> Tool
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(Git, I, CancellationToken) -> R + Copy + Send + Sync + 'static,
    R: Future<Output = Result<Answer, ToolError>> + Send + 'static,
{
    let commands = commands.clone();
    Tool::new(name, title, description, move |input: I, context: CallContext| {
        let git = command_scope(&commands, &context).map(|scope| Git::new(commands.narrowed(&scope)));
        async move { run(git?, input, context.cancel).await }
    })
    .runs_programs()
}

fn git_status(commands: &Commands) -> Tool {
    tool(
        "git_status",
        "Changed files",
        "Branch, state, changed and conflicting files.",
        commands,
        |git, input: GitStatus, cancel| async move {
            let result = git.status(&input, &cancel).await?;
            Answer::report(&result, result.to_text())
        },
    )
    .aliases(&["get_status"])
    .answers::<WorkTreeStatus>()
    .effects(READS_REPOSITORY)
}

fn git_log(commands: &Commands) -> Tool {
    tool("git_log", "Commits", "Newest first.", commands, |git, input: GitLog, cancel| async move {
        let result = git.log(&input, &cancel).await?;
        Answer::report(&result, result.to_text())
    })
    .aliases(&["get_log"])
    .answers::<CommitLog>()
    .effects(READS_REPOSITORY)
}

fn git_diff(commands: &Commands) -> Tool {
    tool(
        "git_diff",
        "Differences",
        "Unstaged changes, staged ones, or against a revision.",
        commands,
        |git, input: GitDiff, cancel| async move {
            let result = git.diff(&input, &cancel).await?;
            Ok(Answer::text(result.to_text()))
        },
    )
    .aliases(&["get_diff"])
    .effects(READS_REPOSITORY)
}

fn git_show(commands: &Commands) -> Tool {
    tool(
        "git_show",
        "Show a commit",
        "A commit and its patch, or a file as it was.",
        commands,
        |git, input: GitShow, cancel| async move {
            let result = git.show(&input, &cancel).await?;
            Ok(Answer::text(result.to_text()))
        },
    )
    .effects(READS_REPOSITORY)
}

fn git_blame(commands: &Commands) -> Tool {
    tool(
        "git_blame",
        "Who wrote it",
        "Commit and author of each line.",
        commands,
        |git, input: GitBlame, cancel| async move {
            let result = git.blame(&input, &cancel).await?;
            Ok(Answer::text(result.to_text()))
        },
    )
    .effects(READS_REPOSITORY)
}

fn git_list_branches(commands: &Commands) -> Tool {
    tool(
        "git_list_branches",
        "Branches",
        "Local and remote branches.",
        commands,
        |git, input: GitListBranches, cancel| async move {
            let result = git.list_branches(&input, &cancel).await?;
            Answer::report(&result, result.to_text())
        },
    )
    .aliases(&["list_branches"])
    .answers::<BranchList>()
    .effects(READS_REPOSITORY)
}

fn git_current_branch(commands: &Commands) -> Tool {
    tool(
        "git_current_branch",
        "Current branch",
        "The branch and commit checked out.",
        commands,
        |git, input: GitCurrentBranch, cancel| async move {
            let result = git.current_branch(&input, &cancel).await?;
            Answer::report(&result, result.to_text())
        },
    )
    .aliases(&["get_current_branch"])
    .answers::<CurrentBranch>()
    .effects(READS_REPOSITORY)
}

fn git_add(commands: &Commands) -> Tool {
    tool(
        "git_add",
        "Stage",
        "Stages files for git_commit.",
        commands,
        |git, input: GitAdd, cancel| async move {
            let result = git.add(&input, &cancel).await?;
            Ok(Answer::text(result.to_text()))
        },
    )
    .aliases(&["add"])
    .adds()
    .idempotent()
    .effects(WRITES_REPOSITORY)
}

fn git_commit(commands: &Commands) -> Tool {
    tool(
        "git_commit",
        "Commit",
        "Commits what is staged; runs hooks.",
        commands,
        |git, input: GitCommit, cancel| async move {
            let result = git.commit(&input, &cancel).await?;
            Ok(Answer::text(result.to_text()))
        },
    )
    .aliases(&["commit"])
    .adds()
    // Hooks may reach anything, and run for minutes.
    .open_world()
    .own_deadline()
    .effects(WRITES_REPOSITORY)
}

fn git_create_branch(commands: &Commands) -> Tool {
    tool(
        "git_create_branch",
        "New branch",
        "Creates a branch; git_checkout switches.",
        commands,
        |git, input: GitCreateBranch, cancel| async move {
            let result = git.create_branch(&input, &cancel).await?;
            Ok(Answer::text(result.to_text()))
        },
    )
    .adds()
    .effects(WRITES_REPOSITORY)
}

fn git_checkout(commands: &Commands) -> Tool {
    tool(
        "git_checkout",
        "Switch branch",
        "Switches to a branch; refuses to lose changes.",
        commands,
        |git, input: GitCheckout, cancel| async move {
            let result = git.checkout(&input, &cancel).await?;
            Ok(Answer::text(result.to_text()))
        },
    )
    .destroys()
    .idempotent()
    .effects(WRITES_REPOSITORY)
}

fn git_restore(commands: &Commands) -> Tool {
    tool(
        "git_restore",
        "Take changes back",
        "Discards unstaged changes, or unstages.",
        commands,
        |git, input: GitRestore, cancel| async move {
            let result = git.restore(&input, &cancel).await?;
            Ok(Answer::text(result.to_text()))
        },
    )
    .destroys()
    .idempotent()
    .effects(WRITES_REPOSITORY)
}

fn git_stash(commands: &Commands) -> Tool {
    tool(
        "git_stash",
        "Stash",
        "Puts changes aside, or takes them out.",
        commands,
        |git, input: GitStash, cancel| async move {
            let result = git.stash(&input, &cancel).await?;
            Ok(Answer::text(result.to_text()).failed_if(result.conflicts))
        },
    )
    .destroys()
    .effects(WRITES_REPOSITORY)
}
