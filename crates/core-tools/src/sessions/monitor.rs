//! Session files: Markdown with YAML front matter, which agents write that were not started here.
//!
//! Their folders are looked at every second. A session is complete when its `status` says so, or when its status is not
//! in progress and its completed steps have reached the last.

use super::clock;
use super::log::LogLevel;
use super::protocol::WatchedSession;
use super::store::Record;
use super::supervisor::Supervisor;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A file that was changed so lately may be changed again with the same time, and is read each time: in milliseconds.
/// File systems tell times as coarse as two seconds (FAT).
const LATELY: u64 = 3_000;
/// Of a session file so much is read.
const LARGEST: u64 = 1 << 20;
/// Files in one folder that are looked at.
const MOST_FILES: usize = 1000;
/// Backups that are kept of one file.
const KEPT_BACKUPS: usize = 10;
/// Where the next step stands.
const NEXT_STEP: &str = "Next-step.md";

/// What is known of session files.
#[derive(Debug)]
pub(super) struct Monitor {
    folders: Vec<PathBuf>,
    known: Mutex<BTreeMap<PathBuf, Watched>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Watched {
    changed: u64,
    front: FrontMatter,
}

/// The front matter of a session file, as far as it says how far the session is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontMatter {
    /// `stepsCompleted`
    pub steps_completed: Vec<String>,
    /// `lastStep`
    pub last_step: Option<u64>,
    /// `status`
    pub status: Option<String>,
}

impl FrontMatter {
    /// What stands between the first two lines of `---`. Nothing where there is none.
    pub fn read(text: &str) -> Option<Self> {
        let mut lines = text.trim_start_matches('\u{feff}').lines();
        if lines.next()?.trim_end() != "---" {
            return None;
        }
        let mut front = Self::default();
        let mut in_steps = false;
        for line in lines {
            if line.trim_end() == "---" {
                return Some(front);
            }
            if in_steps && let Some(item) = line.trim_start().strip_prefix("- ") {
                front.steps_completed.push(unquoted(item));
                continue;
            }
            in_steps = false;
            let Some((key, value)) = line.split_once(':').filter(|_| !line.starts_with([' ', '\t', '#']))
            else {
                continue;
            };
            let value = value.split(" #").next().unwrap_or(value).trim();
            match key.trim() {
                "stepsCompleted" | "steps_completed" => {
                    in_steps = value.is_empty();
                    let inside = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                    let items = inside.unwrap_or(value).split(',').map(unquoted);
                    front.steps_completed = items.filter(|item| !item.is_empty()).collect();
                }
                "lastStep" | "last_step" => front.last_step = unquoted(value).parse().ok(),
                "status" => front.status = Some(unquoted(value)).filter(|status| !status.is_empty()),
                _ => {}
            }
        }
        // It never ended, so it was none.
        None
    }

    /// Whether the session is done.
    pub fn is_complete(&self) -> bool {
        let status = self.status.as_deref().unwrap_or_default().to_ascii_lowercase();
        if matches!(status.as_str(), "complete" | "completed" | "done") {
            return true;
        }
        let in_progress = matches!(status.as_str(), "in-progress" | "in_progress" | "in progress");
        let done = self.steps_completed.len() as u64;
        !in_progress && self.last_step.is_some_and(|last| last > 0 && done >= last)
    }

    /// The step that follows the last that is done.
    fn following(&self) -> u64 {
        let numbers = self.steps_completed.iter().filter_map(|step| step.parse::<u64>().ok());
        numbers.max().map_or(1, |last| last + 1)
    }
}

fn unquoted(text: &str) -> String {
    text.trim().trim_matches(['"', '\'']).to_owned()
}

