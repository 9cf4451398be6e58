//! The proxy's parser: nothing makes it panic, what it takes it writes and reads again as it was, and
//! `serde_json` reads the same in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use json_rpc::json::Json;
use json_rpc::message::Message;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(json) = Json::parse(bytes) {
        let mut written = Vec::new();
        json.write(&mut written);
        assert_eq!(Json::parse(&written).expect("our own writing"), json);
        if let Some(value) = json.to_value() {
            assert_eq!(serde_json::from_slice::<serde_json::Value>(bytes).expect("what we take"), value);
        }
    }
    if let Ok(message) = Message::parse(bytes) {
        let written = message.to_line();
        assert_eq!(Message::parse(written.trim_ascii_end()).expect("our own writing"), message);
    }
});
