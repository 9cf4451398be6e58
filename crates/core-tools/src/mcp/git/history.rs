//! The git tools that read: states, commits, differences, branches.

use super::definition::{READS_REPOSITORY, tool};
use crate::ci::Commands;
use crate::git::{
    BranchList, CommitLog, CurrentBranch, GitBlame, GitCurrentBranch, GitDiff, GitListBranches, GitLog,
    GitShow, GitStatus, WorkTreeStatus,
};
use crate::mcp::answer::Answer;
use crate::mcp::tool::Tool;

pub(super) fn tools(commands: &Commands) -> Vec<Tool> {
    vec![
        git_status(commands),
        git_log(commands),
        git_diff(commands),
        git_show(commands),
        git_blame(commands),
        git_list_branches(commands),
        git_current_branch(commands),
    ]
}

fn git_status(commands: &Commands) -> Tool {
    tool(
        "git_status",
        "Changed files",
        "Shows the state of a repository: the branch with its upstream, a merge or rebase that is not finished, \
         files in conflict, and every staged, changed or untracked path. Begin here before you commit or switch \
         branches; git_diff shows the changes themselves. Ignored files are left out, and an untracked folder is \
         one path. To continue or abort what is not finished, use git_merge or git_rebase.",
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
    tool(
        "git_log",
        "Commits",
        "Lists commits, newest first, each with its object name, author, date, branches, tags and message. Use it \
         to find when and why something changed: `paths` keeps the commits that touch a file, `stat` adds the \
         files of each commit, and git_show has the patch of one. Messages are cut at 2,000 bytes.",
        commands,
        |git, input: GitLog, cancel| async move {
            let result = git.log(&input, &cancel).await?;
            Answer::report(&result, result.to_text())
        },
    )
    .aliases(&["get_log"])
    .answers::<CommitLog>()
    .effects(READS_REPOSITORY)
}

fn git_diff(commands: &Commands) -> Tool {
    tool(
        "git_diff",
        "Differences",
        "Compares line by line and returns the counts of each file, then the patch: the changes that are not \
         staged, what is staged (`staged`), or the difference from a commit or between two (`revision`). \
         Untracked files are not in it; git_status lists them. A patch of several files is cut at 30,000 bytes, \
         with a share for each file.",
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
        "Shows one commit with its message and patch, or a file or folder as it was in a commit (`COMMIT:path`). Use \
         git_log to find the commit, and git_diff to compare two. A patch is cut at 30,000 bytes.",
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
        "Tells for each line of a file which commit changed it last, with author and date. Use it to find out why a line \
         is there, and git_show for the whole commit. It returns 300 lines by default, and at most 10,000.",
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
        "Lists the local branches, then those of remotes, each with its commit, date, subject and upstream; `*` marks the \
         current one. Branches of a remote are as they were at the last fetch. At most 1,000 are listed.",
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
        "Returns the branch that is checked out and its commit, also before the first commit and where HEAD is detached. \
         git_status returns the same with the upstream and all changes.",
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
