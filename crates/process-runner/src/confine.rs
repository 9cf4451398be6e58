//! What a program may reach: a fence around its files, its TCP and its signals.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::tree;

/// What a program, and everything it starts, may reach.
///
/// Whatever is not granted is refused: a new value lets a program read nothing, which not even `/bin/true`
/// survives, and [`Confinement::project`] is where most begin. A command carries it by
/// [`Command::confined`](crate::Command::confined); it can neither be taken off nor widened by the program.
///
/// Works on Linux, by Landlock (landlock(7)); [`Confinement::available`] tells. If something that was asked
/// for cannot be enforced the command does not start, unless [`best_effort`](Confinement::best_effort) was
/// chosen: then [`Output::confinement`](crate::Output::confinement) says what is missing.
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
/// # What holds
///
/// | | from Landlock ABI (Linux) |
/// | --- | --- |
/// | files are read, written, made, removed, renamed and linked only where granted, by whatever name | 1 (5.13) |
/// | files may be renamed and linked from one granted folder to another (before, they never may) | 2 (5.19) |
/// | a file that may not be written may not be shortened by `truncate(2)` either | 3 (6.2) |
/// | no TCP: neither `bind` nor `connect`, if [`network`](Confinement::network) is false | 4 (6.7) |
/// | no `ioctl(2)` on devices that are not writable | 5 (6.10) |
/// | no signal to a process outside, the starter's own included | 6 (6.12) |
/// | no connection to an abstract Unix socket of a process outside | 6 (6.12) |
///
/// From the first on, too: no `ptrace(2)`, and so no `/proc/PID/environ`, `mem`, `fd` or `root`, of a process
/// outside; no `mount(2)`; no new privileges by set-user-id programs (`sudo` does not work); no device files are
/// made, by root neither. Each run is a domain of its own: one cannot signal or trace another. We can signal and
/// trace all of them.
///
/// # What does not
///
/// - `connect(2)` to a Unix socket that has a *path* is allowed wherever file permissions allow it. A daemon
///   that listens on one must know its peers. (Landlock ABI 9 can refuse it; it is not asked for yet.)
/// - UDP, raw, netlink and other sockets that are not TCP: "no network" stops TCP. A name is still resolved,
///   and a datagram can carry data out.
/// - Metadata: `stat(2)`, `chmod(2)`, `chown(2)`, `utime(2)`, `setxattr(2)`, `access(2)` and `chdir(2)` work
///   everywhere, and so does finding out whether a name exists.
/// - Descriptors that were open before: the child has standard input, output and error and no other. A file
///   given by [`Stdin::File`](crate::Stdin::File) may be used in every way it was opened for.
/// - What the child writes where it may, others may later run: a build script in a shared package cache, a
///   hook in a repository. A grant of write access is a grant of trust.
/// - Command lines (`/proc/PID/cmdline`) of all processes can be read where `/proc` is granted.
/// - Time, memory, number of processes: see [`Limits`](crate::Limits) for what there is.
///
/// # As root
///
/// A server that runs as root should not, but may: its confined programs keep the capabilities to work with
/// files and users (`CHOWN`, `DAC_OVERRIDE`, `FOWNER`, `FSETID`, `KILL`, `SETGID`, `SETUID`, `NET_BIND_SERVICE`,
/// `SYS_CHROOT`) and lose all others: those to trace, to load modules, to configure the network or to change
/// the clock, and `SYS_ADMIN` and `PERFMON`, with which the environment of every process can be read whatever
/// Landlock says.
///
/// # Paths
///
/// Links in a path are followed when it is given, and not when a program starts: what was replaced by a link
/// since (perhaps by a confined program) is not granted. A place that does not exist when a program starts is
/// left out. A file is granted as such, and not what replaces it by `rename(2)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Confinement {
    grants: Vec<Grant>,
    network: bool,
    temp: Option<PathBuf>,
    best_effort: bool,
}

/// One place and what may be done there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Grant {
    /// Absolute and without links, as far as it existed.
    pub(crate) path: PathBuf,
    pub(crate) write: bool,
    /// One of the roots, which [`Confinement::narrowed`] is about.
    root: bool,
}

/// What programs of every kind read, as far as it exists: programs and libraries, configuration, what the
/// kernel tells of the machine and of the process.
const SYSTEM: [&str; 18] = [
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
    // Where `/etc/resolv.conf` leads on most systems.
    "/run/systemd/resolve",
    "/run/NetworkManager/resolv.conf",
];

/// Devices without a memory, the terminal (a run has none of its own), and POSIX shared memory.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/shm"];

