//! Finds the file that a program's name means, and the reason that a file does not start.
#![allow(
    clippy::disallowed_methods,
    reason = "reads the first bytes of a program to say why it does not start"
)]

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, FileType, accessat, statat};
use rustix::io::Errno;

use super::resources::exhausted_resource;
use crate::command::Command;
use crate::confine::ConfinementProblem;
use crate::error::{SpawnError, SpawnErrorKind};

/// The search path of a child without a `PATH`, as in `execvp(3)` (`_CS_PATH`).
const DEFAULT_PATH: &str = "/usr/bin:/bin";
/// The most file names that are compared for "did you mean".
const MAX_COMPARED_NAMES: usize = 20_000;
/// The longest name of a file, in bytes: `NAME_MAX` of `limits.h`.
const NAME_MAX: usize = 255;

/// Returns the file to start: the name itself if it has a `/`, else the first executable of that name in `path`.
///
/// # Errors
/// `NotFound` and `NotExecutable`.
pub(crate) fn find<'a>(
    command: &Command,
    path: impl FnOnce() -> Option<&'a OsStr>,
) -> Result<PathBuf, SpawnError> {
    let name = &command.program;
    if name.as_bytes().contains(&b'/') {
        let program = Path::new(name);
        // Linux changes the folder before it looks for the program, macOS does not.
        let join = program.is_relative() && !cfg!(target_os = "linux");
        return Ok(if join { command.folder.path.join(program) } else { program.to_owned() });
    }
    let searched = folders(path().unwrap_or(OsStr::new(DEFAULT_PATH)));
    let mut unusable = None;
    for folder in &searched {
        let candidate = folder.join(name);
        match statat(CWD, &candidate, AtFlags::empty()) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                if may_execute(&candidate) {
                    return Ok(candidate);
                }
                unusable.get_or_insert(candidate);
            }
            _ => {}
        }
    }
    let kind = match unusable {
        Some(path) => SpawnErrorKind::NotExecutable { path },
        None => {
            let did_you_mean = nearest_name(&name.to_string_lossy(), &searched);
            SpawnErrorKind::NotFound { searched, did_you_mean }
        }
    };
    Err(command.error(kind, None))
}

