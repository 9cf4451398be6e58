#![allow(clippy::disallowed_methods, reason = "tests make the files that the module reads")]

use std::error::Error as _;
use std::fs;

use super::*;

/// A project folder, perhaps with a configuration.
struct Project(tempfile::TempDir);

impl Project {
    fn new(file: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if !file.is_empty() {
            fs::write(folder.path().join(FILE_NAME), file).unwrap();
        }
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn load(&self, variables: &[(&str, &str)]) -> Result<Config, Error> {
        self.load_with(variables, &Flags::default())
    }

    fn load_with(&self, variables: &[(&str, &str)], flags: &Flags) -> Result<Config, Error> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::load(Search::Upward(&self.path()), &self.path(), variables, flags)
    }

    /// What is wrong, with `$P` for the project's folder.
    fn error(&self, variables: &[(&str, &str)]) -> String {
        let error = self.load(variables).unwrap_err();
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{error}{cause}").replace(&*self.path().to_string_lossy(), "$P")
    }
}

fn error(file: &str) -> String {
    Project::new(file).error(&[])
}

#[test]
fn without_file_variables_and_flags_every_key_has_its_documented_default() {
    let config = Project::new("").load(&[("PATH", "/bin")]).unwrap();
    let entries: Vec<String> = config
        .entries()
        .iter()
        .map(|entry| format!("{} = {} ({})", entry.key, entry.value, entry.source))
        .collect();
    insta::assert_snapshot!(entries.join("\n"), @r#"
    roots = [] (default)
    toolsets = "full" (default)
    results = "auto" (default)
    limits.call_timeout_ms = 120000 (default)
    limits.max_timeout_ms = 600000 (default)
    limits.max_concurrent_calls = 64 (default)
    limits.max_output_bytes = 4194304 (default)
    commands.environment = "inherit" (default)
    redaction.enabled = true (default)
    redaction.environment_values = true (default)
    redaction.variables = [] (default)
    "#);
    assert_eq!(config.file, None);
    assert!(config.warnings.is_empty());
}

#[test]
fn the_file_is_found_upward_and_every_key_of_it_is_read() {
    let project = Project::new(
        r#"
roots = ["src", "./docs/../tests"]
toolsets = ["filesystem", "git"]
results = "text"
[limits]
call_timeout_ms = 1_000
max_timeout_ms = 0x1000
max_concurrent_calls = 2
max_output_bytes = 5000
[commands]
environment = "minimal"
[redaction]
enabled = true
environment_values = true
variables = ["MY_ID"]
"#,
    );
    let below = project.path().join("a/b");
    fs::create_dir_all(&below).unwrap();
    let config = Config::load(Search::Upward(&below), &below, [], &Flags::default()).unwrap();
    let entries: Vec<String> = config
        .entries()
        .iter()
        .map(|entry| format!("{} = {} ({})", entry.key, entry.value, entry.source))
        .collect();
    let shown = entries.join("\n").replace(&*project.path().to_string_lossy(), "$P");
    insta::assert_snapshot!(shown, @r#"
    roots = ["$P/src", "$P/tests"] ($P/coretools.toml:2)
    toolsets = ["filesystem", "git"] ($P/coretools.toml:3)
    results = "text" ($P/coretools.toml:4)
    limits.call_timeout_ms = 1000 ($P/coretools.toml:6)
    limits.max_timeout_ms = 4096 ($P/coretools.toml:7)
    limits.max_concurrent_calls = 2 ($P/coretools.toml:8)
    limits.max_output_bytes = 5000 ($P/coretools.toml:9)
    commands.environment = "minimal" ($P/coretools.toml:11)
    redaction.enabled = true ($P/coretools.toml:13)
    redaction.environment_values = true ($P/coretools.toml:14)
    redaction.variables = ["MY_ID"] ($P/coretools.toml:15)
    "#);
    assert_eq!(config.file, Some(project.path().join(FILE_NAME)));
}

#[test]
fn the_example_in_the_documentation_is_the_defaults() {
    let docs = include_str!("mod.rs");
    let example: String = docs
        .lines()
        .skip_while(|line| *line != "//! ```toml")
        .skip(1)
        .take_while(|line| *line != "//! ```")
        .map(|line| format!("{}\n", line.trim_start_matches("//!").trim_start()))
        .collect();
    let project = Project::new(&example);
    let written = project.load(&[]).unwrap();
    for (entry, default) in written.entries().iter().zip(Config::default().entries()) {
        if entry.key == "roots" {
            assert_eq!(*written.roots, [project.path()]);
        } else {
            assert_eq!((entry.key, &entry.value), (default.key, &default.value));
        }
        assert!(matches!(entry.source, Source::File { .. }), "{} is not in the example", entry.key);
    }
}

#[test]
fn a_flag_beats_a_variable_and_a_variable_beats_the_file() {
    let project = Project::new(
        "toolsets = \"edit\"\nresults = \"text\"\nroots = [\"file\"]\n[commands]\nenvironment = \"minimal\"\n",
    );
    let variables = [
        ("CORETOOLS_TOOLSETS", "git, ci"),
        ("CORETOOLS_COMMANDS_ENVIRONMENT", "inherit"),
        ("CORETOOLS_ROOTS", "variable:/absolute"),
        ("CORETOOLS_LIMITS_MAX_CONCURRENT_CALLS", "3"),
    ];
    let flags = Flags { roots: vec!["flag".into()], toolsets: Some("minimal".into()), results: None };
    let config = project.load(&variables).unwrap();
    assert_eq!(*config.toolsets, Toolsets::Chosen(vec!["git".into(), "ci".into()]));
    assert_eq!(config.toolsets.source, Source::Variable("CORETOOLS_TOOLSETS".into()));
    assert_eq!(*config.commands.environment, EnvironmentMode::Inherit);
    assert_eq!(*config.limits.max_concurrent_calls, 3);
    assert_eq!(*config.roots, [project.path().join("variable"), "/absolute".into()]);
    assert_eq!(*config.results, Results::Text);

    let config = project.load_with(&variables, &flags).unwrap();
    assert_eq!(*config.toolsets, Toolsets::Preset(Preset::Minimal));
    assert_eq!(config.toolsets.source, Source::Flag("--toolsets"));
    assert_eq!(*config.roots, [project.path().join("flag")]);
}

#[test]
fn the_base_path_of_the_older_tools_is_a_root_unless_roots_are_given() {
    let project = Project::new("");
    let old = ("FILESYSTEM_TOOLS_BASE_PATH", "/old");
    assert_eq!(*project.load(&[old]).unwrap().roots, [PathBuf::from("/old")]);
    assert_eq!(*project.load(&[old, ("CORETOOLS_ROOTS", "/new")]).unwrap().roots, [PathBuf::from("/new")]);
}

#[test]
fn an_unknown_key_is_an_error_with_its_place_and_the_nearest_key() {
    insta::assert_snapshot!(error("tool_sets = \"full\"\n"), @"$P/coretools.toml:1:1: there is no key `tool_sets`; did you mean `toolsets`?");
    insta::assert_snapshot!(error("[limits]\n\n  call_timout_ms = 5\n"), @"$P/coretools.toml:3:3: there is no key `limits.call_timout_ms`; did you mean `call_timeout_ms`?");
    insta::assert_snapshot!(error("# a line\n[limit]\ncall_timeout_ms = 5\n"), @"$P/coretools.toml:2:2: there is no key `limit`; did you mean `limits`?");
    insta::assert_snapshot!(error("limits = { timeout = 1 }\n"), @"$P/coretools.toml:1:12: there is no key `limits.timeout`; did you mean `call_timeout_ms`?");
    insta::assert_snapshot!(error("environment = \"minimal\"\n"), @"$P/coretools.toml:1:1: there is no key `environment`; did you mean `commands.environment`?");
    insta::assert_snapshot!(error("[redaction]\ncolour = true\n"), @"$P/coretools.toml:2:1: there is no key `redaction.colour`; the keys here are enabled, environment_values, variables");
    insta::assert_snapshot!(error("[extra]\nkey = true\n"), @"$P/coretools.toml:1:2: there is no key `extra`; the keys here are roots, toolsets, results, limits, commands, redaction");
    insta::assert_snapshot!(error("\"ключ\" = 1\nx = 2\n"), @"$P/coretools.toml:1:1: there is no key `ключ`; the keys here are roots, toolsets, results, limits, commands, redaction");
}

#[test]
fn a_value_of_the_wrong_type_or_size_says_what_was_expected() {
    insta::assert_snapshot!(error("roots = \"src\"\n"), @r#"$P/coretools.toml:1:9: `roots` must be a list of folders, not the text "src""#);
    insta::assert_snapshot!(error("roots = [1]\n"), @"$P/coretools.toml:1:9: `roots` must be a list of folders, not a list that holds the number 1");
    insta::assert_snapshot!(error("toolsets = \"all\"\n"), @r#"$P/coretools.toml:1:12: `toolsets` must be "full" or "edit" or "minimal" or a list of toolsets, not the text "all""#);
    insta::assert_snapshot!(error("results = true\n"), @r#"$P/coretools.toml:1:11: `results` must be "auto" or "text", not true"#);
    insta::assert_snapshot!(error("limits = 3\n"), @"$P/coretools.toml:1:10: `limits` must be a table, not the number 3");
    insta::assert_snapshot!(error("[limits]\ncall_timeout_ms = \"2m\"\n"), @r#"$P/coretools.toml:2:19: `limits.call_timeout_ms` must be a whole number of milliseconds from 1 to 86400000, not the text "2m""#);
    insta::assert_snapshot!(error("[limits]\ncall_timeout_ms = -1\n"), @"$P/coretools.toml:2:19: `limits.call_timeout_ms` must be a whole number of milliseconds from 1 to 86400000, not the number -1");
    insta::assert_snapshot!(error("[limits]\nmax_concurrent_calls = 0\n"), @"$P/coretools.toml:2:24: `limits.max_concurrent_calls` must be a whole number from 1 to 4096, not the number 0");
    insta::assert_snapshot!(error("[redaction]\nenabled = \"no\"\nvariables = 3\n"), @r#"$P/coretools.toml:2:11: `redaction.enabled` must be true or false, not the text "no""#);
    insta::assert_snapshot!(error("[commands]\nenvironment = \"empty\"\n"), @r#"$P/coretools.toml:2:15: `commands.environment` must be "inherit" or "minimal", not the text "empty""#);
    insta::assert_snapshot!(error("[limits]\ncall_timeout_ms = 700000\n"), @"`limits.call_timeout_ms` is 700000 ($P/coretools.toml:2), but `limits.max_timeout_ms` is 600000 (default): the first must not be larger");
    insta::assert_snapshot!(Project::new("").error(&[("CORETOOLS_REDACTION_ENABLED", "maybe")]), @r#"environment variable CORETOOLS_REDACTION_ENABLED: `redaction.enabled` must be true or false, not "maybe""#);
    let flags = Flags { results: Some("json".into()), ..Flags::default() };
    insta::assert_snapshot!(Project::new("").load_with(&[], &flags).unwrap_err(), @r#"--results: `results` must be "auto" or "text", not "json""#);
}

#[test]
fn what_is_no_toml_is_an_error_with_its_place() {
    insta::assert_snapshot!(error("roots = [\n\"a\"\n"), @"$P/coretools.toml:2:4: unclosed array, expected `]`");
    insta::assert_snapshot!(error("a = 1\nresults = auto\n"), @"$P/coretools.toml:2:11: string values must be quoted, expected literal string");
    insta::assert_snapshot!(error("results = \"text\"\nresults = \"auto\"\n"), @"$P/coretools.toml:2:1: duplicate key");
}

#[test]
fn a_file_that_was_found_may_not_open_folders_outside_its_own() {
    for roots in ["[\"/\"]", "[\"..\"]", "[\"a\", \"a/../../b\"]"] {
        let project = Project::new(&format!("roots = {roots}\n"));
        assert!(matches!(project.load(&[]), Err(Error::RootOutside { .. })), "{roots}");
        // The operator may.
        let file = project.path().join(FILE_NAME);
        Config::load(Search::File(&file), &project.path(), [], &Flags::default()).unwrap();
    }
    insta::assert_snapshot!(error("\nroots = [\"..\"]\n"), @"$P/coretools.toml:2:9: the root .. lies outside the folder of this file; a file that was found may only name folders beneath its own. To allow it, name the file with --config, or the folder with --root");
}

#[cfg(unix)]
#[test]
fn a_file_that_was_found_may_not_open_folders_outside_through_a_link() {
    let project = Project::new("roots = [\"link\"]\n");
    std::os::unix::fs::symlink("/", project.path().join("link")).unwrap();
    assert!(matches!(project.load(&[]), Err(Error::RootOutside { .. })));
}

#[test]
fn a_named_file_must_exist_be_a_file_and_be_of_sensible_size() {
    let project = Project::new("");
    let load = |path: &Path| Config::load(Search::File(path), &project.path(), [], &Flags::default());
    let shown = |path: &Path| {
        let error = load(path).unwrap_err();
        format!("{error}: {}", error.source().unwrap()).replace(&*project.path().to_string_lossy(), "$P")
    };
    insta::assert_snapshot!(shown(&project.path().join("none.toml")), @"cannot read the configuration $P/none.toml: No such file or directory (os error 2)");
    insta::assert_snapshot!(shown(&project.path()), @"cannot read the configuration $P: it is not a file");
    let large = project.path().join("large.toml");
    fs::write(&large, "#".repeat((1 << 20) + 1)).unwrap();
    insta::assert_snapshot!(shown(&large), @"cannot read the configuration $P/large.toml: it is larger than 1 MiB");
}

#[test]
fn a_variable_with_our_prefix_that_names_no_key_is_a_warning() {
    let config = Project::new("")
        .load(&[("CORETOOLS_TOOLSET", "edit"), ("CORETOOLS_CONFIG", "x"), ("CORETOOLS_ZZZ", "")])
        .unwrap();
    insta::assert_snapshot!(config.warnings.join("\n"), @r"
    environment variable CORETOOLS_TOOLSET names no key of coretools.toml; did you mean CORETOOLS_TOOLSETS?
    environment variable CORETOOLS_ZZZ names no key of coretools.toml
    ");
}

#[test]
fn a_file_that_was_found_cannot_turn_redaction_off_and_one_that_was_named_can() {
    insta::assert_snapshot!(error("[redaction]\nenabled = false\n"), @"$P/coretools.toml:2:11: `redaction.enabled` must be true in a file that was not named with --config, not false");
    let project = Project::new("[redaction]\nenabled = false\n");
    let file = project.path().join(FILE_NAME);
    let config = Config::load(Search::File(&file), &project.path(), [], &Flags::default()).unwrap();
    assert!(!*config.redaction.enabled);
}
