//! The choice of a process behind a port that several serve: the workers of gunicorn, of a cluster of Node.js.

use super::proc;
use super::target::{self, Process, TargetError};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use workspace::Workspace;

/// The time for which the processes are observed, to find the busy one.
const OBSERVATION: Duration = Duration::from_millis(250);
/// The processor time in [`OBSERVATION`] from which a process counts as busy.
const BUSY: Duration = Duration::from_millis(10);
/// The maximum number of processes that a note lists.
const MAX_LISTED: usize = 10;

/// The process that was chosen for a port, and the choice in words if there were several.
#[derive(Clone, Debug)]
pub(crate) struct PortProcess {
    pub(crate) process: Process,
    pub(crate) note: Option<String>,
}

/// A process that serves the port, and the processor time that it used.
struct PortCandidate {
    process: Process,
    /// While it was observed.
    recent: Duration,
    /// Since it was started.
    total: Duration,
    /// Another candidate started it.
    is_worker: bool,
}

/// Chooses the process behind `port`: the only one, else the busiest, which is measured for a quarter of a second. `None`
/// if it cannot be determined. With `within`, only processes beneath that workspace are considered.
///
/// # Errors
/// Nothing listens there, or a process that may not be looked into.
pub(crate) async fn choose(
    port: u16,
    within: Option<Arc<Workspace>>,
) -> Result<Option<PortProcess>, TargetError> {
    let mut found = target::all_behind(port, within.as_deref())?;
    if found.len() < 2 {
        return Ok(found.pop().map(|process| PortProcess { process, note: None }));
    }
    let cpu_time = |process: &Process| proc::thread_cpu_times(process.pid).values().sum::<Duration>();
    let before: Vec<Duration> = found.iter().map(cpu_time).collect();
    tokio::time::sleep(OBSERVATION).await;
    let pids: HashSet<u32> = found.iter().map(|process| process.pid).collect();
    let candidates = found.into_iter().zip(before).map(|(process, before)| {
        let total = cpu_time(&process);
        let is_worker = parent(process.pid).is_some_and(|parent| pids.contains(&parent));
        PortCandidate { recent: total.saturating_sub(before), total, is_worker, process }
    });
    Ok(busiest(port, candidates.collect()))
}

/// Returns the process that started `pid`.
fn parent(pid: u32) -> Option<u32> {
    proc::ProcessStatus::of(pid).ok()?.field("PPid")?.parse().ok()
}

/// Returns the candidate that is busy, else the worker that has worked most so far.
fn busiest(port: u16, mut candidates: Vec<PortCandidate>) -> Option<PortProcess> {
    let listed: Vec<String> = candidates
        .iter()
        .take(MAX_LISTED)
        .map(|candidate| format!("{} {} ms", candidate.process.display_name(), candidate.recent.as_millis()))
        .collect();
    let count = candidates.len();
    candidates.sort_by_key(|candidate| match candidate.recent >= BUSY {
        true => (true, true, candidate.recent),
        false => (false, candidate.is_worker, candidate.total),
    });
    let chosen = candidates.pop()?;
    let reason = match (chosen.recent >= BUSY, chosen.is_worker) {
        (true, _) => "the busiest",
        (false, true) => "as none was busy, the worker with most processor time since its start",
        (false, false) => "as none was busy, the one with most processor time since its start",
    };
    let note = format!(
        "{count} processes serve port {port} (processor time in {} ms): {}; taken: {}, {reason}; name another as target \
         \"pid:N\"",
        OBSERVATION.as_millis(),
        listed.join(", "),
        chosen.process.pid,
    );
    Some(PortProcess { process: chosen.process, note: Some(note) })
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(times: &[(u64, u64, bool)]) -> (u64, String) {
        let own = Process::find(std::process::id()).unwrap();
        let candidates = times.iter().zip(1..).map(|((recent, total, is_worker), pid)| PortCandidate {
            process: Process { pid, ..own.clone() },
            recent: Duration::from_millis(*recent),
            total: Duration::from_millis(*total),
            is_worker: *is_worker,
        });
        let chosen = busiest(80, candidates.collect()).unwrap();
        (chosen.process.pid.into(), chosen.note.unwrap())
    }

    #[test]
    fn the_busiest_is_taken_and_of_idle_ones_the_worker_that_worked_most() {
        let (pid, note) = chosen(&[(20, 9000, false), (100, 500, true), (240, 400, true)]);
        assert_eq!(pid, 3);
        assert!(
            note.starts_with("3 processes serve port 80 ") && note.contains("taken: 3, the busiest"),
            "{note}"
        );
        // The first process of a server works most while it starts, and then never again.
        let (pid, note) = chosen(&[(0, 9000, false), (1, 500, true), (0, 400, true)]);
        assert_eq!(pid, 2);
        assert!(note.contains("none was busy, the worker"), "{note}");
        // A primary process that works itself is busy too.
        assert_eq!(chosen(&[(200, 9000, false), (1, 500, true)]).0, 1);
    }
}
