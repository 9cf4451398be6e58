//! The files of a cache: how they are written, read and removed.

use super::{ContentHash, Facts, Known, Seen, hash};
use crate::code::{Item, ItemKind, Kind, Language, Outline};
use crate::source::Stamp;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Changes with what the files mean, or with what an outline is of the same text.
const VERSION: u32 = 1;
const MAGIC: &[u8; 12] = b"ctx-compiler";
const HASH: usize = size_of::<ContentHash>();

/// No larger file is read, and the files of a folder are together at most this.
const FOLDER_LIMIT: u64 = 256 << 20;
/// How long a file lasts that nobody opens.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long a file lasts that was not written to its end: its writer is gone.
const UNFINISHED: Duration = Duration::from_secs(3600);

/// One of the two files of a project.
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// The index and the facts.
    Facts,
    /// The outlines: larger, and often not asked for.
    Outlines,
}

/// The files of one project and counter in a folder.
pub(super) struct Store {
    folder: OwnedFd,
    /// What their names begin with.
    name: String,
    /// What their content begins with.
    header: Vec<u8>,
}

/// Makes `folder`, and those above it that are missing, for their owner alone (as the XDG Base Directory
/// Specification wants it).
fn make(folder: &Path) -> io::Result<()> {
    let made = match fs::mkdir(folder, Mode::RWXU) {
        Err(Errno::NOENT) => {
            make(folder.parent().ok_or(Errno::NOENT)?)?;
            fs::mkdir(folder, Mode::RWXU)
        }
        made => made,
    };
    match made {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Store {
    /// Opens `folder`, or makes it.
    pub(super) fn open(folder: &Path, project: &str, counter: &str) -> io::Result<Self> {
        make(folder)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = fs::open(folder, flags, Mode::empty())?;
        let stat = fs::fstat(&folder)?;
        if stat.st_uid != rustix::process::geteuid().as_raw()
            || Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO)
        {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the cache's folder is not its owner's alone",
            ));
        }
        let mut header = MAGIC.to_vec();
        header.extend(VERSION.to_le_bytes());
        put_bytes(&mut header, counter.as_bytes());
        let name = hash(format!("{counter}\0{project}").as_bytes())[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Ok(Self { folder, name, header })
    }

    fn file(&self, part: Part) -> String {
        let end = match part {
            Part::Facts => "facts",
            Part::Outlines => "outlines",
        };
        format!("{}.{end}", self.name)
    }

    /// What was last written whole; nothing if anything is wrong with it.
    pub(super) fn read(&self, part: Part) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = fs::openat(&self.folder, self.file(part), flags, Mode::empty()).ok()?;
        let stat = fs::fstat(&file).ok()?;
        let size = u64::try_from(stat.st_size).ok().filter(|&size| size <= FOLDER_LIMIT)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return None;
        }
        // That it is used makes it last; that this fails is no matter.
        let now = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW };
        let _ = fs::futimens(&file, &Timestamps { last_access: now, last_modification: now });
        let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
        File::from(file).take(FOLDER_LIMIT).read_to_end(&mut bytes).ok()?;
        let sum = bytes.split_off(bytes.len().checked_sub(HASH)?);
        if hash(&bytes)[..] != sum[..] || !bytes.starts_with(&self.header) {
            return None;
        }
        bytes.drain(..self.header.len());
        Some(bytes)
    }

    /// Puts `payload` in the place of what was there, whole or not at all.
    pub(super) fn write(&self, part: Part, payload: Vec<u8>) -> io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut bytes = self.header.clone();
        bytes.extend(payload);
        let sum = hash(&bytes);
        bytes.extend(sum);
        let temporary = format!(
            "{}.{}.{}.new",
            self.file(part),
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = fs::openat(&self.folder, &temporary, flags, Mode::RUSR | Mode::WUSR)?;
        // Not synchronised: after a loss of power the sum tells, and the worst is a cache that is empty.
        let written = File::from(file).write_all(&bytes).and_then(|()| {
            fs::renameat(&self.folder, &temporary, &self.folder, self.file(part)).map_err(Into::into)
        });
        if written.is_err() {
            let _ = fs::unlinkat(&self.folder, &temporary, AtFlags::empty());
        }
        written
    }

    /// Removes what nobody used for long, what was never finished, and the oldest of what is too much.
    pub(super) fn prune(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Ok(entries) = fs::Dir::read_from(&self.folder) else { return };
        let mut files = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            // Only names that are ours.
            let text = name.to_string_lossy();
            let unfinished = text.ends_with(".new");
            let ours = text.get(..32).is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
                && (unfinished || text.ends_with(".facts") || text.ends_with(".outlines"));
            let Ok(stat) = fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if ours {
                let since = Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
                let age = now.saturating_sub(since);
                let last = if unfinished { UNFINISHED } else { UNUSED };
                files.push((age, u64::try_from(stat.st_size).unwrap_or(0), name.to_owned(), age > last));
            }
        }
        files.sort();
        let mut total = 0;
        for (_, size, name, expired) in files {
            total += size;
            if expired || total > FOLDER_LIMIT {
                let _ = fs::unlinkat(&self.folder, name, AtFlags::empty());
            }
        }
    }
}

