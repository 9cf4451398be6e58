//! Manual pages and completion scripts, from the definition of the command line.
#![allow(
    clippy::disallowed_methods,
    reason = "the pages go into a folder that the user names, not into a root"
)]
#![allow(clippy::doc_markdown, reason = "the comments of `Man` are what --help prints")]

use crate::error::Error;
use clap::{Args, Command};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, roman};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

pub use clap_complete::Shell;

/// The arguments of the subcommand that writes the manual.
#[derive(Args, Debug)]
pub struct ManualArguments {
    /// Write every page into this folder, which is made where it is missing, and print their paths
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl ManualArguments {
    /// Returns the first page of the manual of `command`. If a folder was named, writes all pages there and returns
    /// their paths, one on each line.
    ///
    /// # Errors
    ///
    /// The pages cannot be written.
    pub fn run(&self, command: Command) -> Result<String, Error> {
        let pages = pages(command).map_err(Error::Manual)?;
        let Some(folder) = &self.out else {
            return Ok(pages.into_iter().next().map(|(_, page)| page).unwrap_or_default());
        };
        let written =
            write(folder, &pages).map_err(|source| Error::ManualFolder { folder: folder.clone(), source })?;
        Ok(written.join("\n"))
    }
}

/// Returns the completion script of `command` for `shell`.
pub fn completions(shell: Shell, command: &mut Command) -> String {
    let name = command.get_name().to_owned();
    // Not straight to standard output: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, command, &name, &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => with_one_name_each(script, command),
        Shell::Fish => script + &fish_words(command),
        _ => script,
    }
}

/// Gives each command one name in a script for bash. The generator (clap_complete 4.6) looks for a command with a dash
/// under another name than the one that it has given it, and so completes none of its subcommands.
fn with_one_name_each(script: String, command: &Command) -> String {
    let mut commands = vec![command];
    let mut script = script;
    while let Some(command) = commands.pop() {
        let name = command.get_name();
        if name.contains('-') {
            script = script.replace(&name.replace('-', "__subcmd__"), &name.replace('-', "__"));
        }
        commands.extend(command.get_subcommands());
    }
    script
}

/// Returns lines for fish that complete the words of arguments without a flag, which the generator leaves out.
fn fish_words(command: &Command) -> String {
    let name = command.get_name();
    let mut lines = String::new();
    for subcommand in command.get_subcommands() {
        for argument in subcommand.get_positionals() {
            let words: Vec<_> = argument
                .get_possible_values()
                .iter()
                .filter(|value| !value.is_hide_set())
                .map(|value| {
                    let help = value.get_help().map(ToString::to_string).unwrap_or_default();
                    format!("{}\\t'{}'", value.get_name(), help.replace('\'', "\\\\'"))
                })
                .collect();
            if !words.is_empty() {
                let _ = writeln!(
                    lines,
                    "complete -c {name} -n \"__fish_seen_subcommand_from {}\" -f -a \"{}\"",
                    subcommand.get_name(),
                    words.join("\n").replace(['"', '$', '`'], "")
                );
            }
        }
    }
    lines
}

fn write(folder: &Path, pages: &[(String, String)]) -> io::Result<Vec<String>> {
    fs::create_dir_all(folder)?;
    let mut written = Vec::new();
    for (name, page) in pages {
        let path = folder.join(name);
        fs::write(&path, page)?;
        written.push(path.display().to_string());
    }
    Ok(written)
}

/// Returns a page for `command` and each of its subcommands, with the name of its file. The page of `command` comes
/// first.
fn pages(command: Command) -> io::Result<Vec<(String, String)>> {
    // A page for the subcommand `help` would only repeat the others.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let version = command.get_version().unwrap_or_default().to_owned();
    let mut pages = Vec::new();
    let mut commands = vec![command];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()).cloned());
        pages.push(page(command, &version)?);
    }
    Ok(pages)
}

fn page(command: Command, version: &str) -> io::Result<(String, String)> {
    let after_help_text =
        command.get_after_long_help().or_else(|| command.get_after_help()).map(ToString::to_string);
    let has_subcommands = command.has_subcommands();
    let page = Page::new(command);
    let mut text = Vec::new();
    title(&page.get_filename(), version).to_writer(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if has_subcommands {
        page.render_subcommands_section(&mut text)?;
    }
    after_help(after_help_text.as_deref().unwrap_or_default()).to_writer(&mut text)?;
    Ok((page.get_filename(), String::from_utf8_lossy(&text).into_owned()))
}

/// Returns the heading of a page, without a date, so that the same version has the same pages.
// The date is written as `""`: an empty word would be left out, and the others would move up.
fn title(file: &str, version: &str) -> Roff {
    let name = file.strip_suffix(".1").unwrap_or(file);
    let mut page = Roff::new();
    page.control("TH", [name, "1", "\"\"", &format!("CoreTools {version}"), "CoreTools manual"]);
    page
}

/// Formats the text below the options of `--help`, such as examples: there its lines are laid out by hand, and
/// clap_mangen would run them together. A line that is not indented and ends with a colon heads a section.
fn after_help(text: &str) -> Roff {
    let mut page = Roff::new();
    for block in text.split("\n\n").filter(|block| !block.is_empty()) {
        let mut lines = block.lines().peekable();
        let heading = |line: &&str| !line.starts_with(' ') && line.ends_with(':');
        match lines.next_if(heading) {
            Some(line) => page.control("SH", [line.trim_end_matches(':').to_uppercase().as_str()]),
            None => page.control("PP", []),
        };
        let laid_out = lines.peek().is_some_and(|line| line.starts_with(' '));
        if laid_out {
            page.control("nf", []);
        }
        for line in lines {
            page.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        if laid_out {
            page.control("fi", []);
        }
    }
    page
}
