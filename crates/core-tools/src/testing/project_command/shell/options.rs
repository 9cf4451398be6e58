//! The options of a shell that decide which failure ends it.

use super::words::file_of;

/// The names of shells whose texts are read.
pub(crate) const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];

/// The options of a shell that decide which failure ends it: `set -e`, `set -o pipefail`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ShellOptions {
    pub(crate) errexit: bool,
    pub(crate) pipefail: bool,
}

impl ShellOptions {
    /// Applies the words of `set` or of a shell, up to the first one that is no option.
    pub(crate) fn apply<'w>(&mut self, words: impl IntoIterator<Item = &'w str>) {
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let value = word.starts_with('-');
            let Some(letters) = word.strip_prefix(['-', '+']).filter(|letters| !letters.starts_with('-'))
            else {
                // `--rcfile` and the like.
                if word.starts_with("--") && word.len() > 2 {
                    continue;
                }
                return;
            };
            if letters.contains('e') {
                self.errexit = value;
            }
            if letters.contains('o') {
                match words.next() {
                    Some("errexit") => self.errexit = value,
                    Some("pipefail") => self.pipefail = value,
                    _ => {}
                }
            }
        }
    }

    /// Returns the options that words give a shell.
    pub(crate) fn of_words<'w>(words: impl IntoIterator<Item = &'w str>) -> Self {
        let mut options = Self::default();
        options.apply(words);
        options
    }

    /// Returns the options that the first line of a script gives its shell, or `None` if no shell runs the script.
    pub(crate) fn of_shebang(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("#!")?;
        let mut words = line.split_whitespace().skip_while(|word| {
            let name = file_of(word);
            name == "env" || word.starts_with("-S")
        });
        words.next().filter(|word| SHELLS.contains(&file_of(word)))?;
        Some(Self::of_words(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_a_shell_are_read() {
        for (words, errexit, pipefail) in [
            ("-e", true, false),
            ("-eu", true, false),
            ("-euo pipefail", true, true),
            ("-o errexit -o pipefail", true, true),
            ("-e +e", false, false),
            ("-x", false, false),
            ("--norc -e", true, false),
            ("file -e", false, false),
        ] {
            let mut options = ShellOptions::default();
            options.apply(words.split(' '));
            assert_eq!((options.errexit, options.pipefail), (errexit, pipefail), "{words}");
        }
        assert_eq!(
            ShellOptions::of_shebang("#!/bin/sh -e\n"),
            Some(ShellOptions { errexit: true, pipefail: false })
        );
        assert_eq!(
            ShellOptions::of_shebang("#!/usr/bin/env -S bash -e\n").map(|options| options.errexit),
            Some(true)
        );
        assert_eq!(ShellOptions::of_shebang("#!/usr/bin/env bash\n"), Some(ShellOptions::default()));
        for other in ["#!/usr/bin/env python3\n", "#!/usr/bin/ruby\n", "echo\n", ""] {
            assert_eq!(ShellOptions::of_shebang(other), None, "{other}");
        }
    }
}
