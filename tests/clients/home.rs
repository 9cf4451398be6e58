//! Somebody's computer: an empty home, a project, and one coding agent.

use crate::model::ScriptedModel;
use integration_tests::{HttpServer, Project, npm_clients, server};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A token of the right form that nobody made.
pub(crate) const WRONG_TOKEN: &str = "ctk_41fb94c0ba7a_XYjQmZplasfjhUBxKVwbmPH4ghKPu41pefBG1_LZMio";

/// How long a client may take for anything, in seconds, on a loaded machine.
const PATIENCE: &str = "180";

pub(crate) struct ClientHome {
    folder: tempfile::TempDir,
    pub(crate) project: Project,
    /// Where npm has put them.
    modules: PathBuf,
}

impl ClientHome {
    /// A computer with an agent; none where it is not installed.
    pub(crate) fn with(program: &str) -> Option<Self> {
        Self::with_package(&format!(".bin/{program}"))
    }

    /// The same with an npm package.
    pub(crate) fn with_package(package: &str) -> Option<Self> {
        let modules = npm_clients(package)?;
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        // Not below the home, where some clients look for settings of a project that are the user's.
        let project = Project::with([("a.txt", "hello\n")]);
        Some(Self { folder, project, modules })
    }

    /// Where npm has put what is installed.
    pub(crate) fn modules(&self) -> &Path {
        &self.modules
    }

    /// The path of a file of the user.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Has `hook install CLIENT` write the client's settings, for the role `worker` and with an audit.
    pub(crate) fn install_hook(&self, client: &str, arguments: &[&str]) {
        let mut command = self.own_program(&["--role", "worker", "--audit"]);
        command.arg(self.path("audit.jsonl")).args(["hook", "install", client]).args(arguments);
        said(&command.output().unwrap());
    }

    /// This project's program, as the user of this computer starts it.
    pub(crate) fn own_program(&self, arguments: &[&str]) -> Command {
        let mut command = self.project.server();
        command.args(arguments).env("HOME", self.folder.path());
        for name in ["XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"] {
            command.env_remove(name);
        }
        command
    }

    /// Has Codex ask `model`, which knows this name of a model.
    pub(crate) fn configure_codex(&self, model: &ScriptedModel, name: &str) {
        let url = model.url();
        self.write(
            ".codex/config.toml",
            &format!(
                "model = {name:?}\nmodel_provider = \"own\"\n[model_providers.own]\nname = \"own\"\n\
                 base_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"OWN_KEY\"\n"
            ),
        );
    }

    /// A file of the user.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A program as the user starts it in the project: nothing of the developer's in its environment, and a proxy that
    /// is not there for whatever is further away than loopback.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after", "5", PATIENCE, program]).args(arguments);
        command.current_dir(self.project.path()).env_clear();
        let node = concat!(env!("CARGO_MANIFEST_DIR"), "/../.nodes/node_modules/node24/bin");
        let path = format!("{}/.bin:{node}:{}", self.modules.display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("HOME", self.folder.path()).env("NO_COLOR", "1");
        command.env("TMPDIR", self.folder.path().join("tmp"));
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            command.env(name, "http://127.0.0.1:9");
        }
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        // Each would first try to reach its maker.
        command.env("OPENCODE_DISABLE_MODELS_FETCH", "1").env("OPENCODE_DISABLE_AUTOUPDATE", "1");
        command
    }

    /// Returns what a program prints; it must succeed.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> String {
        self.run_with_token(program, arguments, None)
    }

    /// The same with a token in its environment.
    pub(crate) fn run_with_token(&self, program: &str, arguments: &[&str], token: Option<&str>) -> String {
        let mut command = self.command(program, arguments);
        if let Some(token) = token {
            command.env("CORETOOLS_TOKEN", token);
        }
        said(&command.output().unwrap())
    }

    /// Has `print-config CLIENT --write` with these arguments write the client's file: that of the user, or of the project
    /// where that has files of its own in these tests.
    pub(crate) fn connect(&self, client: &str, arguments: &[&str]) {
        let mut command = self.project.server();
        command.args(["print-config", client, "--write"]).args(arguments).env("HOME", self.folder.path());
        command.env_remove("XDG_CONFIG_HOME").env_remove("CODEX_HOME").env_remove("CLAUDE_CONFIG_DIR");
        if ["gemini", "opencode"].contains(&client) {
            command.arg("--project");
        }
        said(&command.output().unwrap());
    }

    /// Connects it to the server on standard input and output, restricted to the project.
    pub(crate) fn connect_stdio(&self, client: &str) {
        assert!(server().is_file());
        self.connect(client, &["--root", self.project.path().to_str().unwrap()]);
    }

    /// Connects it to a server over HTTP, which it returns with a token that is good there.
    pub(crate) fn connect_http(&self, client: &str) -> (HttpServer, String) {
        let server = HttpServer::start(&self.project, &[]);
        let token = server.token(client, "dev", &[]);
        self.connect(client, &["--url", &format!("http://{}/mcp", server.address())]);
        (server, token)
    }
}

/// Both streams of a program that must have ended well.
pub(crate) fn said(output: &Output) -> String {
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}", output.status);
    said
}
