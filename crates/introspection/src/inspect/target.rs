//! Targets: how a request names one, which user a process must belong to, which runtime it runs.
//!
//! | name | target |
//! |---|---|
//! | `pid:123` | a process |
//! | `port:9229` | the process that listens there, on this machine |
//! | `process:shop.py` | the one process of this program or script |
//! | `ws://127.0.0.1:9229/…` | an inspector |
//! | `http://127.0.0.1:8080/debug/vars` | a document |
//! | `file:state.json` | a file beneath a root |
//!
//! # Owner
//!
//! A process is looked into only if all its user ids are the effective user id of this process. That holds for root as
//! well: a server that runs as root looks into root's processes only. For a port, the user of the listening socket
//! counts.

use super::proc::{self, ProcessStatus};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use workspace::{Workspace, printable};

/// A target, as the request or the settings name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InspectTarget {
    /// A process.
    Pid(u32),
    /// The process that listens on this port of this machine.
    Port(u16),
    /// The one process whose program or script has this name.
    Named(String),
    /// An inspector.
    Inspector(TargetUrl),
    /// A document.
    Http(TargetUrl),
    /// A file beneath a root.
    File(String),
}

/// A text that names no target.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{given}` names no target{reason}; give pid:N, port:N, process:NAME, ws://127.0.0.1:N, http://127.0.0.1:N/… or file:PATH"
)]
pub struct InvalidTarget {
    given: String,
    reason: &'static str,
}

impl FromStr for InspectTarget {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let invalid = |reason| InvalidTarget { given: text.chars().take(200).collect(), reason };
        let (scheme, rest) = text.split_once(':').ok_or_else(|| invalid(""))?;
        let url = || TargetUrl::parse(text).ok_or_else(|| invalid(": it is no URL"));
        match scheme {
            "pid" => rest.parse().ok().filter(|pid| *pid > 0).map(Self::Pid).ok_or_else(|| invalid("")),
            "port" => rest.parse().ok().filter(|port| *port > 0).map(Self::Port).ok_or_else(|| invalid("")),
            "process" if !rest.trim().is_empty() => Ok(Self::Named(rest.trim().to_owned())),
            "ws" => url().map(Self::Inspector),
            "http" => url().map(Self::Http),
            "https" | "wss" => Err(invalid(": there is no TLS")),
            "file" if !rest.is_empty() => Ok(Self::File(rest.strip_prefix("//").unwrap_or(rest).to_owned())),
            _ => Err(invalid("")),
        }
    }
}

impl fmt::Display for InspectTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pid(pid) => write!(f, "pid:{pid}"),
            Self::Port(port) => write!(f, "port:{port}"),
            Self::Named(name) => write!(f, "process:{name}"),
            Self::Inspector(url) | Self::Http(url) => url.fmt(f),
            Self::File(path) => write!(f, "file:{path}"),
        }
    }
}

/// A plain `http` or `ws` URL, without user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetUrl {
    scheme: &'static str,
    host: String,
    port: u16,
    /// With its query, from the first `/`.
    path: String,
}

impl TargetUrl {
    /// Parses a URL. `None` for other schemes, for a user or password, and for characters that would have to be escaped.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = ["http", "ws"].into_iter().find(|known| *known == scheme)?;
        let plain = |c: char| c.is_ascii_graphic() && c != '\\';
        if !rest.chars().all(plain) {
            return None;
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => rest.split_once(']').map(|(host, port)| (host, port.strip_prefix(':')))?,
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port > 0)?,
            None => 80,
        };
        (!host.is_empty() && !host.contains('@')).then(|| Self { scheme, host: host.to_owned(), port, path })
    }

    /// A URL of `path` at an address of this machine.
    pub(crate) fn local(scheme: &'static str, address: SocketAddr, path: &str) -> Self {
        Self { scheme, host: address.ip().to_string(), port: address.port(), path: path.to_owned() }
    }

    /// Returns host and port, as the header `Host` has them.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the addresses of this machine that the host names; none if it names another machine. No name but `localhost`
    /// is resolved: one that leads here now may lead elsewhere in a moment.
    pub(crate) fn loopback(&self) -> Vec<SocketAddr> {
        let addresses = match self.host.parse::<IpAddr>() {
            Ok(address) if address.is_loopback() => vec![address],
            Err(_) if self.host.eq_ignore_ascii_case("localhost") => {
                vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
            }
            _ => Vec::new(),
        };
        addresses.into_iter().map(|address| SocketAddr::new(address, self.port)).collect()
    }
}

