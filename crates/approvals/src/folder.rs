//! The private folder through which a terminal answers the questions of servers.
//!
//! A server writes each question into a file of its own, `ID.question`, and takes it away when the call has ended. A
//! terminal answers with a file `ID.answer`, which the server renames to `ID.taken` if the answer counts. The folder belongs to the user of both, who alone may enter it (0700): the
//! user who answers is the owner of the file, whatever the file says.
#![allow(clippy::disallowed_methods, reason = "the module's own files, in a folder that the server names")]

use crate::answer::{ApprovalAnswer, ApprovalVerdict};
use crate::error::Error;
use crate::pending_question::PendingQuestion;
use crate::question::ApprovalQuestion;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The most bytes of a file that are read.
pub(crate) const MAX_BYTES: u64 = 1 << 20;
const QUESTION: &str = "question";
const ANSWER: &str = "answer";
const TAKEN: &str = "taken";

/// A folder with the questions of one or more servers of one user. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalFolder(PathBuf);

/// A question in the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FolderQuestion {
    /// The id of the question.
    pub id: String,
    /// The question.
    pub question: ApprovalQuestion,
    /// The number of the process that asks.
    pub process: u32,
    /// The time at which it was asked.
    pub asked_at: SystemTime,
    /// The time at which its call ends without an answer.
    pub expires_at: SystemTime,
}

/// The content of the file with an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAnswer {
    fingerprint: String,
    verdict: ApprovalVerdict,
}