/// Returns the absolute folders of a `PATH`, each once.
// An empty or relative entry means the current folder or one below it. There a project could put a program of its
// own in the way of the system's.
fn folders(path: &OsStr) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for entry in path.as_bytes().split(|byte| *byte == b':') {
        let folder = PathBuf::from(OsStr::from_bytes(entry));
        if folder.is_absolute() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

fn may_execute(path: &Path) -> bool {
    accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// Returns the file name in `folders` that is most like `name`, if one is near enough to be a slip of the keyboard.
fn nearest_name(name: &str, folders: &[PathBuf]) -> Option<String> {
    // No file has a longer name, and comparing it takes long.
    if name.len() > NAME_MAX {
        return None;
    }
    // One slip in a short name, two in a longer one, three in a long one.
    let max_distance = match name.chars().count() {
        0..=2 => return None,
        3..=5 => 1,
        6..=9 => 2,
        _ => 3,
    };
    folders
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .take(MAX_COMPARED_NAMES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .map(|candidate| (strsim::damerau_levenshtein(name, &candidate), candidate))
        .filter(|(distance, _)| *distance <= max_distance)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Checks that the command's folder is a folder and may be entered.
pub(crate) fn check_folder(command: &Command) -> Result<(), SpawnError> {
    // A handle is an open folder already.
    if command.folder.handle.is_some() {
        return Ok(());
    }
    let path = match command.folder.path.as_os_str() {
        path if path.is_empty() => Path::new("."),
        path => Path::new(path),
    };
    let kind = match statat(CWD, path, AtFlags::empty()) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Directory => {
            SpawnErrorKind::CwdNotDirectory
        }
        Ok(_) if !may_execute(path) => SpawnErrorKind::CwdDenied,
        Ok(_) => return Ok(()),
        Err(Errno::NOENT) => SpawnErrorKind::CwdNotFound,
        Err(Errno::NOTDIR) => SpawnErrorKind::CwdNotDirectory,
        Err(Errno::ACCESS) => SpawnErrorKind::CwdDenied,
        Err(error) => return Err(command.error(SpawnErrorKind::Other, Some(error.into()))),
    };
    Err(command.error(kind, None))
}

/// Checks that the program is a file that the system would start.
pub(crate) fn check_program(command: &Command, program: &Path) -> Result<(), SpawnError> {
    match program_problem(command, program) {
        Some(kind) => Err(command.error(kind, None)),
        None => Ok(()),
    }
}

/// Returns the error that a failed start means. `length` is the size of arguments and environment in bytes.
// The system has few words: `ENOENT` is a missing program, folder or interpreter; `EACCES` is a folder in the
// program's place, a missing permission, or a folder that may not be entered. So the files are looked up again. If
// nothing is wrong with them by now, the system's own error is kept.
pub(crate) fn explain(command: &Command, program: &Path, length: usize, error: io::Error) -> SpawnError {
    let kind = match Errno::from_io_error(&error) {
        Some(Errno::TOOBIG) => Some(SpawnErrorKind::ArgsTooLong { length }),
        Some(Errno::TXTBSY) => Some(SpawnErrorKind::Busy),
        Some(Errno::NOEXEC) => Some(SpawnErrorKind::NotRunnable),
        Some(
            Errno::NOENT | Errno::ACCESS | Errno::NOTDIR | Errno::PERM | Errno::LOOP | Errno::NAMETOOLONG,
        ) => match check_folder(command) {
            Err(folder) => Some(folder.kind),
            Ok(()) => program_problem(command, program).or_else(|| outside_confinement(command, &error)),
        },
        _ => exhausted_resource(&error).map(|which| SpawnErrorKind::ResourceLimit { which }),
    };
    command.error(kind.unwrap_or(SpawnErrorKind::Other), Some(error))
}

/// Returns the confinement as the reason where the program itself is in order but this command may not read it.
fn outside_confinement(command: &Command, error: &io::Error) -> Option<SpawnErrorKind> {
    // Landlock says `EACCES`. Where only what is granted is mounted, nothing else exists.
    let refused = command.confinement.is_some()
        && matches!(Errno::from_io_error(error), Some(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR));
    refused.then_some(SpawnErrorKind::Confinement { problem: ConfinementProblem::ProgramOutside })
}

/// Returns what keeps the program from starting, or `None` if nothing does.
fn program_problem(command: &Command, program: &Path) -> Option<SpawnErrorKind> {
    // A relative program lies below the folder, which is looked up by its handle if there is one.
    let located = match &command.folder.handle {
        Some(handle) => statat(handle, program, AtFlags::empty()),
        None => statat(CWD, command.folder.path.join(program), AtFlags::empty()),
    };
    let shown = if program.is_relative() { command.folder.path.join(program) } else { program.to_owned() };
    match located {
        Err(Errno::NOENT | Errno::NOTDIR) => {
            Some(SpawnErrorKind::NotFound { searched: Vec::new(), did_you_mean: None })
        }
        Err(Errno::ACCESS) => Some(SpawnErrorKind::NotExecutable { path: shown }),
        Err(_) => None,
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Some(SpawnErrorKind::IsDirectory { path: shown }),
            FileType::RegularFile if may_execute(&shown) => {
                missing_interpreter(&shown).map(|path| SpawnErrorKind::BadInterpreter { path })
            }
            _ => Some(SpawnErrorKind::NotExecutable { path: shown }),
        },
    }
}

/// Returns the interpreter that the file asks for, if that is missing: the one of its `#!` line, or the loader of an
/// ELF binary that was made for another system.
fn missing_interpreter(program: &Path) -> Option<PathBuf> {
    // Non-blocking, so that it does not hang on what has become a FIFO since.
    let mut options = std::fs::OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(program).ok()?;
    let mut start = Vec::new();
    file.take(4096).read_to_end(&mut start).ok()?;
    let path = match start.strip_prefix(b"#!") {
        Some(line) => {
            let line = line.split(|byte| *byte == b'\n').next()?;
            // The kernel takes the CR of a file from another system as part of the name, and so does this.
            line.split(|byte| matches!(byte, b' ' | b'\t')).find(|word| !word.is_empty())?
        }
        None => elf_loader(&start)?,
    };
    let path = PathBuf::from(OsStr::from_bytes(path));
    statat(CWD, &path, AtFlags::empty()).is_err().then_some(path)
}

/// Returns the path in the `PT_INTERP` segment of a 64-bit little-endian ELF file (elf(5)), if `start`, the
/// beginning of the file, holds it.
fn elf_loader(start: &[u8]) -> Option<&[u8]> {
    const PT_INTERP: u64 = 3;
    let number = |at: usize, length: usize| -> Option<u64> {
        let bytes = start.get(at..at.checked_add(length)?)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    if !start.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = usize::try_from(number(32, 8)?).ok()?;
    let (entry_size, entries) =
        (usize::try_from(number(54, 2)?).ok()?, usize::try_from(number(56, 2)?).ok()?);
    for index in 0..entries {
        let entry = table.checked_add(index.checked_mul(entry_size)?)?;
        if number(entry, 4)? == PT_INTERP {
            let offset = usize::try_from(number(entry.checked_add(8)?, 8)?).ok()?;
            let length = usize::try_from(number(entry.checked_add(32)?, 8)?).ok()?;
            let path = start.get(offset..offset.checked_add(length)?)?;
            return path.split(|byte| *byte == 0).next();
        }
    }
    None
}