impl fmt::Display for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority(), self.path)
    }
}

/// The runtime of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LanguageRuntime {
    Node,
    Deno,
    Jvm,
    Python,
    Go,
    /// Anything else.
    Native,
}

impl LanguageRuntime {
    /// Returns the name of the runtime in answers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Deno => "deno",
            Self::Jvm => "jvm",
            Self::Python => "python",
            Self::Go => "go",
            Self::Native => "native",
        }
    }
}

/// A target that does not exist, or that may not be looked into.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// There is no process of this id.
    #[error("there is no process {0}")]
    Gone(u32),
    /// It belongs to another user.
    #[error(
        "{what} belongs to another user ({user}), and only processes of this server's user ({own}) are looked into; run \
         the server as that user"
    )]
    AnotherUser {
        /// The process or port.
        what: String,
        /// The user it belongs to.
        user: u32,
        /// The user of this server.
        own: u32,
    },
    /// The system denies access, though the process belongs to the same user.
    #[error(
        "the system does not let this server look into process {0}: it has rights that the server has not, or guards \
         itself against its own user (not dumpable); run the server as root, or with CAP_SYS_PTRACE"
    )]
    Denied(u32),
    /// Its folder and program lie outside the folders that the caller may read.
    #[error(
        "{0} runs outside the folders that you may read; its working folder or program must lie beneath a root"
    )]
    Outside(String),
    /// It is this server, or its guardian.
    #[error(
        "{0} is this server; only callers whom the policy leaves every tool look into it, and over HTTP nobody"
    )]
    Itself(String),
    /// It was stopped, so that it answers nothing.
    #[error(
        "{process} is stopped (by SIGSTOP, Ctrl-Z or a debugger) and answers nothing until it goes on; to let it go on, \
         run `kill -CONT {pid}`, or detach the debugger"
    )]
    Stopped {
        /// The process, with its command line.
        process: String,
        /// Its id.
        pid: u32,
    },
    /// Nothing listens there.
    #[error("nothing listens on port {0} of this machine; start the application, or name another target")]
    NotListening(u16),
    /// No process has this name.
    #[error(
        "no process of this server's user runs a program or script named `{0}`; give the exact name of the program or \
         script, or its process as pid:N"
    )]
    NotNamed(String),
    /// Several processes have this name.
    #[error("{count} processes are named `{name}`; name one as pid:N: {listed}")]
    SeveralNamed {
        /// The name.
        name: String,
        /// The number of processes.
        count: usize,
        /// Process ids and command lines of the first ten.
        listed: String,
    },
    /// It is not on this machine.
    #[error("`{0}` is not this machine; a target names 127.0.0.1, [::1] or localhost")]
    NotLocal(String),
    /// This operating system is not supported.
    #[error("processes are only found on Linux; name the inspector or document by its URL")]
    Unsupported,
}

/// A signal that was not sent to a process, or had no effect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignalError {
    /// Signals are not allowed.
    #[error("set `inspect.allow_signals`, or run `jcmd` once")]
    NotAllowed,
    /// The process is not proven to run the runtime that has a handler for the signal.
    #[error("it is not proven to be what the signal is for, which would end it")]
    NotProven,
    /// The process has no handler for the signal.
    #[error("it has no handler for the signal, which would end it")]
    NoHandler,
    /// The operating system failed.
    #[error("{0}")]
    Os(std::io::Error),
    /// Node.js took the signal, and its inspector does not listen.
    #[error("it took the signal and opened no inspector; port 9229 may be taken")]
    NoInspector,
    /// Processes are only signalled on Linux.
    #[error("not supported on {}: a process is only signalled on Linux", std::env::consts::OS)]
    Unsupported,
}

/// A process that may be looked into.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Tells it from a later process with the same id.
    pub(super) started: u64,
    pub(crate) runtime: LanguageRuntime,
    pub(super) exe: Option<PathBuf>,
    pub(super) cwd: Option<PathBuf>,
    pub(crate) command: Vec<String>,
}

