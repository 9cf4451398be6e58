//! The queue of questions that wait for an answer.

use crate::answer::{ApprovalAnswer, ApprovalVerdict};
use crate::error::Error;
use crate::folder::ApprovalFolder;
use crate::pending_question::PendingQuestion;
use crate::question::ApprovalQuestion;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;

/// The most questions that wait at once. A person who is asked more stops reading.
const MAX_PENDING: usize = 64;
/// The most calls that are allowed for a session. The oldest is forgotten, and asked about again.
const MAX_SESSION_GRANTS: usize = 1_024;
/// The longest time that a call stays allowed for a session. A caller without a session of the protocol is the same caller
/// as long as the server runs.
const MAX_GRANT_AGE: Duration = Duration::from_secs(8 * 3600);
/// The time between two looks into the folder, which tells nobody of a new file.
const FOLDER_INTERVAL: Duration = Duration::from_millis(200);

/// The questions of one server that wait for an answer. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ApprovalQueue {
    state: Arc<Mutex<ApprovalQueueState>>,
    folder: Option<ApprovalFolder>,
}

#[derive(Debug, Default)]
struct ApprovalQueueState {
    next: u64,
    pending: BTreeMap<u64, QueuedQuestion>,
    /// The calls that are allowed for a session: the key of the question, and the answer.
    grants: Vec<(SessionGrantKey, ApprovalAnswer)>,
    answered: BTreeMap<&'static str, u64>,
}

impl ApprovalQueueState {
    fn record(&mut self, question: &ApprovalQuestion, answer: &ApprovalAnswer) {
        *self.answered.entry(answer.verdict.as_str()).or_default() += 1;
        if answer.verdict == ApprovalVerdict::AllowForSession {
            if self.grants.len() >= MAX_SESSION_GRANTS {
                self.grants.remove(0);
            }
            let key = (question.fingerprint.clone(), question.conditions.clone());
            self.grants.push((key, answer.clone()));
        }
    }
}

#[derive(Debug)]
struct QueuedQuestion {
    question: PendingQuestion,
    answer: Option<ApprovalAnswer>,
    answered: Arc<Notify>,
}

/// A call that is allowed for a session: the call itself, and the conditions that the person saw.
type SessionGrantKey = (String, Vec<String>);

