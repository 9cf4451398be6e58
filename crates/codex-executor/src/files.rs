//! [`FileRequestHandler`]: the requests about files. They run on blocking threads.

use crate::file_uri::{path_of_uri, uri_of_path};
use crate::open_files::OpenFiles;
use crate::policy::{ExecutorPolicy, FileOperation, FileRequest};
use crate::protocol::{
    CopyFile, FileHandleParams, FileMetadata, PathParams, PathsParams, WalkOptions, method,
};
use crate::rpc_error::RpcError;
use crate::sandbox::SandboxLimits;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use workspace::{ConfinedPath, Metadata, PathKind};

/// The largest file that is read or written as a whole.
pub(crate) const MAX_FILE_BYTES: u64 = 64 << 20;
/// The most paths of one request for metadata.
const MAX_BATCH: usize = 1000;
/// The bounds of a walk, whatever the request says.
const MAX_WALK: WalkOptions = WalkOptions {
    max_depth: 64,
    max_directories: 10_000,
    max_entries: 100_000,
    follow_directory_symlinks: true,
    prune_hidden_directories: false,
};

/// The requests about files of one connection.
#[derive(Debug)]
pub(crate) struct FileRequestHandler<P> {
    policy: Arc<P>,
    open: OpenFiles,
}

impl<P: ExecutorPolicy> FileRequestHandler<P> {
    pub(crate) fn new(policy: Arc<P>) -> Self {
        Self { policy, open: OpenFiles::default() }
    }

    /// Asks the policy about `path`, does `work`, and records its end.
    fn judged<T>(
        &self,
        operation: FileOperation,
        path: &Path,
        method: &'static str,
        sandbox: Option<&SandboxLimits>,
        work: impl FnOnce(&ConfinedPath) -> Result<T, RpcError>,
    ) -> Result<T, RpcError> {
        let request = FileRequest { operation, path, method };
        let (path, permit) =
            self.policy.file(&request).map_err(|refusal| RpcError::refused(refusal.to_string()))?;
        let within_sandbox = match sandbox.filter(|_| operation.changes()) {
            None => Ok(()),
            Some(sandbox) => canonical(&path).and_then(|path| {
                sandbox.check_write(&path).map_err(|refusal| RpcError::refused(refusal.to_string()))
            }),
        };
        let done = within_sandbox.and_then(|()| work(&path));
        self.policy.ended(permit, done.is_ok());
        done
    }

    /// Answers a request about one path.
    pub(crate) fn on_path(&self, method: &'static str, params: &PathParams) -> Result<Value, RpcError> {
        let operation = match method {
            method::WRITE_FILE => FileOperation::Write,
            method::CREATE_DIRECTORY => FileOperation::CreateFolder,
            method::GET_METADATA | method::CANONICALIZE => FileOperation::Describe,
            method::READ_DIRECTORY | method::WALK => FileOperation::List,
            method::REMOVE => FileOperation::Remove,
            _ => FileOperation::Read,
        };
        let path = requested(&params.path)?;
        let sandbox = sandbox(&params.sandbox)?;
        self.judged(operation, &path, method, sandbox.as_ref(), |path| match method {
            method::READ_FILE => Ok(json!({"dataBase64": STANDARD.encode(read(path)?)})),
            method::OPEN => {
                let id = params.handle_id.as_deref().unwrap_or_default();
                self.open.open(id, path.open_read()?.0)
            }
            method::WRITE_FILE => {
                let data = params.data_base64.as_deref().unwrap_or_default();
                let content = STANDARD.decode(data).map_err(|error| {
                    RpcError::params(format!("`dataBase64` is not valid base64: {error}"))
                })?;
                write(path, &content)
            }
            method::CREATE_DIRECTORY => create_folder(path, params.recursive.unwrap_or(true)),
            method::GET_METADATA => Ok(json!(metadata(path)?)),
            method::CANONICALIZE => {
                path.metadata()?;
                Ok(json!({"path": uri_of_path(&canonical(path)?)}))
            }
            method::READ_DIRECTORY => list(path),
            method::WALK => walk(path, params.options.unwrap_or(MAX_WALK)),
            method::REMOVE => {
                remove(path, params.recursive.unwrap_or(true), params.force.unwrap_or(true))?;
                Ok(json!({}))
            }
            other => Err(RpcError::unknown_method(format!("`{other}` is no request about a path"))),
        })
    }

