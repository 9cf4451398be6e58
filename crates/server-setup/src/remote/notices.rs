//! [`RemoteNotices`]: tells clients of what starts and ends on remotes, as they are told of what starts and ends here.

use core_tools::mcp::{ClientNotices, LogLevel};
use error_causes::chain;
use process_runner::CancellationToken;
use remotes::{Remote, RemoteCall, WeakRemote};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;

/// The shortest time between two looks at a remote, whose server may tell of changes as often as it likes.
const PAUSE: Duration = Duration::from_millis(100);

/// The commands and the sessions of one remote that clients are told of, at most.
const MAX_ITEMS: usize = 1000;

/// The addresses of the lists. Each item has its own address below one of them.
const COMMANDS: &str = "coretools://commands";
const SESSIONS: &str = "coretools://sessions";

/// Tells clients of what starts and ends on remotes. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemoteNotices(Arc<OnceLock<ClientNotices>>);

/// Tells the clients of one caller of one remote.
struct RemoteTeller {
    notices: ClientNotices,
    owner: String,
    /// The name before the ids of sessions, for a remote that was chosen.
    machine: Option<String>,
}

/// The states of what runs there, by the address of each.
type States = BTreeMap<String, ItemState>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct ItemState {
    state: String,
    exit_code: Option<u64>,
}

impl RemoteNotices {
    /// Uses `notices` from now on.
    pub(crate) fn connect(&self, notices: &ClientNotices) {
        // The hosts of a server share them.
        let _ = self.0.set(notices.clone());
    }

    /// Tells the clients of `owner` from now on of what starts and ends on `remote`, whose name before ids is `machine`. Once
    /// is enough. To be called in a runtime.
    pub(crate) fn watch(&self, remote: &Remote, owner: &str, machine: Option<&str>) {
        let Some(notices) = self.0.get() else { return };
        let Some(changes) = remote.take_changes() else { return };
        let (notices, owner, machine) = (notices.clone(), owner.to_owned(), machine.map(str::to_owned));
        tokio::spawn(RemoteTeller { notices, owner, machine }.tell(remote.downgrade(), changes));
    }
}

impl RemoteTeller {
    async fn tell(self, remote: WeakRemote, mut changes: watch::Receiver<u64>) {
        let (mut commands, mut sessions) = (States::new(), States::new());
        while changes.changed().await.is_ok() {
            tokio::time::sleep(PAUSE).await;
            changes.borrow_and_update();
            let Some(remote) = remote.upgrade() else { return };
            if let Some(found) = list(&remote, "list_commands", Map::new(), command_states).await {
                self.tell_of(COMMANDS, "commands", &commands, &found);
                commands = found;
            }
            let all = Map::from_iter([("all".to_owned(), true.into())]);
            let found = list(&remote, "list_sessions", all, |result| self.session_states(result)).await;
            if let Some(found) = found {
                self.tell_of(SESSIONS, "sessions", &sessions, &found);
                sessions = found;
            }
        }
    }

    fn tell_of(&self, list: &str, logger: &'static str, before: &States, now: &States) {
        if before == now {
            return;
        }
        self.notices.resource_updated_for(&self.owner, list);
        let addresses = before.keys().chain(now.keys().filter(|address| !before.contains_key(*address)));
        for address in addresses.filter(|address| before.get(*address) != now.get(*address)) {
            self.notices.resource_updated_for(&self.owner, address);
            let gone = ItemState { state: "gone with its remote".to_owned(), exit_code: None };
            let item = now.get(address).unwrap_or(&gone);
            let was_over = before.get(address).is_some_and(ItemState::is_over);
            if item.is_over() && !was_over {
                let level = if item.ended_well() { LogLevel::Info } else { LogLevel::Warning };
                let message = json!({
                    "message": format!("{address} ended: {}", item.words()),
                    "resource": address,
                });
                self.notices.log_for(&self.owner, level, logger, message);
            }
        }
    }