impl Confinement {
    /// Grants nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// What a build or a test of a project needs on a usual system. `roots` can be read and written, and `temp`
    /// as by [`temp`](Self::temp). TCP is allowed.
    ///
    /// Readable, as far as they exist now: `/usr`, `/bin`, `/sbin`, `/lib*`, `/etc`, `/opt`, `/nix`, `/gnu/store`,
    /// `/snap`, `/proc`, `/sys/devices/system`, `/sys/fs/cgroup`, transparent huge pages, and what
    /// `/etc/resolv.conf` leads to. Writable: `/dev/null`, `zero`, `full`, `random`, `urandom`, `tty` and
    /// `/dev/shm` (without which Python's `multiprocessing` has no locks; it is shared with all processes of
    /// this user). Not `/tmp`, `/home`, `/run`, `/var`, `/dev/pts`. Toolchains and caches in a home are for
    /// the caller to [`read`](Self::read) and [`write`](Self::write): this crate reads no environment.
    pub fn project<P: Into<PathBuf>>(roots: impl IntoIterator<Item = P>, temp: impl Into<PathBuf>) -> Self {
        let mut confinement = Self::new().network(true).temp(temp);
        // Each place costs about 3 us a start, so none is kept for nothing.
        for (paths, write) in [(&SYSTEM[..], false), (&DEVICES[..], true)] {
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

    /// Lets programs read, execute, change, make and remove everything in this folder but device files; or
    /// read and change this file or device.
    #[must_use]
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.grant(&path.into(), true, false);
        self
    }

    /// Without these files and folders, though a granted folder holds them: it is granted as what lies in it now beside
    /// them, each for itself. What is made there later is not granted, and the folder cannot be listed. Each place costs
    /// a start about 3 us. What lies in the roots of [`project`](Self::project) stays: there programs make files.
    #[allow(clippy::disallowed_methods, reason = "a folder of the system's, whose names alone are read")]
    #[must_use]
    pub fn without<P: AsRef<Path>>(mut self, places: impl IntoIterator<Item = P>) -> Self {
        for place in places {
            let place = without_links(place.as_ref());
            let holds = |grant: &Grant| !grant.root && place.starts_with(&grant.path);
            while let Some(found) = self.grants.iter().position(holds) {
                let grant = self.grants.remove(found);
                if grant.path == place {
                    continue;
                }
                // What cannot be listed is not granted at all. A link needs no grant: what it leads to does.
                let beside = std::fs::read_dir(&grant.path).into_iter().flatten().flatten();
                for entry in beside.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink())) {
                    self.push(Grant { path: entry.path(), ..grant.clone() });
                }
            }
        }
        self
    }

    /// Whether programs may use TCP, as client and as server. False unless said.
    #[must_use]
    pub fn network(mut self, allowed: bool) -> Self {
        self.network = allowed;
        self
    }

    /// A folder for temporary files, which programs may write and get as `TMPDIR`. It should be private to
    /// this server (mode 0700): what lies in `/tmp` belongs to others.
    #[must_use]
    pub fn temp(mut self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.grant(&path, true, false);
        self.temp = Some(path);
        self
    }

    /// Whether a program starts where not everything can be enforced, or nothing. False unless said.
    #[must_use]
    pub fn best_effort(mut self, best_effort: bool) -> Self {
        self.best_effort = best_effort;
        self
    }

    /// The same with less of the roots of [`project`](Self::project): of these only what lies in `read` can be
    /// read, and only what lies in `write` can be read and written. What lies outside the roots gains nothing
    /// by being named. System, caches and the temporary folder stay as they are.
    ///
    /// `None` leaves as it is: with `write` alone all roots stay readable. With `read` alone only what lies in
    /// `read` stays writable, since what is writable is readable too.
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
                    // The smaller of the two, if one lies in the other.
                    let common = if path.starts_with(&root.path) {
                        &path
                    } else if root.path.starts_with(&path) {
                        &root.path
                    } else {
                        continue;
                    };
                    narrowed.push(Grant { path: common.clone(), write, root: true });
                }
            }
        }
        narrowed
    }

    /// What this system can enforce at all.
    ///
    /// Asked once for each process, by a thread that confines itself.
    ///
    /// # Errors
    /// Why nothing can be enforced, in words: another system, a kernel without Landlock, a container that
    /// refuses it.
    pub fn available() -> Result<InForce, String> {
        let system = tree::enforceable()?;
        Ok(InForce {
            landlock_abi: Some(system.abi),
            enforced: system.protections.clone(),
            missing: Vec::new(),
        })
    }

    /// What will hold for a program that is started with this.
    pub fn in_force(&self) -> InForce {
        let asked = Protection::ALL.into_iter().filter(|what| !(self.network && *what == Protection::Tcp));
        let Ok(system) = tree::enforceable() else {
            return InForce { landlock_abi: None, enforced: Vec::new(), missing: asked.collect() };
        };
        let (enforced, missing) = asked.partition(|what| system.protections.contains(what));
        InForce { landlock_abi: Some(system.abi), enforced, missing }
    }

    /// Says why a program may not start with this: something that was asked for cannot be enforced.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.best_effort {
            return Ok(());
        }
        tree::enforceable()?;
        let in_force = self.in_force();
        match in_force.missing.is_empty() {
            true => Ok(()),
            false => Err(in_force.to_string()),
        }
    }

    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "there is nothing to grant it"))]
    pub(crate) fn grants(&self) -> &[Grant] {
        &self.grants
    }

    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing can refuse it"))]
    pub(crate) fn allows_network(&self) -> bool {
        self.network
    }

    pub(crate) fn temp_folder(&self) -> Option<&Path> {
        self.temp.as_deref()
    }

    fn roots(&self) -> impl Iterator<Item = &Grant> {
        self.grants.iter().filter(|grant| grant.root)
    }

    fn grant(&mut self, path: &Path, write: bool, root: bool) {
        self.push(Grant { path: without_links(path), write, root });
    }

    fn push(&mut self, grant: Grant) {
        if !self.grants.iter().any(|other| other.covers(&grant)) {
            self.grants.push(grant);
        }
    }
}

