//! Which repository a folder belongs to, found and judged without git.

use super::Error;
use crate::workspace::{ConfinedPath, Entry, Kind, Workspace, printable};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A repository beneath the roots of a workspace, none of whose parts leads outside.
#[derive(Clone, Debug)]
pub struct Repository {
    pub(super) workspace: Arc<Workspace>,
    /// The folder that was named, free of links. git runs in it.
    pub(super) folder: ConfinedPath,
    /// What belongs to this work tree: `HEAD`, `index`.
    pub(super) git_dir: ConfinedPath,
    /// What all work trees share: objects, branches, configuration.
    pub(super) common: ConfinedPath,
    /// The top folder of the work tree.
    pub(super) top: Option<ConfinedPath>,
    /// `folder` as seen from `top`, with slashes; empty at the top.
    pub(super) prefix: Vec<u8>,
    /// The configuration names things that must be looked up before git may run: filters, includes.
    pub(super) suspicious: bool,
    /// Some of it belongs to another user than the one who runs this: git is asked whether it trusts it.
    pub(super) foreign: bool,
}

/// Files that git reads unasked, from the top folder and from that of its own.
const READ_UNASKED: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];
const READ_INFO: [&str; 2] = ["info/exclude", "info/attributes"];

/// More than any pointer or list of alternates has.
const MAX_POINTER_BYTES: u64 = 64 * 1024;
/// A configuration longer than this is not read but taken for suspicious.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;
/// As deep as git itself follows alternates.
const MAX_ALTERNATES_DEPTH: usize = 5;
/// References and logs that are looked at before something is written.
const MAX_REFERENCES: usize = 200_000;

impl Repository {
    /// The repository that the folder `path` is in; the first root where there is none. Folders above the root
    /// are not looked at.
    ///
    /// # Errors
    /// There is none, or it leads outside the roots.
    pub fn find(workspace: &Arc<Workspace>, path: Option<&str>) -> Result<Self, Error> {
        let named = workspace.locate(path.unwrap_or("."))?;
        named.open_folder()?;
        let folder = real(workspace, &named.to_absolute(), || "the folder".to_owned())?;
        let mut at = Some(folder.clone());
        while let Some(current) = at {
            if let Some(git_dir) = dot_git(workspace, &current)? {
                return Self::judged(workspace, folder, git_dir, Some(current));
            }
            if is_git_dir(&current)? {
                return Self::judged(workspace, folder, current, None);
            }
            at = current.parent();
        }
        Err(Error::NoRepository(named.shown()))
    }

    fn judged(
        workspace: &Arc<Workspace>,
        folder: ConfinedPath,
        git_dir: ConfinedPath,
        top: Option<ConfinedPath>,
    ) -> Result<Self, Error> {
        check_links(&git_dir)?;
        let common = match read(&git_dir.join("commondir")?, MAX_POINTER_BYTES)? {
            Some(text) => {
                let common = pointed(workspace, &git_dir, &text, "commondir")?;
                check_links(&common)?;
                common
            }
            None => git_dir.clone(),
        };
        check_objects(workspace, &common.join("objects")?, 0)?;
        let mut suspicious = false;
        for (place, name) in
            [(&common, "config"), (&common, "config.worktree"), (&git_dir, "config.worktree")]
        {
            suspicious |= is_suspicious(&place.join(name)?)?;
        }
        for (place, names) in [(top.as_ref(), &READ_UNASKED[..]), (Some(&common), &READ_INFO)] {
            for name in names {
                let Some(path) = place.map(|place| place.join(name)).transpose()? else { break };
                // A link that leads outside is none that git follows, or has been refused.
                if let Ok(Some(kind)) = path.kind() {
                    check_kind(&path, kind)?;
                }
            }
        }
        let dot_git = top.as_ref().map(|top| top.join(".git")).transpose()?;
        let foreign = [top.as_ref(), dot_git.as_ref(), Some(&git_dir)].into_iter().flatten().any(is_foreign);
        let prefix = match &top {
            Some(top) => {
                let below = folder.relative().strip_prefix(top.relative()).unwrap_or(Path::new(""));
                let names: Vec<_> = below.iter().map(std::ffi::OsStr::as_encoded_bytes).collect();
                names.join(&b'/')
            }
            None => Vec::new(),
        };
        Ok(Self {
            workspace: Arc::clone(workspace),
            folder,
            git_dir,
            common,
            top,
            prefix,
            suspicious,
            foreign,
        })
    }

