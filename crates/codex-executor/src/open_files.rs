//! [`OpenFiles`]: the files that Codex reads in blocks.

use crate::protocol::FileHandleParams;
use crate::rpc_error::RpcError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most files that are open at once.
const MAX_OPEN: usize = 64;
/// The most bytes of one block.
const MAX_BLOCK_BYTES: usize = 8 << 20;

/// The open files of one connection, by Codex's ids.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles(Mutex<HashMap<String, Arc<File>>>);

impl OpenFiles {
    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<File>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self, id: &str, file: File) -> Result<Value, RpcError> {
        let mut table = self.table();
        if table.contains_key(id) {
            return Err(RpcError::refused(format!("there is an open file `{id}` already")));
        }
        if table.len() >= MAX_OPEN {
            return Err(RpcError::refused(format!("{MAX_OPEN} files are open; close one")));
        }
        table.insert(id.to_owned(), Arc::new(file));
        Ok(json!({"handleId": id}))
    }

    pub(crate) fn read_block(&self, params: &FileHandleParams) -> Result<Value, RpcError> {
        let file = self.table().get(&params.handle_id).cloned();
        let file =
            file.ok_or_else(|| RpcError::refused(format!("there is no open file `{}`", params.handle_id)))?;
        let mut block = vec![0; params.len.min(MAX_BLOCK_BYTES)];
        let mut read = 0;
        while read < block.len() {
            match file.read_at(&mut block[read..], params.offset.saturating_add(read as u64))? {
                0 => break,
                bytes => read += bytes,
            }
        }
        let eof = read < block.len();
        block.truncate(read);
        Ok(json!({"chunk": STANDARD.encode(block), "eof": eof}))
    }

    pub(crate) fn close(&self, params: &FileHandleParams) -> Value {
        self.table().remove(&params.handle_id);
        json!({})
    }
}