    fn session_states(&self, result: &Map<String, Value>) -> States {
        let text = result.get("content").and_then(|content| content.get(0)?.get("text")?.as_str());
        // The first line has their number.
        let lines = text.unwrap_or_default().lines().skip(1).take(MAX_ITEMS);
        let session = |line: &str| {
            let session: Value = serde_json::from_str(line).ok()?;
            let id = shown(session.get("session_id")?)?;
            let id = self.machine.as_ref().map_or_else(|| id.clone(), |machine| format!("{machine}:{id}"));
            let state = ItemState { state: shown(session.get("state")?)?, exit_code: None };
            Some((format!("{SESSIONS}/{id}"), state))
        };
        lines.filter_map(session).collect()
    }
}

impl ItemState {
    fn is_over(&self) -> bool {
        const GOES_ON: [&str; 5] = ["starting", "running", "waiting", "resuming", "paused"];
        !GOES_ON.contains(&self.state.as_str())
    }

    fn ended_well(&self) -> bool {
        self.state == "stopped" || (self.state == "exited" && self.exit_code == Some(0))
    }

    fn words(&self) -> String {
        match self.exit_code {
            Some(code) => format!("{} with exit code {code}", self.state),
            None => self.state.clone(),
        }
    }
}

/// Returns what runs there now: nothing, if the connection was lost for good. None: it cannot be told.
async fn list(
    remote: &Remote,
    tool: &'static str,
    arguments: Map<String, Value>,
    read: impl Fn(&Map<String, Value>) -> States,
) -> Option<States> {
    let call = RemoteCall {
        tool,
        arguments,
        cancel: CancellationToken::new(),
        on_progress: Arc::new(|_| {}),
        starts_background: false,
    };
    match remote.call_if_connected(call).await {
        None => remote.is_state_gone().then(States::new),
        Some(Ok(result)) if result.get("isError") != Some(&Value::Bool(true)) => Some(read(&result)),
        // The role may not list it, and then may not read of it either.
        Some(Ok(_)) => None,
        Some(Err(error)) => {
            tracing::debug!("{tool} of {}: {}", remote.settings().label(), chain(&error));
            remote.is_state_gone().then(States::new)
        }
    }
}

fn command_states(result: &Map<String, Value>) -> States {
    let commands = result.get("structuredContent").and_then(|list| list.get("commands")?.as_array());
    let command = |command: &Value| {
        let id = command.get("id")?.as_u64()?;
        let state = ItemState {
            state: shown(command.get("state")?)?,
            exit_code: command.get("exit_code").and_then(Value::as_u64),
        };
        Some((format!("{COMMANDS}/{id}"), state))
    };
    commands.into_iter().flatten().take(MAX_ITEMS).filter_map(command).collect()
}

/// Returns a short text of the server there. Another is none that a server of this version sends.
fn shown(text: &Value) -> Option<String> {
    let text =
        text.as_str().filter(|text| text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_graphic()))?;
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_server_of_this_version_sends_is_read() {
        let result = |value: Value| value.as_object().cloned().unwrap();
        let commands = json!({"structuredContent": {"commands": [
            {"id": 7, "state": "exited", "exit_code": 1},
            {"id": "8", "state": "running"},
            {"id": 9, "state": "run\nning"},
            {"id": 10, "state": 1},
            {"id": 11, "state": "running"},
        ]}});
        let states = command_states(&result(commands));
        assert_eq!(states.keys().collect::<Vec<_>>(), ["coretools://commands/11", "coretools://commands/7"]);
        assert!(states["coretools://commands/7"].is_over() && !states["coretools://commands/7"].ended_well());
        assert!(command_states(&result(json!({"content": []}))).is_empty());
        let teller = RemoteTeller {
            notices: ClientNotices::default(),
            owner: String::new(),
            machine: Some("box".to_owned()),
        };
        let text = "3 sessions\n{\"session_id\":\"a\",\"state\":\"running\"}\nno JSON\n{\"session_id\":\"b c\",\"state\":\"x\"}";
        let states = teller.session_states(&result(json!({"content": [{"type": "text", "text": text}]})));
        assert_eq!(states.keys().collect::<Vec<_>>(), ["coretools://sessions/box:a"]);
    }
}
