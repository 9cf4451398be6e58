//! The commands of a text of shell, and whether the failure of each becomes that of the text.
//!
//! The text is read as bash reads it. A text that the parser does not take whole gives the commands that were found, and
//! each of them is marked as not understood.

mod branch;
mod commands;
mod exit_flow;
mod failure;
mod loops;
mod options;
mod place;
mod words;

pub(crate) use commands::{commands_of_shell, split_commands};
pub(crate) use loops::LoopWords;
pub(super) use options::SHELLS;
pub(crate) use options::ShellOptions;

#[cfg(test)]
mod tests {
    use super::words::LOOKED_AT;
    use super::*;

    fn hidden(script: &str) -> String {
        let commands = commands_of_shell(script, ShellOptions::default());
        assert!(commands.iter().all(|command| !command.is_unread), "{script}");
        let hidden = commands.iter().filter(|command| command.is_hidden && !command.words.is_empty());
        hidden.map(|command| command.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_command_whose_failure_the_script_does_not_pass_on_is_hidden() {
        for (script, expected) in [
            ("a && b", ""),
            ("a || true", "a"),
            ("a; b", "a"),
            ("a && b; c", "a b"),
            ("a && b || true", "a b"),
            ("a | b", "a"),
            ("a && b | c", "b"),
            ("set -o pipefail; a | b", "set -o pipefail"),
            ("a & b", "a"),
            ("a & wait $!", ""),
            ("a & wait", "a"),
            ("a & wait $!; b", "a wait $!"),
            ("a & wait $! || true", "a wait $!"),
            ("a & (wait $!) | b", "a wait $!"),
            ("set -e; a & wait $!; b", ""),
            ("a & wait $! || exit 1; b", "exit 1"),
            ("a & if ! wait $!; then exit 1; fi", ""),
            ("a & p=$!; b & wait $p || exit 1; wait $!", "exit 1"),
            ("a & wait $! || exit 1; b & c", "exit 1 b"),
            ("(a; b) && c", "a"),
            ("(a; b)", "a"),
            ("(a) || true", "a"),
            ("a || exit 1", ""),
            ("a || exit 0", "a"),
            ("a || { echo b; exit 3; }", "echo b"),
            ("a || (echo b)", "a"),
            ("set -e; a; b", ""),
            ("set -eu\na\nb", ""),
            ("set -e; set +e; a; b", "set +e a"),
            ("a; code=$?; b; exit $code", "b"),
            ("a; exit $?", ""),
            ("! a", "a"),
            ("a;", ""),
            ("if a; then b; fi", "a"),
            ("for a in 1 2; do b; done", "b"),
            ("trap 'exit 0' EXIT; set -e; a", "trap 'exit 0' EXIT set -e a"),
            ("trap 'rm -rf x; exit 0' EXIT\na && b", "trap 'rm -rf x; exit 0' EXIT a b"),
            ("trap end EXIT\nend() { rm -rf x; exit 0; }\na", "trap end EXIT rm -rf x exit 0 a"),
            ("trap 'rm -rf x' EXIT; set -e; a", "trap 'rm -rf x' EXIT"),
            ("trap 'exit 0' TERM; set -e; a", "trap 'exit 0' TERM"),
            ("find t -exec sh {} \\;", "find t -exec sh {} \\;"),
            ("find t -exec sh {} +", ""),
        ] {
            assert_eq!(hidden(script), expected, "{script}");
        }
    }

    #[test]
    fn set_e_ends_a_script_only_where_bash_says_so() {
        for (script, expected) in [
            ("a && b; c", "a"),
            ("a && b", ""),
            ("a | b; c", "a"),
            ("set -o pipefail; a | b; c", ""),
            ("x=$(a); b", ""),
            ("local x=$(a); b", "a"),
            ("export x=$(a); b", "a"),
            ("echo $(a); b", "a"),
            ("x=$(a; b); c", "a"),
            ("cat <(a); b", "a"),
            ("b > >(a); c", "a"),
            ("(a; b); c", ""),
            ("(a; b) || true; c", "a b"),
            ("(a; b) | c; d", "a b"),
            ("{ a; b; }; c", ""),
            ("if a; then b; fi; c", "a"),
            ("while a; do b; done; c", "a"),
            ("for x in 1; do a; done; c", ""),
            ("case x in x) a; b ;; esac; c", ""),
            ("! a; b", "a"),
            ("a & b", "a"),
            ("f() { a; b; }; f; c", ""),
            ("f() { a; b; }\nif f; then c; fi", "a b"),
            ("f() { a; b; }\nf || true", "a b"),
            ("f() { a; b; }\nf && c; d", "a b"),
            ("f() { local x=$(a); echo \"$x\"; }\nf\nc", "a"),
            ("f() { a; b; }\n\"$1\"", ""),
            ("f() { f; a; }\nf", ""),
            ("cat <<END\n$(a)\nEND\nb", "a"),
            ("cat <<END | a\ntext\nEND\nb", ""),
            ("exec a; b", ""),
        ] {
            let found = hidden(&format!("set -e\n{script}"));
            assert_eq!(found, expected, "{script}");
        }
    }

    #[test]
    fn a_script_that_remembers_a_failure_hides_nothing() {
        for script in [
            "a || failed=1\nexit $failed",
            "for x in 1 2; do a \"$x\" || failed=1; done\nexit \"${failed:-0}\"",
            "for x in 1 2; do if ! a; then failed=$((failed + 1)); fi; done\n[ \"$failed\" -eq 0 ]",
            "if a; then echo ok; else failed=1; fi\nif [ $failed = 1 ]; then exit 1; fi",
            "a || failed=1\nif [ -n \"$failed\" ]; then echo FAILED; exit 1; fi",
            "a || ((failed++))\n[ $failed -gt 0 ] && exit 1",
            "a\nstatus=$?\necho done\nexit $status",
            "a\nif [ $? -ne 0 ]; then exit 1; fi\necho done",
            "a\n[ $? -eq 0 ] || exit 1\necho done",
            "die() { echo \"$1\"; exit 1; }\na || die failed\necho done",
            "if ! a; then exit 1; fi\necho done",
            "if a; then echo ok; else exit 1; fi\necho done",
            "if a; then exit 0; fi\nexit 1",
            "a && exit 0\nexit 1",
            "check() { a || return 1; }\nset -e\ncheck\necho done",
            "a | tee log\nexit ${PIPESTATUS[0]}",
            "ls | while read f; do a $f || exit 1; done",
            "a || exit $?\necho done",
            "set -e\na \\\n  --option\necho done",
        ] {
            let commands = commands_of_shell(script, ShellOptions::default());
            let found: Vec<_> = commands.iter().filter(|command| command.program() == "a").collect();
            assert!(!found.is_empty(), "{script}");
            assert!(found.iter().all(|command| !command.is_hidden), "{script}: {found:#?}");
        }
    }

    #[test]
    fn an_action_that_something_else_decides_passes_no_failure_on() {
        for (script, is_hidden) in [
            ("if a; then echo ok; elif [ -n \"$CI\" ]; then exit 1; fi", true),
            ("if a; then echo ok; elif b; then echo ok; else exit 1; fi", true),
            ("if a; then echo ok; elif [ $? -eq 5 ]; then echo none; else exit 1; fi", false),
            ("if a; then echo ok; elif [ $? -eq 1 ]; then exit 1; fi", false),
            ("if a; then echo ok; elif b; then exit 1; else exit 2; fi", false),
            ("if b; then echo ok; elif a; then echo ok; else exit 1; fi", false),
            ("if a; then echo ok; else [ -n \"$CI\" ] && exit 1; fi; true", true),
            ("a || { [ -n \"$CI\" ] && exit 1; true; }", true),
            ("a || { if [ -n \"$CI\" ]; then exit 1; fi; true; }", true),
            ("a || { if [ -n \"$CI\" ]; then echo; fi; exit 1; }", false),
            ("a || (echo failed && exit 1)", false),
            ("a && exit 0\necho \"would exit 1\"", true),
            ("a && exit 0\necho failed; exit 3", false),
            ("check() { if [ \"$1\" -ne 0 ]; then exit 1; fi; }\na; check $?\necho done", false),
            (
                "a | tee log; for code in \"${PIPESTATUS[@]}\"; do [ $code -eq 0 ] || exit 1; done; true",
                false,
            ),
            ("a; case $? in 0) ;; *) exit 1 ;; esac; true", false),
        ] {
            let commands = commands_of_shell(script, ShellOptions::default());
            let found = commands.iter().find(|command| command.program() == "a").unwrap();
            assert_eq!(found.is_hidden, is_hidden, "{script}");
        }
    }

    #[test]
    fn a_command_in_a_loop_has_the_words_of_the_loop() {
        for (script, command, words) in [
            ("for f in t/*.sh u; do sh $f; done; echo", "sh $f", "t/*.sh u"),
            ("ls t/*.sh | sort | while read f; do sh $f; done", "sh $f", "ls t/*.sh sort"),
            ("while read f; do sh $f; done < list.txt", "sh $f", "< list.txt"),
            ("for f in a; do for g in b; do sh $g; done; done", "sh $g", "a b"),
            ("for f in a; do x; done; sh b", "sh b", ""),
        ] {
            let commands = commands_of_shell(script, ShellOptions::default());
            let found = commands.iter().find(|found| found.text == command).unwrap();
            assert_eq!(
                found.loop_words.iter().map(String::as_str).collect::<Vec<_>>().join(" "),
                words,
                "{script}"
            );
        }
    }

    #[test]
    fn functions_that_call_each_other_are_read_in_time() {
        // Each function calls the one before it twice, and remembers failures.
        let mut script = "f0() { a || failed=1; }\n".to_owned();
        for number in 1..20 {
            let called = number - 1;
            script.push_str(&format!(
                "f{number}() {{ f{called} || n{called}=1; if ! f{called} x; then n{number}=1; fi; }}\n"
            ));
        }
        script.push_str("f19\nexit $failed\n");
        assert!(work(&script) < 100_000, "{}", work(&script));
        let commands = commands_of_shell(&script, ShellOptions::default());
        assert!(commands.iter().any(|command| command.text == "a"));
        assert!(commands.iter().all(|command| !command.is_unread), "too many statements were visited");
    }

    /// Returns the number of nodes that are looked at to read a script.
    fn work(script: &str) -> usize {
        let before = LOOKED_AT.get();
        commands_of_shell(script, ShellOptions::default());
        LOOKED_AT.get() - before
    }

    #[test]
    fn the_work_for_a_script_grows_with_its_length_alone() {
        let variables: String = (0..3_000).map(|number| format!("a||x{number}=1\n")).collect();
        let in_background = "a & ".repeat(5_000);
        for script in [variables, in_background] {
            let (half, whole) = (work(&script[..script.len() / 2]), work(&script));
            assert!(whole < 3 * half && whole < 1_000_000, "{half} {whole}");
        }
    }

    #[test]
    fn the_commands_of_a_loop_share_its_words() {
        let script = format!("for f in {}; do {} done", "a/b ".repeat(2_000), "sh $f; ".repeat(1_000));
        let commands = commands_of_shell(&script, ShellOptions::default());
        assert_eq!(commands.len(), 1_000);
        assert!(commands.iter().all(|command| command.loop_words.shares_all(&commands[0].loop_words)));
        assert!(commands[0].loop_words.iter().count() <= 1_000);
    }

    #[test]
    fn a_text_that_is_not_understood_says_so() {
        let deep = format!("{}a{}", "(".repeat(250), ")".repeat(250));
        let long = "a && ".repeat(20_000) + "a";
        for script in ["if a; then", "a 'b", "sh t/test_a.sh )", &deep, &long] {
            let commands = commands_of_shell(script, ShellOptions::default());
            assert!(commands.iter().all(|command| command.is_unread), "{}", &script[..script.len().min(40)]);
        }
        // Nested too deeply for the walk, and not for the parser.
        let list = "a && ".repeat(1_000) + "a";
        assert!(commands_of_shell(&list, ShellOptions::default()).iter().all(|command| command.is_unread));
        // The scanner of the grammar does not survive such characters behind a brace.
        let commands = commands_of_shell("echo {\u{20000}é→}; sh '→'", ShellOptions::default());
        assert_eq!(
            commands.iter().map(|command| command.text.as_str()).collect::<Vec<_>>(),
            ["echo {\u{20000}é→}", "sh '→'"]
        );
        assert_eq!(commands_of_shell(" \n", ShellOptions::default()), []);
    }
}
