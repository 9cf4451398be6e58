//! The instructions that a client gets before it sees a tool.

/// The sentences of the instructions, each with the tools that it names: a caller that does not see them does not get
/// the sentence. Clients cut the whole at 2 KB.
const INSTRUCTIONS: [(&[&str], &str); 6] = [
    (&[], "Tools for working in a code base. Paths are relative to the first root."),
    (
        &["search_files", "find_files"],
        "Search with search_files and find_files instead of running grep or find.",
    ),
    (&["edit_file"], "Change files with edit_file instead of rewriting them."),
    (&["run_command"], "run_command has no shell and ends everything it started at its time limit."),
    (&["start_command"], "Servers and watchers belong in start_command."),
    (&[], "Secrets are masked as [redacted] or [redacted:kind] in every answer; the files still hold them."),
];

/// Returns the instructions for a model that sees the tools `seen`.
pub fn instructions(seen: &[&str]) -> String {
    let sentences = INSTRUCTIONS.iter().filter(|(named, _)| named.iter().all(|tool| seen.contains(tool)));
    sentences.map(|(_, sentence)| *sentence).collect::<Vec<_>>().join(" ")
}
