//! State that the application writes to a JSON file.

use super::Error;
use super::provider::{Passed, Provider, Reading, Request};
use super::target::Target;
use std::io::Read as _;

/// The file that is looked for where none is named.
const DEFAULT: &str = ".app-state.json";
/// The longest file that is read.
const MOST_BYTES: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct File {
    /// The file of the settings.
    pub(super) path: Option<String>,
}

impl Provider for File {
    fn name(&self) -> &'static str {
        "file"
    }

    fn read<'a>(&'a self, request: &'a Request<'a>) -> Reading<'a> {
        Box::pin(async move {
            let path = match (request.target, &self.path) {
                (Some(Target::File(path)), _) => path.as_str(),
                (Some(_), _) => return Err(Passed::Nothing("the target is no file".to_owned())),
                (None, Some(path)) => path.as_str(),
                (None, None) => DEFAULT,
            };
            let is_default = request.target.is_none() && self.path.is_none();
            let failed = |source| Error::File { path: path.to_owned(), source };
            let opened =
                request.workspace.locate(path).and_then(|path| Ok((path.shown(), path.open_read()?.0)));
            let (shown, file) = match opened {
                Ok(opened) => opened,
                Err(_) if is_default => {
                    return Err(Passed::Nothing(format!("there is no {DEFAULT}, and STATE_PATH is not set")));
                }
                Err(error) => return Err(failed(error).into()),
            };
            let read = tokio::task::spawn_blocking(move || {
                let mut bytes = Vec::new();
                file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map(|_| bytes)
            });
            let bytes = match read.await {
                Ok(Ok(bytes)) => bytes,
                Ok(Err(error)) => return Err(Error::Io { what: shown, source: error }.into()),
                Err(_) => return Err(Error::Cancelled.into()),
            };
            if bytes.len() as u64 > MOST_BYTES {
                return Err(Error::Document { what: shown, why: "it has more than 16 MiB".to_owned() }.into());
            }
            let document = serde_json::from_slice(&bytes)
                .map_err(|error| Error::Document { what: shown.clone(), why: error.to_string() })?;
            request.json(format!("file: {shown}"), &document)
        })
    }
}
