//! One command of a run: what is started, and where it reports.

use super::parse::{Events, Lines, Nothing};

/// A program to run, and where its report will be.
pub(super) struct Step {
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(&'static str, String)>,
    /// The command as a person would type it.
    pub(super) shown: String,
    pub(super) reads: Reads,
    /// It makes the tests, and runs none.
    pub(super) prepares: bool,
    /// It runs the tests in documentation, which a package without a library cannot have.
    pub(super) documentation: bool,
}

/// Where the results are.
pub(super) enum Reads {
    /// On standard output.
    Stdout(Box<dyn Lines>),
    /// On both streams, whose order matters.
    Both(Box<dyn Lines>),
    /// In the file `events` of the folder of reports.
    Events,
    /// In XML files of the folder of reports.
    Xml,
    /// The same; on standard output until they are there, which is at the end.
    XmlAfter(Box<dyn Lines>),
    /// In XML files that the run writes to folders of this name.
    XmlIn(&'static [&'static str]),
    /// Nowhere.
    Exit,
}

impl Reads {
    pub(super) fn lines(&mut self) -> Box<dyn Lines> {
        match self {
            Self::Stdout(lines) | Self::Both(lines) | Self::XmlAfter(lines) => {
                std::mem::replace(lines, Box::new(Nothing))
            }
            Self::Events => Box::new(Events),
            _ => Box::new(Nothing),
        }
    }
}

impl Step {
    pub(super) fn new(program: &str, arguments: &[&str], reads: Reads) -> Self {
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self {
            shown: String::new(),
            program: program.to_owned(),
            arguments,
            environment: Vec::new(),
            reads,
            prepares: false,
            documentation: false,
        }
    }

    pub(super) fn add(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    pub(super) fn add_some(mut self, option: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.arguments
                .extend([option.to_owned(), value.to_owned()].into_iter().filter(|word| !word.is_empty()));
        }
        self
    }

    pub(super) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    pub(super) fn preparing(mut self) -> Self {
        self.prepares = true;
        self
    }

    /// Shown as `words`, with what follows the first `skip` arguments.
    pub(super) fn shown_as(mut self, words: &str, skip: usize) -> Self {
        let rest = self.arguments.iter().skip(skip).map(|word| crate::ci::quoted(word).into_owned());
        self.shown = std::iter::once(words.to_owned()).chain(rest).collect::<Vec<_>>().join(" ");
        self
    }

    /// Without what is there for our report.
    pub(super) fn done(mut self, reports: &str) -> Self {
        const FOR_REPORTS: [&str; 6] = [
            "--reporter",
            "--reporter=junit",
            "--reporter-option",
            "--output-junit",
            "--log-junit",
            "--results-directory",
        ];
        if self.shown.is_empty() {
            let ours = |word: &&String| !word.contains(reports) && !FOR_REPORTS.contains(&word.as_str());
            let words = std::iter::once(&self.program).chain(&self.arguments).filter(ours);
            self.shown = words.map(|word| crate::ci::quoted(word)).collect::<Vec<_>>().join(" ");
        }
        self
    }
}