pub(super) fn encode_facts(known: &Known) -> Vec<u8> {
    let mut out = Vec::new();
    let facts = known.facts.sorted();
    put_number(&mut out, facts.len());
    for (hash, facts) in facts {
        out.extend(hash);
        out.push(match facts.kind {
            Kind::NotUtf8 => 1,
            Kind::Binary => 2,
            Kind::Text | Kind::TooLarge | Kind::Unreadable => 0,
        });
        put_number(&mut out, facts.tokens);
        put_number(&mut out, facts.lines);
    }
    let index = known.index.sorted();
    put_number(&mut out, index.len());
    for (path, Seen { stamp, at_ns, hash }) in index {
        put_bytes(&mut out, path.as_bytes());
        out.extend(stamp.size.to_le_bytes());
        out.extend(stamp.mtime_ns.to_le_bytes());
        out.extend(stamp.ctime_ns.to_le_bytes());
        out.extend(stamp.inode.to_le_bytes());
        out.extend(at_ns.to_le_bytes());
        out.extend(hash);
    }
    out
}

/// Takes what `bytes` hold into `known`, as far as they can be read.
pub(super) fn decode_facts(bytes: &[u8], known: &mut Known) -> Option<()> {
    let mut rest = Reader(bytes);
    for _ in 0..rest.number()? {
        let hash = rest.array()?;
        let kind = match rest.array::<1>()? {
            [0] => Kind::Text,
            [1] => Kind::NotUtf8,
            [2] => Kind::Binary,
            _ => return None,
        };
        let facts = Facts { kind, tokens: rest.number()?, lines: rest.number()? };
        known.facts.insert(hash, facts, size_of::<(ContentHash, Facts)>());
    }
    for _ in 0..rest.number()? {
        let path = rest.text()?;
        let stamp = Stamp {
            size: u64::from_le_bytes(rest.array()?),
            mtime_ns: i128::from_le_bytes(rest.array()?),
            ctime_ns: i128::from_le_bytes(rest.array()?),
            inode: u64::from_le_bytes(rest.array()?),
        };
        let seen = Seen { stamp, at_ns: i128::from_le_bytes(rest.array()?), hash: rest.array()? };
        let size = path.len() + size_of::<(String, Seen)>();
        known.index.insert(path, seen, size);
    }
    Some(())
}

pub(super) fn encode_outlines(known: &Known) -> Vec<u8> {
    let mut out = Vec::new();
    let outlines = known.outlines.sorted();
    put_number(&mut out, outlines.len());
    for ((hash, language), outline) in outlines {
        out.extend(hash);
        out.push(language.tag());
        put_bytes(&mut out, outline.text.as_bytes());
        out.push(u8::from(outline.complete));
        put_number(&mut out, outline.items.len());
        for item in &outline.items {
            put_bytes(&mut out, item.name.as_bytes());
            out.push(item.kind.tag());
            put_number(&mut out, item.line);
            out.push(u8::from(item.exported));
        }
    }
    out
}

/// Takes what `bytes` hold into `known`, as far as they can be read.
pub(super) fn decode_outlines(bytes: &[u8], known: &mut Known) -> Option<()> {
    let mut rest = Reader(bytes);
    for _ in 0..rest.number()? {
        let hash = rest.array()?;
        let [tag] = rest.array()?;
        let language = Language::from_tag(tag)?;
        let text = rest.text()?;
        let complete = rest.array()? == [1];
        let mut items = Vec::new();
        for _ in 0..rest.number()? {
            let name = rest.text()?;
            let [tag] = rest.array()?;
            items.push(Item {
                name,
                kind: ItemKind::from_tag(tag)?,
                line: rest.number()?,
                exported: rest.array()? == [1],
            });
        }
        known.insert_outline((hash, language), Arc::new(Outline { language, text, items, complete }));
    }
    known.outlines_changed = false;
    Some(())
}

fn put_number(out: &mut Vec<u8>, number: usize) {
    out.extend((number as u64).to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len());
    out.extend(bytes);
}

/// What is left of a payload.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
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
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}
