//! The subcommand `print-config`: the configuration that connects a client, printed or written into its file.

mod client;
mod entry;
pub(crate) mod launch;
pub(crate) mod merge;
pub(crate) mod write;

use crate::cli::GlobalOptions;
use crate::error::Error;
use crate::output::{DEFAULT_NAME, name, print, print_error};
use clap::Args;
pub(crate) use client::KnownClient;
use client::{FileFormat, UserFolders};
use entry::{INPUT_ID, TOKEN_MARK, TOKEN_VARIABLE};
use merge::NewEntry;
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use write::ConfigWriteOutcome;

pub(crate) const EXAMPLES: &str = "\
Examples:
  mcp-stdio print-config claude --write              connect Claude Code, for every project
  mcp-stdio print-config cursor --write --project    connect Cursor, for the project in this folder
  mcp-stdio --root ~/app print-config codex          print a configuration with a root
  mcp-stdio print-config gemini --url https://tools.example/mcp   connect to a running mcp-http

What is printed is JSON, for Codex TOML, and nothing else. A file that --write changes is kept
as it was, beside it, under its name with .bak.

Exit codes:
  0  printed, or written, or there was nothing to change
  1  it could not be printed
  2  the client's file cannot be changed without harm; the message says what to add by hand";

/// The arguments of `print-config`.
#[derive(Args, Clone, Debug)]
#[allow(clippy::doc_markdown, reason = "the comments are what --help prints")]
pub(crate) struct PrintConfigArguments {
    /// The client
    client: KnownClient,
    /// Merge the configuration into the client's file for all projects of this user
    #[arg(long)]
    write: bool,
    /// With --write: merge it into the client's file for the project in the current folder
    #[arg(long, requires = "write")]
    project: bool,
    /// With --write: merge it into this file
    #[arg(long, value_name = "FILE", requires = "write", conflicts_with = "project")]
    file: Option<PathBuf>,
    /// Name of the server in the client: letters, digits, - and _. Default: coretools; that of a server of your own
    /// is its name
    #[arg(long = "as", value_name = "NAME")]
    server_name: Option<String>,
    /// Address of an mcp-http server to connect to, instead of starting this one; its token is in
    /// $CORETOOLS_TOKEN
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

/// Prints the configuration, or writes it.
pub(crate) fn print_config(
    arguments: &PrintConfigArguments,
    options: &GlobalOptions,
) -> Result<ExitCode, Error> {
    let executable = std::env::current_exe()
        .map_err(Error::system("cannot find out which file this program was started from"))?;
    let config = ClientConfig::new(arguments, options, &executable)?;
    if !arguments.write {
        // For a person, and not for a program that reads the configuration.
        if std::io::stderr().is_terminal() {
            print_error(&config.hint());
        }
        return Ok(print(config.document().trim_end()));
    }
    let path = file(arguments)?;
    let written = write::merge_into(&path, |text| config.merged(text, &path))?;
    let (shown, client) = (path.display(), config.client.display_name());
    let result = match written {
        ConfigWriteOutcome::Unchanged => {
            format!("{shown} has the server {} already; nothing was changed", config.name)
        }
        ConfigWriteOutcome::Created => format!("wrote {shown}: the server {} for {client}", config.name),
        ConfigWriteOutcome::Changed { copy } => format!(
            "changed {shown}: the server {} for {client}; as it was before: {}",
            config.name,
            copy.display()
        ),
    };
    Ok(print(&format!("{result}\n{}", config.client.check())))
}

/// Returns the file to write.
fn file(arguments: &PrintConfigArguments) -> Result<PathBuf, Error> {
    let client = arguments.client;
    if let Some(file) = &arguments.file {
        return Ok(file.clone());
    }
    if arguments.project {
        let file = client.project_file().map(PathBuf::from);
        return file.ok_or_else(|| {
            Error::Argument(format!(
                "{} reads no servers from a project; leave --project out",
                client.display_name()
            ))
        });
    }
    let folders = UserFolders::from_environment();
    let missing = || Error::Argument("there is no HOME; name the file with --file".to_owned());
    Ok(client.user_file(&folders.ok_or_else(missing)?))
}

/// The configuration of one server in one client.
#[derive(Debug)]
struct ClientConfig {
    client: KnownClient,
    /// The name of the server.
    name: String,
    entry: Value,
    /// The command line by which the client itself adds the server, if it has one.
    command_line: Option<String>,
}

impl ClientConfig {
    fn new(
        arguments: &PrintConfigArguments,
        options: &GlobalOptions,
        executable: &Path,
    ) -> Result<Self, Error> {
        let client = arguments.client;
        let server_name = server_name(arguments.server_name.as_deref())?;
        match &arguments.url {
            None => Self::local(client, server_name, options, executable),
            Some(url) => Self::remote(client, server_name, url, options),
        }
    }

