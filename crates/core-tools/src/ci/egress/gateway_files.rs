//! The files that programs behind a gateway read, in a folder that they cannot write.

use crate::ci::PrivateTempDir;
use egress_proxy::certificate_variables;
use process_runner::{Command, Confinement};
use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Connects an SSH client to `$1`, port `$2`, through the proxy. Of the programs that are everywhere, bash alone can.
const SSH_CONNECT: &str = r#"host=$1
case $host in *:*) host="[$host]" ;; esac
exec 3<>"/dev/tcp/PROXY" || exit 1
printf 'CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n' "$host" "$2" "$host" "$2" >&3
IFS= read -r status <&3
case $status in
  'HTTP/1.1 200'*) ;;
  *) cat <&3 | tail -n 1 >&2; exit 1 ;;
esac
while IFS= read -r line <&3 && [ "$line" != $'\r' ]; do :; done
exec 4<&0
cat <&4 >&3 &
cat <&3
kill $!
"#;

/// The variable with the path of the script.
const SSH_CONNECT_VARIABLE: &str = "EGRESS_SSH_CONNECT";

/// The variable with the SSH client of git.
const GIT_SSH_COMMAND: &str = "GIT_SSH_COMMAND";

/// The files that programs behind a gateway read.
#[derive(Debug)]
pub(super) struct GatewayFiles {
    folder: PrivateTempDir,
    /// The certificates of the authorities that programs must trust.
    authorities: Option<PathBuf>,
    /// The script for SSH clients.
    ssh_connect: Option<PathBuf>,
}

impl GatewayFiles {
    /// Writes the files beside `temp`, the folder for temporary files of programs. Returns nothing if none are needed.
    #[allow(clippy::disallowed_methods, reason = "files of the server's own, which no caller names")]
    pub(super) fn write(
        temp: &Path,
        authorities: Option<&str>,
        ssh_proxy: Option<SocketAddr>,
    ) -> io::Result<Option<Self>> {
        if authorities.is_none() && ssh_proxy.is_none() {
            return Ok(None);
        }
        // Programs may write the folder `temp` itself, and must not change the script or the certificates.
        let folder = PrivateTempDir::new_in(temp.parent().unwrap_or(temp))?;
        let write = |name: &str, content: &str| -> io::Result<PathBuf> {
            let path = folder.path().join(name);
            std::fs::write(&path, content)?;
            Ok(path)
        };
        let authorities = authorities.map(|text| write("authorities.pem", text)).transpose()?;
        let script = |proxy: SocketAddr| {
            let place = format!("{}/{}", proxy.ip(), proxy.port());
            write("ssh-connect", &SSH_CONNECT.replace("PROXY", &place))
        };
        let ssh_connect = ssh_proxy.map(script).transpose()?;
        Ok(Some(Self { folder, authorities, ssh_connect }))
    }

    /// Returns `command` behind `confinement`, which can read the files, with the variables that lead to them.
    pub(super) fn apply(&self, mut command: Command, confinement: Confinement) -> Command {
        if let Some(authorities) = &self.authorities {
            command = command.envs(certificate_variables(authorities.as_os_str()));
        }
        if let Some(script) = &self.ssh_connect {
            command = command.env(SSH_CONNECT_VARIABLE, script);
            let own = command.env_value(GIT_SSH_COMMAND).unwrap_or(OsStr::new("ssh"));
            // Another client than OpenSSH's would not know the option.
            if let Some(own) = own.to_str().filter(|own| is_openssh(own)) {
                let ssh = format!("{own} -o ProxyCommand='bash \"${SSH_CONNECT_VARIABLE}\" %h %p'");
                command = command.env(GIT_SSH_COMMAND, ssh);
            }
        }
        command.confined(confinement.read(self.folder.path()))
    }
}

/// Returns true if a command line starts OpenSSH's client.
fn is_openssh(line: &str) -> bool {
    let program = line.split_whitespace().next().unwrap_or_default();
    program.rsplit('/').next() == Some("ssh")
}
