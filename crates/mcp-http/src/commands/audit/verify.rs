//! `mcp-http audit verify`.

use super::error::AuditCommandError;
use super::signature;
use super::sources::sources;
use crate::atomic_file;
use crate::audit_source::{AuditSource, FILE_CHAIN};
use crate::cli::AuditVerifyArgs;
use crate::console_output::{print, say};
use audit_log::{ChainSummary, ChainVerifier, Checkpoint, Verification};
use server_setup::settings::Settings;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// Verifies every place where the audit is. The exit code is 1 if something was changed.
pub(super) fn run(settings: &Settings, arguments: &AuditVerifyArgs) -> Result<ExitCode, AuditCommandError> {
    let key = arguments.public_key.as_deref();
    let checkpoint = arguments.checkpoint.as_deref().map(|path| read_checkpoint(path, key)).transpose()?;
    let (mut text, mut is_intact, mut heads) = (String::new(), true, BTreeMap::new());
    for source in sources(settings, arguments.from)? {
        let is_file = matches!(source, AuditSource::File(_));
        let known = checkpoint.iter().flat_map(|checkpoint| &checkpoint.chains);
        // A checkpoint may cover both places. Chains of the other place would be reported as missing here.
        let known = known.filter(|(chain, _)| (*chain == FILE_CHAIN) == is_file);
        let known = known.map(|(chain, head)| (chain.clone(), head.clone())).collect();
        let mut verifier = ChainVerifier::with_checkpoint(Checkpoint::new(known));
        source.verify(&mut verifier)?;
        let found = verifier.finish();
        is_intact &= found.is_intact();
        describe(&mut text, &source, &found);
        heads.extend(found.checkpoint().chains);
    }
    print(text.trim_end())?;
    // A checkpoint of a changed chain would make the change look right from now on.
    if !is_intact {
        return Ok(ExitCode::from(1));
    }
    if checkpoint.is_none() {
        say(
            "Without --checkpoint, records that were cut off at the end of a chain, a whole chain that was removed, and one \
             that was computed anew are not found.",
        );
    }
    if let Some(path) = &arguments.save_checkpoint {
        let text = signature::write(&Checkpoint::new(heads), arguments.sign_key.as_deref())
            .map_err(|source| AuditCommandError::Signature { path: path.clone(), source })?;
        atomic_file::replace(path, text.as_bytes())
            .map_err(|source| AuditCommandError::SaveCheckpoint { path: path.clone(), source })?;
        say(&format!(
            "The checkpoint {} is written. Keep it where nobody who can write to the audit can change it.",
            path.display()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

#[allow(clippy::disallowed_methods, reason = "the operator names the file")]
fn read_checkpoint(path: &Path, key: Option<&Path>) -> Result<Checkpoint, AuditCommandError> {
    let failed = |source| AuditCommandError::CheckpointFile { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let checkpoint = Checkpoint::parse(&text)
        .map_err(|source| AuditCommandError::Checkpoint { path: path.to_owned(), source })?;
    if let Some(key) = key {
        signature::verify(&checkpoint, &text, key)
            .map_err(|source| AuditCommandError::Signature { path: path.to_owned(), source })?;
    }
    Ok(checkpoint)
}

/// Describes what was found in one place.
fn describe(text: &mut String, source: &AuditSource, found: &Verification) {
    let records: u64 = found.chains.values().map(|chain| chain.records).sum();
    let result = if found.is_intact() { "intact" } else { "CHANGED" };
    match source {
        AuditSource::File(path) => {
            let _ = writeln!(text, "{}: {records} records, {result}", path.display());
            if let Some(chain) = found.chains.get(FILE_CHAIN) {
                let _ = writeln!(text, "  {}", range(chain));
            }
        }
        AuditSource::Database(_) => {
            let chains = found.chains.len();
            let _ = writeln!(text, "database: {records} records of {chains} servers, {result}");
            for (server, chain) in found.chains.iter().filter(|(_, chain)| !chain.is_ended) {
                let _ = writeln!(
                    text,
                    "  {server}: {}; it has no end: the server runs, was killed, or its last records are missing",
                    range(chain)
                );
            }
        }
    }
    for fault in &found.faults {
        let chain = match source {
            AuditSource::File(_) => String::new(),
            AuditSource::Database(_) => format!("{}: ", fault.chain),
        };
        let _ = writeln!(text, "  CHANGED: {chain}{} {}", fault.position, fault.kind);
    }
    if found.further_faults > 0 {
        let _ = writeln!(text, "  and {} more", found.further_faults);
    }
    if found.unlinked > 0 {
        let _ = writeln!(
            text,
            "  {} records of version 0.1.0 have no hashes: nothing shows whether they were changed",
            found.unlinked
        );
    }
    for position in &found.damaged {
        let _ = writeln!(text, "  {position} is no record: a write broke off, or it was overwritten");
    }
    if found.further_damaged > 0 {
        let _ = writeln!(text, "  and {} more", found.further_damaged);
    }
}

/// Describes the records of a chain.
fn range(chain: &ChainSummary) -> String {
    let mut text = format!("records {} to {}", chain.first, chain.head.number);
    if chain.first > 1 {
        text.push_str(&format!("; those before {} were rotated away or deleted", chain.first));
    }
    if chain.lost > 0 {
        text.push_str(&format!("; {} were lost, as the server has recorded", chain.lost));
    }
    text
}
