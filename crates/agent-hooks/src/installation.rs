//! [`HookInstallation`]: what a client's settings must hold so that it asks the hook.

use crate::client::HookClient;
use serde_json::{Value, json};

/// The settings that a hook is installed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookPlacement {
    /// Those of the user, for every project.
    User,
    /// Those of one project.
    Project,
}

/// The hook in a client's settings.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HookInstallation {
    /// The client.
    pub client: HookClient,
    /// The words that start the hook.
    words: Vec<String>,
}

/// The time that a client waits for a decision, in seconds. It takes milliseconds; a client that gives up lets the tool run.
const TIMEOUT_SECONDS: u64 = 60;

impl HookInstallation {
    /// Creates the installation of a hook that `words` start: the program, its options, `hook` and the client.
    pub fn new(client: HookClient, words: Vec<String>) -> Self {
        Self { client, words }
    }

    /// Returns the path of the file, beneath the client's folder of the user or beneath the project.
    pub const fn path(client: HookClient, placement: HookPlacement) -> &'static str {
        match (client, placement) {
            // The client's own folder of the user: `~/.claude`, `~/.codex`, `~/.gemini`, `~/.config/opencode`, `~/.copilot`,
            // `~/.cursor`.
            (HookClient::Claude | HookClient::Gemini, HookPlacement::User) => "settings.json",
            (HookClient::Codex | HookClient::Cursor, HookPlacement::User) => "hooks.json",
            (HookClient::Copilot, HookPlacement::User) => "hooks/coretools.json",
            (HookClient::Copilot, HookPlacement::Project) => ".github/hooks/coretools.json",
            (HookClient::Cursor, HookPlacement::Project) => ".cursor/hooks.json",
            (HookClient::Opencode, HookPlacement::User) => "plugin/coretools-hook.js",
            (HookClient::Claude, HookPlacement::Project) => ".claude/settings.json",
            (HookClient::Codex, HookPlacement::Project) => ".codex/hooks.json",
            (HookClient::Gemini, HookPlacement::Project) => ".gemini/settings.json",
            (HookClient::Opencode, HookPlacement::Project) => ".opencode/plugin/coretools-hook.js",
        }
    }

    /// Returns the files of a project in which the client reads settings that could switch hooks off, or give it others.
    pub const fn project_settings(client: HookClient) -> &'static [&'static str] {
        match client {
            HookClient::Claude => &[".claude/settings.json", ".claude/settings.local.json", ".mcp.json"],
            HookClient::Codex => &[".codex/hooks.json", ".codex/config.toml"],
            HookClient::Gemini => &[".gemini/settings.json", ".gemini/.env"],
            HookClient::Opencode => &[
                "opencode.json",
                "opencode.jsonc",
                ".opencode/opencode.json",
                ".opencode/opencode.jsonc",
                ".opencode/plugin/coretools-hook.js",
            ],
            HookClient::Copilot => &[
                ".github/hooks/coretools.json",
                ".github/copilot/settings.json",
                ".github/copilot/settings.local.json",
                ".github/mcp.json",
            ],
            HookClient::Cursor => &[".cursor/hooks.json", ".cursor/cli.json", ".cursor/mcp.json"],
        }
    }

    /// Returns the files beside [the user's file](Self::path), in the client's folder of the user, in which the client reads
    /// settings that could switch hooks off.
    pub const fn user_settings(client: HookClient) -> &'static [&'static str] {
        match client {
            HookClient::Claude => &["settings.local.json"],
            HookClient::Codex => &["config.toml"],
            HookClient::Gemini | HookClient::Cursor => &[],
            HookClient::Opencode => &["opencode.json", "opencode.jsonc", "config.json"],
            HookClient::Copilot => &["settings.json", "config.json", "mcp-config.json"],
        }
    }

    /// Returns the key of the list of hooks in the member `hooks`, or `None` for a client whose hook is a file of its own.
    pub const fn event(client: HookClient) -> Option<&'static str> {
        match client {
            HookClient::Opencode => None,
            client => Some(client.event()),
        }
    }

    /// Returns the version that the client's file of hooks must name, if it must.
    pub const fn file_version(client: HookClient) -> Option<u32> {
        match client {
            HookClient::Copilot | HookClient::Cursor => Some(1),
            _ => None,
        }
    }

    /// Returns the command lines of an entry in a list of hooks, in each form that a client has for them.
    pub fn commands(entry: &Value) -> impl Iterator<Item = &str> {
        let nested = entry["hooks"].as_array().into_iter().flatten().map(|hook| &hook["command"]);
        nested.chain([&entry["command"], &entry["bash"]]).filter_map(Value::as_str)
    }

    /// Returns the list of hooks with this one in it, in place of an older one.
    pub fn added(&self, list: Option<&Value>) -> Value {
        let mut hooks = Self::removed(self.client, list);
        if let Value::Array(hooks) = &mut hooks {
            hooks.push(self.entry());
        }
        hooks
    }

    /// Returns the list of hooks without this project's.
    pub fn removed(client: HookClient, list: Option<&Value>) -> Value {
        let others = list.and_then(Value::as_array).into_iter().flatten();
        Value::Array(others.filter(|entry| !is_own(client, entry)).cloned().collect())
    }

    /// Returns true if the list has this project's hook.
    pub fn is_in(client: HookClient, list: Option<&Value>) -> bool {
        list.and_then(Value::as_array).into_iter().flatten().any(|entry| is_own(client, entry))
    }

    /// Returns the command line of the hook. If the program is missing or breaks, the line ends with 2, by which the client
    /// refuses the tool.
    pub fn command_line(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        format!("{} || exit 2", words.join(" "))
    }

    fn entry(&self) -> Value {
        match self.client {
            HookClient::Gemini => json!({"matcher": ".*", "hooks": [{
                "name": "coretools",
                "type": "command",
                "command": self.command_line(),
                "timeout": TIMEOUT_SECONDS * 1000,
            }]}),
            HookClient::Copilot => {
                json!({"type": "command", "bash": self.command_line(), "timeoutSec": TIMEOUT_SECONDS})
            }
            HookClient::Cursor => json!({
                "type": "command",
                "command": self.command_line(),
                "timeout": TIMEOUT_SECONDS,
                "failClosed": true,
            }),
            _ => json!({"matcher": "*", "hooks": [{
                "type": "command",
                "command": self.command_line(),
                "timeout": TIMEOUT_SECONDS,
            }]}),
        }
    }

    /// Returns the words that a plugin of opencode starts the hook with, or `None` if the text is no such plugin.
    pub fn words_of_plugin(text: &str) -> Option<Vec<String>> {
        let words = text.lines().find_map(|line| line.strip_prefix("const words = "))?;
        serde_json::from_str(words.strip_suffix(';')?).ok()
    }

    /// Returns the plugin of opencode, which starts the hook and throws what it refuses.
    pub fn plugin(&self) -> String {
        let words = json!(self.words);
        format!(
            r#"// Written by `hook install opencode`; `hook remove opencode` removes it.
import {{ spawnSync }} from "node:child_process";

const words = {words};

export const CoreToolsHook = async ({{ directory }}) => ({{
  "tool.execute.before": async (input, output) => {{
    const event = {{
      hook_event_name: "tool.execute.before",
      session_id: input.sessionID,
      cwd: directory,
      tool_name: input.tool,
      tool_input: output.args ?? {{}},
    }};
    const hook = spawnSync(words[0], words.slice(1), {{
      input: JSON.stringify(event),
      encoding: "utf8",
      timeout: {timeout},
    }});
    let answer;
    try {{
      if (hook.status === 0) answer = JSON.parse(hook.stdout);
    }} catch {{}}
    // Whatever is no answer refuses the tool.
    if (answer?.decision !== "allow") {{
      const failed = hook.error?.message || hook.stderr || "it gave no answer";
      throw new Error(answer?.reason ?? `the CoreTools hook failed, so nothing may run: ${{failed}}`);
    }}
    if (answer.input) Object.assign(output.args, answer.input);
  }},
}});
"#,
            timeout = TIMEOUT_SECONDS * 1000
        )
    }
}

