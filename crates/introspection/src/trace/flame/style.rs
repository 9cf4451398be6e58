//! The title, the colours and the labels that both kinds of drawing share.

use crate::trace::call_tree::ProfiledFunction;

/// The text above a flame graph.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FlameGraphTitle {
    /// The subject of the graph.
    pub title: String,
    /// A note on how the profile was taken.
    pub note: String,
}

impl FlameGraphTitle {
    /// Creates a title from its two lines.
    pub fn new(title: impl Into<String>, note: impl Into<String>) -> Self {
        Self { title: title.into(), note: note.into() }
    }
}

/// A colour: red, green and blue.
pub(super) type Rgb = [u8; 3];

/// The number of shades of each family.
pub(super) const SHADES: usize = 12;

/// The colour of the bar for the whole profile.
pub(super) const ROOT_COLOUR: Rgb = [222, 222, 222];

/// The shade of a function's bar.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlameBarShade {
    /// True for code that is not the application's own, which has a family of colours of its own.
    pub(super) is_foreign: bool,
    /// The index of the shade in its family, below [`SHADES`].
    pub(super) index: usize,
}

impl FlameBarShade {
    /// Returns the shade of a function, which is the same in every graph.
    pub(super) fn of(frame: &ProfiledFunction) -> Self {
        // FNV-1a, as the standard library's hasher may change with its release.
        let hash = frame.function.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let is_foreign = frame.file.as_deref().is_none_or(|file| {
            file.starts_with("node:")
                || file.starts_with('[')
                || file.contains("node_modules")
                || file.contains("site-packages")
                || ["/usr/", "/lib", "/opt/", "/nix/"].iter().any(|folder| file.starts_with(folder))
        });
        let index = usize::try_from((hash >> 20) % SHADES as u64).unwrap_or_default();
        Self { is_foreign, index }
    }

    /// Returns the colour: red to yellow for the application, blue to grey-green for foreign code.
    pub(super) fn colour(self) -> Rgb {
        let step = u8::try_from(self.index).unwrap_or_default();
        match self.is_foreign {
            false => [244 - step % 3 * 6, 118 + step * 9, 62 + step % 4 * 10],
            true => [138 + step * 4, 170 + step * 4, 214 - step * 5],
        }
    }
}

/// Formats a share: `12.3 %`.
pub(super) fn percent(part: u64, whole: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "a share with one decimal")]
    let share = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    format!("{share:.1} %")
}

/// Cuts `name` to `max_chars` characters. Returns an empty text where that would leave no recognisable name.
pub(super) fn fit(name: &str, max_chars: usize) -> String {
    if name.chars().count() <= max_chars {
        return name.to_owned();
    }
    if max_chars < 3 {
        return String::new();
    }
    name.chars().take(max_chars - 2).chain("..".chars()).collect()
}
