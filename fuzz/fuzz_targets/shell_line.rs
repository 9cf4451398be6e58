//! Lines of a shell as agents write them, and the events of their clients: nothing makes a reader panic, and each program
//! of a line that is read has a literal name.
#![no_main]

use agent_hooks::shell::{ShellSurroundings, read};
use agent_hooks::{HookClient, HookEvent};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(line) = read(&text, ShellSurroundings { home: Some("/home/me"), variables: &[] }) {
        assert!(line.programs.iter().all(|program| program.words.first().is_some_and(|word| word.is_literal)));
    }
    for client in HookClient::ALL {
        let _ = HookEvent::parse(client, &text);
    }
});
