//! The grants of a confinement.

use std::path::{Path, PathBuf};

use super::level::{ConfinementLevel, SystemCallPermission};

/// The files, the network and the processes that a program, and everything it starts, may reach.
///
/// Everything that is not granted is refused. [`Confinement::new`] grants nothing, and not even `/bin/true` can run
/// then; most callers begin with [`Confinement::project`]. [`Command::confined`](crate::Command::confined) applies a
/// confinement to a command. The program can neither leave its confinement nor widen it.
///
/// Confinement works on Linux, in [layers](super::ConfinementLevel): Landlock (landlock(7)), a filter of system calls
/// (seccomp(2)) and namespaces (namespaces(7)). [`Confinement::available`] says what this system has. A command whose
/// confinement cannot be enforced does not start, unless [`best_effort`](Confinement::best_effort) was chosen: then
/// [`Output::confinement`](crate::Output::confinement) says what is missing.
///
/// ```
/// use process_runner::Confinement;
///
/// let confinement = Confinement::project(["/home/me/project"], "/run/user/1000/server-x7")
///     .read("/home/me/.rustup")
///     .write("/home/me/.cargo/registry")
///     .network(false);
/// # let _ = confinement;
/// ```
///
/// # What is enforced
///
/// | at the level | | since |
/// | --- | --- | --- |
/// | `filesystem` | files are read, written, created, removed, renamed and linked only where granted, under any name | Landlock ABI 1 (Linux 5.13) |
/// | | files may be renamed and linked from one granted folder to another (before, they never may) | 2 (5.19) |
/// | | a file that may not be written may not be shortened by `truncate(2)` either | 3 (6.2) |
/// | | no TCP: neither `bind` nor `connect`, if [`network`](Confinement::network) is false | 4 (6.7) |
/// | | no `ioctl(2)` on devices that are not writable | 5 (6.10) |
/// | | no signal to a process outside, this one included; no connection to an abstract Unix socket of one | 6 (6.12) |
/// | `system_calls` | no calls that builds and tests do not need: keys, BPF, modules, `io_uring`, mounts; tracing, profiling and new namespaces unless [allowed](Confinement::allow); no limits of other processes; no raw and no unusual sockets, and without network none but Unix and netlink | x86-64, 64-bit Arm, RISC-V |
/// | `namespaces` | what is not granted is not mounted: no metadata of it and no Unix socket in it; attributes of what may not be written are read-only; `/tmp` and `/dev/shm` of its own; no other process can be seen or named; no IPC of others; without network, only a loopback interface of its own | 5.12, x86-64 and 64-bit Arm; root or user namespaces |
/// | `strict` | no change of a file's mode, owner, times or other attributes, anywhere | as `system_calls` |
///
/// Programs with the same confinement share namespaces, and so `/tmp`, `/dev/shm` and the sight of each other. They are
/// made at the first start, and end with this process: the kernel then ends every program in them. A process number that
/// such a program prints is that of its namespace.
///
/// Every ABI also refuses `ptrace(2)` of a process outside, and so its `/proc/PID/environ`, `mem`, `fd` and `root`;
/// `mount(2)`; new privileges by set-user-id programs (`sudo` does not work); and new device files, to root too. Each
/// run is a domain of its own, so that one run cannot signal or trace another. This process can signal and trace all
/// of them.
///
/// # What is not enforced
///
/// - Below the level `namespaces`: a Unix socket that has a *path* can be connected to wherever file permissions allow it;
///   `stat(2)`, `chmod(2)`, `chown(2)`, `utime(2)`, `setxattr(2)`, `access(2)` and `chdir(2)` work everywhere; the command
///   lines of all processes can be read where `/proc` is granted.
/// - At the level `filesystem`: UDP, raw, netlink and other sockets that are not TCP are allowed. Without network a name is
///   still resolved, and a datagram can carry data out.
/// - Open descriptors keep their rights. The child has standard input, output and error and no other; a file given
///   by [`Stdin::File`](crate::Stdin::File) may be used in every way it was opened for.
/// - What the child writes, others may run later: a build script in a shared package cache, a hook in a repository. A
///   grant of write access is a grant of trust.
/// - Time and output are bounded by [`Limits`](crate::Limits), memory and the number of processes by
///   [`Command::resource_limits`](crate::Command::resource_limits).
///
/// # As root
///
/// A server should not run as root. If it does, its confined programs keep the capabilities to work with files and
/// users (`CHOWN`, `DAC_OVERRIDE`, `FOWNER`, `FSETID`, `KILL`, `SETGID`, `SETUID`, `NET_BIND_SERVICE`,
/// `SYS_CHROOT`) and lose all others: those to trace, to load modules, to configure the network and to change
/// the clock, and also `SYS_ADMIN` and `PERFMON`, with which the environment of every process can be read in spite of
/// Landlock.
///
/// # Paths
///
/// Links in a path are followed when the path is given, and not when a program starts: a path that was replaced by a
/// link since, perhaps by a confined program, is not granted. A path that does not exist when a program starts is left
/// out. A granted file stays granted under a new name, and what replaces it by `rename(2)` is not granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Confinement {
    grants: Vec<AccessGrant>,
    network: bool,
    temp: Option<PathBuf>,
    best_effort: bool,
    #[cfg_attr(feature = "serde", serde(default))]
    level: ConfinementLevel,
    #[cfg_attr(feature = "serde", serde(default))]
    permissions: Vec<SystemCallPermission>,
    /// Links on the way to granted paths, with their targets. Where only what is granted is mounted, they are made anew.
    #[cfg_attr(feature = "serde", serde(default))]
    links: Vec<(PathBuf, PathBuf)>,
    /// True if the program must be able to go on after this process.
    #[cfg_attr(feature = "serde", serde(default))]
    outlives: bool,
    /// True if programs get a `/tmp` of their own where they can.
    #[cfg_attr(feature = "serde", serde(default))]
    private_temp: bool,
}

