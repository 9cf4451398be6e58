//! Lines of a shell, as they are read.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use agent_hooks::shell::{ShellLine, ShellSurroundings, read, read_words};
use role_policy::Access;

fn line(text: &str) -> ShellLine {
    read(text, ShellSurroundings::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_program_of_a_line_is_found() {
    let cases: &[(&str, &[&str])] = &[
        ("alpha", &["alpha"]),
        ("alpha && beta || gamma; delta & alpha", &["alpha", "beta", "gamma", "delta", "alpha"]),
        ("alpha | beta |& gamma", &["alpha", "beta", "gamma"]),
        ("! alpha", &["alpha"]),
        ("echo $(alpha) `beta` \"$(gamma)\" <(delta)", &["alpha", "beta", "gamma", "delta"]),
        ("X=$(alpha) beta", &["alpha", "beta"]),
        ("X=`alpha`", &["alpha"]),
        ("(alpha; beta) && { gamma; }", &["alpha", "beta", "gamma"]),
        ("if alpha; then beta; elif gamma; then :; else delta; fi", &["alpha", "beta", "gamma", "delta"]),
        ("for x in $(alpha); do beta \"$x\"; done", &["alpha", "beta"]),
        ("while alpha; do beta; done < f", &["alpha", "beta"]),
        ("case $(alpha) in a) beta;; *) gamma;; esac", &["alpha", "beta", "gamma"]),
        ("f() { alpha; }; beta", &["alpha", "beta"]),
        ("[[ -n $(alpha) ]] && beta", &["alpha", "beta"]),
        ("cat <<E | beta\n$(alpha)\nE", &["cat", "beta", "alpha"]),
        ("cat <<'E'\n$(alpha)\nE", &["cat"]),
        ("alpha <<E beta\nE", &["alpha"]),
        ("env <<E alpha\nE", &["alpha"]),
        ("env > /dev/null alpha", &["alpha"]),
        ("> /dev/null alpha", &["alpha"]),
        ("X=1 > /dev/null alpha", &["alpha"]),
        ("env 2>&1 alpha", &["alpha"]),
        ("env >&- alpha", &["alpha"]),
        ("alpha <<< $(beta)", &["alpha", "beta"]),
        ("echo ${x:-$(alpha)} $((1 + $(beta)))", &["alpha", "beta"]),
        ("sh -c 'alpha; beta'", &["alpha", "beta"]),
        ("bash -lc \"alpha 'beta'\"", &["alpha"]),
        ("bash -euo pipefail -c 'alpha | beta'", &["alpha", "beta"]),
        ("bash script.sh", &["bash"]),
        ("eval 'alpha && beta'", &["alpha", "beta"]),
        ("trap 'alpha' EXIT", &["alpha"]),
        ("env -i A=1 alpha", &["alpha"]),
        ("sudo -u root env A=1 alpha", &["sudo", "alpha"]),
        ("timeout -s KILL 5 nohup nice -n 5 setsid alpha", &["alpha"]),
        ("/usr/bin/env /usr/bin/timeout 5 alpha", &["alpha"]),
        ("command alpha; builtin echo; exec beta", &["alpha", "beta"]),
        ("command -v alpha", &[]),
        ("alpha | xargs -0 -n 1 -P4 beta -x", &["alpha", "beta"]),
        ("xargs -I{} sh -c 'beta'", &["beta"]),
        ("find . -name '*.rs' -exec alpha {} \\; -o -execdir beta {} +", &["alpha", "beta", "find"]),
        ("time alpha", &["alpha"]),
        ("\"al\"'pha'; \\beta", &["alpha", "beta"]),
        ("alpha \\\n --x &&\\\nbeta", &["alpha", "beta"]),
        ("alpha # beta; gamma", &["alpha"]),
        ("cd src; pwd; echo a; test -f x; true", &[]),
        ("A=1", &[]),
    ];
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        let mut found: Vec<String> = match read(text, ShellSurroundings::default()) {
            Ok(line) => line.programs.iter().map(|program| program.words[0].text.clone()).collect(),
            Err(error) => vec![error.to_string()],
        };
        let mut expected: Vec<String> = expected.iter().map(|word| (*word).to_owned()).collect();
        found.sort();
        expected.sort();
        if found != expected {
            wrong.push(format!("{text}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_only_the_run_knows_is_refused() {
    let mut wrong = Vec::new();
    for text in [
        "$X",
        "\"$X\" a",
        "$(alpha) b",
        "`alpha`",
        "sh -c \"$X\"",
        "sh -c $X",
        "bash",
        "alpha | bash",
        "bash -s < f",
        "bash <<< 'alpha'",
        "eval $X",
        "eval \"$(alpha)\"",
        "source f",
        ". f",
        "alias ls=alpha",
        "hash -p /x ls",
        "enable -f x y",
        "shopt -s expand_aliases",
        "env $X alpha",
        "env -S 'alpha beta'",
        "timeout $X alpha",
        "xargs -n $X alpha",
        "xargs $X",
        "sudo -i",
        "zsh -c alpha",
        "fish -c alpha",
        "alpha > $X",
        "alpha > \"$(beta)\"",
        "alpha > *.txt",
        "alpha >",
        "alpha |",
        "if alpha",
        "'alpha",
        "\"alpha",
        "alpha $(",
        "$'al\\x70ha'",
        "a{l,m} b",
        "al* b",
        "~other/bin/alpha",
        "X=1 A=$Y env B=$Z alpha",
        "trap \"$X\" EXIT",
        "mapfile -C alpha x",
        "set -k",
        "coproc alpha",
        "read 'a[$(alpha)]'",
        "printf -v 'a[$(alpha)]' x",
        "alpha\u{0}",
        "alpha\u{1b}",
        "xargs -I alpha alpha b",
        "find . -exec {} \\;",
        "al\\\npha",
        "cat <<-E\n\t$(alpha)\nE",
        "echo `echo \\`alpha\\``",
        "echo \"${x@P}\" | sh",
    ] {
        match read(text, ShellSurroundings::default()) {
            Ok(line) => wrong.push(format!("{text}: {:?} {:?}", line.programs, line.files)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn values_that_are_evaluated_are_told() {
    for text in [
        "echo $((x + 1)) $x; read x",
        "x=$1; ((x++))",
        "for x in a b; do [[ $x -eq 1 ]]; done",
        "let x=1",
        "i=$(alpha); echo ${a[$i]}",
        "echo ${x@P}",
        "echo ${!x}",
        "declare -i x=1",
        "for x; do echo $((x)); done",
        "test -v \"$x\"",
        "echo $((EDITOR))",
        "echo $((REPLY)) $((BASH_ARGV))",
        "echo $(($1))",
        "declare 'a[$(alpha)]=1'",
        "PS4='$(alpha)'; set -x",
        "RANDOM=$x",
    ] {
        let surroundings = ShellSurroundings { home: None, variables: &["EDITOR".to_owned()] };
        assert!(read(text, surroundings).unwrap().evaluates_variables, "{text}");
    }
    for text in [
        "echo $((1 + 2)) $((x + 1))",
        "i=0; while ((i < 3)); do i=$((i + 1)); ((i++)); done",
        "for ((i = 0; i < 10; i++)); do alpha $i; done",
        "for i in 1 2 {3..9}; do alpha $((i * 2)); done",
        "n=${#x}; [[ $n -gt 3 && -n \"$x\" ]]",
        "i=1; a=(x y); echo ${a[i]} ${a[$i]} ${a[@]:i:1} ${x:i}",
        "f() { local n=1; echo $((n)); }; f",
        "[ $# -gt 0 ] || alpha",
        "echo ${a[0]} ${a[@]} ${#a[@]} ${!a[@]} ${x@Q}",
        "[[ $x == y && -v z ]]",
        "[ \"$x\" -eq 1 ] && [ -f \"$x\" ] && [ -n \"$x\" -a \"$y\" != z ]",
        "echo $x ${x%.rs} ${x:-y} ${x/a/b} ${x^^} ${x: -3}",
        "export A=$x B=\"$y\" \"C=$z\"; readonly D; unset E",
        "declare -A m=([a]=1 [b]=2); m[c]=3; echo ${m[a]}",
        "printf '%s\\n' \"$x\"; printf \"$x\"",
        "time X=1 alpha",
        "command -v alpha || builtin echo",
        "while read -r x y; do alpha \"$x\"; done < f",
        "mapfile -t x < f; alpha \"${x[@]}\"",
    ] {
        assert!(!line(text).evaluates_variables, "{text}");
    }
}

#[test]
fn redirections_and_folders_are_paths() {
    let files = |text: &str| -> Vec<(String, Access)> {
        line(text).files.into_iter().map(|file| (file.path, file.access)).collect()
    };
    let write = |path: &str| (path.to_owned(), Access::Write);
    let read = |path: &str| (path.to_owned(), Access::Read);
    assert_eq!(files("alpha > a >> 'b c' 2> d"), [write("a"), write("b c"), write("d")]);
    assert_eq!(files("alpha < a &> b >| c"), [read("a"), write("b"), write("c")]);
    assert_eq!(files("alpha > /dev/null 2>&1 3>&-"), []);
    assert_eq!(
        files("{ alpha; } > a; (beta) > b; for x in y; do :; done > c"),
        [write("a"), write("b"), write("c")]
    );
    assert_eq!(files("cat <<E > a\nE"), [write("a")]);
    assert_eq!(files("echo $(< a)"), [read("a")]);
    assert_eq!(files("find . -fprint a"), [write("a")]);
    assert_eq!(files("alpha > ~/x".replace('~', "/home/me").as_str()), [write("/home/me/x")]);
    assert_eq!(line("cd a && cd ../b; alpha").folders, ["a", "../b"]);
    assert!(!line("cd a").folder_varies);
    for text in ["cd $X", "cd -", "for x in y; do cd ..; done", "f() { cd a; }", "popd", "pushd"] {
        assert!(line(text).folder_varies, "{text}");
    }
}

#[test]
fn variables_that_programs_get_are_named() {
    let surroundings = ShellSurroundings { home: Some("/home/me"), variables: &["EDITOR".to_owned()] };
    let variables = |text: &str| read(text, surroundings).unwrap().variables;
    assert_eq!(variables("LD_PRELOAD=x alpha"), ["LD_PRELOAD"]);
    assert_eq!(variables("export A=1 B; env C=1 alpha"), ["A", "B", "C"]);
    assert_eq!(variables("PATH=/x; EDITOR=y; mine=z; alpha"), ["PATH", "EDITOR"]);
    assert_eq!(
        variables("for PATH in /x; do alpha; done; read EDITOR; unset HOME"),
        ["PATH", "EDITOR", "HOME"]
    );
    assert_eq!(variables("echo ${PATH:=x}"), ["PATH"]);
    assert_eq!(variables("env -u HOME alpha"), ["HOME"]);
    assert_eq!(read("~/bin/alpha", surroundings).unwrap().programs[0].words[0].text, "/home/me/bin/alpha");
}

#[test]
fn a_command_in_words_is_read_like_a_line() {
    let words: Vec<String> = ["bash", "-lc", "alpha > out"].map(str::to_owned).to_vec();
    let line = read_words(&words, ShellSurroundings::default()).unwrap();
    assert_eq!((line.programs[0].words[0].text.as_str(), line.files[0].path.as_str()), ("alpha", "out"));
    // Words of a vector are never expanded.
    let words: Vec<String> = ["alpha", "$X", "*"].map(str::to_owned).to_vec();
    assert!(
        read_words(&words, ShellSurroundings::default()).unwrap().programs[0]
            .words
            .iter()
            .all(|word| word.is_literal)
    );
}

#[test]
fn deep_and_long_lines_end_in_an_error() {
    for text in [
        "$(".repeat(5000),
        "(".repeat(5000),
        format!("{}alpha{}", "(".repeat(3000), ")".repeat(3000)),
        "a ".repeat(60_000),
        "sh -c ".repeat(20),
    ] {
        assert!(read(&text, ShellSurroundings::default()).is_err(), "{}", &text[..20]);
    }
    let mut nested = "alpha".to_owned();
    for _ in 0..9 {
        nested = format!("eval {}", quoted(&nested));
    }
    assert!(read(&nested, ShellSurroundings::default()).is_err());
}

/// The scanner of the grammar gives them to `isdigit` of C, for which they are out of range.
#[test]
fn characters_behind_a_brace_that_the_scanner_cannot_take_are_refused() {
    for text in ["echo {\u{10ffff}", "echo {1\u{10ffff}}", "echo {1..\u{3042}}", "{..2\u{10ffff}"] {
        assert!(read(text, ShellSurroundings::default()).is_err(), "{text}");
    }
    for text in ["echo {1..2}", "echo \u{10ffff}", "echo '{a\u{3042}}'", "echo \u{3042}{a,b}"] {
        assert!(read(text, ShellSurroundings::default()).is_ok(), "{text}");
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
