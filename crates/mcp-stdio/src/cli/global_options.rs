//! The options of every subcommand.
#![allow(clippy::doc_markdown, reason = "the comments are what --help prints")]

use clap::Args;
use server_setup::config::SettingFlags;
use std::path::PathBuf;

/// The options of every subcommand.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct GlobalOptions {
    /// Folder that tools may use; repeat it for several folders. Default: $CORETOOLS_ROOTS, else
    /// $FILESYSTEM_TOOLS_BASE_PATH, else the roots in the configuration, else the current folder
    #[arg(long = "root", value_name = "DIR", global = true)]
    pub(crate) roots: Vec<PathBuf>,

    /// Tools to offer: presets (standard, full, edit, introspect, minimal), toolsets or single tools, separated by commas
    #[arg(long, value_name = "LIST", global = true)]
    pub(crate) toolsets: Option<String>,

    /// Configuration file. Default: the nearest coretools.toml, from the first root given by flag or variable
    /// (else the current folder) upwards; a file found this way can only tighten limits
    #[arg(long, value_name = "FILE", env = "CORETOOLS_CONFIG", hide_env_values = true, global = true)]
    pub(crate) config: Option<PathBuf>,

    /// Role of the caller. If the environment or a marker names a role too, both must allow a call.
    /// Default: the policy's missing_role
    #[arg(long, value_name = "ROLE", global = true)]
    pub(crate) role: Option<String>,

    /// Policy file, which says what each role may see and call. Default: the built-in roles (see `policy init`)
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) policy: Option<PathBuf>,

    /// File to record every call and refusal in, one line of JSON each
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) audit: Option<PathBuf>,

    /// Command that the agent was started with; the policy may derive a role from it
    #[arg(
        long,
        value_name = "COMMAND",
        env = "CORETOOLS_AGENT_COMMAND",
        hide_env_values = true,
        global = true
    )]
    pub(crate) agent_command: Option<String>,

    /// Remote on which the tools work: the NAME of a [remotes.NAME] in the configuration, or KIND:TARGET[:ROOT] such as
    /// ssh:build-box:/src (see `remotes`)
    #[cfg(all(feature = "remotes", unix))]
    #[arg(long, value_name = "REMOTE", global = true)]
    pub(crate) remote: Option<String>,

    /// Option of the kind of the remote; repeat it for several options
    #[cfg(all(feature = "remotes", unix))]
    #[arg(long = "remote-option", value_name = "NAME=VALUE", global = true)]
    pub(crate) remote_options: Vec<String>,

    /// Answer with text alone, for clients that do not show structured content
    #[arg(long, global = true)]
    pub(crate) text_only: bool,

    /// Level of the log on standard error: off, error, warn, info, debug, trace. Default: warn
    #[arg(long, value_name = "LEVEL", env = "CORETOOLS_LOG", hide_env_values = true, global = true)]
    pub(crate) log: Option<String>,
}

impl GlobalOptions {
    /// Returns the remote on which the tools work, if they do.
    pub(crate) fn remote(&self) -> Option<&str> {
        #[cfg(all(feature = "remotes", unix))]
        return self.remote.as_deref();
        #[cfg(not(all(feature = "remotes", unix)))]
        None
    }

    /// Returns the options that override the configuration.
    pub(crate) fn flags(&self) -> SettingFlags {
        SettingFlags {
            config: self.config.clone(),
            roots: self.roots.clone(),
            toolsets: self.toolsets.clone(),
            results: self.text_only.then(|| "text".to_owned()),
            role: self.role.clone(),
            policy: self.policy.clone(),
            audit: self.audit.clone(),
            #[cfg(all(feature = "remotes", unix))]
            remote: self.remote.clone(),
            #[cfg(all(feature = "remotes", unix))]
            remote_options: self.remote_options.clone(),
            ..SettingFlags::default()
        }
    }
}
