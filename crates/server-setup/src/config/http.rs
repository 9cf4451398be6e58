//! `[http]`: the keys of `mcp-http` alone.

use super::setting::{Setting, SettingSource};
use std::path::PathBuf;

/// `[http]`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpTable {
    /// The addresses to listen on: `ADDRESS:PORT` or `unix:PATH`. `127.0.0.1:8717` by default.
    pub listen: Setting<Vec<String>>,
    /// Addresses of the proxies in front, each an address or `ADDRESS/BITS`. With any, nobody else may connect over
    /// the network, and other addresses than loopback may be served without TLS. None by default.
    pub behind_proxy: Setting<Vec<String>>,
    /// Names, beside those of loopback and the addresses that are listened on, by which clients may call the server:
    /// `name` or `name:port`. None by default.
    pub hosts: Setting<Vec<String>>,
    /// Origins of web pages that may call the server beside those on loopback: `https://name`, with a port or `:*`
    /// for any. None by default.
    pub origins: Setting<Vec<String>>,
    /// The certificate chain, PEM. None by default: no TLS.
    pub tls_certificate: Setting<Option<PathBuf>>,
    /// Its key, PEM. None by default.
    pub tls_key: Setting<Option<PathBuf>>,
    /// The file of the tokens. None by default.
    pub tokens: Setting<Option<PathBuf>>,
    /// The role of callers without credentials; on loopback and Unix sockets alone. None by default: they
    /// are refused.
    pub anonymous_role: Setting<Option<String>>,
    /// Roles of users who call through a Unix socket, each `UID=role`; `*` is any user. None by default.
    pub peers: Setting<Vec<String>>,
    /// The address at which `/metrics` is served to everybody: `ADDRESS:PORT` on loopback or `unix:PATH`. None by
    /// default: it is served to callers with a token.
    pub metrics_listen: Setting<Option<String>>,
    /// The most bytes that one request may have: 1,024 to 67,108,864; 4 MiB by default.
    pub max_body_bytes: Setting<u64>,
    /// Connections that are open at once: 1 to 1,000,000; 4,096 by default. One address has a quarter of them at most,
    /// or 64 where that is more, unless it is one of `behind_proxy`.
    pub max_connections: Setting<u64>,
    /// The time that a client may take for the head of a request, and that an idle connection stays open, in
    /// milliseconds: 100 to 3,600,000; 30,000 by default.
    pub header_timeout_ms: Setting<u64>,
    /// The time that a client may take for the body of a request, in milliseconds: 100 to 3,600,000; 30,000 by default.
    pub body_timeout_ms: Setting<u64>,
    /// The time that running calls get to end at shutdown, in milliseconds: 0 to 3,600,000; 10,000 by default.
    pub drain_ms: Setting<u64>,
    /// Sessions of clients of the `initialize` era that are open at once: 1 to 100,000; 1,024 by default. One caller
    /// may have a quarter of them.
    pub max_sessions: Setting<u64>,
    /// The time that a session may be idle, in milliseconds: 1,000 to 604,800,000; 1,800,000 by default.
    pub session_idle_ms: Setting<u64>,
    /// Requests in a second of one caller, with as many saved up as two seconds bring: 1 to 1,000,000; 100 by default.
    pub calls_per_second: Setting<u64>,
    /// Calls of one caller that run at once: 1 to 4,096; 16 by default.
    pub calls_in_flight: Setting<u64>,
    /// Calls of one caller that wait in the queue: 0 to 100,000; 64 by default.
    pub queue: Setting<u64>,
    /// The time that a call waits in the queue, in milliseconds: 0 to 600,000; 10,000 by default.
    pub queue_ms: Setting<u64>,
    /// Bytes in a minute of one caller, sent and received: 1,024 and more; 1 GiB by default.
    pub bytes_per_minute: Setting<u64>,
    /// Programs of one caller that run at once, in the background and in calls: 0 to 4,096; 16 by default.
    pub processes: Setting<u64>,
    /// Calls of all callers that wait in the queue: 0 to 1,000,000; 1,024 by default.
    pub max_queue: Setting<u64>,
    /// Bytes in a second of all callers, sent and received: 1,024 and more; 256 MiB by default. Beyond it, callers
    /// that use more than their share wait.
    pub max_bytes_per_second: Setting<u64>,
    /// Programs of all callers that run at once: 0 to 65,536; 256 by default.
    pub max_processes: Setting<u64>,
    /// The part of `limits.max_concurrent_calls` that calls which run a program leave to others, so that a file is read at once
    /// while builds run: 0 to 4,096; 16 by default. It is a quarter of those calls at most.
    pub reserved_calls: Setting<u64>,
    /// The file in which the last use of each token is kept. None by default.
    pub token_usage: Setting<Option<PathBuf>>,
    /// A database for the audit, beside or instead of `policy.audit`: `sqlite:PATH` or `postgres://…`; a `$VARIABLE` is
    /// looked up. None by default.
    pub audit_database: Setting<Option<String>>,
    /// True writes the leases of remotes into the database of the audit, where every server that uses the database finds
    /// them. False by default: into files.
    pub lease_database: Setting<bool>,
    /// The silence of a server in the database, in milliseconds, after which others destroy what its leases name: 15,000 to
    /// 3,600,000; 30,000 by default.
    pub lease_silence_ms: Setting<u64>,
    /// The URL that clients call the server by, `https://name/mcp`: the resource of RFC 9728 and the default audience.
    /// None by default.
    pub public_url: Setting<Option<String>>,
    /// The authorization server whose JWTs are taken (`iss`). None by default: none are.
    pub jwt_issuer: Setting<Option<String>>,
    /// The audience that JWTs must name (`aud`). The public URL by default.
    pub jwt_audience: Setting<Option<String>>,
    /// The issuer's keys, a JWKS: a path or an `https` URL. None by default.
    pub jwt_keys: Setting<Option<String>>,
    /// The algorithms that are taken: of `RS256`, `RS384`, `RS512`, `PS256`, `PS384`, `PS512`, `ES256`, `ES384` and
    /// `EdDSA`. `RS256`, `ES256` and `EdDSA` by default.
    pub jwt_algorithms: Setting<Vec<String>>,
    /// The roles of callers with a JWT, each `claim=value:role`. The first that fits holds; a caller whom none fits is
    /// refused. None by default.
    pub jwt_roles: Setting<Vec<String>>,
    /// The remotes of callers with a JWT, each `claim=value:remote`. The first that fits holds; the tools of a caller whom
    /// none fits work on this machine. None by default.
    pub jwt_remotes: Setting<Vec<String>>,
    /// The scope that a JWT must have. None by default: any will do.
    pub jwt_scope: Setting<Option<String>>,
}

