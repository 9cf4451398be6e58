//! The scripts in files that the commands of a project run, and the scripts that these run.

use super::script::ScriptCommand;
use super::shell::{SHELLS, ShellOptions, commands_of_shell};
use crate::ci::project::Project;
use std::collections::HashMap;
use std::path::PathBuf;

/// The number of scripts that call each other which are read.
const MAX_CALLED_FILES: usize = 4;
/// The number of files that are read for one project command.
const MAX_FILES: usize = 50;
/// The number of commands in files that are kept for one project command.
const MAX_COMMANDS: usize = 20_000;

/// A reader of the scripts that the commands of one project command run. Each file is read once, and its commands are kept as
/// often as it is called, up to a limit.
#[derive(Default)]
pub(super) struct ScriptFiles {
    texts: HashMap<PathBuf, Option<String>>,
    parsed: HashMap<(PathBuf, ShellOptions), Vec<ScriptCommand>>,
    /// The files whose commands are read at present, each called by the one before it.
    open: Vec<PathBuf>,
    commands: usize,
    /// A script was left out, because a limit was reached.
    pub(super) is_cut: bool,
}

impl ScriptFiles {
    /// Reads the script that a command runs, and the scripts that this one runs, as far as they are files below `folder`. A script
    /// that calls itself is not read again.
    pub(super) fn read_into(&mut self, command: &mut ScriptCommand, folder: &Project) {
        if self.open.len() >= MAX_CALLED_FILES {
            return;
        }
        let is_shell = SHELLS.contains(&command.program());
        let mut options = ShellOptions::default();
        let file = if is_shell {
            options.apply(command.words.iter().skip(1).map(String::as_str));
            command.words.iter().skip(1).find(|word| !word.starts_with('-'))
        } else {
            let is_sourced = matches!(command.program(), "." | "source" | "exec");
            command.words.get(usize::from(is_sourced)).filter(|word| word.contains('/') || is_sourced)
        };
        let Some((path, file)) =
            file.and_then(|file| Some((folder.folder().join(file).ok()?.to_absolute(), file)))
        else {
            return;
        };
        if self.open.contains(&path) {
            return;
        }
        if !self.texts.contains_key(&path) {
            if self.texts.len() >= MAX_FILES {
                self.is_cut = true;
                return;
            }
            self.texts.insert(path.clone(), folder.read(file));
        }
        let Some(Some(text)) = self.texts.get(&path) else { return };
        let of_shebang = ShellOptions::of_shebang(text);
        if !(is_shell || of_shebang.is_some() || command.program() == "source" || command.program() == ".") {
            return;
        }
        let of_shebang = of_shebang.filter(|_| !is_shell).unwrap_or_default();
        options.errexit |= of_shebang.errexit;
        options.pipefail |= of_shebang.pipefail;
        let parsed = self.parsed.entry((path.clone(), options));
        let parsed = parsed.or_insert_with(|| commands_of_shell(text, options));
        self.commands += parsed.len();
        if self.commands > MAX_COMMANDS {
            self.commands -= parsed.len();
            self.is_cut = true;
            return;
        }
        command.file_commands.clone_from(parsed);
        self.open.push(path);
        for called in &mut command.file_commands {
            self.read_into(called, folder);
        }
        self.open.pop();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test makes its files itself")]

    use super::*;
    use crate::testing::project_command::split_commands;
    use crate::workspace::Workspace;

    /// Returns the first command of a text, with the scripts that it runs.
    fn read(files: &[(&str, &str)], text: &str) -> (ScriptCommand, bool) {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::new(Workspace::new([folder.path()]).unwrap().locate(".").unwrap());
        for (name, text) in files {
            project.folder().join(name).unwrap().write(text.as_bytes()).unwrap();
        }
        let mut command = split_commands(text).remove(0);
        let mut files = ScriptFiles::default();
        files.read_into(&mut command, &project);
        (command, files.is_cut)
    }

    fn count(command: &ScriptCommand) -> usize {
        1 + command.file_commands.iter().map(count).sum::<usize>()
    }

    #[test]
    fn a_script_that_calls_itself_is_read_once() {
        for called in ["sh ci.sh\n", "sh ./ci.sh\n"] {
            let (read, is_cut) = read(&[("ci.sh", &called.repeat(1_000))], "sh ci.sh");
            assert_eq!((count(&read), is_cut), (1_001, false), "{called}");
        }
        let (read, _) = read(&[("a.sh", "sh b.sh\npytest"), ("b.sh", "sh a.sh\njest")], "sh a.sh");
        assert_eq!(count(&read), 5);
    }

    #[test]
    fn scripts_that_call_each_other_many_times_are_read_up_to_a_limit() {
        let (a, b) = ("sh b.sh\n".repeat(1_000), "sh c.sh\n".repeat(1_000));
        let (read, is_cut) = read(&[("a.sh", &a), ("b.sh", &b), ("c.sh", "pytest\n")], "sh a.sh");
        assert!(count(&read) <= MAX_COMMANDS + 1, "{}", count(&read));
        assert!(is_cut);
        assert_eq!(count(&read.file_commands[0]), 2_001);
    }
}
