//! Scenarios 60 to 69: programs that do not start, and the exact reasons.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use process_runner::{Command, Error, Limits, SpawnError, SpawnErrorKind};

use crate::harness::{ScenarioCase, assert_exited, descriptors, outcome};

async fn refused(command: Command) -> SpawnError {
    match command.run().await {
        Err(Error::Spawn(error)) => error,
        other => panic!("it should not start: {other:?}"),
    }
}

/// Creates a file in the scenario's folder with this mode.
fn file(case: &ScenarioCase, name: &str, mode: u32, content: &str) -> PathBuf {
    let path = case.dir().join(name);
    std::fs::write(&path, content).expect("writes");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("it is ours");
    path
}

pub(crate) async fn s60_a_missing_program_is_not_found_and_the_folders_are_named(case: ScenarioCase) {
    std::fs::create_dir(case.dir().join("bin")).expect("a new folder");
    file(&case, "bin/programme", 0o755, "#!/bin/sh\n");
    file(&case, "here", 0o755, "#!/bin/sh\n");
    let path = format!("{}:/nonexistent", case.dir().join("bin").display());
    let error = refused(case.program("programm", &[]).env("PATH", &path)).await;
    let searched = vec![case.dir().join("bin"), "/nonexistent".into()];
    let did_you_mean = Some("programme".to_owned());
    assert_eq!(error.kind, SpawnErrorKind::NotFound { searched, did_you_mean });
    assert!(Error::from(error).hint().expect("one").contains("programme"));

    // The child's PATH counts, and its folder does not.
    assert_exited(&outcome(case.program("programme", &[]).env("PATH", &path)).await, 0);
    for dots in [path.as_str(), "", ".", ":", "bin:."] {
        let error = refused(case.program("here", &[]).env("PATH", dots)).await;
        assert!(matches!(error.kind, SpawnErrorKind::NotFound { .. }), "{dots}: {error}");
    }
    let error = refused(case.program("/nonexistent/program", &[])).await;
    assert_eq!(error.kind, SpawnErrorKind::NotFound { searched: vec![], did_you_mean: None });
}

pub(crate) async fn s61_a_file_without_permission_and_a_folder_are_told_apart(case: ScenarioCase) {
    let plain = file(&case, "plain", 0o644, "#!/bin/sh\n");
    let error = refused(case.program("./plain", &[])).await;
    let SpawnErrorKind::NotExecutable { path } = error.kind else { panic!("{error:?}") };
    assert_eq!(path.file_name(), plain.file_name());
    std::fs::create_dir(case.dir().join("folder")).expect("a new folder");
    let error = refused(case.program("./folder", &[])).await;
    assert!(matches!(error.kind, SpawnErrorKind::IsDirectory { .. }), "{error:?}");
}

pub(crate) async fn s62_a_missing_interpreter_is_named(case: ScenarioCase) {
    file(&case, "script", 0o755, "#!/nonexistent/interpreter -x\necho\n");
    let error = refused(case.program("./script", &[])).await;
    assert_eq!(error.kind, SpawnErrorKind::BadInterpreter { path: "/nonexistent/interpreter".into() });
    // A line end of another system is part of the name for the kernel.
    file(&case, "crlf", 0o755, "#!/bin/sh\r\necho\n");
    let error = refused(case.program("./crlf", &[])).await;
    assert!(matches!(error.kind, SpawnErrorKind::BadInterpreter { .. }), "{error:?}");
    symlink("/nonexistent/target", case.dir().join("dangling")).expect("links");
    let error = refused(case.program("./dangling", &[])).await;
    assert!(matches!(error.kind, SpawnErrorKind::NotFound { .. }), "{error:?}");
}

pub(crate) async fn s63_the_folder_is_the_culprit_if_it_is(case: ScenarioCase) {
    file(&case, "file", 0o644, "");
    for (folder, kind) in [
        (case.dir().join("missing"), SpawnErrorKind::CwdNotFound),
        (case.dir().join("file"), SpawnErrorKind::CwdNotDirectory),
        (case.dir().join("file/below"), SpawnErrorKind::CwdNotDirectory),
    ] {
        assert_eq!(refused(Command::new("true", &folder)).await.kind, kind, "{}", folder.display());
        assert_eq!(refused(Command::new("/bin/true", &folder)).await.kind, kind, "{}", folder.display());
    }
    // Nothing is closed to root.
    if !rustix::process::getuid().is_root() {
        let closed = case.dir().join("closed");
        std::fs::create_dir(&closed).expect("a new folder");
        std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o000)).expect("it is ours");
        assert_eq!(refused(Command::new("true", &closed)).await.kind, SpawnErrorKind::CwdDenied);
        std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).expect("it is ours");
    }
}