impl Monitor {
    pub(super) fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders, known: Mutex::default() }
    }

    /// The sessions in the watched folders, the one that was changed last at the end.
    pub(super) fn sessions(&self) -> Vec<WatchedSession> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sessions: Vec<_> = known.iter().collect();
        sessions.sort_by_key(|(_, watched)| watched.changed);
        let session = |(path, watched): (&PathBuf, &Watched)| WatchedSession {
            path: path.display().to_string(),
            status: watched.front.status.clone(),
            steps_completed: watched.front.steps_completed.len(),
            last_step: watched.front.last_step,
            complete: watched.front.is_complete(),
            changed_at: clock::text(watched.changed),
        };
        sessions.into_iter().map(session).collect()
    }

    /// The session file of a session that was started here: the one that was changed last while it ran.
    pub(super) fn file_of(&self, record: &Record) -> Option<PathBuf> {
        self.look();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let while_it_ran = known.iter().filter(|(_, watched)| watched.changed + 1000 >= record.started);
        while_it_ran.max_by_key(|(_, watched)| watched.changed).map(|(path, _)| path.clone())
    }

    /// Looks at the folders, and says what has changed.
    fn look(&self) -> Vec<String> {
        let mut said = Vec::new();
        let mut found = BTreeMap::new();
        let now = clock::now();
        for folder in &self.folders {
            // One that is not there may come.
            let Ok(files) = session_files(folder) else { continue };
            for (path, changed) in files {
                let before = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
                if let Some(before) =
                    before.filter(|before| before.changed == changed && changed + LATELY < now)
                {
                    found.insert(path, before);
                } else if let Some(front) = read(&path).ok().and_then(|text| FrontMatter::read(&text)) {
                    found.insert(path, Watched { changed, front });
                }
            }
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, watched) in &found {
            if known.get(path).is_none_or(|before| before.front != watched.front) {
                let front = &watched.front;
                let last = front.last_step.map(|last| format!(" of {last}")).unwrap_or_default();
                let done = if front.is_complete() { ", complete" } else { "" };
                let status = front.status.as_deref().map(|status| format!(", {status}")).unwrap_or_default();
                let steps = front.steps_completed.len();
                said.push(format!("watched session {}: {steps}{last} steps{status}{done}", path.display()));
            }
        }
        for path in known.keys().filter(|path| !found.contains_key(*path)) {
            said.push(format!("watched session {}: gone", path.display()));
        }
        *known = found;
        said
    }
}

/// Looks at the watched folders for as long as the supervisor lives.
pub(super) fn watch(supervisor: &Supervisor) {
    if supervisor.0.monitor.folders.is_empty() {
        return;
    }
    let weak = Arc::downgrade(&supervisor.0);
    tokio::spawn(async move {
        loop {
            let Some(inner) = weak.upgrade() else { return };
            let supervisor = Supervisor(inner);
            let looked = supervisor.clone();
            let said = tokio::task::spawn_blocking(move || looked.0.monitor.look()).await.unwrap_or_default();
            said.iter().for_each(|said| supervisor.say(LogLevel::Info, said));
            drop(supervisor);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// The Markdown files of a folder, without backups, each with when it was changed.
fn session_files(folder: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let handle = open_folder(folder)?;
    let mut files = Vec::new();
    for entry in Dir::read_from(&handle)?.take(MOST_FILES) {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let is_session = name.ends_with(".md") && name != NEXT_STEP && !name.contains("-backup-");
        if !is_session {
            continue;
        }
        let Ok(stat) = rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            let seconds = u64::try_from(stat.st_mtime).unwrap_or_default();
            #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, reason = "its type differs by system")]
            let millis = (stat.st_mtime_nsec as u64) / 1_000_000;
            files.push((folder.join(name), seconds * 1000 + millis));
        }
    }
    Ok(files)
}

fn open_file(folder: &OwnedFd, name: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::openat(folder, name, flags, mode)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")),
    }
}

/// The folder and the name of a path.
fn split(path: &Path) -> io::Result<(OwnedFd, &str)> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "it is not the path of a file");
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(wrong)?;
    Ok((open_folder(path.parent().ok_or_else(wrong)?)?, name))
}

fn read(path: &Path) -> io::Result<String> {
    let (folder, name) = split(path)?;
    let mut text = String::new();
    open_file(&folder, name, OFlags::RDONLY, Mode::empty())?.take(LARGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// Copies a session file beside itself, as `stem-backup-YYYYMMDD-HHMMSS.md` (UTC), and keeps the newest ten copies. A
/// copy of the same second is not overwritten: the next gets `-1`, `-2` behind it.
///
/// # Errors
/// It cannot be read or copied.
pub fn back_up(path: &Path, now: u64) -> io::Result<PathBuf> {
    let (folder, name) = split(path)?;
    let mut source = open_file(&folder, name, OFlags::RDONLY, Mode::empty())?;
    let mut content = Vec::new();
    source.read_to_end(&mut content)?;
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, format!(".{extension}")),
        _ => (name, String::new()),
    };
    let digits: String = clock::text(now).chars().filter(char::is_ascii_digit).collect();
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&source)?.st_mode & 0o777);
    let base = format!("{stem}-backup-{}-{}", &digits[..8], &digits[8..14]);
    for number in 0..100 {
        let suffix = if number == 0 { String::new() } else { format!("-{number}") };
        let copy = format!("{base}{suffix}{extension}");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = match open_file(&folder, &copy, flags, mode) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        if let Err(error) = file.write_all(&content).and_then(|()| file.sync_all()) {
            // Half a copy is none.
            let _ = rustix::fs::unlinkat(&folder, copy.as_str(), AtFlags::empty());
            return Err(error);
        }
        forget_old(&folder, stem, &extension)?;
        return Ok(path.with_file_name(copy));
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "there are 100 copies of this second"))
}

