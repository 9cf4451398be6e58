//! Starts a process, and finds and ends everything that came of it.
//!
//! Each platform has files of its own, and this module gives them the same names:
//!
//! | | found when it must end | ends after our own death by `SIGKILL` |
//! | --- | --- | --- |
//! | Linux | process group, session, environment marker, ancestors, adopted orphans | with a [`guardian`](crate::guardian) |
//! | macOS, other Unix | process group | process groups, with a [`guardian`](crate::guardian) |
//! | Windows | job object | job object |

#[cfg(target_os = "linux")]
mod adoption;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod child;
#[cfg(unix)]
mod descriptors;
mod exit;
#[cfg(target_os = "linux")]
pub(crate) mod foreground;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(unix)]
mod launch;
#[cfg(target_os = "linux")]
mod layers;
#[cfg(unix)]
mod leader;
mod leader_hold;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(unix, not(target_os = "linux")))]
mod macos;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod network_namespace;
#[cfg(not(target_os = "linux"))]
mod no_adoption;
#[cfg(not(target_os = "linux"))]
mod no_network_namespace;
#[cfg(not(target_os = "linux"))]
mod no_process_times;
#[cfg(target_os = "linux")]
mod process_times;
mod protections;
#[cfg(unix)]
mod resolve;
#[cfg(target_os = "linux")]
mod resource_control;
#[cfg(unix)]
mod resources;
mod run_id;
#[cfg(unix)]
mod scan;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(unix)]
mod sys;
#[cfg(not(target_os = "linux"))]
mod unconfined;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use adoption::{adopt_orphans, adopters, adopts_orphans, may_have_orphans, thread_has_children};
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use no_adoption::adopters;
#[cfg(not(target_os = "linux"))]
pub(crate) use no_adoption::{adopt_orphans, adopts_orphans, may_have_orphans, thread_has_children};

#[cfg(target_os = "linux")]
use adoption::StartTicket;
#[cfg(target_os = "linux")]
pub(crate) use adoption::{
    Attribution, attribute, first_run, is_adopted_by, reap_orphan, reap_orphans, run_leaders, start_bound,
};
#[cfg(all(unix, not(target_os = "linux")))]
use no_adoption::StartTicket;
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use no_adoption::{
    Attribution, attribute, first_run, is_adopted_by, reap_orphan, reap_orphans, run_leaders, start_bound,
};

#[cfg(target_os = "linux")]
use linux as platform;
#[cfg(all(unix, not(target_os = "linux")))]
use macos as platform;

pub(crate) use exit::ReapedLeader;
pub(crate) use leader_hold::{LeaderHold, ProcessStamp};
#[cfg(target_os = "linux")]
pub(crate) use network_namespace::NamespaceHandle;
#[cfg(not(target_os = "linux"))]
pub(crate) use no_network_namespace::NamespaceHandle;
pub(crate) use run_id::RunId;
#[cfg(unix)]
pub(crate) use run_id::RunToken;

#[cfg(unix)]
pub(crate) use descriptors::pipe_above_stdio;
#[cfg(unix)]
pub(crate) use launch::{
    LaunchedProgram, OutputPipe, StartedLeader, StdinPipe, connect, launch, launch_helper, open_pipes,
    validate,
};
#[cfg(unix)]
pub(crate) use leader::{ExitWatch, ProcessLeader};
#[cfg(unix)]
pub(crate) use platform::{SEES_HOLDERS, command_line, holds_any_pipe, pipe_id, scan, start_time};
#[cfg(unix)]
pub(crate) use resources::{default_concurrency, exhausted_resource};
#[cfg(unix)]
pub(crate) use scan::{ProcessScan, ScanQuery, TreeMember};
#[cfg(unix)]
pub(crate) use sys::ignore_termination_signals;

#[cfg(not(target_os = "linux"))]
pub(crate) use no_process_times::ProcessTimes;
#[cfg(target_os = "linux")]
pub(crate) use process_times::ProcessTimes;

#[cfg(target_os = "linux")]
pub(crate) use cgroup::LimitWatch;
#[cfg(target_os = "linux")]
use resource_control::ResourceBoundary;
#[cfg(target_os = "linux")]
use resource_control::resource_controls;
#[cfg(not(target_os = "linux"))]
pub(crate) use unconfined::LimitWatch;
#[cfg(all(unix, not(target_os = "linux")))]
use unconfined::ResourceBoundary;
#[cfg(not(target_os = "linux"))]
use unconfined::resource_controls;

#[cfg(target_os = "linux")]
pub(crate) use namespaces::{FrozenNamespace, freeze_namespace, release_owner};
#[cfg(not(target_os = "linux"))]
pub(crate) use no_adoption::release_owner;
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use no_adoption::{FrozenNamespace, freeze_namespace};

#[cfg(target_os = "linux")]
use layers::{StartAttempt, StartBoundary, StartFailure, start, supported_protections};
#[cfg(not(target_os = "linux"))]
use unconfined::supported_protections;
#[cfg(all(unix, not(target_os = "linux")))]
use unconfined::{StartAttempt, StartBoundary, StartFailure, start};

#[cfg(windows)]
pub(crate) use windows::*;

// Here, and not beside the type: what a system has is known here, and the type is used by what this module uses.
impl crate::resource_limits::ResourceControls {
    /// Returns the means for programs with namespaces of their own, or for those without. Changes nothing.
    pub fn available(in_namespaces: bool) -> Self {
        resource_controls(in_namespaces)
    }
}