    /// Returns the configuration by which `client` starts this server.
    fn local(
        client: KnownClient,
        name: String,
        options: &GlobalOptions,
        executable: &Path,
    ) -> Result<Self, Error> {
        if client == KnownClient::ClaudeDesktop && options.roots.is_empty() {
            return Err(Error::Argument(
                "Claude Desktop starts its servers in no project's folder: name the folders that the tools may use, such \
                 as --root ~/project"
                    .to_owned(),
            ));
        }
        let mut words = launch::program(executable)?;
        words.extend(launch::arguments(options)?);
        let entry = entry::local(client, &words[0], &words[1..]);
        let command_line = match client {
            KnownClient::Claude => Some(format!("claude mcp add {name} --scope user --")),
            KnownClient::Codex => Some(format!("codex mcp add {name} --")),
            _ => None,
        };
        let command_line = command_line.map(|command| launch::command_line(&command, &words));
        Ok(Self { client, name, entry, command_line })
    }

    /// Returns the configuration by which `client` connects to an `mcp-http` at `url`.
    ///
    /// # Errors
    ///
    /// `url` is not a URL, the client takes none, or `options` has a flag that only a server which the client starts could
    /// heed.
    fn remote(client: KnownClient, name: String, url: &str, options: &GlobalOptions) -> Result<Self, Error> {
        if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
            // The URL is printed into a line for a shell.
            || url.chars().any(|character| character.is_whitespace() || character.is_control())
        {
            return Err(Error::Argument(format!(
                "--url {url:?} is no address; expected one such as https://tools.example/mcp"
            )));
        }
        // Not those that a variable may have set: they are not meant for this command.
        let flags = GlobalOptions { config: None, log: None, ..options.clone() };
        if let Some(flag) = launch::arguments(&flags)?.first() {
            return Err(Error::Argument(format!(
                "{flag} does not go with --url: the server there has its own; give it to mcp-http, or to the token \
                 (`mcp-http token new --help`)"
            )));
        }
        let entry = entry::remote(client, url).ok_or_else(|| {
            Error::Argument(format!(
                "{} takes no addresses in its file; add a custom connector in its settings",
                client.display_name()
            ))
        })?;
        let quoted = launch::quoted(url);
        let command_line = match client {
            KnownClient::Claude => {
                let header = launch::quoted(&format!("Authorization: Bearer ${{{TOKEN_VARIABLE}}}"));
                Some(format!(
                    "claude mcp add --scope user --transport http {name} {quoted} --header {header}"
                ))
            }
            KnownClient::Codex => {
                Some(format!("codex mcp add {name} --url {quoted} --bearer-token-env-var {TOKEN_VARIABLE}"))
            }
            _ => None,
        };
        Ok(Self { client, name, entry, command_line })
    }

    /// Returns a whole file with this server alone.
    fn document(&self) -> String {
        match self.client.format() {
            FileFormat::Toml => {
                format!("[{}.{}]\n{}", self.client.key(), self.name, merge::own_values(&self.entry))
            }
            FileFormat::Json => {
                let servers = json!({&self.name: self.entry});
                let document = match self.input() {
                    Some(input) => json!({self.client.key(): servers, "inputs": [input]}),
                    None => json!({self.client.key(): servers}),
                };
                format!("{document:#}\n")
            }
        }
    }

    /// Returns the question that VS Code asks before it connects.
    fn input(&self) -> Option<Value> {
        let is_asked = self.entry.to_string().contains(&format!("${{input:{INPUT_ID}}}"));
        is_asked.then(entry::token_input)
    }

