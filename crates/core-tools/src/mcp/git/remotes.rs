//! The git tools that connect to another repository.

use super::definition::{WRITES_REPOSITORY, tool};
use crate::ci::Commands;
use crate::git::{GitFetch, GitPull, GitPush};
use crate::mcp::answer::Answer;
use crate::mcp::tool::Tool;

pub(super) fn tools(commands: &Commands) -> Vec<Tool> {
    vec![git_fetch(commands), git_pull(commands), git_push(commands)]
}

fn git_fetch(commands: &Commands) -> Tool {
    tool(
        "git_fetch",
        "Fetch",
        "Brings the new commits, branches and tags of a remote, and lists what has changed there. No local branch and no \
         file changes: compare with git_diff, then merge or rebase. It uses the user's own keys and passwords and asks for \
         none. Ends after 10 minutes.",
        commands,
        |git, input: GitFetch, cancel| async move {
            let result = git.fetch(&input, &cancel).await?;
            Ok(Answer::text(result.to_text()))
        },
    )
    .adds()
    .idempotent()
    .open_world()
    .own_deadline()
    .effects(WRITES_REPOSITORY)
}

fn git_pull(commands: &Commands) -> Tool {
    tool(
        "git_pull",
        "Pull",
        "Fetches the branch that the current one follows, and moves the current branch and its files forward to it. Where \
         both have commits that the other lacks, nothing is moved, and the answer counts them: merge or rebase then. \
         Changes that are not committed stay, or the call is refused. Ends after 10 minutes.",
        commands,
        |git, input: GitPull, cancel| async move {
            let result = git.pull(&input, &cancel).await?;
            Ok(Answer::text(result.to_text()))
        },
    )
    .destroys()
    .idempotent()
    .open_world()
    .own_deadline()
    .effects(WRITES_REPOSITORY)
}

fn git_push(commands: &Commands) -> Tool {
    tool(
        "git_push",
        "Push",
        "Sends the commits of a branch to a remote, where others see them. What the remote refuses is an error with its \
         reason and what to do; its messages come back, such as the address for a pull request. It replaces commits \
         of the remote only with `force_with_lease`, deletes nothing, and asks for no password. The hook pre-push runs. Ends after 10 minutes.",
        commands,
        |git, input: GitPush, cancel| async move {
            let result = git.push(&input, &cancel).await?;
            Ok(Answer::text(result.to_text()))
        },
    )
    .destroys()
    .idempotent()
    .open_world()
    .own_deadline()
    .effects(WRITES_REPOSITORY)
}
