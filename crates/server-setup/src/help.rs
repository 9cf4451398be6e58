//! Help texts that both servers lay out alike: the global options in one line below a subcommand's own, and the name of
//! the program in every text.

use clap::{Arg, Command, FromArgMatches};
use std::ffi::OsString;

/// Parses `arguments` by `plain`. Where they are wrong or ask for help, parses them by `complete` and ends the process: that
/// is the same command line with the texts that a person reads. Most starts show none of them, and to write them for each
/// subcommand takes longer than to parse.
pub fn parse<T: FromArgMatches>(
    arguments: Vec<OsString>,
    plain: impl FnOnce() -> Command,
    complete: impl FnOnce() -> Command,
) -> T {
    let parsed = plain().try_get_matches_from(&arguments);
    parsed.and_then(|mut matches| T::from_arg_matches_mut(&mut matches)).unwrap_or_else(|_| {
        let mut matches = complete().get_matches_from(arguments);
        T::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit())
    })
}

/// Takes the global options out of the help of each subcommand, where they would drown its own, and names them in one line
/// below. They are parsed and completed as before. `name` is the program's name in that line.
pub fn with_short_global_options(command: Command, name: &str) -> Command {
    let global: Vec<Arg> =
        command.get_arguments().filter(|argument| argument.is_global_set()).cloned().collect();
    let flags: Vec<_> = global.iter().filter_map(Arg::get_long).collect();
    let summary = format!("Global options: --{}; `{name} --help` explains them.", flags.join(", --"));
    for_each_subcommand(command, &|subcommand| shortened(subcommand, &global, &summary))
}

fn shortened(command: Command, global: &[Arg], summary: &str) -> Command {
    let command = for_each_subcommand(command, &|subcommand| shortened(subcommand, global, summary));
    let after = match command.get_after_help() {
        Some(after) => format!("{summary}\n\n{after}"),
        None => summary.to_owned(),
    };
    // An option of its own takes the place of the global one with the same name.
    let own: Vec<_> = command.get_arguments().map(|argument| argument.get_id().clone()).collect();
    let hidden = global.iter().filter(|argument| !own.contains(argument.get_id()));
    let hidden = hidden.map(|argument| argument.clone().hide(true));
    command.args(hidden).after_help(after)
}

/// Changes the text below the options of `command` and of all its subcommands by `change`.
pub fn with_changed_texts(command: Command, change: &dyn Fn(&str) -> String) -> Command {
    let text = command.get_after_help().map(|help| change(&help.to_string()));
    let command = match text {
        Some(text) => command.after_help(text),
        None => command,
    };
    for_each_subcommand(command, &|subcommand| with_changed_texts(subcommand, change))
}

fn for_each_subcommand(command: Command, change: &dyn Fn(Command) -> Command) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|subcommand| subcommand.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, change))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        let root = Arg::new("root").long("root").global(true).help("Folder");
        let own = Arg::new("json").long("json").num_args(0);
        let inner = Command::new("inner").after_help("demo inner").arg(own);
        Command::new("demo").arg(root).subcommand(Command::new("outer").subcommand(inner))
    }

    #[test]
    fn a_subcommand_names_the_global_options_takes_them_and_shows_its_own() {
        let mut command = with_short_global_options(command(), "demo");
        let matches = command.clone().get_matches_from(["demo", "outer", "inner", "--root", "x"]);
        assert_eq!(matches.get_one::<String>("root").map(String::as_str), Some("x"));
        command.build();
        let inner = command.find_subcommand_mut("outer").and_then(|outer| outer.find_subcommand_mut("inner"));
        let help = inner.unwrap().render_help().to_string();
        assert!(help.contains("--json") && help.contains("Global options: --root;"), "{help}");
        assert!(!help.contains("Folder") && help.ends_with("demo inner\n"), "{help}");
    }

    #[test]
    fn every_text_is_changed() {
        let command = with_changed_texts(command(), &|text| text.replace("demo", "mine"));
        let inner = command.find_subcommand("outer").and_then(|outer| outer.find_subcommand("inner"));
        assert_eq!(inner.unwrap().get_after_help().unwrap().to_string(), "mine inner");
    }
}
