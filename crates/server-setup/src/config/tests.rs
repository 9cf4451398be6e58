#![allow(clippy::disallowed_methods, reason = "tests make the files that the module reads")]

use std::error::Error as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// A project folder, perhaps with a configuration.
struct ConfiguredProject(tempfile::TempDir);

impl ConfiguredProject {
    fn new(file: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if !file.is_empty() {
            let path = folder.path().join(FILE_NAME);
            fs::write(&path, file).unwrap();
            // Whatever this user's umask is.
            #[cfg(unix)]
            set_mode(&path, 0o644);
        }
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn load(&self, variables: &[(&str, &str)]) -> Result<Config, Error> {
        self.load_with(variables, &SettingFlags::default())
    }

    fn load_with(&self, variables: &[(&str, &str)], flags: &SettingFlags) -> Result<Config, Error> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::load(&self.path(), variables, flags)
    }

    /// The message of the error, with `$P` for the project's folder.
    fn error(&self, variables: &[(&str, &str)]) -> String {
        let error = self.load(variables).unwrap_err();
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{error}{cause}").replace(&*self.path().to_string_lossy(), "$P")
    }
}

/// Flags that name `file`.
fn naming(file: &Path) -> SettingFlags {
    SettingFlags { config: Some(file.to_owned()), ..SettingFlags::default() }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn error(file: &str) -> String {
    ConfiguredProject::new(file).error(&[])
}

#[test]
fn without_file_variables_and_flags_every_key_has_its_documented_default() {
    let config = ConfiguredProject::new("").load(&[("PATH", "/bin")]).unwrap();
    let entries: Vec<String> = config
        .entries()
        .iter()
        .filter(|entry| !entry.key.starts_with("http."))
        .map(|entry| format!("{} = {} ({})", entry.key, entry.value, entry.source))
        .collect();
    insta::assert_snapshot!(entries.join("\n"), @r#"
    roots = [] (default)
    toolsets = "standard" (default)
    results = "auto" (default)
    limits.call_timeout_ms = 120000 (default)
    limits.max_timeout_ms = 600000 (default)
    limits.max_concurrent_calls = 64 (default)
    limits.max_output_bytes = 4194304 (default)
    commands.environment = "auto" (default)
    commands.variables = [] (default)
    context.catalogue = "" (default)
    logs.sources = [] (default)
    databases.connections = [not shown] (default)
    inspect.target = "" (default)
    inspect.allow_signals = false (default)
    traces.folder = "" (default)
    redaction.enabled = true (default)
    redaction.environment_values = true (default)
    redaction.variables = [] (default)
    policy.file = "" (default)
    policy.marker_key = "" (default)
    policy.audit = "" (default)
    policy.audit_level = "auto" (default)
    policy.audit_when_full = "count" (default)
    policy.confinement = "auto" (default)
    policy.confinement_level = "namespaces" (default)
    policy.network = "allow" (default)
    policy.approvers = "auto" (default)
    policy.approval_timeout_ms = 300000 (default)
    sessions.state_dir = "" (default)
    sessions.agents = "" (default)
    sessions.command = [] (default)
    sessions.watch = [] (default)
    sessions.max_sessions = 256 (default)
    sessions.max_per_caller = 16 (default)
    sessions.resume_after_limit = true (default)
    sessions.renew_context = true (default)
    sessions.restart_after_crash = true (default)
    sessions.backoff_base_ms = 30000 (default)
    sessions.backoff_cap_ms = 300000 (default)
    sessions.max_attempts = 5 (default)
    sessions.log_bytes = 10485760 (default)
    sessions.manual_restart_s = 300 (default)
    "#);
    assert_eq!(config.file, None);
    assert!(config.warnings.is_empty());
}

#[test]
fn every_key_of_http_has_its_documented_default() {
    let config = ConfiguredProject::new("").load(&[]).unwrap();
    let entries = config.entries();
    let entries = entries.iter().filter(|entry| entry.key.starts_with("http."));
    let entries: Vec<String> = entries.map(|entry| format!("{} = {}", entry.key, entry.value)).collect();
    insta::assert_snapshot!(entries.join("\n"), @r#"
    http.listen = ["127.0.0.1:8717"]
    http.behind_proxy = []
    http.hosts = []
    http.origins = []
    http.tls_certificate = ""
    http.tls_key = ""
    http.tokens = ""
    http.anonymous_role = ""
    http.peers = []
    http.metrics_listen = ""
    http.max_body_bytes = 4194304
    http.max_connections = 4096
    http.header_timeout_ms = 30000
    http.body_timeout_ms = 30000
    http.drain_ms = 10000
    http.max_sessions = 1024
    http.session_idle_ms = 1800000
    http.calls_per_second = 100
    http.calls_in_flight = 16
    http.queue = 64
    http.queue_ms = 10000
    http.bytes_per_minute = 1073741824
    http.processes = 16
    http.max_queue = 1024
    http.max_bytes_per_second = 268435456
    http.max_processes = 256
    http.reserved_calls = 16
    http.token_usage = ""
    http.audit_database = [not shown]
    http.lease_database = false
    http.lease_silence_ms = 30000
    http.public_url = ""
    http.jwt_issuer = ""
    http.jwt_audience = ""
    http.jwt_keys = ""
    http.jwt_algorithms = ["RS256", "ES256", "EdDSA"]
    http.jwt_roles = []
    http.jwt_remotes = []
    http.jwt_scope = ""
    "#);
}

#[test]
fn a_key_of_http_that_there_is_not_is_named_with_the_nearest_and_none_takes_a_value_of_another_kind() {
    let given = |text: &str| {
        let project = ConfiguredProject::new("");
        let file = project.path().join("given.toml");
        fs::write(&file, text).unwrap();
        #[cfg(unix)]
        set_mode(&file, 0o644);
        project.load_with(&[], &naming(&file)).map_err(|error| error.to_string())
    };
    for (wrong, meant) in [
        ("procesess = 3", "processes"),
        ("max_proceses = 3", "max_processes"),
        ("tls_certificat = \"x\"", "tls_certificate"),
        ("jwt_role = []", "jwt_roles"),
        ("Listen = []", "listen"),
    ] {
        let error = given(&format!("[http]\n{wrong}\n")).unwrap_err();
        let key = wrong.split(' ').next().unwrap();
        assert!(error.contains(key) && error.contains(meant) && error.contains(":2"), "{wrong}: {error}");
    }
    assert!(given("[http]\n[http.limits]\n").is_err());
    assert!(given("[htttp]\n").unwrap_err().contains("http"));
    for key in keys::KEYS.iter().filter_map(|key| key.strip_prefix("http.")) {
        for value in ["true", "1.5", "{}", "1979-05-27", "[1]", "-1"] {
            if (key, value) == ("lease_database", "true") {
                continue;
            }
            assert!(given(&format!("[http]\n{key} = {value}\n")).is_err(), "{key} = {value}");
        }
    }
    // A password is not shown.
    let error = given("[http]\naudit_database = [\"postgres://me:secret@host\"]\n").unwrap_err();
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn the_file_is_found_upward_and_every_key_of_it_is_read() {
    let project = ConfiguredProject::new(
        r#"
roots = ["a/b/src", "./a/b/docs/../tests"]
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
[policy]
confinement = "required"
confinement_level = "strict"
network = false
[logs]
sources = ["api=logs/*.log"]
"#,
    );
    let below = project.path().join("a/b");
    fs::create_dir_all(&below).unwrap();
    let config = Config::load(&below, [], &SettingFlags::default()).unwrap();
    let entries: Vec<String> = config
        .entries()
        .iter()
        .filter(|entry| !entry.key.starts_with("http."))
        .map(|entry| format!("{} = {} ({})", entry.key, entry.value, entry.source))
        .collect();
    let shown = entries.join("\n").replace(&*project.path().to_string_lossy(), "$P");
    insta::assert_snapshot!(shown, @r#"
    roots = ["$P/a/b/src", "$P/a/b/tests"] ($P/coretools.toml:2)
    toolsets = ["filesystem", "git"] ($P/coretools.toml:3)
    results = "text" ($P/coretools.toml:4)
    limits.call_timeout_ms = 1000 ($P/coretools.toml:6)
    limits.max_timeout_ms = 4096 ($P/coretools.toml:7)
    limits.max_concurrent_calls = 2 ($P/coretools.toml:8)
    limits.max_output_bytes = 5000 ($P/coretools.toml:9)
    commands.environment = "minimal" ($P/coretools.toml:11)
    commands.variables = [] (default)
    context.catalogue = "" (default)
    logs.sources = ["api=logs/*.log"] ($P/coretools.toml:21)
    databases.connections = [not shown] (default)
    inspect.target = "" (default)
    inspect.allow_signals = false (default)
    traces.folder = "" (default)
    redaction.enabled = true ($P/coretools.toml:13)
    redaction.environment_values = true ($P/coretools.toml:14)
    redaction.variables = ["MY_ID"] ($P/coretools.toml:15)
    policy.file = "" (default)
    policy.marker_key = "" (default)
    policy.audit = "" (default)
    policy.audit_level = "auto" (default)
    policy.audit_when_full = "count" (default)
    policy.confinement = "required" ($P/coretools.toml:17)
    policy.confinement_level = "strict" ($P/coretools.toml:18)
    policy.network = "none" ($P/coretools.toml:19)
    policy.approvers = "auto" (default)
    policy.approval_timeout_ms = 300000 (default)
    sessions.state_dir = "" (default)
    sessions.agents = "" (default)
    sessions.command = [] (default)
    sessions.watch = [] (default)
    sessions.max_sessions = 256 (default)
    sessions.max_per_caller = 16 (default)
    sessions.resume_after_limit = true (default)
    sessions.renew_context = true (default)
    sessions.restart_after_crash = true (default)
    sessions.backoff_base_ms = 30000 (default)
    sessions.backoff_cap_ms = 300000 (default)
    sessions.max_attempts = 5 (default)
    sessions.log_bytes = 10485760 (default)
    sessions.manual_restart_s = 300 (default)
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
    let project = ConfiguredProject::new(&example);
    // Named: one that is found brings no policy.
    let written = project.load_with(&[], &naming(&project.path().join(FILE_NAME))).unwrap();
    let example_paths = [
        "policy.file",
        "policy.marker_key",
        "policy.audit",
        "context.catalogue",
        "traces.folder",
        "sessions.state_dir",
        "sessions.agents",
    ];
    for (entry, default) in written.entries().iter().zip(Config::default().entries()) {
        // Those are told where `HttpTable` is.
        if entry.key.starts_with("http.") && entry.key != "http.listen" {
            continue;
        }
        if entry.key == "roots" {
            assert_eq!(*written.roots, [project.path()]);
        } else if example_paths.contains(&entry.key) {
            assert_eq!(default.value, "\"\"");
        } else {
            assert_eq!((entry.key, &entry.value), (default.key, &default.value));
        }
        assert!(matches!(entry.source, SettingSource::File { .. }), "{} is not in the example", entry.key);
    }
}

#[test]
fn a_flag_beats_a_variable_and_a_variable_beats_the_file() {
    let project = ConfiguredProject::new(
        "toolsets = \"edit\"\nresults = \"text\"\nroots = [\"file\"]\n[commands]\nenvironment = \"minimal\"\n",
    );
    // The file is looked for from the first root.
    for root in ["variable", "flag"] {
        fs::create_dir(project.path().join(root)).unwrap();
    }
    let variables = [
        ("CORETOOLS_TOOLSETS", "git, ci"),
        ("CORETOOLS_COMMANDS_ENVIRONMENT", "inherit"),
        ("CORETOOLS_ROOTS", "variable:/absolute"),
        ("CORETOOLS_LIMITS_MAX_CONCURRENT_CALLS", "3"),
    ];
    let flags = SettingFlags {
        roots: vec!["flag".into()],
        toolsets: Some("minimal".into()),
        ..SettingFlags::default()
    };
    let config = project.load(&variables).unwrap();
    assert_eq!(*config.toolsets, Toolsets::Chosen(vec!["git".into(), "ci".into()]));
    assert_eq!(config.toolsets.source, SettingSource::Variable("CORETOOLS_TOOLSETS".into()));
    assert_eq!(*config.commands.environment, EnvironmentMode::Inherit);
    assert_eq!(*config.limits.max_concurrent_calls, 3);
    assert_eq!(*config.roots, [project.path().join("variable"), "/absolute".into()]);
    assert_eq!(*config.results, ResultFormat::Text);

    let config = project.load_with(&variables, &flags).unwrap();
    assert_eq!(*config.toolsets, Toolsets::Preset(ToolPreset::Minimal));
    assert_eq!(config.toolsets.source, SettingSource::Flag("--toolsets"));
    assert_eq!(*config.roots, [project.path().join("flag")]);
}

#[test]
fn the_base_path_of_the_older_tools_is_a_root_unless_roots_are_given() {
    let project = ConfiguredProject::new("");
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
    insta::assert_snapshot!(error("[extra]\nkey = true\n"), @"$P/coretools.toml:1:2: there is no key `extra`; the keys here are roots, toolsets, results, limits, commands, context, logs, databases, inspect, traces, redaction, policy, http, sessions, role");
    insta::assert_snapshot!(error("\"ключ\" = 1\nx = 2\n"), @"$P/coretools.toml:1:1: there is no key `ключ`; the keys here are roots, toolsets, results, limits, commands, context, logs, databases, inspect, traces, redaction, policy, http, sessions, role");
}

#[test]
fn a_value_of_the_wrong_type_or_size_says_what_was_expected() {
    insta::assert_snapshot!(error("roots = \"src\"\n"), @r#"$P/coretools.toml:1:9: `roots` must be a list of folders, not the text "src""#);
    insta::assert_snapshot!(error("roots = [1]\n"), @"$P/coretools.toml:1:9: `roots` must be a list of folders, not a list that holds the number 1");
    insta::assert_snapshot!(error("toolsets = \"everything\"\n"), @r#"$P/coretools.toml:1:12: `toolsets` must be "standard" or "full" or "edit" or "introspect" or "minimal" or "all" or a list of toolsets that is not empty, not the text "everything""#);
    insta::assert_snapshot!(error("results = true\n"), @r#"$P/coretools.toml:1:11: `results` must be "auto" or "text", not true"#);
    insta::assert_snapshot!(error("limits = 3\n"), @"$P/coretools.toml:1:10: `limits` must be a table, not the number 3");
    insta::assert_snapshot!(error("[limits]\ncall_timeout_ms = \"2m\"\n"), @r#"$P/coretools.toml:2:19: `limits.call_timeout_ms` must be a whole number of milliseconds from 1 to 86400000, not the text "2m""#);
    insta::assert_snapshot!(error("[limits]\ncall_timeout_ms = -1\n"), @"$P/coretools.toml:2:19: `limits.call_timeout_ms` must be a whole number of milliseconds from 1 to 86400000, not the number -1");
    insta::assert_snapshot!(error("[limits]\nmax_concurrent_calls = 0\n"), @"$P/coretools.toml:2:24: `limits.max_concurrent_calls` must be a whole number from 1 to 4096, not the number 0");
    insta::assert_snapshot!(error("[redaction]\nenabled = \"no\"\nvariables = 3\n"), @r#"$P/coretools.toml:2:11: `redaction.enabled` must be true or false, not the text "no""#);
    insta::assert_snapshot!(error("[commands]\nenvironment = \"empty\"\n"), @r#"$P/coretools.toml:2:15: `commands.environment` must be "auto" or "inherit" or "minimal", not the text "empty""#);
    insta::assert_snapshot!(error("[commands]\nenvironment = \"inherit\"\n"), @r#"$P/coretools.toml:2:15: `commands.environment` must be left out of a file that was not named with --config, not "inherit""#);
    insta::assert_snapshot!(error("[commands]\nvariables = [\"A\"]\n"), @"$P/coretools.toml:2:13: `commands.variables` must be left out of a file that was not named with --config, not variables");
    insta::assert_snapshot!(error("[limits]\ncall_timeout_ms = 2000\nmax_timeout_ms = 1000\n"), @"`limits.call_timeout_ms` is 2000 ($P/coretools.toml:2), but `limits.max_timeout_ms` is 1000 ($P/coretools.toml:3): the first must not be larger");
    insta::assert_snapshot!(ConfiguredProject::new("").error(&[("CORETOOLS_REDACTION_ENABLED", "maybe")]), @r#"environment variable CORETOOLS_REDACTION_ENABLED: `redaction.enabled` must be true or false, not "maybe""#);
    let flags = SettingFlags { results: Some("json".into()), ..SettingFlags::default() };
    insta::assert_snapshot!(ConfiguredProject::new("").load_with(&[], &flags).unwrap_err(), @r#"--results: `results` must be "auto" or "text", not "json""#);
}

#[test]
fn what_is_no_toml_is_an_error_with_its_place() {
    insta::assert_snapshot!(error("roots = [\n\"a\"\n"), @"$P/coretools.toml:2:4: unclosed array, expected `]`");
    insta::assert_snapshot!(error("a = 1\nresults = auto\n"), @"$P/coretools.toml:2:11: string values must be quoted, expected literal string");
    insta::assert_snapshot!(error("results = \"text\"\nresults = \"auto\"\n"), @"$P/coretools.toml:2:1: duplicate key");
}

#[test]
fn a_file_that_was_found_may_not_open_folders_outside_the_one_that_is_served() {
    for roots in ["[\"/\"]", "[\"..\"]", "[\"a\", \"a/../../b\"]"] {
        let project = ConfiguredProject::new(&format!("roots = {roots}\n"));
        assert!(matches!(project.load(&[]), Err(Error::RootOutside { .. })), "{roots}");
        // The operator may.
        project.load_with(&[], &naming(&project.path().join(FILE_NAME))).unwrap();
    }
    insta::assert_snapshot!(error("\nroots = [\"..\"]\n"), @"$P/coretools.toml:2:9: the root /tmp lies outside $P; a file that was found may only name folders beneath the one that is served without it. To allow it, name the file with --config, or the folder with --root");
}

#[test]
fn a_file_above_the_folder_that_is_served_cannot_open_its_own_folder_or_one_beside() {
    for (roots, fits) in [(".", false), ("beside", false), ("app", true), ("app/src", true)] {
        let project = ConfiguredProject::new(&format!("roots = [{roots:?}]\n"));
        let app = project.path().join("app");
        for folder in ["app/src", "beside"] {
            fs::create_dir_all(project.path().join(folder)).unwrap();
        }
        let found = Config::load(&app, [], &SettingFlags::default());
        assert_eq!(found.is_ok(), fits, "{roots}: {found:?}");
        // What the operator says of the roots leaves nothing of the file's.
        let flags = SettingFlags { roots: vec![app.clone()], ..SettingFlags::default() };
        assert_eq!(*Config::load(&app, [], &flags).unwrap().roots, [app], "{roots}");
    }
}

#[test]
fn the_file_is_looked_for_from_the_first_root_whoever_names_it() {
    let project = ConfiguredProject::new("results = \"text\"\n");
    let elsewhere = tempfile::tempdir().unwrap();
    let root = project.path().to_string_lossy().into_owned();
    let file = Some(project.path().join(FILE_NAME));
    let load = |variables: &[(&str, &str)], flags: &SettingFlags| {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::load(elsewhere.path(), variables, flags).unwrap().file
    };
    assert_eq!(load(&[], &SettingFlags::default()), None);
    assert_eq!(load(&[("CORETOOLS_ROOTS", &root)], &SettingFlags::default()), file);
    assert_eq!(load(&[("FILESYSTEM_TOOLS_BASE_PATH", &root)], &SettingFlags::default()), file);
    let flags = SettingFlags { roots: vec![root.clone().into()], ..SettingFlags::default() };
    assert_eq!(load(&[], &flags), file);
    // A flag beats a variable here as well.
    let flags = SettingFlags { roots: vec![elsewhere.path().to_owned()], ..SettingFlags::default() };
    assert_eq!(load(&[("CORETOOLS_ROOTS", &root)], &flags), None);
}

#[test]
fn a_file_that_was_found_may_lower_limits_and_not_raise_them() {
    insta::assert_snapshot!(error("[limits]\ncall_timeout_ms = 120001\n"), @"$P/coretools.toml:2:19: `limits.call_timeout_ms` must be at most 120000, the default, in a file that was not named with --config, not 120001");
    for limit in ["max_timeout_ms = 600001", "max_concurrent_calls = 65", "max_output_bytes = 4194305"] {
        let project = ConfiguredProject::new(&format!("[limits]\n{limit}\n"));
        assert!(matches!(project.load(&[]), Err(Error::Value { .. })), "{limit}");
        project.load_with(&[], &naming(&project.path().join(FILE_NAME))).unwrap();
    }
    let lower = "[limits]\ncall_timeout_ms = 5\nmax_timeout_ms = 600000\nmax_concurrent_calls = 1\nmax_output_bytes = 1000\n";
    ConfiguredProject::new(lower).load(&[]).unwrap();
}

#[cfg(unix)]
#[test]
fn a_file_that_was_found_counts_only_if_nobody_else_can_have_written_it() {
    let project = ConfiguredProject::new("results = \"text\"\n");
    let file = project.path().join(FILE_NAME);
    for mode in [0o646, 0o666] {
        set_mode(&file, mode);
        assert!(matches!(project.load(&[]), Err(Error::Untrusted { .. })), "{mode:o}");
        assert_eq!(*project.load_with(&[], &naming(&file)).unwrap().results, ResultFormat::Text);
    }
    insta::assert_snapshot!(project.error(&[]), @"the configuration $P/coretools.toml was found and cannot be trusted; put that right, remove it, or name it with --config if it is yours: others may write to it (mode 666; `chmod go-w` ends that)");
    set_mode(&file, 0o400);
    assert_eq!(*project.load(&[]).unwrap().results, ResultFormat::Text);

    // Only root can give files away.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&file, Some(4711), None).unwrap();
        insta::assert_snapshot!(project.error(&[]), @"the configuration $P/coretools.toml was found and cannot be trusted; put that right, remove it, or name it with --config if it is yours: it belongs to user 4711, and this process runs as user 0");
    }
}

#[cfg(unix)]
#[test]
fn what_was_found_and_is_no_regular_file_is_an_error_and_never_waited_for() {
    let project = ConfiguredProject::new("");
    let file = project.path().join(FILE_NAME);
    let elsewhere = project.path().join("elsewhere");
    fs::write(&elsewhere, "").unwrap();
    set_mode(&elsewhere, 0o644);
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    insta::assert_snapshot!(project.error(&[]), @"the configuration $P/coretools.toml was found and cannot be trusted; put that right, remove it, or name it with --config if it is yours: it is a symbolic link");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    insta::assert_snapshot!(project.error(&[]), @"the configuration $P/coretools.toml was found and cannot be trusted; put that right, remove it, or name it with --config if it is yours: it is not a file");
    fs::remove_dir(&file).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo is needed");
    assert!(made.success());
    assert!(matches!(project.load(&[]), Err(Error::Untrusted { .. })));
    assert!(matches!(project.load_with(&[], &naming(&file)), Err(Error::Read { .. })));
}

#[test]
fn every_role_that_is_named_counts_wherever_it_is_named() {
    let project = ConfiguredProject::new("role = \"dev\"");
    let config = project.load(&[("CORETOOLS_ROLE", "worker")]).unwrap();
    let named: Vec<_> = config.roles.iter().map(|role| role.value.as_str()).collect();
    assert_eq!(named, ["dev", "worker"]);
    assert!(matches!(config.roles[0].source, SettingSource::File { line: 1, .. }));
    let flags = SettingFlags { role: Some("qa".to_owned()), ..SettingFlags::default() };
    let config = project.load_with(&[("CORETOOLS_ROLE", "")], &flags).unwrap();
    // An empty one is one that nobody declares, not none.
    assert_eq!(config.roles.iter().map(|role| role.value.as_str()).collect::<Vec<_>>(), ["dev", "", "qa"]);
    insta::assert_snapshot!(ConfiguredProject::new("role = 7").error(&[]), @"$P/coretools.toml:1:8: `role` must be the name of a role, not the number 7");
}

#[test]
fn a_found_file_brings_no_policy_and_takes_no_confinement_away() {
    for (text, allowed) in [
        ("[policy]\nfile = \"roles.toml\"", false),
        ("[policy]\naudit = \"a\"", false),
        ("[policy]\naudit_level = \"names\"", false),
        ("[policy]\nmarker_key = \"a\"", false),
        ("[policy]\nconfinement = \"off\"", false),
        ("[policy]\nconfinement = \"auto\"", false),
        ("[policy]\nconfinement = \"on\"", true),
        ("[policy]\nconfinement = \"required\"", true),
        ("[policy]\nconfinement_level = \"filesystem\"", false),
        ("[policy]\nconfinement_level = \"strict\"", true),
        ("[policy]\nnetwork = false", true),
        ("[policy]\nnetwork = \"none\"", true),
        ("[policy]\nnetwork = { hosts = [\"git.example.com\", \"*.packages.example:443\"] }", true),
        ("[policy]\nnetwork = { hosts = [\"https://git.example.com\"] }", false),
        ("[policy]\nnetwork = { host = [\"git.example.com\"] }", false),
        ("[policy]\nnetwork = \"some\"", false),
    ] {
        assert_eq!(ConfiguredProject::new(text).load(&[]).is_ok(), allowed, "{text}");
    }
    let project = ConfiguredProject::new("[policy]\nfile = \"sub/../roles.toml\"");
    let config = project.load_with(&[], &naming(&project.path().join(FILE_NAME))).unwrap();
    assert!(config.policy.file.as_ref().unwrap().ends_with("roles.toml"));
    assert!(!config.policy.file.as_ref().unwrap().to_string_lossy().contains(".."));
}

#[test]
fn a_found_file_says_nothing_of_sessions_and_a_named_one_may() {
    let project = ConfiguredProject::new(
        "[sessions]\ncommand = [\"claude\"]\nwatch = [\"work\"]\nstate_dir = \"state\"\n",
    );
    let refused = project.error(&[]);
    assert!(refused.contains("`sessions` must be left out of a file that was not named"), "{refused}");
    let config = project.load_with(&[], &naming(&project.path().join(FILE_NAME))).unwrap();
    assert_eq!(*config.sessions.watch, [project.path().join("work")]);
    assert_eq!(*config.sessions.state_dir, Some(project.path().join("state")));
}

#[test]
fn a_choice_of_no_toolset_is_an_error_and_not_all_of_them() {
    insta::assert_snapshot!(ConfiguredProject::new("").error(&[("CORETOOLS_TOOLSETS", "")]), @r#"environment variable CORETOOLS_TOOLSETS: `toolsets` must be "standard" or "full" or "edit" or "introspect" or "minimal" or "all" or a list of toolsets that is not empty, not """#);
    insta::assert_snapshot!(error("toolsets = []\n"), @r#"$P/coretools.toml:1:12: `toolsets` must be "standard" or "full" or "edit" or "introspect" or "minimal" or "all" or a list of toolsets that is not empty, not an empty list"#);
    for text in ["", " ", " , ", ",,"] {
        let flags = SettingFlags { toolsets: Some(text.to_owned()), ..SettingFlags::default() };
        assert!(
            matches!(ConfiguredProject::new("").load_with(&[], &flags), Err(Error::Value { .. })),
            "{text:?}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_was_found_may_not_open_folders_outside_through_a_link() {
    let project = ConfiguredProject::new("roots = [\"link\"]\n");
    std::os::unix::fs::symlink("/", project.path().join("link")).unwrap();
    assert!(matches!(project.load(&[]), Err(Error::RootOutside { .. })));
}

#[test]
fn a_named_file_must_exist_be_a_file_and_be_of_sensible_size() {
    let project = ConfiguredProject::new("");
    let load = |path: &Path| project.load_with(&[], &naming(path));
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
    let config = ConfiguredProject::new("")
        .load(&[("CORETOOLS_TOOLSET", "edit"), ("CORETOOLS_CONFIG", "x"), ("CORETOOLS_STATE_DIR", "")])
        .unwrap();
    insta::assert_snapshot!(config.warnings.join("\n"), @"
    environment variable CORETOOLS_STATE_DIR names no key of coretools.toml
    environment variable CORETOOLS_TOOLSET names no key of coretools.toml; did you mean CORETOOLS_TOOLSETS?
    ");
}

#[test]
fn a_file_that_was_found_cannot_turn_redaction_off_and_one_that_was_named_can() {
    insta::assert_snapshot!(error("[redaction]\nenabled = false\n"), @"$P/coretools.toml:2:11: `redaction.enabled` must be true in a file that was not named with --config, not false");
    let project = ConfiguredProject::new("[redaction]\nenabled = false\n");
    let file = project.path().join(FILE_NAME);
    let config = project.load_with(&[], &naming(&file)).unwrap();
    assert!(!*config.redaction.enabled);
}

#[test]
fn a_lower_bound_on_time_limits_lowers_the_default_and_contradicts_only_what_was_asked_for() {
    let project = ConfiguredProject::new("");
    let most = ("CORETOOLS_LIMITS_MAX_TIMEOUT_MS", "1000");
    assert_eq!(*project.load(&[most]).unwrap().limits.call_timeout_ms, 1000);
    let asked = ("CORETOOLS_LIMITS_CALL_TIMEOUT_MS", "2000");
    assert!(matches!(project.load(&[most, asked]), Err(Error::Contradiction { .. })));
}

#[test]
fn a_found_file_has_nobody_signalled_and_names_a_file_to_look_into_and_nothing_else() {
    let config = ConfiguredProject::new("[inspect]\ntarget = \"file:state.json\"\nallow_signals = false\n")
        .load(&[])
        .unwrap();
    assert_eq!(*config.inspect.target, "file:state.json");
    for line in ["allow_signals = true", "target = \"pid:1\"", "target = \"http://127.0.0.1/\""] {
        let error = error(&format!("[inspect]\n{line}\n"));
        assert!(error.contains("not named with --config"), "{error}");
    }
    let given = [("CORETOOLS_INSPECT_ALLOW_SIGNALS", "true"), ("CORETOOLS_INSPECT_TARGET", "port:9229")];
    let config = ConfiguredProject::new("").load(&given).unwrap();
    assert!(*config.inspect.allow_signals && *config.inspect.target == "port:9229");
}

#[test]
fn a_found_file_names_database_files_and_no_servers_and_no_message_shows_what_it_names() {
    let file = |place: &str| format!("[databases]\nconnections = [\"main={place}\"]\n");
    let config = ConfiguredProject::new(&file("data/x.db")).load(&[]).unwrap();
    let connections: Vec<_> = config.databases.connections().collect();
    assert_eq!(connections, [("main".to_owned(), "data/x.db".to_owned())]);
    for place in ["postgres://u:pa55@h/d", "$DATABASE_URL", "sqlite:x.db"] {
        let error = error(&file(place));
        assert!(error.contains("databases.connections") && !error.contains("pa55"), "{error}");
    }
    let wrong =
        ConfiguredProject::new("").error(&[("CORETOOLS_DATABASES_CONNECTIONS", "postgres://u:pa55@h/d")]);
    assert!(wrong.contains("name=path") && !wrong.contains("pa55"), "{wrong}");
    let config = ConfiguredProject::new("")
        .load(&[("CORETOOLS_DATABASES_CONNECTIONS", "main=postgres://u:pa55@h/d")])
        .unwrap();
    let entries = config.entries();
    assert!(
        !entries.iter().any(|entry| entry.value.contains("pa55")) && !format!("{config:?}").contains("pa55")
    );
}

#[test]
fn who_may_call_a_server_is_said_by_its_operator_alone() {
    let said = error("[http]\nanonymous_role = \"orchestrator\"\n");
    assert!(said.contains("`http` must be left out of a file that was not named with --config"), "{said}");
    let project = ConfiguredProject::new("[http]\nlisten = [\"unix:/run/x\"]\ntokens = \"tokens.toml\"\n");
    let config = project.load_with(&[], &naming(&project.path().join(FILE_NAME))).unwrap();
    assert_eq!(config.http.listen.value, ["unix:/run/x"]);
    assert_eq!(config.http.tokens.value, Some(project.path().join("tokens.toml")));
}
