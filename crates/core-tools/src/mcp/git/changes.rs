//! The git tools that change the repository or its files, and reach no other.

use super::definition::{WRITES_REPOSITORY, tool};
use crate::ci::Commands;
use crate::git::{
    CleanResult, GitAdd, GitCheckout, GitClean, GitCommit, GitCreateBranch, GitRestore, GitStash,
};
use crate::mcp::answer::Answer;
use crate::mcp::tool::Tool;

pub(super) fn tools(commands: &Commands) -> Vec<Tool> {
    vec![
        git_add(commands),
        git_commit(commands),
        git_create_branch(commands),
        git_checkout(commands),
        git_restore(commands),
        git_stash(commands),
        git_clean(commands),
    ]
}

fn git_add(commands: &Commands) -> Tool {
    tool(
        "git_add",
        "Stage",
        "Stages files as they are now for the next commit, deleted ones as deleted; no file changes. Use it to mark \
         conflicts as resolved, or to collect a commit in parts: git_commit with `files` stages and commits in one call. \
         Ignored files are refused. The answer says how many paths the next commit changes.",
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
        "Commits in one call: what is staged, or the files in `files`, or with `all` every tracked file that has \
         changed. Hooks and signing run as in a terminal; the answer has their output, also where a hook refuses, \
         and says which merge, cherry-pick or revert the commit concludes and what is left uncommitted. Ends \
         after 10 minutes.",
        commands,
        |git, input: GitCommit, cancel| async move {
            let result = git.commit(&input, &cancel).await?;
            Ok(Answer::text(result.to_text()))
        },
    )
    .aliases(&["commit"])
    // Also with `amend`: the commit that it replaces stays in the log of references.
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
        "Creates a branch and stays on the current one; git_checkout switches to it. A name that is taken is refused: no \
         branch is moved.",
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
        "Switches the files to another branch, commit or tag; it removes files that are not tracked there. \
         Changes that are not committed come along; where they would be lost, the switch is refused and the files \
         are named: commit them, or put them aside with git_stash.",
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
        "Discards the changes of the named files, which cannot be undone, or gives them the content that they have in \
         another commit (`source`); with `staged` it only unstages them. To get changes back later, use git_stash. Files \
         that git does not track are not touched.",
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
        "Puts changes that are not committed aside and brings them back, all of them or those of some files. To \
         see if a test fails without a fix: `push` with the files of the fix in `files`, run the test, then \
         `pop`, which drops the stash only if it was applied without conflicts. Returns the list of stashes.",
        commands,
        |git, input: GitStash, cancel| async move {
            let result = git.stash(&input, &cancel).await?;
            // Conflicts keep the stash, and a sequence of calls must stop before it commits them.
            Ok(Answer::text(result.to_text()).failed_if(result.conflicts))
        },
    )
    .destroys()
    .effects(WRITES_REPOSITORY)
}

fn git_clean(commands: &Commands) -> Tool {
    tool(
        "git_clean",
        "Remove untracked files",
        "Lists the files that git does not track, and removes them only with `dry_run` false, which cannot be undone: look \
         at the list first. Folders that this empties go too. What git ignores stays unless `include_ignored` is true; \
         other repositories in this one and protected files stay. To get changes of tracked files back, use git_restore; \
         to put new files aside, use git_stash.",
        commands,
        |git, input: GitClean, cancel| async move {
            let result = git.clean(&input, &cancel).await?;
            Ok(Answer::report(&result, result.to_text())?.failed_if(result.is_incomplete()))
        },
    )
    .destroys()
    .idempotent()
    .answers::<CleanResult>()
    .effects(WRITES_REPOSITORY)
}