pub(crate) async fn s64_a_file_of_no_known_format_is_not_given_to_a_shell(case: ScenarioCase) {
    file(&case, "bare", 0o755, "touch ran\n");
    file(&case, "empty", 0o755, "");
    for name in ["./bare", "./empty"] {
        let error = refused(case.program(name, &[])).await;
        assert_eq!(error.kind, SpawnErrorKind::NotRunnable, "{name}");
    }
    assert!(!case.dir().join("ran").exists());
}

pub(crate) async fn s65_a_nul_byte_is_found_before_anything_is_opened(case: ScenarioCase) {
    let before = descriptors().len();
    for (command, named) in [
        (Command::new("tr\0ue", "/"), "program"),
        (Command::new("true", "/tm\0p"), "folder"),
        (case.program("true", &["a", "b\0"]), "argument 2"),
        (case.program("true", &[]).env("K\0EY", "v"), "variable"),
        (case.program("true", &[]).env("KEY", "secret\0"), "KEY"),
    ] {
        let error = refused(command).await;
        let SpawnErrorKind::InvalidInput { part, .. } = &error.kind else { panic!("{error:?}") };
        assert!(part.contains(named) && !error.to_string().contains("secret"), "{error}");
    }
    assert_eq!(descriptors().len(), before);
}

pub(crate) async fn s66_a_bad_variable_name_is_refused(case: ScenarioCase) {
    for key in ["A=B", "", "="] {
        let error = refused(case.program("true", &[]).env(key, "c")).await;
        assert_eq!(error.kind, SpawnErrorKind::InvalidEnv { key: key.into() });
    }
}

pub(crate) async fn s67_an_argument_that_is_too_long_is_named(case: ScenarioCase) {
    // MAX_ARG_STRLEN with its NUL (execve(2)).
    let longest = "x".repeat(131_071);
    assert_exited(&outcome(case.program("true", &["a", &longest])).await, 0);
    let error = refused(case.program("true", &["a", &format!("{longest}x")])).await;
    assert_eq!(error.kind, SpawnErrorKind::ArgTooLong { index: 2, length: 131_072, limit: 131_071 });
    let many = vec!["y".repeat(100_000); 100];
    let error = refused(case.program("true", &[]).args(many)).await;
    let SpawnErrorKind::ArgsTooLong { length } = error.kind else { panic!("{error:?}") };
    assert!(length > 10_000_000);
}

pub(crate) async fn s68_a_program_that_is_being_written_is_tried_again(case: ScenarioCase) {
    let binary = case.dir().join("binary");
    std::fs::copy("/bin/true", &binary).expect("copies");
    let script = file(&case, "script", 0o755, "#!/bin/sh\nexit 0\n");
    for path in [&binary, &script] {
        let open = || std::fs::OpenOptions::new().append(true).open(path).expect("it is ours");
        let writer = open();
        let start_time = Instant::now();
        let (run, ()) = tokio::join!(case.program(as_text(path), &[]).run(), async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            drop(writer);
        });
        assert_exited(&run.expect("it is tried again"), 0);
        assert!(start_time.elapsed() >= Duration::from_millis(200), "the file was not busy");

        let writer = open();
        let limits = Limits::default().busy_retry(Duration::from_millis(300));
        let start_time = Instant::now();
        let error = refused(case.program(as_text(path), &[]).limits(limits)).await;
        assert_eq!(error.kind, SpawnErrorKind::Busy);
        assert!(start_time.elapsed() >= Duration::from_millis(300));
        drop(writer);
    }
}

pub(crate) async fn s69_a_relative_program_is_relative_to_the_folder(case: ScenarioCase) {
    std::fs::create_dir_all(case.dir().join("folder/bin")).expect("new folders");
    file(&case, "folder/bin/tool", 0o755, "#!/bin/sh\npwd\n");
    for name in ["bin/tool", "./bin/tool", "../folder/bin/tool"] {
        let output = outcome(Command::new(name, case.dir().join("folder"))).await;
        let folder = case.dir().join("folder").canonicalize().expect("it is there");
        assert_eq!(Path::new(output.stdout.text().trim()), folder, "{name}");
    }
    let error = refused(Command::new("bin/tool", case.dir())).await;
    assert!(matches!(error.kind, SpawnErrorKind::NotFound { .. }), "{error:?}");
}

fn as_text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}