    /// Returns `text`, the content of the file `path`, with this server in it.
    fn merged(&self, text: &str, path: &Path) -> Result<String, Error> {
        if self.entry.to_string().contains(TOKEN_MARK) {
            return Err(Error::Argument(format!(
                "{} keeps the token itself in its file; leave --write out, and add what is printed to {} with the \
                 token in place of {TOKEN_MARK}",
                self.client.display_name(),
                path.display()
            )));
        }
        let input = self.input();
        let new = NewEntry {
            key: self.client.key(),
            name: &self.name,
            value: &self.entry,
            element: input.as_ref().map(|input| ("inputs", input)),
        };
        let merged = match self.client.format() {
            FileFormat::Json => new.into_json(text),
            FileFormat::Toml => new.into_toml(text),
        };
        merged.map_err(|error| {
            Error::Argument(format!(
                "{} was not changed: {error}; add this to it by hand:\n{}",
                path.display(),
                self.document().trim_end()
            ))
        })
    }

    /// Returns what a person does with the printed configuration.
    fn hint(&self) -> String {
        let client = self.client;
        let user =
            UserFolders::from_environment().map(|folders| client.user_file(&folders).display().to_string());
        let files: Vec<_> = user.into_iter().chain(client.project_file().map(str::to_owned)).collect();
        let mut hint = format!(
            "{}: add this to {}, or run this command again with --write",
            client.display_name(),
            files.join(" or, for one project, ")
        );
        if let Some(line) = &self.command_line {
            hint.push_str(&format!("; or run\n  {line}"));
        }
        hint
    }
}

/// Returns the name of the server in a client's configuration: the one that was given, else the program's.
fn server_name(given: Option<&str>) -> Result<String, Error> {
    let own = if name() == DEFAULT_NAME { "coretools" } else { name() };
    let server_name = given.unwrap_or(own);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    match !server_name.is_empty() && server_name.len() <= 64 && server_name.bytes().all(is_name) {
        true => Ok(server_name.to_owned()),
        false => Err(Error::Argument(format!(
            "--as {server_name:?} is no name for a server; expected up to 64 letters, digits, - and _"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    fn config(client: KnownClient) -> ClientConfig {
        let options = GlobalOptions { roots: vec!["/it's \"here\"".into()], ..GlobalOptions::default() };
        ClientConfig::local(client, "coretools".to_owned(), &options, Path::new("/bin/mcp-stdio")).unwrap()
    }

    #[test]
    fn what_is_printed_for_each_client_is_what_an_empty_file_becomes() {
        for client in KnownClient::value_variants() {
            let config = config(*client);
            let merged = config.merged("", Path::new("file")).unwrap();
            assert_eq!(merged, config.document(), "{client:?}");
            assert_eq!(config.merged(&merged, Path::new("file")).unwrap(), merged, "{client:?}");
            let remote =
                ClientConfig::remote(*client, "a".to_owned(), "https://x/", &GlobalOptions::default());
            assert_eq!(remote.is_err(), *client == KnownClient::ClaudeDesktop);
            let Ok(remote) = remote else { continue };
            match remote.entry.to_string().contains(TOKEN_MARK) {
                true => assert!(remote.merged("", Path::new("file")).is_err(), "{client:?}"),
                false => assert_eq!(remote.merged("", Path::new("file")).unwrap(), remote.document()),
            }
        }
    }

    #[test]
    fn the_table_for_codex_is_toml_that_holds_every_word() {
        let table: toml::Table = config(KnownClient::Codex).document().parse().unwrap();
        let server = &table["mcp_servers"]["coretools"];
        assert_eq!(server["command"].as_str(), Some("/bin/mcp-stdio"));
        assert_eq!(server["args"][1].as_str(), Some("/it's \"here\""));
    }

    #[test]
    fn a_file_that_cannot_be_changed_is_refused_with_what_to_add() {
        let refused =
            config(KnownClient::Cursor).merged("{\"mcpServers\": [", Path::new("mcp.json")).unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("mcp.json was not changed") && said.contains("\"command\": \"/bin/mcp-stdio\""),
            "{said}"
        );
    }

    #[test]
    fn a_name_that_some_client_would_not_take_is_refused() {
        assert!(server_name(Some("my_tools-2")).is_ok() && server_name(None).is_ok());
        for name in ["", "a b", "a.b", "ключ"] {
            assert!(server_name(Some(name)).is_err(), "{name}");
        }
    }
}
