//! The environment and the configuration that git runs with.

/// The variables that git needs: to find itself, the user's configuration, and a place for its files.
// A list of what is allowed, since every `GIT_…` variable changes what git does, and new versions bring new ones.
pub(super) const ENVIRONMENT: [&str; 18] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    // The user whose repositories are trusted beside root's own.
    "SUDO_UID",
    "TMPDIR",
    "TZ",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "LD_LIBRARY_PATH",
    "SYSTEMROOT",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "TEMP",
    "TMP",
    "PATHEXT",
];

/// The variables that commits need besides: author and committer, and what hooks and signatures use.
pub(super) const COMMIT_ENVIRONMENT: [&str; 27] = [
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "EMAIL",
    "LANG",
    "LC_CTYPE",
    "SHELL",
    "GNUPGHOME",
    "SSH_AUTH_SOCK",
    "XDG_RUNTIME_DIR",
    "XDG_DATA_HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "DOTNET_ROOT",
    "NVM_DIR",
    "VOLTA_HOME",
    "PNPM_HOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "UV_CACHE_DIR",
    "PRE_COMMIT_HOME",
    // Read by pre-commit: the hooks that the user leaves out.
    "SKIP",
];

/// Settings that keep git from running any program. Given by `-c`, each wins over every configuration file.
pub(super) const NO_PROGRAMS: [&str; 22] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=false",
    "core.sshCommand=false",
    "core.quotePath=false",
    "credential.helper=",
    "protocol.allow=never",
    "log.showSignature=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "gpg.ssh.defaultKeyCommand=false",
    "blame.ignoreRevsFile=",
    "color.ui=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Settings that a user makes for reading output in a terminal, at git's defaults, so that output has one form
/// everywhere. Where an option does the same, it is given by the command.
pub(super) const PLAIN_OUTPUT: [&str; 18] = [
    "checkout.guess=true",
    "color.advice=false",
    "core.abbrev=auto",
    "core.bigFileThreshold=512m",
    "diff.algorithm=default",
    "diff.indentHeuristic=true",
    "diff.interHunkContext=0",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.renameLimit=1000",
    "diff.suppressBlankEmpty=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "log.date=default",
    "log.follow=false",
    "log.showRoot=true",
    "mailmap.file=",
    "status.renameLimit=1000",
];

/// Settings for commits, whose hooks are to run: git may wait for no person, and leave no process behind.
pub(super) const COMMIT_CONFIGURATION: [&str; 6] = [
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    // The encoding in which the message is given.
    "i18n.commitEncoding=UTF-8",
];

/// The variables that git needs besides to reach another repository: the way out, the certificates that are trusted,
/// and the agents that keep keys and passwords.
pub(super) const REMOTE_ENVIRONMENT: [&str; 15] = [
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "SSH_AUTH_SOCK",
    // Where credential helpers find the user's keyring.
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "XDG_DATA_HOME",
];

/// Settings for reading from another repository: what [`NO_PROGRAMS`] has, without what forbids to connect. What the
/// repository itself sets for connections is overridden in [`super::remote_settings`].
pub(super) const FETCH_CONFIGURATION: [&str; 15] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.editor=false",
    "core.quotePath=false",
    "color.ui=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    // Tags are the user's own: pruning takes away branches of the remote alone.
    "fetch.pruneTags=false",
    "fetch.writeCommitGraph=false",
    "transfer.bundleURI=false",
    "log.showSignature=false",
    "gpg.program=false",
    "gpg.ssh.program=false",
];

/// Settings for writing to another repository, besides [`COMMIT_CONFIGURATION`].
pub(super) const PUSH_CONFIGURATION: [&str; 4] =
    ["color.ui=false", "submodule.recurse=false", "core.quotePath=false", "push.recurseSubmodules=no"];

/// Settings for merges and rebases, besides [`COMMIT_CONFIGURATION`]: they do what the call says, and nothing that the
/// configuration adds.
pub(super) const INTEGRATION_CONFIGURATION: [(&str, &str); 8] = [
    ("submodule.recurse", "false"),
    ("core.quotePath", "false"),
    ("color.ui", "false"),
    ("merge.autoStash", "false"),
    ("merge.stat", "false"),
    ("rebase.autoStash", "false"),
    ("rebase.updateRefs", "false"),
    ("rebase.stat", "false"),
];
