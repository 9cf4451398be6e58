//! The room that this server and its machine have.

use super::charts::meter;
use super::format;
use super::layout;
use crate::activity::{DiskSpace, MachineState, as_f64};
use crate::app_state::App;
use crate::process_usage::ProcessUsage;
use maud::{Markup, html};

/// A resource, of which a part is used.
struct MeteredResource {
    name: String,
    /// The used share, from 0 to 1.
    used: f64,
    /// The free part, in words.
    free: String,
}

impl MeteredResource {
    /// Returns a resource that is counted; none where there is no limit.
    fn counted(name: &str, (used, total): (u64, u64), what: &str) -> Option<Self> {
        let free = total.saturating_sub(used);
        // A number of this size stands for no limit, and a share of it would say nothing.
        (total > 0 && total < u64::from(u32::MAX)).then(|| Self {
            name: name.to_owned(),
            used: as_f64(used) / as_f64(total),
            free: format!("{used} of {total} {what}; room for {free} more"),
        })
    }
}

/// The used share from which on a resource is nearly used up.
const SCARCE: f64 = 0.9;

/// Returns the names of what is nearly used up.
pub(super) fn scarce(app: App) -> Vec<String> {
    let resources = resources(app, &app.activity.machine());
    resources.into_iter().filter(|resource| resource.used > SCARCE).map(|resource| resource.name).collect()
}

/// Renders the room of the machine and of the server.
pub(super) fn section(app: App) -> Markup {
    let machine = app.activity.machine();
    let resources = resources(app, &machine);
    let scarce: Vec<&str> =
        resources.iter().filter(|resource| resource.used > SCARCE).map(|resource| &*resource.name).collect();
    let content = html! {
        p {
            @if scarce.is_empty() { "There is room in everything." }
            @else { strong class="bad" { "Nearly used up: " (scarce.join(", ")) "." } }
        }
        ul class="meters" {
            @for resource in &resources {
                li {
                    span class="meter-name" { (resource.name) }
                    (meter(resource.used))
                    span class="faint" { (resource.free) }
                }
            }
        }
    };
    layout::section("headroom", "Headroom of this machine", &content)
}

fn resources(app: App, machine: &MachineState) -> Vec<MeteredResource> {
    let mut resources = Vec::new();
    if let Some(busy) = machine.busy_processors {
        let count = machine.processors;
        let all = if count == 1 { "processor".to_owned() } else { format!("{count} processors") };
        resources.push(MeteredResource {
            name: "Processors".to_owned(),
            used: busy / as_f64(count as u64),
            free: format!("{} of {all} busy", format::number(busy)),
        });
    }
    if let (Some(total), Some(available)) = (machine.memory_total, machine.memory_available) {
        resources.push(MeteredResource {
            name: "Memory".to_owned(),
            used: 1.0 - as_f64(available) / as_f64(total),
            free: format!("{} of {} free", format::space(available), format::space(total)),
        });
    }
    for disk in DiskSpace::of(&app.disk_paths) {
        resources.push(MeteredResource {
            name: format!("Disk of {}", disk.path.display()),
            used: 1.0 - as_f64(disk.available) / as_f64(disk.total.max(1)),
            free: format!("{} of {} free", format::space(disk.available), format::space(disk.total)),
        });
    }
    let capacity = app.admission.capacity();
    let connections = u64::try_from(app.metrics.connections.get()).unwrap_or(0);
    let descriptors = ProcessUsage::now().descriptors();
    let counted = [
        MeteredResource::counted("Calls", capacity.calls, "running"),
        MeteredResource::counted("Programs", capacity.programs, "running"),
        MeteredResource::counted("Queue of calls", capacity.queue, "waiting"),
        MeteredResource::counted("Connections", (connections, app.max_connections as u64), "open"),
        MeteredResource::counted("Sessions", (app.sessions.count() as u64, app.max_sessions as u64), "open"),
        descriptors.and_then(|descriptors| MeteredResource::counted("Files", descriptors, "open")),
    ];
    resources.extend(counted.into_iter().flatten());
    resources
}