impl ApprovalFolder {
    /// Names the folder. The first question creates the folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Creates the folder if it is missing, for its owner alone.
    ///
    /// # Errors
    /// It cannot be created, belongs to another user, or others may enter it.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let folder = Self(path.into());
        folder.prepare()?;
        Ok(folder)
    }

    pub(crate) fn prepare(&self) -> Result<(), Error> {
        let path = &self.0;
        create_private(path).map_err(Error::folder(path))?;
        let metadata = path.symlink_metadata().map_err(Error::folder(path))?;
        if !metadata.is_dir() {
            return Err(Error::folder(path)(io::Error::other("it is not a folder")));
        }
        trusted_file::check_access(&metadata, trusted_file::OthersAccess::MayNotRead)
            .map_err(|error| Error::folder(path)(error.into()))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a question into the folder.
    pub(crate) fn publish(&self, pending: &PendingQuestion) -> Result<(), Error> {
        self.prepare()?;
        let PendingQuestion { id, question, asked_at, expires_at } = pending.clone();
        let written = FolderQuestion { id, question, process: std::process::id(), asked_at, expires_at };
        self.write(&written.id, QUESTION, &written)
    }

    /// Takes a question and its answer out of the folder.
    pub(crate) fn withdraw(&self, id: &str) {
        for kind in [QUESTION, ANSWER] {
            let _ = fs::remove_file(self.file(id, kind));
        }
    }

    /// Tells the terminal that its answer counts.
    pub(crate) fn acknowledge(&self, id: &str) {
        let _ = fs::rename(self.file(id, ANSWER), self.file(id, TAKEN));
    }

    /// Takes away an answer that does not count.
    pub(crate) fn reject(&self, id: &str) {
        let _ = fs::remove_file(self.file(id, ANSWER));
    }

    /// Returns the answer to a question of this process, if there is one.
    pub(crate) fn take_answer(&self, id: &str) -> Option<ApprovalAnswer> {
        let path = self.file(id, ANSWER);
        let metadata = path.symlink_metadata().ok()?;
        let answer: WrittenAnswer = read(&path).ok()?;
        // The file is bound to the call, so that an answer to one question is never taken for another.
        let asked: FolderQuestion = read(&self.file(id, QUESTION)).ok()?;
        if asked.question.fingerprint != answer.fingerprint {
            return None;
        }
        Some(ApprovalAnswer::now(answer.verdict, terminal_user(&metadata)))
    }

    /// Returns the questions that wait, the oldest first. Files of servers that have ended are taken away once the time
    /// of their questions is over.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn questions(&self) -> Result<Vec<FolderQuestion>, Error> {
        let now = SystemTime::now();
        let mut questions = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(Error::folder(&self.0))? {
            let path = entry.map_err(Error::folder(&self.0))?.path();
            if path.extension().is_none_or(|extension| extension != QUESTION) {
                continue;
            }
            // One that was taken away meanwhile, or is not ours, is none.
            let Ok(question) = read::<FolderQuestion>(&path) else { continue };
            if path.file_stem().is_none_or(|stem| *stem != *question.id) {
                continue;
            }
            if question.expires_at < now {
                self.withdraw(&question.id);
                let _ = fs::remove_file(self.file(&question.id, TAKEN));
            } else if !self.file(&question.id, ANSWER).exists() {
                questions.push(question);
            }
        }
        questions.sort_by(|one, other| (one.asked_at, &one.id).cmp(&(other.asked_at, &other.id)));
        Ok(questions)
    }

    /// Returns the question whose id begins with `prefix`.
    ///
    /// # Errors
    /// There is none, or there are several; the folder cannot be read.
    pub fn find(&self, prefix: &str) -> Result<FolderQuestion, Error> {
        let mut found = self.questions()?.into_iter().filter(|question| question.id.starts_with(prefix));
        match (found.next(), found.next()) {
            _ if prefix.is_empty() => Err(Error::NotPending),
            (None, _) => Err(Error::NotPending),
            (Some(question), None) => Ok(question),
            (Some(_), Some(_)) => Err(Error::Ambiguous { prefix: prefix.to_owned() }),
        }
    }

    /// Answers a question, and waits until its server has taken the answer.
    ///
    /// # Errors
    /// [`Error::NotPending`]: another answer came before, or the call has ended. [`Error::NotTaken`]: no server took it
    /// within `limit`; the answer is taken back.
    pub fn answer(
        &self,
        question: &FolderQuestion,
        verdict: ApprovalVerdict,
        limit: Duration,
    ) -> Result<(), Error> {
        if !self.file(&question.id, QUESTION).exists() {
            return Err(Error::NotPending);
        }
        let answer = WrittenAnswer { fingerprint: question.question.fingerprint.clone(), verdict };
        match self.write(&question.id, ANSWER, &answer) {
            Err(Error::Folder { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Error::NotPending);
            }
            written => written?,
        }
        let started = std::time::Instant::now();
        while started.elapsed() < limit {
            let taken = self.file(&question.id, TAKEN);
            if fs::remove_file(&taken).is_ok() {
                return Ok(());
            }
            // Looked at again afterwards: the server acknowledges an answer before it takes the question away.
            if !self.file(&question.id, QUESTION).exists() {
                return fs::remove_file(&taken).map_err(|_| Error::NotPending);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.withdraw(&question.id);
        Err(Error::NotTaken)
    }

    pub(crate) fn file(&self, id: &str, kind: &str) -> PathBuf {
        self.0.join(format!("{id}.{kind}"))
    }

    /// Writes a file for its owner alone, whole or not at all.
    pub(crate) fn write(&self, id: &str, kind: &str, content: &impl Serialize) -> Result<(), Error> {
        let path = self.file(id, kind);
        let text = serde_json::to_vec(content).map_err(|error| Error::folder(&path)(error.into()))?;
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).map_err(Error::Random)?;
        let staged = self.0.join(format!("{id}.{:016x}", u64::from_le_bytes(random)));
        let result = write_private(&staged, &text)
            // A link and no renaming: of two answers the first stays.
            .and_then(|()| fs::hard_link(&staged, &path));
        let _ = fs::remove_file(&staged);
        result.map_err(Error::folder(&path))
    }
}