/// A path and the access to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct AccessGrant {
    /// The path, absolute and without links as far as it existed when it was granted.
    pub(crate) path: PathBuf,
    pub(crate) write: bool,
    /// True for the roots of a project, which alone [`Confinement::narrowed`] takes away.
    pub(crate) root: bool,
}

/// Paths that programs of every kind read: programs and libraries, configuration, and what the kernel says of the
/// machine and of processes.
const SYSTEM_PATHS: [&str; 18] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu/store",
    "/snap",
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    // `/etc/resolv.conf` is a link to one of these on most systems.
    "/run/systemd/resolve",
    "/run/NetworkManager/resolv.conf",
];

/// Devices that keep no data, the terminal (a run has none of its own), and POSIX shared memory.
const DEVICE_PATHS: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/shm"];

impl Confinement {
    /// Returns a confinement that grants nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a confinement for builds and tests of a project on a usual system. `roots` can be read and written, and
    /// `temp` is granted as by [`temp`](Self::temp). TCP is allowed.
    ///
    /// The following paths are readable if they exist now: `/usr`, `/bin`, `/sbin`, `/lib*`, `/etc`, `/opt`, `/nix`,
    /// `/gnu/store`, `/snap`, `/proc`, `/sys/devices/system`, `/sys/fs/cgroup`, transparent huge pages, and what
    /// `/etc/resolv.conf` leads to. The following paths are writable: `/dev/null`, `zero`, `full`, `random`, `urandom`,
    /// `tty` and `/dev/shm` (without which Python's `multiprocessing` has no locks; below the level `namespaces` it is
    /// shared with all processes of this user). `/home`, `/run`, `/var` and `/dev/pts` are not granted, and `/tmp` is
    /// granted only at the level `namespaces`, where the programs have a `/tmp` of their own. Toolchains and caches in
    /// a home are the caller's to grant by [`read`](Self::read) and [`write`](Self::write): this crate reads no
    /// environment.
    pub fn project<P: Into<PathBuf>>(roots: impl IntoIterator<Item = P>, temp: impl Into<PathBuf>) -> Self {
        let mut confinement = Self::new().network(true).temp(temp);
        confinement.private_temp = true;
        // Each path costs about 3 µs at every start, so those that do not exist are left out now.
        for (paths, write) in [(&SYSTEM_PATHS[..], false), (&DEVICE_PATHS[..], true)] {
            for path in paths.iter().map(Path::new).filter(|path| path.exists()) {
                confinement.grant(path, write, false);
            }
        }
        for path in roots {
            confinement.grant(&path.into(), true, true);
        }
        confinement
    }