    pub(crate) fn metadata_of(&self, params: &PathsParams) -> Result<Value, RpcError> {
        if params.paths.len() > MAX_BATCH {
            return Err(RpcError::refused(format!("at most {MAX_BATCH} paths at once")));
        }
        let results = params.paths.iter().map(|uri| {
            let found = requested(uri).and_then(|path| {
                self.judged(FileOperation::Describe, &path, method::GET_METADATA_BATCH, None, metadata)
            });
            match found {
                Ok(metadata) => json!({"metadata": metadata}),
                Err(error) => json!({"error": error.answer(&Value::Null)["error"]}),
            }
        });
        Ok(json!({"results": results.collect::<Vec<_>>()}))
    }

    pub(crate) fn copy(&self, params: &CopyFile) -> Result<Value, RpcError> {
        let (source, destination) = (requested(&params.source_path)?, requested(&params.destination_path)?);
        let sandbox = sandbox(&params.sandbox)?;
        let content = self.judged(FileOperation::Read, &source, method::COPY, None, read)?;
        self.judged(FileOperation::Write, &destination, method::COPY, sandbox.as_ref(), |path| {
            write(path, &content)
        })
    }

    pub(crate) fn read_block(&self, params: &FileHandleParams) -> Result<Value, RpcError> {
        self.open.read_block(params)
    }

    pub(crate) fn close(&self, params: &FileHandleParams) -> Value {
        self.open.close(params)
    }
}

fn requested(uri: &str) -> Result<std::path::PathBuf, RpcError> {
    path_of_uri(uri).map_err(|error| RpcError::params(error.to_string()))
}

fn sandbox(value: &Value) -> Result<Option<SandboxLimits>, RpcError> {
    SandboxLimits::read(value).map_err(|refusal| RpcError::refused(refusal.to_string()))
}

fn canonical(path: &ConfinedPath) -> Result<std::path::PathBuf, RpcError> {
    Ok(path.without_links()?)
}

fn read(path: &ConfinedPath) -> Result<Vec<u8>, RpcError> {
    let (file, metadata) = path.open_read()?;
    let too_large = |size: u64| {
        RpcError::refused(format!(
            "`{}` has {size} bytes, and at most {MAX_FILE_BYTES} are read",
            path.display_path()
        ))
    };
    if metadata.size > MAX_FILE_BYTES {
        return Err(too_large(metadata.size));
    }
    let mut content = Vec::new();
    // It may grow meanwhile.
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_FILE_BYTES { Err(too_large(content.len() as u64)) } else { Ok(content) }
}

fn write(path: &ConfinedPath, content: &[u8]) -> Result<Value, RpcError> {
    // The folder is created by a request of its own, which the policy judges.
    if let Some(parent) = path.parent() {
        parent.metadata()?;
    }
    path.write(content)?;
    Ok(json!({}))
}

fn create_folder(path: &ConfinedPath, recursive: bool) -> Result<Value, RpcError> {
    if !recursive {
        if path.is_there() {
            return Err(RpcError::refused(format!("`{}` is there already", path.display_path())));
        }
        if let Some(parent) = path.parent() {
            parent.metadata()?;
        }
    }
    path.create_folder_all()?;
    Ok(json!({}))
}

fn metadata(path: &ConfinedPath) -> Result<FileMetadata, RpcError> {
    let own = path.link_metadata()?;
    let is_symlink = own.kind == PathKind::Symlink;
    let found = if is_symlink { path.metadata()? } else { own };
    Ok(FileMetadata {
        is_directory: found.kind == PathKind::Directory,
        is_file: found.kind == PathKind::File,
        is_symlink,
        size: found.size,
        created_at_ms: 0,
        modified_at_ms: modified(&found),
    })
}

