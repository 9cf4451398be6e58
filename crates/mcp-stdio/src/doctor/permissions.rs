//! Checks of what the operating system permits this user.
#![allow(clippy::disallowed_methods, reason = "it reads settings of the kernel")]

use server_setup::finding::{DoctorFinding, note, ok};

/// The open files that are enough for ordinary work: each running program, session and followed log has some.
const MIN_DESCRIPTORS: u64 = 1024;

#[cfg(unix)]
pub(super) fn limits() -> Option<DoctorFinding> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    (limit < MIN_DESCRIPTORS).then(|| {
        note(
            "limits",
            format!("{limit} files may be open at once, and {MIN_DESCRIPTORS} are few"),
            "raise it where the client is started: `ulimit -n 8192`, or LimitNOFILE=8192 in its unit",
        )
    })
}

#[cfg(not(unix))]
pub(super) fn limits() -> Option<DoctorFinding> {
    None
}

/// Checks that `capture_trace` and `inspect_state` can look into programs.
pub(super) fn looking_into_processes() -> Vec<DoctorFinding> {
    // A kernel without the setting does not restrict what it stands for.
    let setting = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<i32>().ok();
    let (ptrace, perf) = ("/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/kernel/perf_event_paranoid");
    judge(is_root(), setting(ptrace), setting(perf))
}

/// Judges the settings of the kernel. Only the strictest refuses root.
fn judge(root: bool, ptrace_scope: Option<i32>, perf_event_paranoid: Option<i32>) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    // Yama: 1 allows only ancestors to trace a process, 2 needs CAP_SYS_PTRACE, 3 allows nobody.
    if let Some(scope) = ptrace_scope.filter(|scope| *scope >= if root { 3 } else { 1 }) {
        let remedy = match scope {
            1 | 2 => "run the server as root or with CAP_SYS_PTRACE, or `sysctl kernel.yama.ptrace_scope=0`",
            _ => {
                "remove kernel.yama.ptrace_scope=3 from /etc/sysctl.d and boot: it cannot be taken back before"
            }
        };
        let detail = format!(
            "capture_trace of Python cannot look into programs (kernel.yama.ptrace_scope is {scope})"
        );
        findings.push(note("ptrace", detail, remedy));
    }
    // 3 and above are levels that distributions add: without CAP_PERFMON a user may not use perf at all.
    if let Some(paranoid) = perf_event_paranoid.filter(|paranoid| *paranoid >= 3 && !root) {
        findings.push(note(
            "perf",
            format!(
                "capture_trace of native programs cannot use perf (kernel.perf_event_paranoid is {paranoid})"
            ),
            "run the server as root or with CAP_PERFMON, or `sysctl kernel.perf_event_paranoid=2`",
        ));
    }
    findings
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_lets_nobody_look_into_processes_is_told_with_the_setting_that_would() {
        assert!(judge(false, Some(0), Some(2)).is_empty() && judge(false, None, None).is_empty());
        assert!(judge(true, Some(2), Some(4)).is_empty());
        let remedy = |root, scope, paranoid| {
            let findings = judge(root, scope, paranoid);
            assert_eq!(findings.len(), 1);
            findings[0].remedy.clone().unwrap_or_default()
        };
        assert!(remedy(false, Some(1), None).contains("ptrace_scope=0"));
        assert!(remedy(true, Some(3), None).contains("boot"));
        assert!(remedy(false, None, Some(4)).contains("perf_event_paranoid=2"));
    }
}