/// Returns an id that nobody can guess.
///
/// # Errors
/// The system has no random numbers.
pub fn random_id() -> Result<String, Error> {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).map_err(Error::Random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl ApprovalQueue {
    /// Returns the queue, with `folder` as another way to answer it.
    #[must_use]
    pub fn with_folder(mut self, folder: ApprovalFolder) -> Self {
        self.folder = Some(folder);
        self
    }

    fn state(&self) -> MutexGuard<'_, ApprovalQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a question. Dropping what it returns takes the question back.
    ///
    /// # Errors
    /// [`Error::Full`]; the folder cannot be written; the system has no random numbers.
    pub fn ask(&self, question: ApprovalQuestion, limit: Duration) -> Result<PendingApproval, Error> {
        let id = random_id()?;
        let asked_at = SystemTime::now();
        let question = PendingQuestion { id, question, asked_at, expires_at: asked_at + limit };
        let answered = Arc::new(Notify::new());
        let key = {
            let mut state = self.state();
            let waiting = state.pending.values().filter(|queued| queued.answer.is_none()).count();
            if waiting >= MAX_PENDING {
                return Err(Error::Full { max: MAX_PENDING });
            }
            let key = state.next;
            state.next += 1;
            let queued =
                QueuedQuestion { question: question.clone(), answer: None, answered: Arc::clone(&answered) };
            state.pending.insert(key, queued);
            key
        };
        // From here on, dropping it takes the question back.
        let pending = PendingApproval { queue: self.clone(), key, id: question.id.clone(), answered };
        if let Some(folder) = &self.folder {
            folder.publish(&question)?;
        }
        Ok(pending)
    }

    /// Returns the questions that wait, the oldest first.
    pub fn pending(&self) -> Vec<PendingQuestion> {
        let state = self.state();
        let waiting = state.pending.values().filter(|queued| queued.answer.is_none());
        waiting.map(|queued| queued.question.clone()).collect()
    }

    /// Returns the number of questions that wait.
    pub fn pending_count(&self) -> usize {
        self.state().pending.values().filter(|queued| queued.answer.is_none()).count()
    }

    /// Returns how many questions were answered with each verdict, by its words.
    pub fn answered_counts(&self) -> Vec<(&'static str, u64)> {
        self.state().answered.iter().map(|(verdict, count)| (*verdict, *count)).collect()
    }

    /// Answers the question with this id.
    ///
    /// # Errors
    /// [`Error::NotPending`]: another answer came before, or the call has ended.
    pub fn answer(&self, id: &str, answer: ApprovalAnswer) -> Result<(), Error> {
        let mut state = self.state();
        let (key, question) = state
            .pending
            .iter()
            .find(|(_, queued)| queued.question.id == id && queued.answer.is_none())
            .map(|(key, queued)| (*key, queued.question.question.clone()))
            .ok_or(Error::NotPending)?;
        state.record(&question, &answer);
        if let Some(queued) = state.pending.get_mut(&key) {
            queued.answer = Some(answer);
            queued.answered.notify_one();
        }
        Ok(())
    }

    /// Counts an answer that was given on another way than the queue, and keeps it if it is for the session.
    pub fn record(&self, question: &ApprovalQuestion, answer: &ApprovalAnswer) {
        self.state().record(question, answer);
    }

    /// Returns the answer that allowed the same call for the session, if there is one.
    pub fn session_grant(&self, question: &ApprovalQuestion) -> Option<ApprovalAnswer> {
        let state = self.state();
        let found = state.grants.iter().find(|((fingerprint, conditions), _)| {
            *fingerprint == question.fingerprint && *conditions == question.conditions
        });
        let found = found.filter(|(_, answer)| {
            // A clock that was set back makes no grant last longer.
            answer.at.elapsed().is_ok_and(|age| age < MAX_GRANT_AGE)
        });
        found.map(|(_, answer)| answer.clone())
    }

    fn take_answer(&self, key: u64, id: &str) -> Option<ApprovalAnswer> {
        if let Some(folder) = &self.folder
            && let Some(answer) = folder.take_answer(id)
        {
            // An answer that came before on another way counts, and this one is dropped.
            match self.answer(id, answer) {
                Ok(()) => folder.acknowledge(id),
                Err(_) => folder.reject(id),
            }
        }
        self.state().pending.get_mut(&key)?.answer.clone()
    }
}

/// A call that waits for its answer. Dropping it takes the question back.
#[derive(Debug)]
#[must_use = "the question is taken back when this is dropped"]
pub struct PendingApproval {
    queue: ApprovalQueue,
    key: u64,
    id: String,
    answered: Arc<Notify>,
}

impl PendingApproval {
    /// Returns the id of the question.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the answer, if there is one by now.
    pub fn try_answer(&mut self) -> Option<ApprovalAnswer> {
        self.queue.take_answer(self.key, &self.id)
    }

    /// Waits for the answer.
    pub async fn answer(&mut self) -> ApprovalAnswer {
        loop {
            if let Some(answer) = self.try_answer() {
                return answer;
            }
            match self.queue.folder {
                None => self.answered.notified().await,
                Some(_) => {
                    let _ = tokio::time::timeout(FOLDER_INTERVAL, self.answered.notified()).await;
                }
            }
        }
    }
}

impl Drop for PendingApproval {
    fn drop(&mut self) {
        self.queue.state().pending.remove(&self.key);
        if let Some(folder) = &self.queue.folder {
            folder.withdraw(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> ApprovalQuestion {
        ApprovalQuestion::new("git_push", "builder", "f".repeat(64))
    }

    fn allow(who: &str) -> ApprovalAnswer {
        ApprovalAnswer::now(ApprovalVerdict::AllowOnce, who)
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn of_two_answers_at_once_one_counts() {
        let queue = ApprovalQueue::default();
        let mut pending = queue.ask(question(), MINUTE).unwrap();
        let id = pending.id().to_owned();
        let results: Vec<bool> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|n| {
                    let (queue, id) = (queue.clone(), id.clone());
                    scope.spawn(move || queue.answer(&id, allow(&n.to_string())).is_ok())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(results.iter().filter(|ok| **ok).count(), 1);
        let winner = results.iter().position(|ok| *ok).unwrap().to_string();
        assert_eq!(pending.try_answer().unwrap().approver, winner);
        assert_eq!((queue.pending_count(), queue.answered_counts()), (0, vec![("allowed once", 1)]));
    }

    #[test]
    fn a_call_that_has_ended_takes_no_answer_and_an_id_is_used_once() {
        let queue = ApprovalQueue::default();
        let pending = queue.ask(question(), MINUTE).unwrap();
        let id = pending.id().to_owned();
        drop(pending);
        assert!(matches!(queue.answer(&id, allow("Ada")), Err(Error::NotPending)));
        let mut next = queue.ask(question(), MINUTE).unwrap();
        assert_ne!(next.id(), id);
        assert!(matches!(queue.answer(&id, allow("Ada")), Err(Error::NotPending)));
        assert!(next.try_answer().is_none());
    }

    #[test]
    fn more_questions_than_a_person_reads_are_refused() {
        let queue = ApprovalQueue::default();
        let pending: Vec<_> = (0..MAX_PENDING).map(|_| queue.ask(question(), MINUTE).unwrap()).collect();
        assert!(matches!(queue.ask(question(), MINUTE), Err(Error::Full { .. })));
        drop(pending);
        assert!(queue.ask(question(), MINUTE).is_ok());
    }

    #[test]
    fn a_grant_for_the_session_is_for_the_same_call_and_the_same_conditions() {
        let queue = ApprovalQueue::default();
        let asked = ApprovalQuestion { conditions: vec!["`docs` is elsewhere".to_owned()], ..question() };
        let pending = queue.ask(asked.clone(), MINUTE).unwrap();
        let answer = ApprovalAnswer::now(ApprovalVerdict::AllowForSession, "Ada");
        queue.answer(pending.id(), answer.clone()).unwrap();
        assert_eq!(queue.session_grant(&asked), Some(answer));
        for other in [
            question(),
            ApprovalQuestion { fingerprint: "0".repeat(64), ..asked.clone() },
            ApprovalQuestion { conditions: vec!["`src` is elsewhere".to_owned()], ..asked },
        ] {
            assert_eq!(queue.session_grant(&other), None, "{other:?}");
        }
        let old = ApprovalQuestion::new("git_push", "builder", "a".repeat(64));
        let mut answer = ApprovalAnswer::now(ApprovalVerdict::AllowForSession, "Ada");
        answer.at -= MAX_GRANT_AGE;
        queue.record(&old, &answer);
        assert_eq!(queue.session_grant(&old), None, "it is too old");
    }

    #[tokio::test]
    async fn a_call_that_waits_is_woken_by_its_answer() {
        let queue = ApprovalQueue::default();
        let mut pending = queue.ask(question(), MINUTE).unwrap();
        let id = pending.id().to_owned();
        let waiting = tokio::spawn(async move { pending.answer().await });
        tokio::task::yield_now().await;
        queue.answer(&id, allow("Ada")).unwrap();
        assert_eq!(waiting.await.unwrap().approver, "Ada");
    }
}
