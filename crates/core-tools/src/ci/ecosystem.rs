//! The ecosystems whose projects can be built.

/// A family of tools that builds projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is named after its tool")]
pub enum Ecosystem {
    Cargo,
    Dotnet,
    Node,
    Python,
    Go,
    Maven,
    Gradle,
    Cmake,
    Make,
    Just,
}

impl Ecosystem {
    /// All ecosystems, in the order in which they are preferred where one folder is a project of several.
    pub(super) const ALL: [Self; 10] = [
        Self::Cargo,
        Self::Dotnet,
        Self::Node,
        Self::Python,
        Self::Go,
        Self::Maven,
        Self::Gradle,
        Self::Cmake,
        Self::Make,
        Self::Just,
    ];

    /// Returns the name, as the parameter `ecosystem` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Dotnet => "dotnet",
            Self::Node => "npm",
            Self::Python => "python",
            Self::Go => "go",
            Self::Maven => "maven",
            Self::Gradle => "gradle",
            Self::Cmake => "cmake",
            Self::Make => "make",
            Self::Just => "just",
        }
    }

    /// Returns the ecosystem of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ecosystem| ecosystem.name() == name)
    }

    /// Returns the usual way to install its programs.
    pub fn installation(self) -> &'static str {
        match self {
            Self::Cargo => "https://rustup.rs",
            Self::Dotnet => "https://dot.net",
            Self::Node => "https://nodejs.org; pnpm and yarn with `corepack enable`",
            Self::Python => "python3 from the system's packages, uv from https://docs.astral.sh/uv",
            Self::Go => "https://go.dev/dl or apt-get install golang-go",
            Self::Maven => "apt-get install maven",
            Self::Gradle => "https://gradle.org/install",
            Self::Cmake => "apt-get install cmake",
            Self::Make => "apt-get install make",
            Self::Just => "cargo install just",
        }
    }

    /// Returns the names of its project files; one that begins with `*` is an ending.
    pub(super) fn project_files(self) -> &'static [&'static str] {
        match self {
            Self::Cargo => &["Cargo.toml"],
            Self::Dotnet => &["*.sln", "*.slnx", "*.csproj", "*.fsproj", "*.vbproj"],
            Self::Node => &["package.json"],
            Self::Python => &["pyproject.toml", "setup.py", "requirements.txt"],
            Self::Go => &["go.mod"],
            Self::Maven => &["pom.xml"],
            Self::Gradle => &["build.gradle", "build.gradle.kts"],
            Self::Cmake => &["CMakeLists.txt"],
            Self::Make => &["Makefile", "makefile", "GNUmakefile"],
            Self::Just => &["justfile", "Justfile", ".justfile"],
        }
    }

    /// Returns true if a file of this name is one of its project files.
    pub(super) fn has_project_file(self, name: &str) -> bool {
        self.project_files().iter().any(|pattern| match pattern.strip_prefix('*') {
            Some(ending) => name.ends_with(ending),
            None => name == *pattern,
        })
    }
}
