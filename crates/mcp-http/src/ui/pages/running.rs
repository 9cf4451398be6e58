//! The list of calls that run or wait, each with what it does, why it takes so long, and a button to stop it.

use super::super::viewer::PageViewer;
use super::format;
use super::layout::PageEndButton;
use crate::activity::{CurrentUse, MachineState};
use crate::app_state::App;
use crate::call_words::explain_wait;
use crate::recent_calls::ActiveCall;
use maud::{Markup, html};
use std::sync::Arc;

/// The share of busy processors from which on the machine is said to be busy.
const BUSY_SHARE: f64 = 0.9;
/// The number of busy processors below which a program is said to wait.
const IDLE_PROCESSORS: f64 = 0.05;

/// Renders the calls, or "None." where there are none.
pub(super) fn list(app: App, viewer: &PageViewer, calls: &[Arc<ActiveCall>]) -> Markup {
    if calls.is_empty() {
        return html! { p class="faint" { "None." } };
    }
    let machine = app.activity.machine();
    html! {
        ul class="cards" {
            @for call in calls {
                li class="card" {
                    div class="card-text" {
                        p class="card-head" {
                            strong { (call.principal) }
                            " " code { (call.tool) }
                            " " span class="faint" { "role " (call.role) }
                            " " span class="time" { (format::duration(call.since.elapsed())) }
                        }
                        @if !call.detail().is_empty() { p { code { (call.detail()) } } }
                        p class="why" { (explain(app, call, &machine)) }
                    }
                    (stop_button(call).render(viewer))
                }
            }
        }
    }
}

fn stop_button(call: &ActiveCall) -> StopButton<'_> {
    StopButton { call, number: call.number.to_string() }
}

struct StopButton<'a> {
    call: &'a ActiveCall,
    number: String,
}

impl StopButton<'_> {
    fn render(&self, viewer: &PageViewer) -> Markup {
        let (call, detail) = (self.call, self.call.detail());
        let command = match detail.is_empty() {
            true => call.tool.clone(),
            false => format!("{}: {detail}", call.tool),
        };
        let (owner, id) = (&*call.principal, &*self.number);
        PageEndButton { owner, field: "call", id, word: "Stop", command: &command }.render(viewer)
    }
}

/// Says what a call does at the moment, and why it is not over.
fn explain(app: App, call: &ActiveCall, machine: &MachineState) -> String {
    if let Some(reason) = call.waits_for() {
        return explain_wait(&call.principal, reason);
    }
    let pending = app.workspaces.full_host().approvals().queue.pending();
    let is_asked = pending.iter().any(|pending| {
        pending.question.principal.as_deref() == Some(&*call.principal) && pending.question.tool == call.tool
    });
    if is_asked {
        return "Waits for the approval of an operator.".to_owned();
    }
    explain_use(app.activity.current_use(&call.principal, Some(&call.tool)), machine)
}

/// Says what the programs of a call do.
fn explain_use(used: CurrentUse, machine: &MachineState) -> String {
    let CurrentUse { programs, processes, memory, processors } = used;
    if programs == 0 {
        return "The server works on it.".to_owned();
    }
    let subject = match programs {
        1 => "Its program".to_owned(),
        programs => format!("The {programs} programs of such calls"),
    };
    let [keeps, has, uses, it, waits] = match programs {
        1 => ["keeps", "has", "uses", "it", "waits"],
        _ => ["keep", "have", "use", "they", "wait"],
    };
    let count = if processes > programs { format!(", in {processes} processes") } else { String::new() };
    let busy = machine.busy_processors.map(|busy| busy / crate::activity::as_f64(machine.processors as u64));
    let tight = match busy {
        Some(busy) if busy > BUSY_SHARE => " All processors of this machine are busy.",
        _ => "",
    };
    let memory = format::bytes(usize::try_from(memory).unwrap_or(usize::MAX));
    match processors < IDLE_PROCESSORS {
        true => format!(
            "{subject} {has} {memory}{count}, and {uses} no processor: {it} {waits} for a network, a disk, a lock or a timer."
        ),
        false => format!(
            "{subject} {keeps} {} busy, and {has} {memory}{count}.{tight}",
            format::processors(processors)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_waits_is_told_from_one_that_computes() {
        let machine = MachineState { processors: 2, busy_processors: Some(1.95), ..MachineState::default() };
        let used = |processors| CurrentUse { programs: 1, processes: 3, memory: 210_000_000, processors };
        assert_eq!(
            explain_use(used(1.9), &machine),
            "Its program keeps 1.9 processors busy, and has 210 MB, in 3 processes. All processors of this machine are \
             busy."
        );
        let text = explain_use(used(0.0), &MachineState::default());
        assert!(text.contains("uses no processor") && !text.contains("All processors"), "{text}");
        // What other programs do is no reason why one waits for a timer.
        assert!(!explain_use(used(0.0), &machine).contains("All processors"));
        let two = CurrentUse { programs: 2, ..used(0.0) };
        assert!(
            explain_use(two, &machine)
                .contains("have 210 MB, in 3 processes, and use no processor: they wait for")
        );
        assert_eq!(explain_use(CurrentUse::default(), &machine), "The server works on it.");
    }
}