    /// Lets programs read and execute this file, or everything in this folder.
    #[must_use]
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.grant(&path.into(), false, false);
        self
    }

    /// Lets programs read, execute, change, create and remove everything in this folder but device files; or
    /// read and change this file or device.
    #[must_use]
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.grant(&path.into(), true, false);
        self
    }

    /// Takes these files and folders out of the granted folders that hold them.
    ///
    /// A granted folder that holds an excluded path is replaced by its present entries, each granted separately. Files
    /// that are created in that folder later are not granted, and the folder cannot be listed. Each entry costs about 3
    /// µs at every start. Paths in the roots of [`project`](Self::project) stay granted, because programs create files
    /// there.
    #[allow(clippy::disallowed_methods, reason = "reads only the names in a folder that the caller granted")]
    #[must_use]
    pub fn without<P: AsRef<Path>>(mut self, excluded: impl IntoIterator<Item = P>) -> Self {
        for excluded in excluded {
            let excluded = without_links(excluded.as_ref());
            let holds = |grant: &AccessGrant| !grant.root && excluded.starts_with(&grant.path);
            // Each turn replaces a folder by its entries, so this goes down to the excluded path itself.
            while let Some(index) = self.grants.iter().position(holds) {
                let grant = self.grants.remove(index);
                if grant.path == excluded {
                    continue;
                }
                // A folder that cannot be listed is not granted at all. A link needs no grant, but what it leads to
                // does.
                for entry in std::fs::read_dir(&grant.path).into_iter().flatten().flatten() {
                    match entry.file_type() {
                        Ok(kind) if kind.is_symlink() => {
                            self.links
                                .extend(std::fs::read_link(entry.path()).map(|to| (entry.path(), to)).ok());
                        }
                        Ok(_) => self.push(AccessGrant { path: entry.path(), ..grant.clone() }),
                        Err(_) => {}
                    }
                }
            }
        }
        self
    }

    /// Returns true if `path` is one of the granted paths, or lies in a granted folder. Links in `path` are not
    /// followed.
    pub fn may_read(&self, path: &Path) -> bool {
        self.grants.iter().any(|grant| path.starts_with(&grant.path))
    }

    /// Allows or refuses TCP, as client and as server. Refused by default.
    #[must_use]
    pub fn network(mut self, allowed: bool) -> Self {
        self.network = allowed;
        self
    }

    /// Grants a folder for temporary files, which programs may write and get as `TMPDIR`. The folder should be private
    /// to this server (mode 0700). In `/tmp`, other users could create files.
    #[must_use]
    pub fn temp(mut self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.grant(&path, true, false);
        self.temp = Some(path);
        self
    }

    /// Chooses the layers. [`ConfinementLevel::Namespaces`] by default.
    ///
    /// With [`ConfinementLevel::None`] nothing is confined.
    #[must_use]
    pub fn level(mut self, level: ConfinementLevel) -> Self {
        self.level = level;
        self
    }

    /// Leaves out namespaces, for a program that must be able to outlive this process. Namespaces end with this
    /// process.
    ///
    /// If the level asks for them, they count as missing: without [`best_effort`](Self::best_effort) the program does not
    /// start.
    #[must_use]
    pub fn outliving(mut self) -> Self {
        self.outlives = true;
        self
    }

    /// Allows system calls that are refused by default.
    #[must_use]
    pub fn allow(mut self, permission: SystemCallPermission) -> Self {
        if !self.permissions.contains(&permission) {
            self.permissions.push(permission);
        }
        self
    }

    /// Chooses whether a program starts although some protections, or all, cannot be enforced. False by default.
    #[must_use]
    pub fn best_effort(mut self, best_effort: bool) -> Self {
        self.best_effort = best_effort;
        self
    }

    /// Returns a confinement that grants less of the roots of [`project`](Self::project): only what lies in `read` can
    /// be read, and only what lies in `write` can be read and written. Naming a path outside the roots does not grant
    /// it. The grants of the system, the caches and the temporary folder do not change.
    ///
    /// `None` changes nothing: with `write` alone all roots stay readable. With `read` alone only what lies in
    /// `read` stays writable, since everything writable is readable too.
    #[must_use]
    pub fn narrowed(&self, read: Option<&[PathBuf]>, write: Option<&[PathBuf]>) -> Self {
        if read.is_none() && write.is_none() {
            return self.clone();
        }
        let mut narrowed = Self {
            grants: self.grants.iter().filter(|grant| !grant.root).cloned().collect(),
            ..self.clone()
        };
        let all: Vec<_> = self.roots().map(|root| root.path.clone()).collect();
        let writable = write.or(read).unwrap_or(&all);
        for (paths, write) in [(read.unwrap_or(&all), false), (writable, true)] {
            for path in paths {
                let path = without_links(path);
                for root in self.roots().filter(|root| root.write || !write) {
                    // Only the part that both grant: the smaller of the two, if one lies in the other.
                    let common = if path.starts_with(&root.path) {
                        &path
                    } else if root.path.starts_with(&path) {
                        &root.path
                    } else {
                        continue;
                    };
                    narrowed.push(AccessGrant { path: common.clone(), write, root: true });
                }
            }
        }
        narrowed
    }

    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Landlock reads it"))]
    pub(crate) fn grants(&self) -> &[AccessGrant] {
        &self.grants
    }

    pub(crate) fn allows_network(&self) -> bool {
        self.network
    }

    pub(crate) fn must_outlive(&self) -> bool {
        self.outlives
    }

    pub(crate) fn chosen_level(&self) -> ConfinementLevel {
        self.level
    }

    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only filters of system calls read it"))]
    pub(crate) fn permissions(&self) -> &[SystemCallPermission] {
        &self.permissions
    }

    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only namespaces need it"))]
    pub(crate) fn links(&self) -> &[(PathBuf, PathBuf)] {
        &self.links
    }

    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only namespaces have it"))]
    pub(crate) fn has_private_temp(&self) -> bool {
        self.private_temp
    }

    pub(crate) fn is_best_effort(&self) -> bool {
        self.best_effort
    }

    pub(crate) fn temp_folder(&self) -> Option<&Path> {
        self.temp.as_deref()
    }

    fn roots(&self) -> impl Iterator<Item = &AccessGrant> {
        self.grants.iter().filter(|grant| grant.root)
    }

    fn grant(&mut self, path: &Path, write: bool, root: bool) {
        for link in links_on_the_way(path) {
            if !self.links.contains(&link) {
                self.links.push(link);
            }
        }
        self.push(AccessGrant { path: without_links(path), write, root });
    }

    fn push(&mut self, grant: AccessGrant) {
        if !self.grants.iter().any(|other| other.covers(&grant)) {
            self.grants.push(grant);
        }
    }
}

