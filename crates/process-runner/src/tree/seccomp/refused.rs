//! The system calls that a confined program may not make.
//!
//! The lists began from what Docker's default profile, systemd's groups of system calls and the sandboxes of coding
//! agents refuse, reduced to what a build or a test run does without. A call that only a capability allows is listed
//! as well if the kernel had faults in it, or if it can be used in a user namespace.

use super::assembler::{ArgumentHalf, Comparison, SystemCallArgumentTest, SystemCallRefusal};
use crate::confine::{ConfinementLevel, SystemCallPermission};

// Calls that came after 2019 have the same number on every architecture. The crate `libc` does not name all of them
// for all systems.
const IO_URING_SETUP: u32 = 425;
const IO_URING_ENTER: u32 = 426;
const IO_URING_REGISTER: u32 = 427;
const OPEN_TREE: u32 = 428;
const MOVE_MOUNT: u32 = 429;
const FSOPEN: u32 = 430;
const FSCONFIG: u32 = 431;
const FSMOUNT: u32 = 432;
const FSPICK: u32 = 433;
const CLONE3: u32 = 435;
const OPENAT2: u32 = 437;
const PIDFD_GETFD: u32 = 438;
const PROCESS_MADVISE: u32 = 440;
const MOUNT_SETATTR: u32 = 442;
const QUOTACTL_FD: u32 = 443;
const FCHMODAT2: u32 = 452;
const SETXATTRAT: u32 = 463;
const REMOVEXATTRAT: u32 = 466;
const OPEN_TREE_ATTR: u32 = 467;
const FILE_SETATTR: u32 = 469;

/// Calls that no build or test needs: keys, kernel code, quotas, swap, the machine's name and its log.
const ADMINISTRATION: &[libc::c_long] = &[
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    QUOTACTL_FD as libc::c_long,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Calls that change what is mounted.
const MOUNTS: &[libc::c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    OPEN_TREE as libc::c_long,
    MOVE_MOUNT as libc::c_long,
    FSOPEN as libc::c_long,
    FSCONFIG as libc::c_long,
    FSMOUNT as libc::c_long,
    FSPICK as libc::c_long,
    MOUNT_SETATTR as libc::c_long,
    OPEN_TREE_ATTR as libc::c_long,
];

/// Calls that look into another process, or change it.
const TRACING: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    PIDFD_GETFD as libc::c_long,
    PROCESS_MADVISE as libc::c_long,
];

/// The second way to most calls. Node.js, Rust and databases do without where the kernel has none.
const IO_URING: [u32; 3] = [IO_URING_SETUP, IO_URING_ENTER, IO_URING_REGISTER];

/// Calls that change the mode, the owner, the times or other attributes of a file. They cannot be judged by path.
const ATTRIBUTE_CHANGES: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2 as libc::c_long,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT as libc::c_long,
    REMOVEXATTRAT as libc::c_long,
    FILE_SETATTR as libc::c_long,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_utimensat,
];

