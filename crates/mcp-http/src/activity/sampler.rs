//! The task that looks at the programs and the machine from time to time.

use super::history::LoadSample;
use super::machine::{MachineState, ProcessorTicks};
use super::timeline::ServerLoad;
use crate::app_state::App;
use crate::process_usage::ProcessUsage;
use std::time::Duration;

/// The time between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

/// Takes samples until the server ends.
pub(crate) async fn sample_continuously(app: App) {
    let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut processors: Option<ProcessorTicks> = None;
    let mut cpu_before: Option<Duration> = None;
    loop {
        ticks.tick().await;
        let runner = app.workspaces.runner.clone();
        let before = processors;
        // It reads many small files of the kernel.
        let read = tokio::task::spawn_blocking(move || {
            let now = ProcessorTicks::now();
            (runner.usage(), ProcessUsage::now(), now, MachineState::read(before.zip(now)))
        });
        // A sample that failed is left out: the next one has all that it would have had.
        let Ok((programs, process, now, machine)) = read.await else { continue };
        processors = now.or(processors);
        let cpu = process.cpu();
        let spent = cpu.zip(cpu_before).map(|(now, before)| now.saturating_sub(before));
        cpu_before = cpu;
        let load = ServerLoad {
            running: app.recent_calls.running_count(),
            waiting: usize::try_from(app.admission.queued()).unwrap_or(usize::MAX),
            cpu: spent.unwrap_or_default(),
            memory: process.resident_bytes().unwrap_or(0),
        };
        app.activity.sample(LoadSample { programs, load, machine });
    }
}
