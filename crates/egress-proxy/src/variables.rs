//! The environment variables by which programs learn of a proxy.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;

/// The hosts that programs reach without the proxy: those of their own machine or network namespace.
const DIRECT: &str = "localhost,127.0.0.1,::1";

/// Returns the variables that make common programs use the proxy at `address`.
///
/// `HTTP_PROXY`, `HTTPS_PROXY` and `ALL_PROXY`, in upper and lower case, are read by curl, git, cargo, pip, npm, Go, and
/// most HTTP libraries. `NODE_USE_ENV_PROXY` makes Node.js (22.21 and 24.5) read them, and `JAVA_TOOL_OPTIONS` sets the
/// properties of a JVM. The last one makes every JVM write a line to standard error that names the options.
pub fn proxy_variables(address: SocketAddr) -> Vec<(&'static str, String)> {
    let url = format!("http://{address}");
    let mut variables: Vec<_> =
        ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
            .into_iter()
            .map(|name| (name, url.clone()))
            .collect();
    variables.extend(["NO_PROXY", "no_proxy"].map(|name| (name, DIRECT.to_owned())));
    variables.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
    let (host, port) = (address.ip(), address.port());
    let java = format!(
        "-Dhttp.proxyHost={host} -Dhttp.proxyPort={port} -Dhttps.proxyHost={host} -Dhttps.proxyPort={port} \
         -Dhttp.nonProxyHosts=localhost|127.*|[::1]"
    );
    variables.push(("JAVA_TOOL_OPTIONS", java));
    variables
}

/// Returns the variables that make common programs trust the authorities in the file at `bundle`, and no other.
///
/// curl, git, cargo, npm, pip, Python's requests, Deno, and what is linked with OpenSSL or is written in Go read them. Node.js
/// trusts its own list of authorities too. A JVM has a trust store of its own, for which there is no variable.
pub fn certificate_variables(bundle: &OsStr) -> Vec<(&'static str, OsString)> {
    [
        "SSL_CERT_FILE",
        "CURL_CA_BUNDLE",
        "GIT_SSL_CAINFO",
        "CARGO_HTTP_CAINFO",
        "PIP_CERT",
        "REQUESTS_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        // Names a file in place of what Node.js trusts, where a global `npmrc` may name another one.
        "npm_config_cafile",
        "DENO_CERT",
    ]
    .into_iter()
    .map(|name| (name, bundle.to_owned()))
    .collect()
}