    /// The repository of the submodule at `path` beneath the top folder, if it is checked out.
    pub(super) fn submodule(&self, path: &[u8]) -> Result<Option<Self>, Error> {
        let Some(top) = &self.top else { return Ok(None) };
        let folder = self.at(top, path)?;
        let Some(git_dir) = dot_git(&self.workspace, &folder)? else { return Ok(None) };
        let folder = real(&self.workspace, &folder.to_absolute(), || format!("`{folder}`"))?;
        Self::judged(&self.workspace, folder.clone(), git_dir, Some(folder)).map(Some)
    }

    /// Refuses a submodule, called `shown`, whose configuration places its files in another folder.
    pub(super) fn check_work_tree(&self, value: &[u8], shown: &str) -> Result<(), Error> {
        let place = self.git_dir.to_absolute().join(name(value)?).canonicalize().ok();
        let expected = self.top.as_ref().and_then(|top| top.to_absolute().canonicalize().ok());
        if place.is_some() && place == expected {
            return Ok(());
        }
        let shown = printable(std::ffi::OsStr::new(shown));
        Err(Error::Odd(format!(
            "the configuration of the submodule `{shown}` (core.worktree) places its files elsewhere"
        )))
    }

    /// The top folder, of a repository that has files.
    pub(super) fn top(&self, action: &'static str) -> Result<&ConfinedPath, Error> {
        self.top.as_ref().ok_or(Error::Bare(action))
    }

    /// A path beneath the top folder, given as git gives it.
    pub(super) fn at(&self, top: &ConfinedPath, path: &[u8]) -> Result<ConfinedPath, Error> {
        Ok(top.join(&*name(path)?)?)
    }

    /// Refuses to change the repository where the caller may not, or where what git writes would land outside.
    pub(super) fn check_writable(&self) -> Result<(), Error> {
        self.git_dir.join("index")?.check_changeable()?;
        self.common.join("objects")?.check_changeable()?;
        let mut left = MAX_REFERENCES;
        for place in [&self.git_dir, &self.common] {
            for name in ["refs", "logs"] {
                let folder = place.join(name)?;
                if folder.kind()? == Some(Kind::Directory) {
                    check_links_within(&folder, &mut left)?;
                }
            }
        }
        Ok(())
    }

    /// Refuses to change any of `paths`, which are beneath the top folder, where it is protected.
    pub(super) fn check_changes<'a>(
        &self,
        top: &ConfinedPath,
        paths: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), Error> {
        paths.into_iter().try_for_each(|path| Ok(self.at(top, path)?.check_changeable()?))
    }

    /// What is going on that has not been finished: `merge`, `rebase`, `am`, `cherry-pick`, `revert`, `bisect`.
    pub(super) fn operation(&self) -> Result<Option<&'static str>, Error> {
        // One listing instead of a look for each: mostly there is none of them.
        let mut marks = Vec::new();
        each_entry(&self.git_dir, |entry| {
            marks.push(entry.name);
            Ok(())
        })?;
        // In this order: a rebase picks commits one by one.
        for (name, operation) in [
            ("rebase-merge", "rebase"),
            ("rebase-apply", "rebase"),
            ("MERGE_HEAD", "merge"),
            ("CHERRY_PICK_HEAD", "cherry-pick"),
            ("REVERT_HEAD", "revert"),
            ("BISECT_LOG", "bisect"),
        ] {
            if marks.iter().any(|mark| mark == name) {
                let is_am =
                    name == "rebase-apply" && self.git_dir.join("rebase-apply/applying")?.kind()?.is_some();
                return Ok(Some(if is_am { "am" } else { operation }));
            }
        }
        Ok(None)
    }
}

