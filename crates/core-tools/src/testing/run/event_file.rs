//! The file of events that a reporter writes while the tests run.

use crate::testing::parse::LineParser;
use crate::testing::plan::EVENTS_FILE;
use crate::testing::results::TestResults;
use crate::workspace::Workspace;
use serde::de::IgnoredAny;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// The longest event that is read, in bytes.
const MAX_EVENT_BYTES: usize = 4 << 20;
/// The number of bytes that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Reads the file of events while it grows, from where it stopped the last time.
#[derive(Default)]
pub(super) struct ReporterEventFile {
    /// Kept open: a test may remove what it finds in the folder for temporary files.
    file: Option<File>,
    offset: u64,
    /// The beginning of a line whose end has not come yet.
    open_line: Vec<u8>,
}

impl ReporterEventFile {
    /// Reads the complete lines that came since the last call.
    pub(super) fn read(
        &mut self,
        reports: &Workspace,
        parser: &mut dyn LineParser,
        results: &mut TestResults,
    ) {
        if self.file.is_none() {
            let opened = reports.locate(EVENTS_FILE).and_then(|path| path.open_read());
            self.file = opened.ok().map(|(file, _)| file);
        }
        let Some(file) = &mut self.file else { return };
        if file.seek(SeekFrom::Start(self.offset)).is_err() {
            return;
        }
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(read @ 1..) = file.read(&mut chunk) {
            self.offset += read as u64;
            for &byte in chunk.iter().take(read) {
                if byte == b'\n' {
                    parser.event(&String::from_utf8_lossy(&self.open_line), results);
                    self.open_line.clear();
                // The rest of a longer line is dropped. The parser then reports that the line cannot be read.
                } else if self.open_line.len() < MAX_EVENT_BYTES {
                    self.open_line.push(byte);
                }
            }
        }
    }

    /// Reads the last line of a reporter that was killed: it may be complete and without its end.
    pub(super) fn finish(&mut self, parser: &mut dyn LineParser, results: &mut TestResults) {
        if serde_json::from_slice::<IgnoredAny>(&self.open_line).is_ok() {
            parser.event(&String::from_utf8_lossy(&self.open_line), results);
        } else {
            results.truncated |= !self.open_line.is_empty();
        }
    }
}
