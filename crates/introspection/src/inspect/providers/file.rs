//! State that the application writes to a JSON file.

use crate::inspect::Error;
use crate::inspect::provider::{Provider, ProviderFuture, StateRequest};
use crate::inspect::state_value::ProviderError;
use crate::inspect::target::InspectTarget;
use std::io::Read as _;

/// The file that is read if neither the request nor the settings name one.
const DEFAULT_PATH: &str = ".app-state.json";
/// The limit of a file, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Answers from a JSON file that the application writes.
#[derive(Debug)]
pub(in crate::inspect) struct FileProvider {
    /// The file of the settings.
    pub(in crate::inspect) path: Option<String>,
}

impl Provider for FileProvider {
    fn name(&self) -> &'static str {
        "file"
    }

    fn read<'a>(&'a self, request: &'a StateRequest<'a>) -> ProviderFuture<'a> {
        Box::pin(async move {
            let path = match (request.target, &self.path) {
                (Some(InspectTarget::File(path)), _) => path.as_str(),
                (Some(_), _) => return Err(ProviderError::NotAsked("the target is no file")),
                (None, Some(path)) => path.as_str(),
                (None, None) => DEFAULT_PATH,
            };
            let is_default = request.target.is_none() && self.path.is_none();
            let failed = |source| Error::OpenFile { path: path.to_owned(), source };
            let opened = request
                .workspace
                .locate(path)
                .and_then(|path| Ok((path.display_path(), path.open_read()?.0)));
            let (display_path, file) = match opened {
                Ok(opened) => opened,
                // Nobody has asked for the default file, so its absence is no failure.
                Err(_) if is_default => {
                    return Err(ProviderError::NotAsked("the application writes no file"));
                }
                Err(error) => return Err(failed(error).into()),
            };
            let read = tokio::task::spawn_blocking(move || {
                let mut bytes = Vec::new();
                // One byte more than the limit tells a file that is too long from one that just fits.
                file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map(|_| bytes)
            });
            let bytes = match read.await {
                Ok(Ok(bytes)) => bytes,
                Ok(Err(error)) => return Err(Error::ReadFile { path: display_path, source: error }.into()),
                Err(_) => return Err(Error::Cancelled.into()),
            };
            if bytes.len() as u64 > MAX_BYTES {
                return Err(Error::Document {
                    location: display_path,
                    reason: "it has more than 16 MiB".to_owned(),
                }
                .into());
            }
            let document = serde_json::from_slice(&bytes).map_err(|error| Error::Document {
                location: display_path.clone(),
                reason: error.to_string(),
            })?;
            request.json(format!("file: {display_path}"), &document)
        })
    }
}
