//! The environment variables by which programs learn of a proxy.

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