impl Grant {
    /// Whatever the other grants, this does; and narrowing takes no more of this.
    fn covers(&self, other: &Self) -> bool {
        other.path.starts_with(&self.path) && (self.write || !other.write) && (other.root || !self.root)
    }
}

/// The path without links, as far as it exists.
fn without_links(path: &Path) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if !parent.as_os_str().is_empty() => without_links(parent).join(name),
        _ => path.to_owned(),
    }
}

/// Something that a program is kept from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Protection {
    /// Files and folders that were not granted.
    Files,
    /// Shortening a file that may not be written.
    Truncation,
    /// `ioctl(2)` on devices that were not granted.
    Devices,
    /// TCP.
    Tcp,
    /// Signals to processes outside.
    Signals,
    /// Abstract Unix sockets of processes outside.
    AbstractSockets,
}

impl Protection {
    pub(crate) const ALL: [Self; 6] =
        [Self::Files, Self::Truncation, Self::Devices, Self::Tcp, Self::Signals, Self::AbstractSockets];
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "files",
            Self::Truncation => "truncation",
            Self::Devices => "devices",
            Self::Tcp => "TCP",
            Self::Signals => "signals",
            Self::AbstractSockets => "abstract sockets",
        })
    }
}

/// Which protections a program runs under, and which were asked for and are not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct InForce {
    /// The version of the kernel's Landlock ABI. `None` if nothing is enforced.
    pub landlock_abi: Option<u32>,
    /// What holds.
    pub enforced: Vec<Protection>,
    /// What was asked for and cannot be enforced here.
    pub missing: Vec<Protection>,
}

impl fmt::Display for InForce {
    /// "Landlock ABI 4: files, truncation, TCP; not enforced: devices, signals, abstract sockets".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, what: &[Protection]| {
            what.iter()
                .enumerate()
                .try_for_each(|(index, what)| write!(f, "{}{what}", if index == 0 { "" } else { ", " }))
        };
        match self.landlock_abi {
            Some(abi) => {
                write!(f, "Landlock ABI {abi}: ")?;
                list(f, &self.enforced)?;
            }
            None => return f.write_str("nothing is enforced"),
        }
        if !self.missing.is_empty() {
            f.write_str("; not enforced: ")?;
            list(f, &self.missing)?;
        }
        Ok(())
    }
}

/// What the system can do.
#[derive(Debug)]
pub(crate) struct Enforceable {
    pub(crate) abi: u32,
    pub(crate) protections: Vec<Protection>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(confinement: &Confinement) -> Vec<&str> {
        confinement.grants.iter().map(|grant| grant.path.to_str().unwrap()).collect()
    }

    #[test]
    fn a_place_within_another_is_kept_only_if_it_grants_more() {
        let confinement = Confinement::new().read("/a").read("/a/b").write("/a/c").read("/a/c/d").read("/ab");
        assert_eq!(paths(&confinement), ["/a", "/a/c", "/ab"]);
    }

    #[test]
    fn a_root_hides_no_place_that_narrowing_must_keep() {
        let confinement = Confinement::project(["/no/root"], "/no/root/temp").read("/no/root/toolchain");
        let narrowed = confinement.narrowed(Some(&[]), Some(&[]));
        for kept in ["/no/root/temp", "/no/root/toolchain"] {
            assert!(paths(&narrowed).contains(&kept), "{narrowed:?}");
        }
        assert!(!paths(&narrowed).contains(&"/no/root"), "{narrowed:?}");
    }

    #[test]
    fn what_is_missing_is_said() {
        let in_force = InForce {
            landlock_abi: Some(3),
            enforced: vec![Protection::Files, Protection::Truncation],
            missing: vec![Protection::Devices, Protection::Tcp],
        };
        assert_eq!(in_force.to_string(), "Landlock ABI 3: files, truncation; not enforced: devices, TCP");
        let nothing = InForce { missing: vec![Protection::Files], ..InForce::default() };
        assert_eq!(nothing.to_string(), "nothing is enforced");
    }
}
