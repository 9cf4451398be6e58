//! The texts that are written and said.

use super::owner::FileOwner;
use super::paths::InitPaths;
use crate::cli::InitArgs;
use crate::console_output::name;
use server_setup::settings::Settings;
use std::path::Path;

/// Returns a path as a string of TOML.
fn toml_path(path: &Path) -> String {
    toml::Value::String(path.display().to_string()).to_string()
}

/// Returns the configuration.
pub(super) fn configuration(settings: &Settings, arguments: &InitArgs, paths: &InitPaths) -> String {
    let roots: Vec<String> = settings.roots.iter().map(|root| toml_path(root)).collect();
    format!(
        "# Written by `{name} init`. docs/configuration.md describes every key.\n\
         # Everything that is named here, but the roots, lies outside the roots: the server refuses to start otherwise.\n\
         roots = [{roots}]\n\
         \n\
         [policy]\n\
         file = {policy}\n\
         audit = {audit}\n\
         \n\
         [http]\n\
         listen = [{listen}]\n\
         tokens = {tokens}\n\
         token_usage = {usage}\n\
         # Behind a proxy with TLS: the name that clients use there, and the origin of the page at /ui.\n\
         # hosts = [\"tools.example\"]\n\
         # origins = [\"https://tools.example\"]\n\
         # Health and figures for this machine, without a token.\n\
         # metrics_listen = \"127.0.0.1:9717\"\n",
        name = name(),
        roots = roots.join(", "),
        policy = toml_path(&paths.policy),
        audit = toml_path(&paths.logs.join("audit.jsonl")),
        listen = toml::Value::String(arguments.listen.clone()),
        tokens = toml_path(&paths.tokens),
        usage = toml_path(&paths.logs.join("token-usage.json")),
    )
}

/// The unit that `packaging/systemd` has too; a test compares them.
const UNIT: &str = include_str!("mcp-http.service");

/// Returns the unit, with the paths of this installation.
pub(super) fn unit(settings: &Settings, paths: &InitPaths, program: &Path, owner: &FileOwner) -> String {
    let mut writable: Vec<String> = settings.roots.iter().map(|root| unit_word(root)).collect();
    if !paths.unit_makes_logs {
        writable.push(unit_word(&paths.logs));
    }
    let lines =
        UNIT.lines().filter(|line| !line.starts_with("#   ")).map(|line| match line.split_once('=') {
            Some(("ExecStart", _)) => {
                format!("ExecStart={} --config {}", unit_word(program), unit_word(&paths.config))
            }
            Some(("User", _)) => format!("User={}", owner.name),
            // The group of a user who is not the one of the package is that user's own.
            Some(("Group", _)) if owner.name != "coretools" => "# Group= is that of the user.".to_owned(),
            Some(("ReadWritePaths", _)) => format!("ReadWritePaths={}", writable.join(" ")),
            // A folder in a home would be hidden from the service.
            Some(("ProtectHome", _)) if in_home(settings, paths, program) => "ProtectHome=no".to_owned(),
            _ => line.to_owned(),
        });
    let lines: Vec<String> = lines.collect();
    lines.join("\n").replacen("/etc/systemd/system/mcp-http.service", &paths.unit.display().to_string(), 1)
        + "\n"
}

/// Returns true if something that the service needs lies in a home.
fn in_home(settings: &Settings, paths: &InitPaths, program: &Path) -> bool {
    let in_home = |path: &Path| ["/home", "/root", "/run/user"].iter().any(|home| path.starts_with(home));
    settings.roots.iter().any(|root| in_home(root)) || in_home(&paths.config) || in_home(program)
}

/// Returns a path as a word of a unit (`systemd.syntax(7)`): quoted where it must be, and `%` doubled.
fn unit_word(path: &Path) -> String {
    let text = path.display().to_string().replace('%', "%%").replace('$', "$$");
    match text.chars().all(|c| c.is_alphanumeric() || "/._-+@%$".contains(c)) {
        true => text,
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// Returns what to do next.
pub(super) fn next_steps(
    arguments: &InitArgs,
    paths: &InitPaths,
    owner: &FileOwner,
    program: &Path,
) -> String {
    let (name, program, config) = (name(), program.display(), paths.config.display());
    let run_as = match owner.name.as_str() {
        "root" => String::new(),
        user => format!("sudo -u {user} "),
    };
    let listen = &arguments.listen;
    let url = match listen.starts_with("unix:") {
        true => "https://tools.example/mcp".to_owned(),
        false => format!("http://{listen}/mcp"),
    };
    format!(
        "Written: {config}, {}, {} and {}.\n\
         \n\
         Start the server, by systemd or by hand:\n\
         \x20 systemctl enable --now {}\n\
         \x20 {run_as}{program} --config {config}\n\
         Check it:\n\
         \x20 {run_as}{program} --config {config} doctor\n\
         \x20 {run_as}{program} --config {config} health\n\
         A client, once its environment has the token as CORETOOLS_TOKEN. The line has no token in it, so that neither the list \
         of processes nor the history of a shell shows one:\n\
         \x20 claude mcp add-json coretools \
         '{{\"type\":\"http\",\"url\":\"{url}\",\"headers\":{{\"Authorization\":\"Bearer ${{CORETOOLS_TOKEN}}\"}}}}'\n\
         Give each person, agent and job a token of its own: `{name} --config {config} token new --name NAME --role ROLE`.\n\
         The token of `{}` is printed this once, and not kept:",
        paths.policy.display(),
        paths.tokens.display(),
        paths.unit.display(),
        paths.unit.display(),
        arguments.name,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_the_unit() {
        for (path, word) in [
            ("/srv/projects", "/srv/projects"),
            ("/srv/a b", "\"/srv/a b\""),
            ("/srv/100%", "/srv/100%%"),
            ("/srv/\"q\"", "\"/srv/\\\"q\\\"\""),
        ] {
            assert_eq!(unit_word(Path::new(path)), word);
        }
    }
}