impl Process {
    /// Finds the process `pid`, which must belong to our user.
    pub(crate) fn find(pid: u32) -> Result<Self, TargetError> {
        if !cfg!(target_os = "linux") {
            return Err(TargetError::Unsupported);
        }
        let gone = |_| TargetError::Gone(pid);
        // First of all: if the id passes to another process during the checks, the start times differ later.
        let started = proc::started(pid).map_err(gone)?;
        let status = ProcessStatus::of(pid).map_err(gone)?;
        let (own, users) = (own_user(), status.users());
        // A zombie has an entry in /proc until its parent waits for it, and nothing to look into.
        if users.is_empty() || status.field("State").is_some_and(|state| state.starts_with('Z')) {
            return Err(TargetError::Gone(pid));
        }
        if let Some(user) = users.into_iter().find(|user| *user != own) {
            return Err(TargetError::AnotherUser { what: format!("process {pid}"), user, own });
        }
        // Where the system denies this link, it denies memory, files and folder of the process too.
        let exe = match proc::link(pid, "exe") {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                return Err(TargetError::Denied(pid));
            }
            exe => exe.ok(),
        };
        Ok(Self {
            pid,
            started,
            runtime: detect_runtime(pid, exe.as_deref()),
            exe,
            cwd: proc::link(pid, "cwd").ok(),
            command: proc::strings(pid, "cmdline").unwrap_or_default(),
        })
    }

    /// Returns true if the process still runs: an id alone may belong to another by now.
    pub(crate) fn is_running(&self) -> bool {
        proc::started(self.pid).is_ok_and(|started| started == self.started)
    }

    /// Checks that the process is not stopped. A stopped one has its memory and its facts in `/proc`, and answers nothing.
    ///
    /// # Errors
    /// [`TargetError::Stopped`].
    pub(crate) fn check_not_stopped(&self) -> Result<(), TargetError> {
        let status = ProcessStatus::of(self.pid);
        let is_stopped = status.is_ok_and(|status| status.is_stopped()) && self.is_running();
        match is_stopped {
            true => Err(TargetError::Stopped { process: self.display_name(), pid: self.pid }),
            false => Ok(()),
        }
    }

    /// Returns true if the working folder or the program lies where `workspace` may be read.
    pub(crate) fn is_beneath(&self, workspace: &Workspace) -> bool {
        let located = |path: &Option<PathBuf>| workspace.locate(path.as_ref()?.as_os_str()).ok();
        // A policy may allow more folders to be passed through than to be listed, so the folder is really listed.
        let cwd = located(&self.cwd)
            .is_some_and(|path| path.open_folder().is_ok_and(|folder| folder.entries().is_ok()));
        cwd || located(&self.exe).is_some_and(|path| path.open_read().is_ok())
    }

    /// Returns true if it is this server or runs the same program, as its guardian and other servers do.
    pub(crate) fn is_server(&self) -> bool {
        self.pid == std::process::id()
            || self.exe.is_some() && self.exe == proc::link(std::process::id(), "exe").ok()
    }

    /// Checks that a caller who is restricted to `workspace` may look into the process, and returns it. With `None` every
    /// process is allowed. `what` is its name in the error.
    ///
    /// # Errors
    /// The process lies outside the workspace, or is this server.
    pub(crate) fn within(
        self,
        workspace: Option<&Workspace>,
        what: impl Fn() -> String,
    ) -> Result<Self, TargetError> {
        match workspace {
            Some(_) if self.is_server() => Err(TargetError::Itself(what())),
            Some(workspace) if !self.is_beneath(workspace) => Err(TargetError::Outside(what())),
            _ => Ok(self),
        }
    }

    /// Returns the name of the process in answers: `node 123 (node server.js)`.
    pub(crate) fn display_name(&self) -> String {
        let command: String = self.command.join(" ").chars().take(80).collect();
        format!("{} {} ({})", self.runtime.name(), self.pid, printable(command.as_ref()))
    }

    /// Returns the addresses at which the process is reached from this machine, in the order in which it began to listen.
    pub(crate) fn local_ports(&self) -> Vec<SocketAddr> {
        // A dual-stack socket may be bound to an IPv4 address: `::ffff:127.0.0.1`.
        let local = |address: SocketAddr| match address.ip().to_canonical() {
            ip if ip.is_loopback() => Some(SocketAddr::new(ip, address.port())),
            IpAddr::V4(ip) if ip.is_unspecified() => Some((Ipv4Addr::LOCALHOST, address.port()).into()),
            IpAddr::V6(ip) if ip.is_unspecified() => Some((Ipv6Addr::LOCALHOST, address.port()).into()),
            _ => None,
        };
        proc::listens(self.pid).into_iter().filter_map(local).collect()
    }

    /// Returns the address of the inspector, by the command line and `NODE_OPTIONS`. Other ports are not tried: a request
    /// there would be one to the application. If the system chooses the port (0), it is the first at which the process
    /// listens, since the inspector starts before the application.
    pub(crate) fn inspector_port(&self) -> Option<SocketAddr> {
        const DEFAULT: u16 = 9229;
        let options = proc::strings(self.pid, "environ").unwrap_or_default();
        let options = options.iter().find_map(|variable| variable.strip_prefix("NODE_OPTIONS="));
        let words = options.into_iter().flat_map(str::split_ascii_whitespace);
        // The command line comes after the variable, since Node.js lets it win: the last one counts.
        let mut ports = words.chain(self.command.iter().map(String::as_str)).filter_map(|word| {
            let word = word.strip_prefix("--inspect")?;
            let (option, address) = word.split_once('=').unwrap_or((word, ""));
            let port = address.rsplit(':').next().unwrap_or_default();
            matches!(option, "" | "-brk" | "-wait" | "-port").then(|| port.parse().unwrap_or(DEFAULT))
        });
        let port: u16 = ports.next_back().unwrap_or(DEFAULT);
        self.local_ports().into_iter().find(|address| port == 0 || address.port() == port)
    }

    /// Returns whether the command line is that of Node.js, Deno or Bun, or has the option that opens an inspector. The
    /// program of a wrapper, or of an application that Electron or Bun packed, has another name.
    pub(crate) fn names_inspector(&self) -> bool {
        let is_runtime = |word: &String| {
            let name = word.rsplit('/').next().unwrap_or_default();
            ["node", "nodejs", "deno", "bun", "electron"].contains(&name)
        };
        self.command.first().is_some_and(is_runtime)
            || self.command.iter().any(|word| word.starts_with("--inspect"))
    }

    /// Sends `signal` if the process has a handler for it and `is_proven` holds. The handle of the process is opened before
    /// the checks, so that the signal cannot reach a later process with the same id.
    ///
    /// # Errors
    /// See [`SignalError`]; the signal was not sent.
    #[cfg(target_os = "linux")]
    pub(crate) fn signal(
        &self,
        signal: rustix::process::Signal,
        is_proven: impl FnOnce(&Self) -> bool,
    ) -> Result<(), SignalError> {
        use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| SignalError::Os(std::io::ErrorKind::NotFound.into()))?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| SignalError::Os(error.into()))?;
        let status = ProcessStatus::of(self.pid).map_err(SignalError::Os)?;
        if !self.is_running() || !is_proven(self) {
            return Err(SignalError::NotProven);
        }
        if !status.catches(u32::try_from(signal.as_raw()).unwrap_or_default()) {
            return Err(SignalError::NoHandler);
        }
        pidfd_send_signal(handle, signal).map_err(|error| SignalError::Os(error.into()))
    }

    /// Fails: this system has no handles of processes, and no proof of what one runs.
    #[cfg(all(unix, not(target_os = "linux")))]
    pub(crate) fn signal(
        &self,
        _signal: rustix::process::Signal,
        _is_proven: impl FnOnce(&Self) -> bool,
    ) -> Result<(), SignalError> {
        Err(SignalError::Unsupported)
    }

    /// Returns true if the program, or a library that it has mapped, contains the name that Node.js gives its sources.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_proven_node(&self) -> bool {
        const MARK: &[u8] = b"node:internal/bootstrap/";
        let proc = Path::new("/proc").join(self.pid.to_string());
        proc::file_contains(&proc.join("exe"), MARK)
            || mapped(self.pid, "libnode.so").is_some_and(|library| {
                proc::file_contains(&proc.join("root").join(library.trim_start_matches('/')), MARK)
            })
    }

    /// Returns true if a Java virtual machine is mapped into the process.
    #[cfg(unix)]
    pub(crate) fn is_proven_jvm(&self) -> bool {
        mapped(self.pid, "libjvm.so").is_some()
    }
}