/// The bit of a mode that runs a program as the owner of its file, `<linux/stat.h>`.
const SET_USER_ID: u32 = 0o4000;
/// Calls that give a file a mode, with the argument that is the mode.
const MODE_CHANGES: &[(libc::c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2 as libc::c_long, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];
/// Calls that open a file, with the argument that has the flags; the next one is the mode of a new file.
const OPENINGS: &[(libc::c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];
/// The flags by which an opening makes a file: `O_CREAT`, and the one of `O_TMPFILE` that is its own.
const NEW_FILE: u32 = 0o100 | 0o20_000_000;

/// All flags of `clone(2)` and `unshare(2)` that make a namespace, but for `CLONE_NEWTIME`.
const NEW_NAMESPACES: u32 = 0x7E02_0000;
/// `CLONE_NEWTIME`, which `clone(2)` cannot have: there it is a part of the signal's number.
const NEW_TIME_NAMESPACE: u32 = 0x80;

/// `FS_IOC_SETFLAGS` and `FS_IOC_FSSETXATTR`, `<linux/fs.h>`.
const SET_FILE_FLAGS: [u32; 2] = [0x4008_6602, 0x401C_5820];
/// `TIOCSTI` and `TIOCLINUX`, by which a program types into its terminal.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
const TYPE_INTO_TERMINAL: [u32; 2] = [0x5412, 0x541C];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
const TYPE_INTO_TERMINAL: [u32; 0] = [];

/// `AF_UNIX`, `AF_NETLINK` (which lists network interfaces), `AF_INET` and `AF_INET6`.
const LOCAL_FAMILIES: [libc::c_int; 2] = [libc::AF_UNIX, libc::AF_NETLINK];
const INTERNET_FAMILIES: [libc::c_int; 2] = [libc::AF_INET, libc::AF_INET6];
/// The obsolete type that meant a packet socket of any family.
const SOCK_PACKET: libc::c_int = 10;
/// The part of the second argument of `socket(2)` that is the type. The others are flags.
const SOCKET_TYPE_MASK: u32 = 0xF;

/// Returns the refusals of a level. `network` is false if only local sockets may be made.
pub(super) fn refusals(
    level: ConfinementLevel,
    permissions: &[SystemCallPermission],
    network: bool,
) -> Vec<SystemCallRefusal> {
    let is_allowed = |permission| permissions.contains(&permission);
    let mut refusals = Vec::new();
    let mut refuse = |errno: libc::c_int, call: libc::c_long, tests: &[SystemCallArgumentTest]| {
        let (Ok(call), Ok(errno)) = (u32::try_from(call), u16::try_from(errno)) else { return };
        refusals.push(SystemCallRefusal { call, errno, tests: tests.to_vec() });
    };
    for call in ADMINISTRATION {
        refuse(libc::EPERM, *call, &[]);
    }
    for call in IO_URING {
        refuse(libc::ENOSYS, call.into(), &[]);
    }
    // Whoever else may enter the root could run such a file as the user of this server.
    for (call, mode) in MODE_CHANGES {
        refuse(libc::EPERM, *call, &[any_of(*mode, SET_USER_ID)]);
    }
    for (call, flags) in OPENINGS {
        refuse(libc::EPERM, *call, &[any_of(*flags, NEW_FILE), any_of(*flags + 1, SET_USER_ID)]);
    }
    // Its flags and its mode are in memory. Programs that know it use `openat(2)` on a kernel without.
    refuse(libc::ENOSYS, OPENAT2.into(), &[]);
    if !is_allowed(SystemCallPermission::Tracing) {
        for call in TRACING {
            refuse(libc::EPERM, *call, &[]);
        }
    }
    if !is_allowed(SystemCallPermission::Profiling) {
        refuse(libc::EPERM, libc::SYS_perf_event_open, &[]);
    }
    if !is_allowed(SystemCallPermission::UserNamespaces) {
        for call in MOUNTS {
            refuse(libc::EPERM, *call, &[]);
        }
        refuse(libc::EPERM, libc::SYS_setns, &[]);
        refuse(libc::EPERM, libc::SYS_clone, &[any_of(0, NEW_NAMESPACES)]);
        refuse(libc::EPERM, libc::SYS_unshare, &[any_of(0, NEW_NAMESPACES | NEW_TIME_NAMESPACE)]);
        // Its flags are in memory, where a filter cannot look. The C libraries use `clone(2)` instead then.
        refuse(libc::ENOSYS, CLONE3.into(), &[]);
    }
    // A limit of another process: a low one ends the server.
    for half in [ArgumentHalf::Low, ArgumentHalf::High] {
        let has_limit = SystemCallArgumentTest { half, ..any_of(2, u32::MAX) };
        refuse(libc::EPERM, libc::SYS_prlimit64, &[any_of(0, u32::MAX), has_limit]);
    }
    for request in TYPE_INTO_TERMINAL {
        refuse(libc::EPERM, libc::SYS_ioctl, &[equal(1, request)]);
    }
    let allowed_families = LOCAL_FAMILIES.iter().chain(INTERNET_FAMILIES.iter().filter(|_| network)).copied();
    let others: Vec<_> = allowed_families.map(|family| different(0, family.unsigned_abs())).collect();
    if !network {
        for family in INTERNET_FAMILIES {
            refuse(libc::EPERM, libc::SYS_socket, &[equal(0, family.unsigned_abs())]);
        }
    }
    for kind in [libc::SOCK_RAW, SOCK_PACKET] {
        for family in INTERNET_FAMILIES {
            let is_kind = SystemCallArgumentTest { mask: SOCKET_TYPE_MASK, ..equal(1, kind.unsigned_abs()) };
            refuse(libc::EPERM, libc::SYS_socket, &[equal(0, family.unsigned_abs()), is_kind]);
        }
    }
    // As a kernel that was built without them, for which libraries are prepared.
    refuse(libc::EAFNOSUPPORT, libc::SYS_socket, &others);
    if level >= ConfinementLevel::Strict {
        for call in ATTRIBUTE_CHANGES {
            refuse(libc::EPERM, *call, &[]);
        }
        for request in SET_FILE_FLAGS {
            refuse(libc::EPERM, libc::SYS_ioctl, &[equal(1, request)]);
        }
    }
    refusals
}

/// Returns the test that an argument has at least one of these bits.
fn any_of(argument: u32, bits: u32) -> SystemCallArgumentTest {
    let (half, comparison) = (ArgumentHalf::Low, Comparison::NotEqual);
    SystemCallArgumentTest { argument, half, mask: bits, comparison, value: 0 }
}

fn equal(argument: u32, value: u32) -> SystemCallArgumentTest {
    SystemCallArgumentTest { value, comparison: Comparison::Equal, ..any_of(argument, u32::MAX) }
}

fn different(argument: u32, value: u32) -> SystemCallArgumentTest {
    SystemCallArgumentTest { value, ..any_of(argument, u32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::super::assembler::{assemble, tests::*};
    use super::*;

    fn verdict(
        level: ConfinementLevel,
        permissions: &[SystemCallPermission],
        network: bool,
        call: libc::c_long,
        arguments: &[u64],
    ) -> SeccompVerdict {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let program = assemble(1, &refusals(level, permissions, network));
        assert!(program.len() < 4096, "BPF_MAXINSNS: {}", program.len());
        run(&program, 1, u32::try_from(call).unwrap(), all).0
    }

    const PERMISSION: SeccompVerdict = SeccompVerdict::Errno(1);

    #[test]
    fn a_process_limits_itself_reads_the_limits_of_others_and_does_not_change_them() {
        let limit = |arguments: &[u64]| {
            verdict(ConfinementLevel::Namespaces, &[], true, libc::SYS_prlimit64, arguments)
        };
        assert_eq!(limit(&[0, 7, 0x7fff_0000_1000]), SeccompVerdict::Allowed);
        assert_eq!(limit(&[99, 7, 0]), SeccompVerdict::Allowed);
        assert_eq!(limit(&[99, 7, 0x7fff_0000_1000]), PERMISSION);
        assert_eq!(limit(&[99, 7, 0x1_0000_0000]), PERMISSION);
    }

    #[test]
    fn threads_and_processes_start_and_namespaces_need_their_permission() {
        let namespaces = [SystemCallPermission::UserNamespaces];
        for (permissions, expected) in [(&[][..], PERMISSION), (&namespaces[..], SeccompVerdict::Allowed)] {
            let clone = |flags: u64| {
                verdict(ConfinementLevel::Namespaces, permissions, true, libc::SYS_clone, &[flags])
            };
            assert_eq!(clone(0x3d_0f00), SeccompVerdict::Allowed, "a thread");
            assert_eq!(clone(0x4011), SeccompVerdict::Allowed, "vfork");
            assert_eq!(clone(0x1000_0011), expected, "CLONE_NEWUSER");
        }
    }

    #[test]
    fn sockets_are_judged_by_family_and_type() {
        let socket = |network, family: libc::c_int, kind: libc::c_int| {
            let arguments = [u64::from(family.unsigned_abs()), u64::from(kind.unsigned_abs())];
            verdict(ConfinementLevel::Namespaces, &[], network, libc::SYS_socket, &arguments)
        };
        let stream = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        for (network, family, kind, expected) in [
            (true, libc::AF_INET, stream, SeccompVerdict::Allowed),
            (true, libc::AF_INET6, libc::SOCK_DGRAM, SeccompVerdict::Allowed),
            (true, libc::AF_NETLINK, libc::SOCK_RAW, SeccompVerdict::Allowed),
            (true, libc::AF_INET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, PERMISSION),
            (true, libc::AF_PACKET, libc::SOCK_RAW, SeccompVerdict::Errno(97)),
            (true, libc::AF_VSOCK, stream, SeccompVerdict::Errno(97)),
            (false, libc::AF_INET, stream, PERMISSION),
            (false, libc::AF_INET6, libc::SOCK_DGRAM, PERMISSION),
            (false, libc::AF_UNIX, stream, SeccompVerdict::Allowed),
        ] {
            assert_eq!(socket(network, family, kind), expected, "{network} {family} {kind}");
        }
    }

    #[test]
    fn no_call_gives_a_file_the_bit_that_runs_it_as_its_owner() {
        let judge =
            |call, arguments: &[u64]| verdict(ConfinementLevel::SystemCalls, &[], true, call, arguments);
        for (call, mode) in MODE_CHANGES {
            let mut arguments = [0; 6];
            arguments[*mode as usize] = 0o755;
            assert_eq!(judge(*call, &arguments), SeccompVerdict::Allowed, "{call}");
            arguments[*mode as usize] = 0o2775;
            assert_eq!(
                judge(*call, &arguments),
                SeccompVerdict::Allowed,
                "{call}: a folder whose files get its group"
            );
            arguments[*mode as usize] = 0o4755;
            assert_eq!(judge(*call, &arguments), PERMISSION, "{call}");
        }
        for (call, flags) in OPENINGS {
            let opened = |flag: libc::c_int, mode: u64| {
                let mut arguments = [0; 6];
                arguments[*flags as usize] = u64::from(flag.unsigned_abs());
                arguments[*flags as usize + 1] = mode;
                judge(*call, &arguments)
            };
            assert_eq!(opened(libc::O_CREAT | libc::O_WRONLY, 0o644), SeccompVerdict::Allowed);
            // Without a new file, what stands in the place of the mode is none.
            assert_eq!(opened(libc::O_RDONLY | libc::O_DIRECTORY, 0o4755), SeccompVerdict::Allowed);
            assert_eq!(opened(libc::O_CREAT | libc::O_WRONLY, 0o4755), PERMISSION);
            assert_eq!(opened(libc::O_TMPFILE | libc::O_WRONLY, 0o4755), PERMISSION);
        }
    }

    #[test]
    fn only_the_strict_level_refuses_changes_of_attributes() {
        for call in ATTRIBUTE_CHANGES {
            assert_eq!(verdict(ConfinementLevel::Namespaces, &[], true, *call, &[]), SeccompVerdict::Allowed);
            assert_eq!(verdict(ConfinementLevel::Strict, &[], true, *call, &[]), PERMISSION);
        }
    }
}