fn modified(metadata: &Metadata) -> i64 {
    let since = metadata.modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(0)
}

/// Returns the kinds of a name in a folder: a link is described by what it leads to.
fn kind_of(folder: &ConfinedPath, entry: &workspace::DirEntry) -> Option<(ConfinedPath, PathKind)> {
    let path = folder.join(&entry.name).ok()?;
    let kind = match entry.kind {
        PathKind::Symlink => path.kind().ok()??,
        kind => kind,
    };
    Some((path, kind))
}

fn entries(folder: &ConfinedPath) -> Result<Vec<workspace::DirEntry>, RpcError> {
    let opened = folder.open_folder()?;
    let mut entries = opened.entries()?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

fn list(path: &ConfinedPath) -> Result<Value, RpcError> {
    let entries = entries(path)?.into_iter().map(|entry| {
        let kind = kind_of(path, &entry).map(|(_, kind)| kind);
        json!({
            "fileName": entry.name.to_string_lossy(),
            "isDirectory": kind == Some(PathKind::Directory),
            "isFile": kind == Some(PathKind::File),
        })
    });
    Ok(json!({"entries": entries.collect::<Vec<_>>()}))
}

/// Lists the files and folders beneath `start`, folder by folder.
fn walk(start: &ConfinedPath, options: WalkOptions) -> Result<Value, RpcError> {
    let max_entries = options.max_entries.min(MAX_WALK.max_entries);
    let max_folders = options.max_directories.min(MAX_WALK.max_directories);
    let max_depth = options.max_depth.min(MAX_WALK.max_depth);
    let (mut found, mut errors, mut truncated) = (Vec::new(), Vec::new(), false);
    let mut folders = VecDeque::from([(start.clone(), 0)]);
    let mut read = 0;
    while let Some((folder, depth)) = folders.pop_front() {
        if read == max_folders {
            truncated = true;
            break;
        }
        read += 1;
        let listed = match entries(&folder) {
            Ok(listed) => listed,
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                let message = &error.answer(&Value::Null)["error"]["message"];
                errors.push(json!({"path": uri_of_path(&folder.to_absolute()), "message": message}));
                continue;
            }
        };
        for entry in listed {
            let Some((path, kind)) = kind_of(&folder, &entry) else { continue };
            let name = match kind {
                PathKind::Directory => "directory",
                PathKind::File => "file",
                _ => continue,
            };
            if found.len() == max_entries {
                truncated = true;
                folders.clear();
                break;
            }
            found.push(json!({"path": uri_of_path(&path.to_absolute()), "kind": name}));
            let is_hidden = entry.name.as_encoded_bytes().starts_with(b".");
            let enters = kind == PathKind::Directory
                && depth < max_depth
                && (options.follow_directory_symlinks || entry.kind != PathKind::Symlink)
                && !(options.prune_hidden_directories && is_hidden);
            if enters {
                folders.push_back((path, depth + 1));
            }
        }
    }
    Ok(json!({"entries": found, "errors": errors, "truncated": truncated}))
}

fn remove(path: &ConfinedPath, recursive: bool, force: bool) -> Result<(), RpcError> {
    let kind = match path.link_metadata() {
        Ok(metadata) => metadata.kind,
        Err(error) if force && error.is_not_found() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if kind != PathKind::Directory {
        return Ok(path.remove_file()?);
    }
    if recursive {
        for entry in entries(path)? {
            remove(&path.join(&entry.name)?, true, true)?;
        }
    }
    if path.remove_empty_folder() {
        return Ok(());
    }
    path.check_changeable()?;
    Err(RpcError::refused(format!(
        "the folder `{}` cannot be removed: it is not empty, or not ours",
        path.display_path()
    )))
}
