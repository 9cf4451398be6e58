//! Lists of hosts, hosts and headers of credentials: a host is the same after writing and reading, and a header can only
//! hold printable ASCII.
#![no_main]

use egress_proxy::{AllowedHosts, CredentialHeader, NetworkHost};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(host) = NetworkHost::parse(&text) {
        assert_eq!(NetworkHost::parse(&host.to_string()).as_ref(), Ok(&host));
        assert!(host.to_string().is_ascii());
    }
    if let Ok(list) = AllowedHosts::parse(text.lines()) {
        assert_eq!(AllowedHosts::parse(list.entries()).as_ref(), Ok(&list));
    }
    let mut parts = text.splitn(2, ':');
    if let Ok(header) = CredentialHeader::new(parts.next(), parts.next()) {
        assert!(header.name().bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')));
    }
});