/// Bytes as a path of this system.
#[cfg(unix)]
pub(super) fn name(bytes: &[u8]) -> Result<std::borrow::Cow<'_, Path>, Error> {
    use std::os::unix::ffi::OsStrExt;
    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes)).into())
}

#[cfg(not(unix))]
pub(super) fn name(bytes: &[u8]) -> Result<std::borrow::Cow<'_, Path>, Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Path::new(text).into()),
        Err(_) => Err(Error::Odd("a file name that is no UTF-8".to_owned())),
    }
}

/// Where `path` really lies, if that is beneath a root.
fn real(workspace: &Workspace, path: &Path, what: impl FnOnce() -> String) -> Result<ConfinedPath, Error> {
    let what = |reason: &str| Error::Odd(format!("{} {reason}", what()));
    let Ok(path) = path.canonicalize() else { return Err(what("of this repository cannot be found")) };
    workspace.locate(&path).map_err(|_| what("of this repository leads outside the allowed roots"))
}

/// The git folder that `folder/.git` is or points to.
fn dot_git(workspace: &Workspace, folder: &ConfinedPath) -> Result<Option<ConfinedPath>, Error> {
    let dot = folder.join(".git")?;
    match dot.kind().map_err(|error| outside(error, &dot))? {
        Some(Kind::Directory) => {
            let dot = real(workspace, &dot.to_absolute(), || format!("`{dot}`"))?;
            Ok(is_git_dir(&dot)?.then_some(dot))
        }
        Some(Kind::File) => {
            let text = read(&dot, MAX_POINTER_BYTES)?.unwrap_or_default();
            let Some(path) = text.strip_prefix(b"gitdir:") else {
                return Err(Error::Odd(format!("`{dot}` is a file that names no git folder")));
            };
            let git_dir = pointed(workspace, folder, path, ".git file")?;
            if !is_git_dir(&git_dir)? {
                return Err(Error::Odd(format!("the `.git` file `{dot}` leads to no repository")));
            }
            Ok(Some(git_dir))
        }
        _ => Ok(None),
    }
}

fn outside(error: crate::workspace::Error, path: &ConfinedPath) -> Error {
    if error.is_outside() { Error::Outside(format!("`{path}`")) } else { error.into() }
}

/// Where the text of a pointer file leads, from `folder`.
fn pointed(
    workspace: &Workspace,
    folder: &ConfinedPath,
    text: &[u8],
    what: &str,
) -> Result<ConfinedPath, Error> {
    let text = text.trim_ascii();
    if text.is_empty() || text.contains(&0) || text.contains(&b'\n') {
        return Err(Error::Odd(format!("the {what} is damaged")));
    }
    real(workspace, &folder.to_absolute().join(name(text)?), || format!("the {what}"))
}