fn forget_old(folder: &OwnedFd, stem: &str, extension: &str) -> io::Result<()> {
    let prefix = format!("{stem}-backup-");
    let mut copies: Vec<(String, u32, String)> = Vec::new();
    for entry in Dir::read_from(folder.as_fd())? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let time = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(extension));
        // By time and then by number: as text, -10 would come before -2.
        if let Some((time, number)) = time.and_then(|time| time.split_at_checked(15)) {
            let is_time = time
                .bytes()
                .enumerate()
                .all(|(at, byte)| if at == 8 { byte == b'-' } else { byte.is_ascii_digit() });
            let number = if number.is_empty() {
                Some(0)
            } else {
                number.strip_prefix('-').and_then(|n| n.parse().ok())
            };
            if let (true, Some(number)) = (is_time, number) {
                copies.push((time.to_owned(), number, name.to_owned()));
            }
        }
    }
    copies.sort();
    for (_, _, name) in copies.iter().take(copies.len().saturating_sub(KEPT_BACKUPS)) {
        rustix::fs::unlinkat(folder, name.as_str(), AtFlags::empty())?;
    }
    Ok(())
}

/// The next step, in words for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextStep {
    /// Its number.
    pub number: Option<u64>,
    /// What it is.
    pub description: String,
}

/// The step that a `Next-step.md` names: the first line of the form `Step 3: …` or `3. …`, or else its first plain line.
pub fn next_step(text: &str) -> Option<NextStep> {
    let lines = || {
        text.lines().map(|line| line.trim().trim_start_matches(['#', '*', '-', ' ']).trim_end_matches('*'))
    };
    let numbered = lines().find_map(|line| {
        let lower = line.to_ascii_lowercase();
        let rest = if lower.starts_with("step ") { &line[5..] } else { line };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[..digits].parse().ok()?;
        let description = rest[digits..].trim_start_matches(['.', ':', ')', '-', '–', '—', ' ']).trim();
        Some(NextStep { number: Some(number), description: description.to_owned() })
    });
    let plain = || lines().find(|line| !line.is_empty() && *line != "---").map(str::to_owned);
    match numbered {
        Some(step) if !step.description.is_empty() => Some(step),
        Some(step) => {
            let after = lines().skip_while(|line| !line.to_ascii_lowercase().starts_with("step")).skip(1);
            let description = after.map(str::to_owned).find(|line| !line.is_empty());
            Some(NextStep { description: description.unwrap_or_default(), ..step })
        }
        None => plain().map(|description| NextStep { number: None, description }),
    }
}

