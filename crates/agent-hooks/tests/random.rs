//! Random lines and events: no text makes a reader panic, and a line that is read has programs with literal names.

use agent_hooks::shell::{ShellSurroundings, read, read_words, syntax_tree};
use agent_hooks::{HookClient, HookEvent};
use proptest::prelude::*;

/// The pieces that give lines their structure, in any order.
const PIECES: [&str; 72] = [
    " ",
    " ",
    " ",
    "\n",
    ";",
    "|",
    "|&",
    "&",
    "&&",
    "||",
    "!",
    "(",
    ")",
    "{ ",
    " }",
    "$(",
    "`",
    "<(",
    "))",
    "((",
    "[[",
    "]]",
    "'",
    "\"",
    "$'",
    "$\"",
    "\\",
    "\\\n",
    "#",
    "*",
    "?",
    "~",
    "~/",
    "$X",
    "${X:-a}",
    "${!X}",
    "$((1+",
    "{a,b}",
    "=",
    "X=1",
    ">",
    ">>",
    "2>&1",
    "<",
    "<<E\n",
    "\nE\n",
    "<<<",
    "&>",
    "if ",
    "then ",
    "fi",
    "for x in ",
    "do ",
    "done",
    "while ",
    "case x in ",
    "esac",
    ";;",
    "f() ",
    "function f ",
    "cd ",
    "git",
    "sh -c ",
    "env -S ",
    "xargs ",
    "find . -exec ",
    " {} +",
    "sudo -u x ",
    "eval ",
    "exec ",
    "\u{e9}\u{200b}",
    "\0",
];

fn random_line() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => proptest::sample::select(&PIECES[..]).prop_map(str::to_owned),
        1 => "[a-z./-]{1,6}",
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_line_makes_the_reader_panic(line in random_line(), home in proptest::option::of("/[a-z]{1,4}")) {
        let variables = ["X".to_owned()];
        let surroundings = ShellSurroundings { home: home.as_deref(), variables: &variables };
        if let Ok(found) = read(&line, surroundings) {
            for program in &found.programs {
                prop_assert!(program.words.first().is_some_and(|word| word.is_literal), "{line:?}: {program:?}");
            }
        }
    }

    /// Files of any program are read so too, with characters that no line may have.
    #[test]
    fn no_text_ends_the_parser(text in random_line()) {
        if let Ok(tree) = syntax_tree(&text) {
            prop_assert!(tree.root_node().end_byte() <= text.len());
        }
    }

    #[test]
    fn no_words_make_the_reader_panic(words in proptest::collection::vec(random_line(), 0..8)) {
        let _ = read_words(&words, ShellSurroundings::default());
    }

    #[test]
    fn no_event_makes_the_reader_panic(
        text in "\\PC{0,60}",
        name in "PreToolUse|BeforeTool|tool.execute.before|\\PC{0,8}",
        input in "\\{\\}|null|\"\\PC{0,8}\"|[0-9]{1,3}|\\[\\]",
    ) {
        let event = format!(
            r#"{{"hook_event_name":"{name}","tool_name":"Bash","cwd":"/a","session_id":1,"tool_input":{input}}}"#
        );
        for client in HookClient::ALL {
            let _ = HookEvent::parse(client, &text);
            if let Ok(read) = HookEvent::parse(client, &event) {
                prop_assert_eq!((read.tool.as_str(), read.session), ("Bash", None));
            }
        }
    }
}
