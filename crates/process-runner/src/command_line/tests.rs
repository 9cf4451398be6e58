//! Words, errors and shell syntax of command lines, held against a real shell.

use super::*;
use proptest::prelude::*;

fn words(text: &str) -> Vec<String> {
    let line = CommandLine::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    std::iter::once(line.program).chain(line.args).collect()
}

fn error(text: &str) -> CommandSplitError {
    CommandLine::parse(text).expect_err(text)
}

fn hint(text: &str) -> Option<(ShellSyntaxKind, String, usize)> {
    let line = CommandLine::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    line.shell_syntax().map(|found| (found.kind, found.token.clone(), found.position))
}

#[test]
fn blanks_tabs_and_newlines_separate_words() {
    assert_eq!(words("  a b\tc\n\n d\t "), ["a", "b", "c", "d"]);
}

#[test]
fn other_white_space_is_part_of_a_word() {
    assert_eq!(words("a\u{a0}b\rc\u{b}d"), ["a\u{a0}b\rc\u{b}d"]);
}

#[test]
fn quotes_group_and_join_with_what_touches_them() {
    assert_eq!(words(r#"a 'b c'd"e f" "g"'h'"#), ["a", "b cde f", "gh"]);
}

#[test]
fn empty_quotes_are_arguments() {
    assert_eq!(words(r#"a "" '' b"" """#), ["a", "", "", "b", ""]);
}

#[test]
fn single_quotes_keep_everything() {
    assert_eq!(words(r#"a '\ "$x" `y` \'"#), ["a", r#"\ "$x" `y` \"#]);
}

#[test]
fn in_double_quotes_a_backslash_escapes_four_characters_and_newline_only() {
    assert_eq!(words("a \"\\$ \\` \\\" \\\\ \\n \\' x\\\ny\""), ["a", "$ ` \" \\ \\n \\' xy"]);
}

#[test]
fn outside_quotes_a_backslash_escapes_anything_and_joins_lines() {
    assert_eq!(words("a\\ b \\' \\\" \\\\ \\é c\\\nd \\\n e"), ["a b", "'", "\"", "\\", "é", "cd", "e"]);
}

#[test]
fn a_joined_line_alone_is_no_argument() {
    assert_eq!(words("a \\\n b"), ["a", "b"]);
}

#[test]
fn nothing_is_expanded() {
    let text = "echo $HOME ${x} $(y) `z` * ? [a] ~ ~/b # c ; d | e && f > g < h & i ! {j,k}";
    assert_eq!(words(text), text.split(' ').collect::<Vec<_>>());
}

#[test]
fn errors_give_the_position_in_bytes() {
    assert_eq!(error(""), CommandSplitError::Empty { position: 0 });
    assert_eq!(error(" \n\t"), CommandSplitError::Empty { position: 3 });
    assert_eq!(error(" '' a"), CommandSplitError::Empty { position: 1 });
    assert_eq!(error("\\\n"), CommandSplitError::Empty { position: 2 });
    assert_eq!(error("é 'b"), CommandSplitError::UnclosedQuote { quote: '\'', position: 3 });
    assert_eq!(error("a \"b' \\\""), CommandSplitError::UnclosedQuote { quote: '"', position: 2 });
    assert_eq!(error("a \"b\\"), CommandSplitError::UnclosedQuote { quote: '"', position: 2 });
    assert_eq!(error("é b\\"), CommandSplitError::TrailingBackslash { position: 4 });
    assert_eq!(error("é 'b").position(), 3);
}

#[test]
fn messages_say_what_and_where() {
    assert_eq!(error("a 'b").to_string(), "the ' at byte 2 is never closed");
    assert_eq!(error(" ").to_string(), "no program at byte 1: the command is empty");
    let line = CommandLine::parse("make && make test").expect("parses");
    let found = line.shell_syntax().expect("found").to_string();
    assert_eq!(found, "`&&` at byte 5 joins commands only in a shell");
}

#[test]
fn the_first_thing_that_needs_a_shell_is_found() {
    use ShellSyntaxKind::*;
    for (text, kind, token, position) in [
        ("a | b", Operator, "|", 2),
        ("a || b && c", Operator, "||", 2),
        ("a&&b", Operator, "&&", 1),
        ("a; b", Operator, ";", 1),
        ("(a)", Operator, "(", 0),
        ("cd x\nmake", Operator, "newline", 4),
        ("a > b", Redirection, ">", 2),
        ("a 2>&1", Redirection, ">&", 3),
        ("a << b", Redirection, "<<", 2),
        ("é $HOME", Expansion, "$", 3),
        ("a \"x $(y)\"", Expansion, "$", 5),
        ("a \"`y`\"", Expansion, "`", 3),
        ("a $'b'", Expansion, "$", 2),
        ("ls *.rs", Glob, "*", 3),
        ("ls [ab].rs", Glob, "[", 3),
        ("ls a?", Glob, "?", 4),
        ("ls ~/x", Home, "~", 3),
        ("A_1=b make", Assignment, "A_1=", 0),
        ("a # b", Comment, "#", 2),
        ("mkdir {a,b}", Braces, "{", 6),
        ("echo {1..3}", Braces, "{", 5),
    ] {
        assert_eq!(hint(text), Some((kind, token.to_owned(), position)), "{text:?}");
    }
}

#[test]
fn what_stands_behind_a_glob_is_found_too_and_the_words_with_globs_are_known() {
    let line = CommandLine::parse("cat a*.log 'b*' c[ab]?.log | wc -l").expect("parses");
    assert_eq!(line.glob_words().collect::<Vec<_>>(), ["a*.log", "c[ab]?.log"]);
    assert_eq!(line.shell_syntax().map(|found| found.kind), Some(ShellSyntaxKind::Glob));
    let operator = line.shell_syntax_but_globs().expect("found");
    assert_eq!((operator.kind, operator.position), (ShellSyntaxKind::Operator, 27));
    assert_eq!(line.shell_syntax_of(ShellSyntaxKind::Operator), Some(operator));
    assert_eq!(CommandLine::parse("*/run x").expect("parses").glob_words().collect::<Vec<_>>(), ["*/run"]);
}

#[test]
fn what_a_shell_takes_literally_is_not_reported() {
    for text in [
        "git log --format='%h > $x'",
        "a \\| \\> \\$x \\* \\~ \\# \\; \\(",
        "a \"| > * ~ # ;\" \"\\$x\"",
        "a b~c d#e f=g --h=~",
        "a $ 5$",
        "[ -f x ]",
        "\n a b \n",
        "git show stash@{0} HEAD@{1}",
        "find . -exec rm {} +",
        "docker ps --format {{.Names}},x",
        "1A=b make",
        "\"A\"=b make",
    ] {
        assert_eq!(hint(text), None, "{text:?}");
    }
}

/// Returns the words that a real `sh` reads in `text`, or `None` if it finds a syntax error.
#[allow(clippy::disallowed_methods, reason = "the independent judge of this parser is a shell")]
fn words_of_sh(text: &str) -> Option<Vec<String>> {
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("printf '%s\\0' {text}")])
        .output()
        .expect("this test needs sh");
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8(output.stdout).expect("the words are UTF-8");
    Some(text.strip_suffix('\0').expect("printf ends each word").split('\0').map(str::to_owned).collect())
}

/// Returns a piece of a command, for this parser and for `sh`, to which a newline would separate commands.
fn piece() -> impl Strategy<Value = (String, String)> {
    let same = |text: String| (text.clone(), text);
    prop_oneof![
        prop_oneof![Just(" "), Just("\t"), Just("\n")]
            .prop_map(|separator| (separator.to_owned(), separator.replace('\n', " "))),
        "[a-z0-9é,.:/+@%^_-]{1,4}".prop_map(same),
        "\\\\[ -~\n\té]".prop_map(same),
        "'[ -&(-~\n\té]{0,6}'".prop_map(same),
        r#""([ !#%-\[\]^_a-~\té\n]|\\[ -~\n]){0,6}""#.prop_map(same),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn words_are_those_of_sh_for_text_made_of_quotes_and_escapes(pieces in prop::collection::vec(piece(), 1..8)) {
        let (ours, theirs): (String, String) = pieces.into_iter().unzip();
        let Ok(line) = CommandLine::parse(&format!("x{ours}")) else {
            return Err(TestCaseError::fail("every piece is complete"));
        };
        let words: Vec<_> = std::iter::once(line.program).chain(line.args).collect();
        prop_assert_eq!(Some(words), words_of_sh(&format!("x{theirs}")));
    }

    #[test]
    fn words_and_errors_are_those_of_sh_for_any_mix_of_quotes(text in r#"[ \t'"\\abé=]{1,16}"#) {
        match CommandLine::parse(&format!("x{text}")) {
            Ok(line) => {
                let words: Vec<_> = std::iter::once(line.program).chain(line.args).collect();
                prop_assert_eq!(Some(words), words_of_sh(&format!("x{text}")));
            }
            // Shells differ about a backslash at the very end: some keep it.
            Err(CommandSplitError::TrailingBackslash { position }) => prop_assert_eq!(position, text.len()),
            Err(_) => prop_assert_eq!(None, words_of_sh(&format!("x{text}"))),
        }
    }

    #[test]
    fn any_text_is_split_or_refused_at_a_position_within_it(text in any::<String>()) {
        match CommandLine::parse(&text) {
            Ok(line) => prop_assert!(!line.program.is_empty()),
            Err(error) => {
                prop_assert!(error.position() <= text.len());
                prop_assert!(text.is_char_boundary(error.position()));
            }
        }
    }
}
