//! The commands of a text of shell.

use super::exit_flow::{ExitFlow, FoundCommand};
use super::options::ShellOptions;
use crate::testing::project_command::script::ScriptCommand;
use agent_hooks::shell::syntax_tree;

/// The longest part of a text that stands for a text that cannot be read, in characters.
const MAX_UNREAD_CHARACTERS: usize = 80;

/// Returns the commands of a text of shell, which a shell with `options` runs.
pub(crate) fn commands_of_shell(text: &str, options: ShellOptions) -> Vec<ScriptCommand> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let plain = plain_text(text);
    let Ok(tree) = syntax_tree(&plain) else {
        let mut whole = ScriptCommand::new(text);
        let beginning: String = text.trim().chars().take(MAX_UNREAD_CHARACTERS).collect();
        whole.text = beginning.lines().next().unwrap_or_default().to_owned();
        return vec![ScriptCommand { is_hidden: true, is_unread: true, ..whole }];
    };
    let mut flow = ExitFlow::new(&plain, tree.root_node(), options);
    flow.read();
    let is_unread = tree.root_node().has_error() || flow.is_too_deep;
    flow.found.into_values().map(|found| command_of(text, &found, is_unread)).collect()
}

/// Returns the commands of a script of `sh`.
pub(crate) fn split_commands(script: &str) -> Vec<ScriptCommand> {
    commands_of_shell(script, ShellOptions::default())
}

/// Returns the text with other characters of the same length in place of those that the scanner of the grammar does not
/// survive. The places of the nodes are then those of the text.
fn plain_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if character > '\u{ff}' {
            plain.extend(std::iter::repeat_n('x', character.len_utf8()));
        } else {
            plain.push(if character == '\r' { ' ' } else { character });
        }
    }
    plain
}

fn command_of(source: &str, found: &FoundCommand, is_unread: bool) -> ScriptCommand {
    let text = source.get(found.range.clone()).unwrap_or_default().trim();
    let text = text.replace("\\\r\n", " ").replace("\\\n", " ");
    // The lines of a here-document are no words.
    let end = if text.contains("<<") { text.find('\n') } else { None };
    let text = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
    let mut command = ScriptCommand::new(text);
    if found.is_assignment {
        command.words.clear();
    }
    ScriptCommand {
        is_hidden: found.is_hidden || command.is_find_of_many(),
        is_condition: found.is_condition,
        is_background: found.is_background,
        is_unread,
        loop_words: found.loop_words.clone(),
        ..command
    }
}
