//! Is everything in place?

use crate::setup::Settings;
use std::process::ExitCode;

pub(crate) async fn doctor(_settings: Settings, _json: bool) -> Result<ExitCode, String> {
    Ok(ExitCode::SUCCESS)
}
