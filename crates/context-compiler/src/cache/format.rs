//! The binary format of a cache's files. Numbers are little-endian, lengths precede texts, and maps are sorted by key, so
//! the same entries give the same bytes.

use super::entries::{CachedPathEntry, ContentCacheEntries, ContentFacts, ContentKind};
use crate::outline::{CodeOutline, CodeSymbol, Language, SymbolKind};
use crate::source::SourceFileState;
use std::sync::Arc;

pub(super) fn encode_facts(entries: &ContentCacheEntries) -> Vec<u8> {
    let mut out = Vec::new();
    let facts = entries.facts.sorted();
    put_number(&mut out, facts.len());
    for (hash, facts) in facts {
        out.extend(hash);
        out.push(match facts.kind {
            ContentKind::InvalidUtf8 => 1,
            ContentKind::Binary => 2,
            ContentKind::Text => 0,
        });
        put_number(&mut out, facts.tokens);
        put_number(&mut out, facts.lines);
    }
    let index = entries.index.sorted();
    put_number(&mut out, index.len());
    for (path, CachedPathEntry { state, looked_at_ns, hash }) in index {
        put_bytes(&mut out, path.as_bytes());
        out.extend(state.size.to_le_bytes());
        out.extend(state.mtime_ns.to_le_bytes());
        out.extend(state.ctime_ns.to_le_bytes());
        out.extend(state.inode.to_le_bytes());
        out.extend(looked_at_ns.to_le_bytes());
        out.extend(hash);
    }
    out
}

/// Adds the facts and the index in `bytes` to `entries`, up to the first one that cannot be read.
pub(super) fn decode_facts(bytes: &[u8], entries: &mut ContentCacheEntries) -> Option<()> {
    let mut reader = ContentCacheFileReader(bytes);
    for _ in 0..reader.number()? {
        let hash = reader.array()?;
        let kind = match reader.array::<1>()? {
            [0] => ContentKind::Text,
            [1] => ContentKind::InvalidUtf8,
            [2] => ContentKind::Binary,
            _ => return None,
        };
        let facts = ContentFacts { kind, tokens: reader.number()?, lines: reader.number()? };
        entries.insert_facts(hash, facts);
    }
    for _ in 0..reader.number()? {
        let path = reader.text()?;
        let state = SourceFileState {
            size: u64::from_le_bytes(reader.array()?),
            mtime_ns: i128::from_le_bytes(reader.array()?),
            ctime_ns: i128::from_le_bytes(reader.array()?),
            inode: u64::from_le_bytes(reader.array()?),
        };
        let looked_at_ns = i128::from_le_bytes(reader.array()?);
        entries.insert_index_entry(path, CachedPathEntry { state, looked_at_ns, hash: reader.array()? });
    }
    Some(())
}

pub(super) fn encode_outlines(entries: &ContentCacheEntries) -> Vec<u8> {
    let mut out = Vec::new();
    let outlines = entries.outlines.sorted();
    put_number(&mut out, outlines.len());
    for ((hash, language), outline) in outlines {
        out.extend(hash);
        out.push(language.tag());
        put_bytes(&mut out, outline.text.as_bytes());
        out.push(u8::from(outline.complete));
        put_number(&mut out, outline.symbols.len());
        for symbol in &outline.symbols {
            put_bytes(&mut out, symbol.name.as_bytes());
            out.push(symbol.kind.tag());
            put_number(&mut out, symbol.line);
            out.push(u8::from(symbol.exported));
        }
        put_number(&mut out, outline.identifiers.len());
        for (name, count) in &outline.identifiers {
            put_bytes(&mut out, name.as_bytes());
            out.extend(count.to_le_bytes());
        }
    }
    out
}

/// Adds the outlines in `bytes` to `entries`, up to the first one that cannot be read.
pub(super) fn decode_outlines(bytes: &[u8], entries: &mut ContentCacheEntries) -> Option<()> {
    let mut reader = ContentCacheFileReader(bytes);
    for _ in 0..reader.number()? {
        let hash = reader.array()?;
        let [tag] = reader.array()?;
        let language = Language::from_tag(tag)?;
        let text = reader.text()?;
        let complete = reader.array()? == [1];
        let mut symbols = Vec::new();
        for _ in 0..reader.number()? {
            let name = reader.text()?;
            let [tag] = reader.array()?;
            symbols.push(CodeSymbol {
                name,
                kind: SymbolKind::from_tag(tag)?,
                line: reader.number()?,
                exported: reader.array()? == [1],
            });
        }
        let mut identifiers = Vec::new();
        for _ in 0..reader.number()? {
            identifiers.push((reader.text()?, u32::from_le_bytes(reader.array()?)));
        }
        let outline = CodeOutline { language, text, symbols, identifiers, complete };
        entries.insert_outline((hash, language), Arc::new(outline));
    }
    Some(())
}

fn put_number(out: &mut Vec<u8>, number: usize) {
    out.extend((number as u64).to_le_bytes());
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len());
    out.extend(bytes);
}

/// The rest of a payload that is being read.
struct ContentCacheFileReader<'a>(&'a [u8]);

impl ContentCacheFileReader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn number(&mut self) -> Option<usize> {
        u64::from_le_bytes(self.array()?).try_into().ok()
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()?;
        // Checked before anything is allocated: a damaged length may be of any size.
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}