/// What the agent of a new session is told that goes on where another was: the next step, from the file beside the
/// session's or in its folder, or else the step after the last that was done, or else what the other was told.
pub(super) fn next_prompt(file: Option<&Path>, record: &Record) -> Option<String> {
    let beside = file.and_then(Path::parent).map(|folder| folder.join(NEXT_STEP));
    let places = beside.into_iter().chain([record.cwd.join(NEXT_STEP)]);
    let told = places.filter_map(|path| read(&path).ok()).find(|text| !text.trim().is_empty());
    if let Some(text) = told {
        let step = next_step(&text)?;
        let number =
            step.number.map(|number| format!("step {number}")).unwrap_or_else(|| "the next step".to_owned());
        return Some(format!("Continue with {number}: {}\n\n{}", step.description, text.trim()));
    }
    let front = file.and_then(|file| FrontMatter::read(&read(file).ok()?));
    match (front, file) {
        (Some(front), Some(file)) => Some(format!(
            "Continue with step {} of the work that {} describes.",
            front.following(),
            file.display()
        )),
        _ => record.prompt.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test looks at the files as everybody does")]
    use super::*;
    use std::fs;

    fn front(text: &str) -> FrontMatter {
        FrontMatter::read(text).unwrap()
    }

    #[test]
    fn front_matter_tells_how_far_a_session_is() {
        let read = front(
            "---\nstepsCompleted: [1, 2, \"3\"]\nlastStep: 5\nstatus: 'in-progress' # now\nproject_name: x\n---\nText",
        );
        assert_eq!((read.steps_completed.len(), read.last_step), (3, Some(5)));
        assert_eq!((read.status.as_deref(), read.following()), (Some("in-progress"), 4));
        let listed = front("---\r\nsteps_completed:\r\n  - 1\r\n  - two\r\nlast_step: 2\r\n---\r\n");
        assert_eq!(listed.steps_completed, ["1", "two"]);
        assert!(listed.is_complete());
        for (text, complete) in [
            ("---\nstatus: complete\n---\n", true),
            ("---\nstatus: in-progress\nstepsCompleted: [1,2]\nlastStep: 2\n---\n", false),
            ("---\nstepsCompleted: [1]\nlastStep: 2\n---\n", false),
            ("---\nstepsCompleted: []\nlastStep: 0\n---\n", false),
        ] {
            assert_eq!(front(text).is_complete(), complete, "{text}");
        }
        assert_eq!(FrontMatter::read("no front matter"), None);
        assert_eq!(FrontMatter::read("---\nstatus: complete\n"), None, "it never ends");
    }

    #[test]
    fn copies_never_overwrite_each_other_and_the_newest_ten_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.md");
        let second = 1_763_764_620_000;
        let mut copies = Vec::new();
        for number in 0..15 {
            fs::write(&path, format!("version {number}")).unwrap();
            // Three in each second.
            let copy = back_up(&path, second + number / 3 * 1000).unwrap();
            assert_eq!(fs::read_to_string(&copy).unwrap(), format!("version {number}"));
            copies.push(copy);
        }
        assert!(
            copies[0].ends_with("session-backup-20251121-223700.md")
                && copies[1].ends_with("session-backup-20251121-223700-1.md")
        );
        let left: Vec<bool> = copies.iter().map(|copy| copy.exists()).collect();
        assert_eq!(left, [[false; 5].as_slice(), &[true; 10]].concat());
        assert!(back_up(&folder.path().join("nothing.md"), second).is_err());
    }

    #[test]
    fn the_next_step_is_read_from_its_file() {
        let step = |text: &str| next_step(text).map(|step| (step.number, step.description));
        assert_eq!(
            step("# Plan\n\nStep 3: Write the tests\nmore"),
            Some((Some(3), "Write the tests".to_owned()))
        );
        assert_eq!(step("**Step 4 - Review**"), Some((Some(4), "Review".to_owned())));
        assert_eq!(step("7. Deploy"), Some((Some(7), "Deploy".to_owned())));
        assert_eq!(step("## Step 2\n\nTidy up"), Some((Some(2), "Tidy up".to_owned())));
        assert_eq!(step("Just go on"), Some((None, "Just go on".to_owned())));
        assert_eq!(step(" \n"), None);
    }

    #[test]
    fn a_new_session_is_told_the_next_step_or_what_the_other_was_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("session.md");
        let mut record = super::super::store::tests::record("s1");
        record.cwd = folder.path().to_owned();
        assert_eq!(next_prompt(None, &record).as_deref(), Some("do it"));
        fs::write(&file, "---\nstepsCompleted: [1, 2]\nlastStep: 5\n---\n").unwrap();
        assert!(
            next_prompt(Some(&file), &record).unwrap().starts_with("Continue with step 3 of the work that ")
        );
        fs::write(folder.path().join(NEXT_STEP), "Step 4: Write\nwith care").unwrap();
        assert_eq!(
            next_prompt(Some(&file), &record).as_deref(),
            Some("Continue with step 4: Write\n\nStep 4: Write\nwith care")
        );
    }

    #[test]
    fn a_watched_folder_tells_what_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let monitor = Monitor::new(vec![folder.path().join("not-there"), folder.path().to_owned()]);
        assert!(monitor.look().is_empty() && monitor.sessions().is_empty());
        let file = folder.path().join("a.md");
        fs::write(&file, "---\nstepsCompleted: [1]\nlastStep: 2\n---\n").unwrap();
        fs::write(folder.path().join("a-backup-20251121-223700.md"), "---\nstatus: x\n---\n").unwrap();
        fs::write(folder.path().join("notes.md"), "none").unwrap();
        assert!(monitor.look()[0].ends_with("a.md: 1 of 2 steps"));
        assert!(monitor.look().is_empty(), "nothing has changed");
        fs::write(&file, "---\nstepsCompleted: [1, 2]\nlastStep: 2\nstatus: complete\n---\n").unwrap();
        assert!(monitor.look()[0].ends_with("a.md: 2 of 2 steps, complete, complete"));
        assert_eq!(monitor.sessions().len(), 1);
        fs::remove_file(&file).unwrap();
        assert!(monitor.look()[0].ends_with("gone"));
    }
}
