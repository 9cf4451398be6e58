//! Lines of a shell, read here and run by the real bash.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(clippy::disallowed_methods, reason = "the tests start the shell that the lines are written for")]

use agent_hooks::shell::{ShellLine, ShellSurroundings, read, read_words};
use role_policy::Access;
use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

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
        "echo $((x + 1))",
        "((x++))",
        "[[ $x -eq 1 ]]",
        "let x=1",
        "echo ${a[$i]}",
        "echo ${x@P}",
        "echo ${!x}",
        "declare -i x=1",
        "for ((i=0;i<3;i++)); do :; done",
        "test -v \"$x\"",
    ] {
        assert!(line(text).evaluates_variables, "{text}");
    }
    for text in [
        "echo $((1 + 2))",
        "echo ${a[0]} ${a[@]}",
        "[[ $x == y ]]",
        "[ \"$x\" -eq 1 ]",
        "echo $x ${x%.rs} ${x:-y}",
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

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The names that a line of these tests may start, each of which writes itself into a file.
const NAMES: [&str; 6] = ["alpha", "beta", "gamma", "delta", "evil", "cat"];

/// The programs that bash itself starts for `text`, in a folder with nothing but these and the launchers.
fn started(text: &str, folder: &Path) -> BTreeSet<String> {
    let (bin, log, work) = (folder.join("bin"), folder.join("log"), folder.join("work"));
    let _ = std::fs::remove_dir_all(&work);
    std::fs::create_dir_all(&work).unwrap();
    std::fs::write(&log, "").unwrap();
    let mut command = Command::new("/bin/bash");
    command
        .args(["-c", text])
        .current_dir(&work)
        .env_clear()
        .env("PATH", &bin)
        .env("LOG", &log)
        .stdin(std::process::Stdio::null());
    command.output().unwrap();
    std::fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_starts_nothing_that_was_not_found_in_the_line() {
    let bash = Path::new("/bin/bash");
    if skipped_tests::require(bash.exists().then_some(bash), "no bash; apt-get install bash").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for name in NAMES {
        let path = bin.join(name);
        std::fs::write(&path, format!("#!/bin/bash\necho {name} >> \"$LOG\"\n/bin/cat\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for name in ["env", "timeout", "nohup", "nice", "setsid", "xargs", "find", "sh", "bash", "stdbuf"] {
        let real = ["/usr/bin", "/bin"]
            .map(|folder| Path::new(folder).join(name))
            .into_iter()
            .find(|path| path.exists());
        symlink(real.unwrap(), bin.join(name)).unwrap();
    }
    let mut accepted = 0;
    let mut wrong = Vec::new();
    for text in DIFFERENTIAL {
        let ran = started(text, folder.path());
        let Ok(line) = read(text, ShellSurroundings::default()) else { continue };
        accepted += 1;
        let found: BTreeSet<String> =
            line.programs.iter().map(|program| program.words[0].text.clone()).collect();
        // Values that are evaluated are refused where programs are judged, and so is a line that sets variables for the
        // shell and starts nothing.
        let only_sets = line.programs.is_empty() && !line.variables.is_empty();
        if line.evaluates_variables || only_sets {
            continue;
        }
        let missed: Vec<_> = ran.difference(&found).collect();
        if !missed.is_empty() {
            wrong.push(format!("{text}\n    started {missed:?} beside {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(accepted > DIFFERENTIAL.len() / 2, "only {accepted} of {} were read", DIFFERENTIAL.len());
}

/// Lines that try to start `evil` where a reader does not look.
const DIFFERENTIAL: &[&str] = &[
    "alpha; evil",
    "alpha\nevil",
    "alpha &evil",
    "alpha|evil",
    "alpha|&evil",
    "alpha||evil",
    "alpha&&evil",
    "(evil)",
    "{ evil; }",
    "! evil",
    "echo \"$(evil)\"",
    "echo \"`evil`\"",
    "echo '$(evil)'",
    "echo \\$(evil)",
    "echo \"\\$(evil)\"",
    "echo \"\\\\$(evil)\"",
    "echo \\`evil\\`",
    "echo $'\\'' evil '",
    "echo $'a\\'b'; evil; echo ''",
    "echo \"a'b\"; evil; echo \"c'd\"",
    "echo a\\\nb; evil",
    "echo a #b\nevil",
    "echo a#b; evil",
    "echo 'a\nb'; evil",
    "cat <<E\n$(evil)\nE",
    "cat <<'E'\n$(evil)\nE",
    "cat <<\\E\n$(evil)\nE",
    "cat <<\"E\"\n`evil`\nE",
    "cat <<-E\n\t$(evil)\n\tE",
    "cat <<E\nE\nevil",
    "cat <<E; evil\nE",
    "cat <<E && evil\nE",
    "cat <<E | evil\nE",
    "cat <<A <<B\n$(evil)\nA\nB",
    "cat <<E\n\\$(evil)\nE",
    "cat <<E\n'$(evil)'\nE",
    "cat <<E E\nevil\nE",
    "cat <<<\"$(evil)\"",
    "cat <<< '$(evil)'",
    "alpha > x evil",
    "env > x evil",
    "env >x evil",
    "env 2>&1 evil",
    "env >&2 evil",
    "env >&- evil",
    "env <<E evil\nE",
    "env <<<x evil",
    "> x evil",
    "2> x evil",
    ">x >y evil",
    "X=1 evil",
    "X=1 >x evil",
    "X=$(evil)",
    "X=(evil)",
    "X=($(evil))",
    "X+=$(evil)",
    "export X=$(evil)",
    "local X=$(evil)",
    "readonly X=`evil`",
    "declare -a X=($(evil))",
    "echo ${X:-$(evil)}",
    "echo ${X:-`evil`}",
    "echo \"${X:-$(evil)}\"",
    "echo ${X:+$(evil)}",
    "X=1; echo ${X/1/$(evil)}",
    "X=1; echo ${X#$(evil)}",
    "echo $((1+$(evil)))",
    "echo $[1+$(evil)]",
    "echo ${X:$(evil)}",
    "((1+$(evil)))",
    "if evil; then :; fi",
    "if :; then evil; fi",
    "while evil; do break; done",
    "until evil; do break; done",
    "for x in `evil`; do :; done",
    "for x in a; do evil; done",
    "for x in a; { evil; }",
    "for ((i=0;i<1;i++)); do evil; done",
    "case x in x) evil;; esac",
    "case $(evil) in *) ;; esac",
    "case x in $(evil)) ;; esac",
    "select x in a; do evil; done",
    "f() { evil; }; f",
    "f() (evil); f",
    "function f { evil; }; f",
    "function f() { evil; }\nf",
    "f() { alpha; } > x; evil",
    "[[ $(evil) ]]",
    "[[ -n `evil` ]]",
    "[[ a =~ $(evil) ]]",
    "[[ a == $(evil) ]]",
    "[ \"$(evil)\" ]",
    "test -n \"$(evil)\"",
    "cat <(evil)",
    "alpha > >(evil)",
    "alpha 2> >(evil)",
    "alpha | tee >(evil)",
    "env -i evil",
    "env -u X evil",
    "env X=1 evil",
    "env -- evil",
    "env - evil",
    "timeout 5 evil",
    "timeout -k 1 5 evil",
    "timeout --signal=KILL 5 evil",
    "nohup evil",
    "nice evil",
    "nice -n 1 evil",
    "nice -5 evil",
    "setsid evil",
    "setsid -w evil",
    "stdbuf -oL evil",
    "echo a | xargs evil",
    "echo evil | xargs env",
    "echo a | xargs -n1 evil",
    "echo a | xargs -I% evil %",
    "echo evil | xargs -I% %",
    "echo evil | xargs -I% env %",
    "echo evil | xargs",
    "xargs -a /dev/null evil",
    "find . -exec evil \\;",
    "find . -exec evil {} +",
    "find . -exec env evil \\;",
    "find . -exec sh -c evil \\;",
    "find . -ok evil \\;",
    "sh -c evil",
    "sh -c 'alpha; evil'",
    "sh -ec evil",
    "bash -c 'sh -c evil'",
    "bash -c \"sh -c 'evil'\"",
    "bash -c $'evil'",
    "sh -c \"$(echo evil)\"",
    "echo evil | sh",
    "sh <<E\nevil\nE",
    "sh <<< evil",
    "eval evil",
    "eval 'alpha;' evil",
    "eval \"eval evil\"",
    "trap evil EXIT",
    "trap 'evil' 0",
    "command evil",
    "command -p evil",
    "command -- evil",
    "builtin eval evil",
    "exec evil",
    "exec -a x evil",
    "exec > x; evil",
    "coproc evil",
    "time evil",
    "time -p evil",
    "! time evil",
    "e''vil",
    "e\"\"vil",
    "ev\\il",
    "\"evil\"",
    "'evil'",
    "$'evil'",
    "$\"evil\"",
    "e{v,}il",
    "{evil,}",
    "ev?l",
    "e\\\nvil",
    "\\evil",
    "X=evil; $X",
    "X=evil; \"$X\"",
    "X=evil; ${X}",
    "X=ev; ${X}il",
    "alias a=evil\na",
    "shopt -s expand_aliases\nalias a=evil\na",
    "hash -p $PWD/../bin/evil a; a",
    "PATH=. evil",
    "set -- evil; \"$@\"",
    "set evil; $1",
    "read x <<< evil; $x",
    "printf -v x evil; $x",
    "echo evil > f; . ./f",
    "echo evil > f; source ./f",
    "echo evil > f; sh < f",
    "alpha;;evil",
    "alpha & & evil",
    "alpha\r\nevil",
    "alpha\tevil",
    "\tevil",
    " evil",
    ";evil",
    "evil;",
    "#x\nevil",
    "alpha `# comment`; evil",
    "alpha $(# x\nevil)",
    "alpha \"$(echo \"$(evil)\")\"",
    "alpha \"`echo \\`evil\\``\"",
    "alpha $(cat <<E\n$(evil)\nE\n)",
    "alpha $(case x in x) evil;; esac)",
    "alpha $( (evil) )",
    "alpha $((evil))",
    "alpha ${x:=$(evil)}",
    "X='$(evil)'; eval echo $X",
    "X='a[$(evil)]'; echo $((X))",
    "X='a[$(evil)]'; [[ $X -eq 1 ]]",
    "X='$(evil)'; echo ${X@P}",
    "X='a[$(evil)]'; test -v \"$X\"",
    "X='a[$(evil)]'; echo ${!X}",
    "a[$(evil)]=1",
    "echo {a,$(evil)}",
    "echo *$(evil)*",
    "echo [$(evil)]",
    "echo ~$(evil)",
    "alpha --x=$(evil)",
    "alpha --x=`evil`",
    "alpha -- $(evil)",
    "alpha '$(' evil ')'",
    "alpha \"$(\" evil \")\"",
    "[ -f x ] || evil",
    "[[ -f x ]] || evil",
    "true && { alpha; evil; }",
    "{ alpha; } | { evil; }",
    "( alpha ) & ( evil ) & wait",
    "while read x; do evil; done <<< a",
    "while :; do evil; break; done | cat",
    "echo a | while read x; do evil; done",
    "if ! evil; then :; fi",
    "if [ -n \"$(evil)\" ]; then :; fi",
    "cat << 'E' | sh\nevil\nE",
    "cat <<E | cat\n`evil`\nE",
    "alpha <<E\n${x:-$(evil)}\nE",
    "alpha <<E\n$((1+$(evil)))\nE",
    "BASH_ENV=f bash -c alpha",
    "ENV=f sh -c alpha",
    "alpha 3< <(evil)",
    "exec 3< <(evil)",
    "exec 3<> x; evil",
    "{ evil; } 2>/dev/null >&2",
    "alpha &> x evil",
    "env &>x evil",
    "env &>>x evil",
    "X=evil; command $X",
    "command \"$(echo evil)\"",
    "trap -- 'evil' EXIT",
    "jobs -x evil",
    ": & wait -p 'a[$(evil)]' -n",
    "printf $'-v' 'a[$(evil)]' x",
    "test $'-v' 'a[$(evil)]'",
    "PS4='$(evil)'; set -x; :",
    "find . -maxdepth 0 $'-exec' evil \\;",
    "find . -maxdepth 0 -exec alpha $';' -exec evil \\;",
    "echo x | xargs --replace evil alpha",
    "echo x | xargs --max-lines evil alpha",
    "/usr/bin/../bin/find . -maxdepth 0 -exec evil \\;",
    "/usr/bin//env evil",
    "bash +c evil",
];
