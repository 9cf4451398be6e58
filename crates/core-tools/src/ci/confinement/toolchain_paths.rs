//! The paths of toolchains and of their caches.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Paths of toolchains and their caches outside the system's folders. Confinement grants the paths that exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolchainPaths {
    /// Programs, libraries and settings, which commands may read and execute.
    pub read: Vec<PathBuf>,
    /// Caches that a build fills, which commands may write. What one project's build puts there, another's may
    /// run: to stop that, give a server caches of its own (`CARGO_HOME`, `npm_config_cache` …) and leave these
    /// out.
    pub write: Vec<PathBuf>,
}

/// Paths in the home folder that commands may read.
const READ_IN_HOME: [&str; 34] = [
    ".cargo/bin",
    ".cargo/config.toml",
    ".cargo/config",
    ".cargo/env",
    ".rustup",
    ".nvm",
    ".volta",
    ".fnm",
    ".bun/bin",
    ".deno/bin",
    ".yarn/bin",
    ".pyenv",
    ".rbenv",
    ".asdf",
    ".sdkman",
    ".dotnet/sdk",
    ".dotnet/shared",
    ".dotnet/host",
    ".dotnet/packs",
    ".dotnet/tools",
    ".dotnet/dotnet",
    ".local/bin",
    ".local/lib",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".local/share/mise",
    ".local/share/fnm",
    ".local/share/pnpm",
    "go/bin",
    "miniconda3",
    ".gitconfig",
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
];

/// Paths in the home folder that commands may write: package caches, and not the files beside them that hold
/// tokens.
const WRITTEN_IN_HOME: [&str; 18] = [
    ".cargo/registry",
    ".cargo/git",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".cargo/.global-cache",
    ".npm",
    ".bun/install/cache",
    ".yarn/cache",
    ".local/share/pnpm/store",
    "go/pkg",
    ".m2/repository",
    ".gradle/caches",
    ".gradle/wrapper",
    ".gradle/daemon",
    ".gradle/native",
    ".nuget/packages",
    ".local/share/NuGet",
    ".local/share/virtualenv",
];

/// Paths in the folder for caches (`XDG_CACHE_HOME`, `~/.cache`) that commands may write.
const WRITTEN_IN_CACHE_HOME: [&str; 14] = [
    "pip",
    "uv",
    "pypoetry",
    "pre-commit",
    "go-build",
    "golangci-lint",
    "node-gyp",
    "node",
    "yarn",
    "pnpm",
    "ccache",
    "sccache",
    "zig",
    "deno",
];

/// Variables whose value is a path that commands may read.
const READ_VARIABLES: [&str; 14] = [
    "RUSTUP_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "JAVA_HOME",
    "GOROOT",
    "GOBIN",
    "DOTNET_ROOT",
    "ANDROID_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "RUSTC_WRAPPER",
];

/// Variables whose value is a cache that commands may write.
const WRITTEN_VARIABLES: [&str; 10] = [
    "GOCACHE",
    "GOMODCACHE",
    "npm_config_cache",
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "POETRY_CACHE_DIR",
    "YARN_CACHE_FOLDER",
    "CCACHE_DIR",
    "SCCACHE_DIR",
    "NUGET_PACKAGES",
];

impl ToolchainPaths {
    /// Returns the usual paths of a user with this home folder, and the paths that the environment names. `variable`
    /// looks up a variable (`PATH`, `CARGO_HOME`, `RUSTUP_HOME`, `GOPATH`, `XDG_CACHE_HOME` and the like).
    ///
    /// Folders of tokens and keys (`.ssh`, `.config/gh`, `.npmrc`, `.cargo/credentials.toml`) are never among the
    /// paths. A path that contains the home folder, is relative or does not exist is left out.
    pub fn discover(home: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let beneath =
            |base: &Path, names: &[&str]| names.iter().map(|name| base.join(name)).collect::<Vec<_>>();
        let mut paths = Self { read: beneath(home, &READ_IN_HOME), write: beneath(home, &WRITTEN_IN_HOME) };
        if let Some(cargo_home) = folder("CARGO_HOME") {
            // The same names as beneath the home folder, where `.cargo` is the default.
            let in_cargo_home = |names: &[&str]| {
                let names = names.iter().filter_map(|name| name.strip_prefix(".cargo/"));
                names.map(|name| cargo_home.join(name)).collect::<Vec<_>>()
            };
            paths.read.extend(in_cargo_home(&READ_IN_HOME));
            paths.write.extend(in_cargo_home(&WRITTEN_IN_HOME));
        }
        paths.read.extend(READ_VARIABLES.into_iter().filter_map(folder));
        paths.read.extend(variable("PATH").iter().flat_map(std::env::split_paths));
        paths.write.extend(WRITTEN_VARIABLES.into_iter().filter_map(folder));
        for path in variable("GOPATH").iter().flat_map(std::env::split_paths) {
            paths.read.push(path.join("bin"));
            paths.write.push(path.join("pkg"));
        }
        let cache_home = folder("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache"));
        paths.write.extend(beneath(&cache_home, &WRITTEN_IN_CACHE_HOME));
        for list in [&mut paths.read, &mut paths.write] {
            // A `PATH` that names `/` or the home folder itself must not open the folders of keys.
            list.retain(|path| path.is_absolute() && !home.starts_with(path) && path.exists());
        }
        paths
    }
}
