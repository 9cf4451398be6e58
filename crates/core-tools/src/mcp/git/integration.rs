//! The git tools that bring branches together, or apart into folders.

use super::definition::{WRITES_REPOSITORY, tool};
use crate::ci::Commands;
use crate::git::{GitMerge, GitRebase, GitWorktree, IntegrationResult};
use crate::mcp::answer::Answer;
use crate::mcp::tool::Tool;
use role_policy::Effect;

pub(super) fn tools(commands: &Commands) -> Vec<Tool> {
    vec![git_merge(commands), git_rebase(commands), git_worktree(commands)]
}

fn git_merge(commands: &Commands) -> Tool {
    tool(
        "git_merge",
        "Merge",
        "Merges a branch into the current one, and continues or aborts a merge that stopped. Conflicts are listed by file \
         with their kind, their text with the markers and the way to resolve them. Hooks and signing run as in a \
         terminal. It refuses where uncommitted changes or untracked files would be lost. An abort cannot be undone. Ends \
         after 10 minutes.",
        commands,
        |git, input: GitMerge, cancel| async move {
            let result = git.merge(&input, &cancel).await?;
            Ok(Answer::report(&result, result.to_text())?.failed_if(result.is_unfinished()))
        },
    )
    .destroys()
    // Hooks may reach anything, and run for minutes.
    .open_world()
    .own_deadline()
    .answers::<IntegrationResult>()
    .effects(WRITES_REPOSITORY)
}

fn git_rebase(commands: &Commands) -> Tool {
    tool(
        "git_rebase",
        "Rebase",
        "Puts the commits of the current branch onto another branch or commit, and continues, skips or aborts where that \
         stopped. Conflicts are listed by file with their kind, their text with the markers and the way to resolve them. \
         It needs a work tree without uncommitted changes. Commits that others have already are better merged. Ends \
         after 10 minutes.",
        commands,
        |git, input: GitRebase, cancel| async move {
            let result = git.rebase(&input, &cancel).await?;
            Ok(Answer::report(&result, result.to_text())?.failed_if(result.is_unfinished()))
        },
    )
    .destroys()
    .open_world()
    .own_deadline()
    .answers::<IntegrationResult>()
    .effects(WRITES_REPOSITORY)
}

fn git_worktree(commands: &Commands) -> Tool {
    tool(
        "git_worktree",
        "Work trees",
        "Lists, adds or removes further work trees: folders in which another branch of the same repository is checked out, \
         so that two branches can be worked on, or compared by their tests, at once. Folders must lie beneath an allowed \
         root. Pass a work tree's folder as `repository_path` to work in it.",
        commands,
        |git, input: GitWorktree, cancel| async move {
            let result = git.worktree(&input, &cancel).await?;
            Ok(Answer::text(result.to_text()))
        },
    )
    .destroys()
    .effects(&[Effect::Writes("repository_path"), Effect::Writes("path")])
}