/// Returns the user whose file it is, as an approver is named.
#[cfg(unix)]
fn terminal_user(metadata: &fs::Metadata) -> String {
    use std::os::unix::fs::MetadataExt;
    format!("user {} at a terminal", metadata.uid())
}

/// Returns the user whose file it is, as an approver is named.
#[cfg(not(unix))]
fn terminal_user(_: &fs::Metadata) -> String {
    "the user at a terminal".to_owned()
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> io::Result<T> {
    let text = trusted_file::read_private(path, MAX_BYTES).map_err(io::Error::from)?;
    serde_json::from_str(&text).map_err(io::Error::from)
}

fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text)
}

fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::ApprovalQueue;

    const MINUTE: Duration = Duration::from_secs(60);

    fn question() -> ApprovalQuestion {
        ApprovalQuestion::new("git_push", "builder", "f".repeat(64))
    }

    #[tokio::test]
    async fn an_answer_in_the_folder_reaches_the_call_and_the_files_go() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = ApprovalFolder::open(temporary.path().join("a/b")).unwrap();
        let queue = ApprovalQueue::default().with_folder(folder.clone());
        let mut pending = queue.ask(question(), MINUTE).unwrap();
        let asked = folder.find(&pending.id()[..6]).unwrap();
        assert_eq!((&*asked.id, &asked.question), (pending.id(), &question()));
        let terminal = std::thread::spawn({
            let (folder, asked) = (folder.clone(), asked.clone());
            move || folder.answer(&asked, ApprovalVerdict::Deny(Some("not today".to_owned())), MINUTE)
        });
        let answer = pending.answer().await;
        drop(pending);
        terminal.join().unwrap().unwrap();
        assert_eq!(answer.verdict, ApprovalVerdict::Deny(Some("not today".to_owned())));
        #[cfg(unix)]
        assert!(answer.approver.starts_with("user ") && answer.approver.ends_with(" at a terminal"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let late = folder.answer(&asked, ApprovalVerdict::AllowOnce, Duration::ZERO);
        assert!(matches!(late, Err(Error::NotPending)), "{late:?}");
    }

    #[test]
    fn an_answer_that_no_server_takes_is_no_success() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = ApprovalFolder::open(temporary.path().join("a")).unwrap();
        let asked_at = SystemTime::now();
        let pending = PendingQuestion {
            id: "ab".repeat(16),
            question: question(),
            asked_at,
            expires_at: asked_at + MINUTE,
        };
        folder.publish(&pending).unwrap();
        let asked = folder.find("ab").unwrap();
        let answered = folder.answer(&asked, ApprovalVerdict::AllowOnce, Duration::from_millis(50));
        assert!(matches!(answered, Err(Error::NotTaken)), "{answered:?}");
        assert_eq!(folder.questions().unwrap(), []);
    }

    #[test]
    fn an_answer_for_another_call_or_of_another_form_is_none() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = ApprovalFolder::open(temporary.path().join("a")).unwrap();
        let queue = ApprovalQueue::default().with_folder(folder.clone());
        let mut pending = queue.ask(question(), MINUTE).unwrap();
        let path = folder.file(pending.id(), ANSWER);
        for text in [
            "",
            "{}",
            r#"{"verdict":"allow_once"}"#,
            r#"{"verdict":"allow_once","fingerprint":"0"}"#,
            r#"{"verdict":"allow","fingerprint":"f"}"#,
        ] {
            write_private(&path, text.as_bytes()).unwrap();
            assert!(pending.try_answer().is_none(), "{text}");
            fs::remove_file(&path).unwrap();
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let text = format!(r#"{{"verdict":"allow_once","fingerprint":"{}"}}"#, "f".repeat(64));
            write_private(&path, text.as_bytes()).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
            assert!(pending.try_answer().is_none(), "others could have written it");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert!(pending.try_answer().is_some());
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("a");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(ApprovalFolder::open(&path).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(ApprovalFolder::open(&path).is_ok());
    }
}