impl AccessGrant {
    /// Returns true if this grants everything that `other` does, and narrowing leaves no less of it.
    fn covers(&self, other: &Self) -> bool {
        other.path.starts_with(&self.path) && (self.write || !other.write) && (other.root || !self.root)
    }
}

/// Returns the path without links, as far as it exists.
fn without_links(path: &Path) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if !parent.as_os_str().is_empty() => without_links(parent).join(name),
        _ => path.to_owned(),
    }
}

/// The most links that the kernel follows in one path (`path_resolution(7)`).
const MAX_LINKS: usize = 40;

/// Returns the links that are followed on the way to `path`, and their targets.
#[allow(
    clippy::disallowed_methods,
    reason = "reads only the links on the way to a path that the caller granted"
)]
fn links_on_the_way(path: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut links = Vec::new();
    let mut rest = path.to_owned();
    'again: while links.len() < MAX_LINKS {
        let mut walked = PathBuf::new();
        let mut components = rest.components();
        while let Some(component) = components.next() {
            walked.push(component);
            let Ok(target) = std::fs::read_link(&walked) else { continue };
            let remaining = components.as_path().to_owned();
            // The folder of the link has no links itself: it was walked before, or this is the second turn.
            let folder = walked.parent().map(without_links).unwrap_or_default();
            links.push((walked.clone(), target.clone()));
            rest = folder.join(target).join(remaining);
            continue 'again;
        }
        break;
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(confinement: &Confinement) -> Vec<&str> {
        confinement.grants.iter().map(|grant| grant.path.to_str().unwrap()).collect()
    }

    #[test]
    fn a_path_within_another_is_kept_only_if_it_grants_more() {
        let confinement = Confinement::new().read("/a").read("/a/b").write("/a/c").read("/a/c/d").read("/ab");
        assert_eq!(paths(&confinement), ["/a", "/a/c", "/ab"]);
    }

    #[cfg(unix)]
    #[test]
    #[allow(clippy::disallowed_methods, reason = "makes what is looked at")]
    fn links_are_kept_with_what_they_lead_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        std::fs::create_dir(path.join("real")).unwrap();
        std::os::unix::fs::symlink("real", path.join("first")).unwrap();
        std::os::unix::fs::symlink(path.join("first"), path.join("second")).unwrap();
        let confinement = Confinement::new().write(path.join("second/new"));
        assert_eq!(paths(&confinement), [path.join("real/new").to_str().unwrap()]);
        let links = [(path.join("second"), path.join("first")), (path.join("first"), "real".into())];
        assert_eq!(confinement.links(), links);
    }

    #[test]
    fn a_root_hides_no_grant_that_narrowing_must_keep() {
        let confinement = Confinement::project(["/no/root"], "/no/root/temp").read("/no/root/toolchain");
        let narrowed = confinement.narrowed(Some(&[]), Some(&[]));
        for kept in ["/no/root/temp", "/no/root/toolchain"] {
            assert!(paths(&narrowed).contains(&kept), "{narrowed:?}");
        }
        assert!(!paths(&narrowed).contains(&"/no/root"), "{narrowed:?}");
    }
}
