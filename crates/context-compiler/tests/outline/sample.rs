// Licensed to nobody in particular.

//! A queue of jobs.
//!
//! This paragraph is longer than anybody needs.

use std::collections::VecDeque;
use std::io;

pub use std::io::ErrorKind;

/// How many jobs are kept.
/// The oldest go first.
///
/// A second paragraph.
pub const LIMIT: usize = 1 << 10;

static TABLE: [u8; 40] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32, 33, 34, 35, 36, 37, 38, 39, 40,
];

/** What may happen
to a job. */
#[derive(Debug, Clone)]
#[allow(dead_code)]
pub enum Outcome<T> {
    /// It ended.
    Done(T),
    Failed { reason: String },
}

pub(crate) struct Queue<T> {
    jobs: VecDeque<T>,
}

impl<T: Clone> Queue<T>
where
    T: Send,
{
    /// An empty one.
    #[inline]
    pub fn new() -> Self {
        Self { jobs: VecDeque::new() }
    }

    // Why this is private.
    fn push(&mut self, job: T) -> io::Result<()> {
        self.jobs.push_back(job);
        Ok(())
    }
}

/// Runs jobs.
pub trait Runner {
    type Job;
    const NAME: &'static str;
    /// One of them.
    fn run(&self, job: Self::Job) -> Outcome<()>;
    fn stop(&self) {
        println!("stopped");
    }
}

mod inner {
    pub fn helper() -> u8 {
        TABLE[0]
    }
}

#[macro_export]
macro_rules! job {
    ($x:expr) => { $x };
}

pub async unsafe fn tiny() {}

#[cfg(test)]
mod tests {
    #[test]
    fn a_job_runs() {
        assert!(true);
    }
}
