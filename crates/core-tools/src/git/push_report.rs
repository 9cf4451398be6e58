//! Parses what `git push --porcelain` prints.

use super::printed_text::{lossy, printable_line};
use schemars::JsonSchema;
use serde::Serialize;

/// The result for a branch or a tag that was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PushStatus {
    /// The remote has more commits now.
    Forward,
    /// The remote's branch was replaced.
    Replaced,
    /// The remote had none of this name.
    New,
    /// The remote has it already.
    UpToDate,
    /// The remote, or git, refused it.
    Rejected,
}

/// A branch or a tag that was pushed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct PushedReference {
    /// Its name here: `main`, or `tag v1`.
    pub local: String,
    /// Its name at the remote.
    pub remote: String,
    /// The result.
    pub status: PushStatus,
    /// The range of commits, `a..b`, or the reason.
    pub detail: String,
}

impl PushedReference {
    /// Returns the result in one line.
    pub(super) fn to_text(&self) -> String {
        let Self { local, remote, detail, .. } = self;
        let names = if local == remote { local.clone() } else { format!("{local} to {remote}") };
        let names = printable_line(&names);
        match self.status {
            PushStatus::Forward => format!("{names} {detail}"),
            PushStatus::Replaced => format!("{names} {detail}, which replaced what was there"),
            PushStatus::New => format!("{names} is new there"),
            PushStatus::UpToDate => format!("{names} is there already"),
            PushStatus::Rejected => format!("{names} was refused: {detail}"),
        }
    }

    /// Returns the reason that it was refused, and what to do, if it was.
    pub(super) fn rejection(&self) -> Option<String> {
        if self.status != PushStatus::Rejected {
            return None;
        }
        let remedy = match self.detail.as_str() {
            "non-fast-forward" | "fetch first" => {
                ": the remote has commits that this branch has not. Fetch them, rebase onto or merge them, and push again"
            }
            "stale info" => {
                ": the remote's branch is not at the commit that was last fetched, so somebody has pushed since. Fetch, look \
                 at what came, and push again"
            }
            "already exists" => ": the remote has another tag of this name, which is never replaced",
            _ => "",
        };
        Some(format!("{}{remedy}", self.to_text()))
    }
}

/// Parses `git push --porcelain` (git-push(1), "Output"): a flag, both names, and a summary, with tabs between them.
pub(super) fn parse(printed: &[u8]) -> Vec<PushedReference> {
    lossy(printed).lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<PushedReference> {
    let mut fields = line.splitn(3, '\t');
    let status = match fields.next()? {
        " " => PushStatus::Forward,
        "+" => PushStatus::Replaced,
        "*" => PushStatus::New,
        "=" => PushStatus::UpToDate,
        "!" => PushStatus::Rejected,
        // Other lines are the name of the remote and `Done`.
        _ => return None,
    };
    let (local, remote) = fields.next()?.split_once(':')?;
    let summary = fields.next()?;
    // `[remote rejected] (pre-receive hook declined)`: the reason is in the last brackets.
    let reason = summary.rsplit_once('(').map(|(_, reason)| reason.trim_end_matches(')'));
    let detail = match status {
        PushStatus::Rejected => reason.unwrap_or(summary),
        _ => summary.split(' ').next().unwrap_or_default(),
    };
    let detail = printable_line(detail);
    Some(PushedReference { local: short_name(local), remote: short_name(remote), status, detail })
}

fn short_name(reference: &str) -> String {
    match (reference.strip_prefix("refs/heads/"), reference.strip_prefix("refs/tags/")) {
        (Some(branch), _) => branch.to_owned(),
        (_, Some(tag)) => format!("tag {tag}"),
        _ => reference.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_kind_of_line_is_understood() {
        let printed = "To /srv/x.git\n \trefs/heads/a:refs/heads/a\t1111111..2222222\n\
            +\trefs/heads/b:refs/heads/c\t1111111...2222222 (forced update)\n\
            *\trefs/tags/v1:refs/tags/v1\t[new tag]\n=\trefs/heads/d:refs/heads/d\t[up to date]\n\
            !\trefs/heads/e:refs/heads/e\t[remote rejected] (pre-receive hook declined)\n\
            !\trefs/heads/f:refs/heads/f\t[rejected] (fetch first)\nDone\n";
        let seen: Vec<_> = parse(printed.as_bytes()).iter().map(PushedReference::to_text).collect();
        assert_eq!(
            seen,
            [
                "a 1111111..2222222",
                "b to c 1111111...2222222, which replaced what was there",
                "tag v1 is new there",
                "d is there already",
                "e was refused: pre-receive hook declined",
                "f was refused: fetch first",
            ]
        );
        let reasons: Vec<_> =
            parse(printed.as_bytes()).iter().filter_map(PushedReference::rejection).collect();
        assert!(reasons[1].contains("rebase onto or merge them"), "{reasons:?}");
    }

    proptest! {
        #[test]
        fn no_output_is_a_panic(printed in "([ +*=!\t:()]|refs/heads/|\n|.)*") {
            for reference in parse(printed.as_bytes()) {
                reference.rejection();
            }
        }
    }
}