fn is_own(client: HookClient, entry: &Value) -> bool {
    let marker = format!(" hook {client}");
    HookInstallation::commands(entry).any(|command| command.contains(&marker))
}

/// Quotes a word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "/._-+:,@".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_plugin_are_read_back() {
        let words = ["/opt/my tools/mcp-stdio", "--role", "it's", "hook", "opencode"].map(str::to_owned);
        let installation = HookInstallation::new(HookClient::Opencode, words.to_vec());
        let plugin = installation.plugin();
        assert_eq!(HookInstallation::words_of_plugin(&plugin), Some(words.to_vec()));
        assert_eq!(HookInstallation::words_of_plugin("export const Other = 1;"), None);
    }

    #[test]
    fn an_entry_is_found_again_and_replaced_in_the_form_of_each_client() {
        let words = |role: &str| ["mcp-stdio", "--role", role, "hook"].map(str::to_owned).to_vec();
        for client in HookClient::ALL.into_iter().filter(|client| HookInstallation::event(*client).is_some())
        {
            let with_client = |role: &str| [words(role), vec![client.as_str().to_owned()]].concat();
            let foreign = json!({"type": "command", "command": "mine.sh", "bash": "mine.sh"});
            let list = json!([foreign]);
            let first = HookInstallation::new(client, with_client("worker")).added(Some(&list));
            assert!(HookInstallation::is_in(client, Some(&first)), "{client}");
            let second = HookInstallation::new(client, with_client("readonly")).added(Some(&first));
            assert_eq!(second.as_array().map(Vec::len), Some(2), "{client}: {second}");
            assert!(second.to_string().contains("--role readonly hook"), "{second}");
            assert_eq!(HookInstallation::removed(client, Some(&second)), json!([foreign]), "{client}");
        }
    }
}