impl Default for HttpTable {
    fn default() -> Self {
        fn default<T>(value: T) -> Setting<T> {
            Setting { value, source: SettingSource::Default }
        }
        Self {
            listen: default(vec!["127.0.0.1:8717".to_owned()]),
            behind_proxy: default(Vec::new()),
            hosts: default(Vec::new()),
            origins: default(Vec::new()),
            tls_certificate: default(None),
            tls_key: default(None),
            tokens: default(None),
            anonymous_role: default(None),
            peers: default(Vec::new()),
            metrics_listen: default(None),
            max_body_bytes: default(4 << 20),
            max_connections: default(4096),
            header_timeout_ms: default(30_000),
            body_timeout_ms: default(30_000),
            drain_ms: default(10_000),
            max_sessions: default(1024),
            session_idle_ms: default(1_800_000),
            calls_per_second: default(100),
            calls_in_flight: default(16),
            queue: default(64),
            queue_ms: default(10_000),
            bytes_per_minute: default(1 << 30),
            processes: default(16),
            max_queue: default(1024),
            max_bytes_per_second: default(256 << 20),
            max_processes: default(256),
            reserved_calls: default(16),
            token_usage: default(None),
            audit_database: default(None),
            lease_database: default(false),
            lease_silence_ms: default(30_000),
            public_url: default(None),
            jwt_issuer: default(None),
            jwt_audience: default(None),
            jwt_keys: default(None),
            jwt_algorithms: default(["RS256", "ES256", "EdDSA"].map(str::to_owned).to_vec()),
            jwt_roles: default(Vec::new()),
            jwt_remotes: default(Vec::new()),
            jwt_scope: default(None),
        }
    }
}
