//! The resources that programs use, by the owner of their runs and by the purpose of these.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::leftover::{LeftoverTree, RunOwner};
use crate::tree::{ProcessLeader, ProcessTimes};

/// The resources that the programs of one owner use for one purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramUsage {
    /// The name of the [owner](crate::RunOwner); `None` for runs without one.
    pub owner: Option<Arc<str>>,
    /// The [purpose](crate::RunOwner::purpose). What finished runs have left alive has none.
    pub purpose: Option<Arc<str>>,
    /// Runs that go on, and trees that finished runs have left alive.
    pub programs: usize,
    /// The processes of these.
    pub processes: usize,
    /// Their resident memory in bytes. Memory that processes share is counted for each of them.
    pub memory_bytes: u64,
    /// Their CPU time, and that of finished runs. The time of processes that a finished run had left alive is lost when they
    /// end.
    pub cpu: Duration,
}

/// The account to which the use of resources is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct UsageAccount {
    pub(crate) owner: Option<Arc<str>>,
    pub(crate) purpose: Option<Arc<str>>,
}

impl UsageAccount {
    /// Returns the account of runs of `owner`.
    pub(crate) fn of(owner: Option<&dyn RunOwner>) -> Self {
        Self {
            owner: owner.map(|owner| owner.name().into()),
            purpose: owner.and_then(RunOwner::purpose).map(Arc::from),
        }
    }

    /// Returns the account of what a finished run has left alive, and the leader of that run.
    pub(crate) fn of_leftover(tree: &LeftoverTree) -> (Self, Arc<ProcessLeader>) {
        (Self { owner: tree.owner().map(Arc::from), purpose: None }, Arc::clone(tree.leader()))
    }
}

/// The accounts of finished runs that are kept. Beyond that number those begin anew whose runs ended first: an issuer of
/// identities may name any number of owners.
const MAX_ACCOUNTS: usize = 4096;

/// The CPU time of finished runs.
#[derive(Debug, Default)]
pub(crate) struct EndedRuns(Mutex<EndedAccounts>);

#[derive(Debug, Default)]
struct EndedAccounts {
    /// The CPU time, and the number of the last end.
    accounts: HashMap<UsageAccount, (Duration, u64)>,
    ends: u64,
}

impl EndedRuns {
    /// Counts a run that is over.
    pub(crate) fn add(&self, account: UsageAccount, cpu: Duration) {
        let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ended.ends += 1;
        let end = ended.ends;
        if ended.accounts.len() >= MAX_ACCOUNTS && !ended.accounts.contains_key(&account) {
            // The search is linear, but it runs only for a new account while the table is full.
            let oldest = ended.accounts.iter().min_by_key(|(_, (_, end))| *end);
            let oldest = oldest.map(|(account, _)| account.clone());
            oldest.and_then(|account| ended.accounts.remove(&account));
        }
        let (total, last) = ended.accounts.entry(account).or_default();
        (*total, *last) = (*total + cpu, end);
    }

    fn totals(&self) -> Vec<(UsageAccount, Duration)> {
        let ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ended.accounts.iter().map(|(account, (cpu, _))| (account.clone(), *cpu)).collect()
    }
}

/// Measures what the runs in `live` use now, each with the leader of its processes, and adds what `ended` has counted.
pub(crate) fn measure(live: &[(UsageAccount, Arc<ProcessLeader>)], ended: &EndedRuns) -> Vec<ProgramUsage> {
    let mut usage: HashMap<UsageAccount, ProgramUsage> = HashMap::new();
    let mut entry = |account: &UsageAccount, add: &dyn Fn(&mut ProgramUsage)| {
        add(usage.entry(account.clone()).or_insert_with(|| ProgramUsage {
            owner: account.owner.clone(),
            purpose: account.purpose.clone(),
            ..ProgramUsage::default()
        }));
    };
    // Before the processes are read: a run that ends meanwhile is then missing for a moment, and not there twice.
    for (account, cpu) in ended.totals() {
        entry(&account, &|usage| usage.cpu += cpu);
    }
    if !live.is_empty() {
        let leaders: Vec<&ProcessLeader> = live.iter().map(|(_, leader)| &**leader).collect();
        for ((account, _), times) in live.iter().zip(ProcessTimes::of_trees(&leaders)) {
            entry(account, &|usage| {
                usage.programs += 1;
                usage.processes += times.processes;
                usage.memory_bytes += times.memory_bytes;
                usage.cpu += times.cpu;
            });
        }
    }
    usage.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accounts_that_are_kept_are_bounded_and_the_latest_stay() {
        let ended = EndedRuns::default();
        let account = |number: usize| UsageAccount {
            owner: Some(format!("jwt:{number}").into()),
            purpose: Some("run_command".into()),
        };
        for number in 0..MAX_ACCOUNTS + 10 {
            ended.add(account(number), Duration::from_secs(1));
            ended.add(account(0), Duration::from_secs(1));
        }
        let totals: HashMap<_, _> = ended.totals().into_iter().collect();
        assert_eq!(totals.len(), MAX_ACCOUNTS);
        assert_eq!(totals.get(&account(0)), Some(&Duration::from_secs(MAX_ACCOUNTS as u64 + 11)));
        assert!(totals.contains_key(&account(MAX_ACCOUNTS + 9)) && !totals.contains_key(&account(1)));
    }
}