fn is_git_dir(folder: &ConfinedPath) -> Result<bool, Error> {
    // The commonest answer first: there is no HEAD.
    match folder.join("HEAD")?.link_metadata() {
        Ok(_) => {}
        Err(error) if error.is_not_found() => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let has = |name: &str| -> Result<bool, Error> {
        let path = folder.join(name)?;
        Ok(path.kind().map_err(|error| outside(error, &path))?.is_some())
    };
    Ok(has("commondir")? || (has("objects")? && has("refs")?))
}

/// The content of a small file, or nothing where there is none.
fn read(path: &ConfinedPath, most: u64) -> Result<Option<Vec<u8>>, Error> {
    let (file, _) = match path.open_read() {
        Ok(opened) => opened,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(outside(error, path)),
    };
    let mut content = Vec::new();
    let limited = file.take(most + 1).read_to_end(&mut content);
    if limited.is_err() || content.len() as u64 > most {
        return Err(Error::Odd(format!("`{path}` cannot be read, or is too long")));
    }
    Ok(Some(content))
}

/// Whether a configuration file may name filters or merge drivers, or include another that does.
fn is_suspicious(path: &ConfinedPath) -> Result<bool, Error> {
    match path.kind().map_err(|error| outside(error, path))? {
        None => return Ok(false),
        Some(Kind::File) if path.metadata()?.size <= MAX_CONFIG_BYTES => {}
        _ => return Ok(true),
    }
    let text = read(path, MAX_CONFIG_BYTES)?.unwrap_or_default().to_ascii_lowercase();
    // Nothing in this format can write a word of a section or a key in another way.
    Ok([&b"filter"[..], b"include", b"driver"].iter().any(|word| memchr::memmem::find(&text, word).is_some()))
}

/// Looks at everything in `folder`.
fn each_entry(folder: &ConfinedPath, mut look: impl FnMut(Entry) -> Result<(), Error>) -> Result<(), Error> {
    let failed = |_| Error::Odd(format!("`{folder}` cannot be listed"));
    for entry in folder.open_folder()?.entries().map_err(failed)? {
        look(entry.map_err(failed)?)?;
    }
    Ok(())
}

/// Refuses a link in `folder` that leads outside.
fn check_links(folder: &ConfinedPath) -> Result<(), Error> {
    each_entry(folder, |entry| {
        // Objects are hundreds of folders.
        if matches!(entry.kind, Kind::Directory | Kind::File) {
            return Ok(());
        }
        let path = folder.join(&entry.name)?;
        if entry.kind == Kind::Symlink {
            check_link(&path)?;
        }
        check_kind(&path, entry.kind)
    })
}

/// Refuses what git would wait for where it expects a file. Sockets are none: git itself has one.
fn check_kind(path: &ConfinedPath, kind: Kind) -> Result<(), Error> {
    match kind {
        Kind::Fifo | Kind::Device => Err(Error::Odd(format!("`{path}` is {}", kind.noun()))),
        _ => Ok(()),
    }
}

/// Whether `path` belongs to another user, as git judges it (git-config(1), `safe.directory`).
#[cfg(unix)]
fn is_foreign(path: &ConfinedPath) -> bool {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    path.to_absolute().symlink_metadata().is_ok_and(|metadata| metadata.uid() != user)
}

#[cfg(not(unix))]
fn is_foreign(_path: &ConfinedPath) -> bool {
    false
}

fn check_link(link: &ConfinedPath) -> Result<(), Error> {
    match link.metadata() {
        Err(error) if error.is_outside() => Err(Error::Outside(format!("the link `{link}`"))),
        _ => Ok(()),
    }
}

/// The same for everything below it.
fn check_links_within(folder: &ConfinedPath, left: &mut usize) -> Result<(), Error> {
    each_entry(folder, |entry| {
        *left = left.checked_sub(1).ok_or_else(|| Error::Odd("there are too many references".to_owned()))?;
        match entry.kind {
            Kind::Symlink => check_link(&folder.join(&entry.name)?),
            Kind::Directory => check_links_within(&folder.join(&entry.name)?, left),
            _ => Ok(()),
        }
    })
}

/// Refuses objects, or others that they borrow from, which lie outside.
fn check_objects(workspace: &Workspace, objects: &ConfinedPath, depth: usize) -> Result<(), Error> {
    if objects.kind().map_err(|error| outside(error, objects))? != Some(Kind::Directory) {
        return Ok(());
    }
    let objects = real(workspace, &objects.to_absolute(), || "the objects folder".to_owned())?;
    check_links(&objects)?;
    for name in ["info", "pack"] {
        let part = objects.join(name)?;
        if part.kind().map_err(|error| outside(error, &part))? == Some(Kind::Directory) {
            check_links(&part)?;
        }
    }
    let Some(text) = read(&objects.join("info/alternates")?, MAX_POINTER_BYTES)? else { return Ok(()) };
    for line in text.split(|byte| *byte == b'\n') {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        if line.starts_with(b"\"") {
            return Err(Error::Odd("its alternates have a quoted path".to_owned()));
        }
        let path: PathBuf = objects.to_absolute().join(name(line)?);
        if !path.exists() {
            // git passes over it.
            continue;
        }
        if depth >= MAX_ALTERNATES_DEPTH {
            return Err(Error::Odd("its alternates are nested too deeply".to_owned()));
        }
        let alternate = real(workspace, &path, || "an alternate objects folder".to_owned())?;
        check_objects(workspace, &alternate, depth + 1)?;
    }
    Ok(())
}
