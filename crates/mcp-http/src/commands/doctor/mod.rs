//! `mcp-http doctor`: checks that everything is in place before others depend on it.

mod certificate;
mod files;
mod listeners;
mod machine;

use crate::audit_store;
use crate::auth::jwt::JwtVerifier;
use crate::auth::token_file;
use crate::cli::DoctorArgs;
use crate::console_output::{OutputError, name, print};
use crate::net::address::ListenAddress;
use crate::server::{audit_database, exposure};
use error_causes::chain;
use server_setup::finding::{DoctorFinding, broken, confinement, is_healthy, json, note, ok, table};
use server_setup::settings::Settings;
use server_setup::{confinement as confinement_setup, policy, resources, toolsets};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

/// Checks everything that the server needs, and prints the findings. The exit code is 1 if something is broken.
pub(crate) fn run(settings: &Settings, arguments: &DoctorArgs) -> Result<ExitCode, OutputError> {
    let mut findings = vec![match &settings.config.file {
        Some(file) => ok("configuration", file.display().to_string()),
        None => ok("configuration", "no file; the defaults hold"),
    }];
    let warnings = settings.config.warnings.iter();
    findings.extend(warnings.map(|warning| note("configuration", warning, "see docs/configuration.md")));
    findings.extend(files::check(settings));
    findings.extend(tokens(settings));
    findings.extend(exposure(settings));
    findings.extend(listeners::check(settings));
    findings.extend(certificate::check(settings));
    findings.extend(policy_and_confinement(settings));
    findings.extend(database(settings));
    findings.extend(machine::check(settings));
    print(&if arguments.json { json(&findings) } else { table(&findings, |_, word| word.to_owned()) })?;
    Ok(if is_healthy(&findings) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Checks that tokens can be read, and when each ends.
fn tokens(settings: &Settings) -> Vec<DoctorFinding> {
    let Some(path) = settings.config.http.tokens.as_ref() else { return Vec::new() };
    let file = match token_file::read(path) {
        Ok(file) => file,
        Err(error) => {
            return vec![broken("tokens", chain(&error), "correct it; the server does not start before")];
        }
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut findings = vec![match file.tokens.len() {
        0 => broken("tokens", "there is none", format!("make one: `{} token new`", name())),
        count => ok("tokens", format!("{count}, in {}", path.display())),
    }];
    for token in &file.tokens {
        let rotate = || format!("`{} token rotate {}`", name(), token.name);
        match token.expires {
            // A token without an end is allowed, and works for whoever finds it years later.
            None => findings.push(note(
                "tokens",
                format!("`{}` has no end", token.name),
                rotate() + " --expires 90d",
            )),
            Some(end) if end <= now => findings.push(note(
                "tokens",
                format!("`{}` has ended", token.name),
                format!("{}, or `{} token revoke {}`", rotate(), name(), token.name),
            )),
            Some(end) if end - now < 7 * 86_400 => findings.push(note(
                "tokens",
                format!("`{}` ends within {} d", token.name, (end - now).div_ceil(86_400)),
                rotate(),
            )),
            Some(_) => {}
        }
        // Far more than two clocks differ that are synchronised.
        if token.created > now + 300 {
            findings.push(broken(
                "clock",
                format!(
                    "the token `{}` was made in the future: the clock of this machine is behind",
                    token.name
                ),
                "set the clock, and have it synchronised (`timedatectl set-ntp true`)",
            ));
        }
    }
    findings
}

/// Checks that only callers who are identified are let in, and that no secret is in a root.
fn exposure(settings: &Settings) -> Vec<DoctorFinding> {
    let http = &settings.config.http;
    let remedy = "correct it; the server does not start before";
    let mut findings = Vec::new();
    if let Err(error) = exposure::check_secret_files(settings, http) {
        findings.push(broken("exposure", chain(&error), remedy));
    }
    let addresses: Vec<_> = http.listen.iter().filter_map(|text| ListenAddress::parse(text).ok()).collect();
    let metrics = http.metrics_listen.as_ref().and_then(|text| ListenAddress::parse(text).ok());
    let jwts = match JwtVerifier::new(http) {
        Ok(jwts) => jwts,
        Err(error) => {
            findings.push(broken("jwt", chain(&error), remedy));
            None
        }
    };
    if let Some(jwts) = &jwts {
        findings.push(match jwts.has_keys() {
            true => ok("jwt", format!("the keys of {} are there", jwts.issuer())),
            false => {
                note("jwt", "the keys of the issuer cannot be fetched", "start it, or correct http.jwt_keys")
            }
        });
    }
    let has_tls = http.tls_certificate.is_some();
    let checked =
        exposure::check_listeners(http, &addresses, metrics.as_ref(), has_tls, http.jwt_issuer.is_some());
    if let Err(error) = checked {
        findings.push(broken("exposure", chain(&error), remedy));
    }
    findings
}

/// Checks the policy, and how programs are confined here.
fn policy_and_confinement(settings: &Settings) -> Vec<DoctorFinding> {
    let workspace = match resources::workspace(settings) {
        Ok(workspace) => Arc::new(workspace),
        Err(error) => return vec![broken("roots", chain(&error), "name folders that are there: --root DIR")],
    };
    let mut findings = Vec::new();
    let runner = process_runner::Runner::new();
    let loaded =
        toolsets::facts(settings, &workspace, &runner).and_then(|facts| policy::configured(settings, &facts));
    match loaded {
        Ok(loaded) => {
            let file = settings.config.policy.file.as_ref();
            let source = file.map_or("the built-in roles".to_owned(), |file| file.display().to_string());
            findings.push(ok("policy", format!("{source}: {} roles", loaded.policy.roles().count())));
            let warnings = loaded.warnings.iter();
            findings.extend(
                warnings.map(|warning| {
                    note("policy", warning.to_string(), "`mcp-stdio policy lint` shows where")
                }),
            );
        }
        Err(error) => {
            findings.push(broken(
                "policy",
                chain(&error),
                "`mcp-stdio policy lint` names all that is wrong in it",
            ));
        }
    }
    findings.push(match confinement_setup::confine_all(settings, &workspace) {
        Ok(confine) => confinement(confine.to_string(), process_runner::Confinement::available()),
        Err(error) => broken("confinement", chain(&error), "lower policy.confinement, or run a newer kernel"),
    });
    findings
}

/// Checks the database of the audit. Nothing is made in it.
fn database(settings: &Settings) -> Option<DoctorFinding> {
    let location = match audit_database::location(&settings.config.http) {
        Ok(location) => location?,
        Err(error) => {
            return Some(broken("audit", chain(&error), "set the variable, as the unit of the server does"));
        }
    };
    // Only this check needs a runtime, and one thread is enough for one question.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let checked = runtime.map(|runtime| runtime.block_on(audit_store::check(&location)));
    Some(match checked {
        Ok(Ok(())) => ok("audit", "its database answers"),
        Ok(Err(error)) => broken("audit", chain(&error), "start it, or correct http.audit_database"),
        Err(error) => broken("audit", error.to_string(), "see the limits of this user"),
    })
}