/// Detects the runtime of `pid` by the name of its program, its mapped libraries, and its program's contents: the cheap
/// signs first.
fn detect_runtime(pid: u32, exe: Option<&Path>) -> LanguageRuntime {
    let name =
        exe.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // The kernel adds this to the link of a program that was replaced, as by an update, while it runs.
    let name = name.strip_suffix(" (deleted)").unwrap_or(&name);
    let is = |known: &str| {
        // `node22` and `python3.12`, and not `nodemon` or `pythonista`.
        name.strip_prefix(known).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    if is("node") || is("nodejs") {
        LanguageRuntime::Node
    } else if is("deno") {
        LanguageRuntime::Deno
    } else if is("python") || is("pypy") {
        LanguageRuntime::Python
    } else if mapped(pid, "libjvm.so").is_some() {
        LanguageRuntime::Jvm
    } else if mapped(pid, "libnode.so").is_some() {
        LanguageRuntime::Node
    } else if mapped(pid, "libpython").is_some() {
        LanguageRuntime::Python
    } else if proc::file_contains(&Path::new("/proc").join(pid.to_string()).join("exe"), b"\xff Go buildinf:")
    {
        LanguageRuntime::Go
    } else {
        LanguageRuntime::Native
    }
}

/// Returns the path of a file that is mapped into a process and whose name begins with `prefix`.
fn mapped(pid: u32, prefix: &str) -> Option<String> {
    let maps = proc::text(pid, "maps").ok()?;
    // address perms offset dev inode path
    let paths = maps.lines().filter_map(|line| line.splitn(6, ' ').nth(5).map(str::trim_start));
    paths
        .filter(|path| path.rsplit('/').next().is_some_and(|file| file.starts_with(prefix)))
        .map(str::to_owned)
        .next()
}

/// Returns the user whose processes may be looked into: the effective user of this process.
pub(crate) fn own_user() -> u32 {
    #[cfg(unix)]
    return rustix::process::geteuid().as_raw();
    #[cfg(not(unix))]
    0
}

/// Returns the processes of our user whose working folder or program lies where `workspace` may be read, by process id.
/// Left out are this process, others of the same program (its guardian), and its ancestors (the client that started it).
pub(crate) fn beneath(workspace: &Workspace) -> Vec<Process> {
    let own_pid = std::process::id();
    let own_exe = proc::link(own_pid, "exe").ok();
    let parent =
        |pid: &u32| ProcessStatus::of(*pid).ok()?.field("PPid")?.parse().ok().filter(|parent| *parent > 0);
    let ancestors: Vec<u32> = std::iter::successors(Some(own_pid), parent).collect();
    let unrelated = proc::pids().into_iter().filter(|pid| !ancestors.contains(pid));
    // Reading two links is cheap. The runtime and access are only determined for the few that are left.
    let candidates = unrelated.filter(|pid| {
        ["cwd", "exe"]
            .iter()
            .any(|name| proc::link(*pid, name).is_ok_and(|path| workspace.locate(path.as_os_str()).is_ok()))
            && proc::link(*pid, "exe").ok() != own_exe
    });
    candidates
        .filter_map(|pid| Process::find(pid).ok())
        .filter(|process| process.is_beneath(workspace))
        .collect()
}

/// Returns the process that listens on a port of this machine; `None` if it cannot be determined. If several do, it is the
/// one with the lowest id. With `within`, the process must be known and lie beneath that workspace.
///
/// # Errors
/// Nothing listens there, or another user does.
pub(crate) fn behind(port: u16, within: Option<&Workspace>) -> Result<Option<Process>, TargetError> {
    Ok(all_behind(port, within)?.into_iter().next())
}

/// Returns the processes that serve a port of this machine, by process id: those that hold a socket which listens there,
/// and the workers of a cluster of Node.js, to which its primary process hands connections. None if they cannot be
/// determined. With `within`, they must be known, and all of them beneath that workspace.
///
/// # Errors
/// Nothing listens there, or another user does, or a process that is not beneath `within`.
pub(crate) fn all_behind(port: u16, within: Option<&Workspace>) -> Result<Vec<Process>, TargetError> {
    if !cfg!(target_os = "linux") {
        return if within.is_some() { Err(TargetError::Unsupported) } else { Ok(Vec::new()) };
    }
    let mut listeners = proc::listeners(std::process::id());
    listeners.retain(|listener| listener.address.port() == port);
    let is_local = |listener: &proc::ListeningSocket| {
        let ip = listener.address.ip().to_canonical();
        ip.is_loopback() || ip.is_unspecified()
    };
    // One that only listens on the address of a network card is on this machine too.
    if listeners.iter().any(is_local) {
        listeners.retain(is_local);
    }
    let own = own_user();
    if let Some(foreign) = listeners.iter().find(|listener| listener.user != own) {
        return Err(TargetError::AnotherUser { what: format!("port {port}"), user: foreign.user, own });
    }
    if listeners.is_empty() {
        return Err(TargetError::NotListening(port));
    }
    let what = || format!("what listens on port {port}");
    let mut pids = proc::holders(&listeners);
    if pids.is_empty() {
        return if within.is_some() { Err(TargetError::Outside(what())) } else { Ok(Vec::new()) };
    }
    pids.extend(cluster_workers(&pids));
    let (mut found, mut first_error) = (Vec::new(), None);
    for pid in pids {
        match Process::find(pid).and_then(|process| process.within(within, what)) {
            Ok(process) => found.push(process),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        // Another process may listen on the same port of another loopback address, and be the one that answers.
        Some(error @ TargetError::Outside(_)) => Err(error),
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}

/// Returns the workers of a cluster of Node.js whose primary process is one of `primaries`.
fn cluster_workers(primaries: &[u32]) -> Vec<u32> {
    let is_worker = |pid: &u32| {
        let parent = ProcessStatus::of(*pid).ok().and_then(|status| status.field("PPid")?.parse().ok());
        !primaries.contains(pid)
            && parent.is_some_and(|parent: u32| primaries.contains(&parent))
            // The variable by which a worker knows that it is one (lib/cluster.js of Node.js).
            && proc::strings(*pid, "environ")
                .is_ok_and(|variables| variables.iter().any(|variable| variable.starts_with("NODE_UNIQUE_ID=")))
    };
    proc::pids().into_iter().filter(is_worker).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn display_name(text: &str) -> String {
        match text.parse::<InspectTarget>() {
            Ok(target) => {
                format!("{target:?}").split(['(', ' ']).next().unwrap().to_owned() + " " + &target.to_string()
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_target_is_named_in_six_ways() {
        assert_eq!(display_name("pid:12"), "Pid pid:12");
        assert_eq!(display_name("port:9229"), "Port port:9229");
        assert_eq!(display_name("process:gunicorn: master [a:b]"), "Named process:gunicorn: master [a:b]");
        assert_eq!(display_name("ws://127.0.0.1:9229/a-b"), "Inspector ws://127.0.0.1:9229/a-b");
        assert_eq!(display_name("http://[::1]:80?x=1#y"), "Http http://[::1]:80/?x=1");
        assert_eq!(display_name("file:a/b.json"), "File file:a/b.json");
        assert_eq!(display_name("file:///a/b.json"), "File file:/a/b.json");
    }

    #[test]
    fn what_names_no_target_is_told_what_does() {
        for text in [
            "",
            "12",
            "pid:0",
            "pid:-1",
            "pid:x",
            "port:70000",
            "process:",
            "process: ",
            "ws:",
            "http://",
            "http://a b/",
            "https://localhost/",
            "http://me:pw@localhost/",
            "gopher://localhost/",
            "file:",
            "http://localhost:0/",
        ] {
            assert!(display_name(text).contains("names no target"), "{text}: {}", display_name(text));
        }
    }

    #[test]
    fn only_this_machine_is_local() {
        let local = |url: &str| !TargetUrl::parse(url).unwrap().loopback().is_empty();
        assert!(local("http://localhost/") && local("http://127.8.9.1:1/") && local("ws://[::1]:2/"));
        for other in [
            "http://example.org/",
            "http://10.0.0.1/",
            "http://0.0.0.0/",
            "http://localhost.example.org/",
            "http://127.0.0.1.nip.io/",
            "http://[::ffff:127.0.0.1]/",
            "http://2130706433/",
            "http://127.1/",
            "http://169.254.169.254/",
        ] {
            assert!(!local(other), "{other}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_found_and_is_beneath_the_folder_of_its_program() {
        let own = Process::find(std::process::id()).unwrap();
        let folder = own.exe.as_ref().unwrap().parent().unwrap().to_owned();
        assert!(own.is_running() && own.is_beneath(&Workspace::new([folder]).unwrap()));
        let elsewhere = tempfile::tempdir().unwrap();
        assert!(!own.is_beneath(&Workspace::new([elsewhere.path()]).unwrap()));
    }

    #[test]
    fn a_process_that_is_not_there_is_said_so() {
        assert!(matches!(Process::find(u32::MAX), Err(TargetError::Gone(_) | TargetError::Unsupported)));
    }
}
