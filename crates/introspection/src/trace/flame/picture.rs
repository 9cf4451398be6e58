//! Draws a flame graph as PNG with a palette of at most 256 colours, so that a picture has some tens of kilobytes. The
//! font is part of the program, as a server may have none.

use super::layout::FlameLayout;
use super::style::{FlameBarShade, FlameGraphTitle, ROOT_COLOUR, Rgb, SHADES, fit, percent};
use crate::trace::call_tree::{CallTree, ProfiledFunction};
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

// All lengths are in pixels.
const WIDTH: usize = 1200;
const MARGIN: usize = 8;
/// The height of a row of bars.
const ROW: usize = 19;
/// The height of the title, and of the margin below the graph.
const HEAD: usize = 52;
const FOOT: usize = 8;
// A client scales a taller picture down until its text cannot be read.
/// The maximum number of rows.
const MAX_ROWS: usize = 56;
/// The minimum width of a bar; narrower ones are left out.
const MIN_BAR_WIDTH: f64 = 1.0;
/// The width of a character.
const CHARACTER_WIDTH: usize = get_raster_width(FontWeight::Regular, RasterHeight::Size16);

// Five levels smooth the letters and leave room in the palette for 26 backgrounds.
/// The number of levels of ink in a letter, from none to full.
const INK_LEVELS: usize = 5;
/// The indices of the backgrounds: white, the colour of the root, then the shades.
const WHITE: usize = 0;
const GREY: usize = 1;
const FIRST_SHADE: usize = 2;

/// Draws the flame graph of `tree`, 1200 pixels wide. Callers are below their callees. `amount` formats a weight.
pub fn png(tree: &CallTree, title: &FlameGraphTitle, amount: impl Fn(u64) -> String) -> Vec<u8> {
    #[allow(clippy::cast_precision_loss, reason = "pixels")]
    let layout = FlameLayout::new(tree, (WIDTH - 2 * MARGIN) as f64, MIN_BAR_WIDTH, MAX_ROWS);
    let mut picture = FlamePicture::new(WIDTH, HEAD + layout.rows * ROW + FOOT);
    picture.write(MARGIN, 6, &fit(&title.title, (WIDTH - 2 * MARGIN) / CHARACTER_WIDTH));
    let mut note = title.note.clone();
    if layout.hidden_rows > 0 {
        note = format!("{note}; {} deeper rows are not drawn", layout.hidden_rows);
    }
    picture.write(MARGIN, 26, &fit(&note, (WIDTH - 2 * MARGIN) / CHARACTER_WIDTH));
    for bar in &layout.bars {
        let top = HEAD + (layout.rows - 1 - bar.row) * ROW;
        let (left, right) = (MARGIN + pixels(bar.left), MARGIN + pixels(bar.left + bar.width));
        let colour = match bar.frame {
            Some(frame) => {
                let shade = FlameBarShade::of(frame);
                FIRST_SHADE + usize::from(shade.is_foreign) * SHADES + shade.index
            }
            None => GREY,
        };
        // One pixel is the gap to the next bar, except in the narrowest ones.
        let width = (right - left).max(2) - 1;
        picture.fill(left, top, width, ROW - 1, colour);
        let name = bar.frame.map_or_else(|| "all".to_owned(), ProfiledFunction::label);
        let max_chars = width.saturating_sub(6) / CHARACTER_WIDTH;
        let full = format!("{name}  {} {}", amount(bar.total), percent(bar.total, layout.total));
        let label = if full.chars().count() <= max_chars { full } else { fit(&name, max_chars) };
        picture.write(left + 3, top + 1, &label);
    }
    picture.encode()
}

/// Rounds a position to whole pixels.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the picture")]
fn pixels(position: f64) -> usize {
    position.round().clamp(0.0, WIDTH as f64) as usize
}

/// A picture of indices into the palette: each is the index of a background times [`INK_LEVELS`], plus the level of ink.
struct FlamePicture {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl FlamePicture {
    fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![0; width * height] }
    }

    /// Returns the pixels of one row from `left` on, as far as they are in the picture.
    fn row(&mut self, y: usize, left: usize, width: usize) -> &mut [u8] {
        let (start, end) = (left.min(self.width), (left + width).min(self.width));
        self.pixels.get_mut(y * self.width + start..y * self.width + end).unwrap_or_default()
    }

    /// Fills a rectangle with a background.
    fn fill(&mut self, left: usize, top: usize, width: usize, height: usize, colour: usize) {
        let colour = u8::try_from(colour * INK_LEVELS).unwrap_or_default();
        for y in top..(top + height).min(self.height) {
            self.row(y, left, width).fill(colour);
        }
    }

    /// Writes text on the backgrounds that are there.
    fn write(&mut self, left: usize, top: usize, text: &str) {
        for (column, character) in text.chars().enumerate() {
            let raster = get_raster(character, FontWeight::Regular, RasterHeight::Size16)
                // The font has few characters beyond Latin.
                .or_else(|| get_raster('?', FontWeight::Regular, RasterHeight::Size16));
            let Some(raster) = raster else { continue };
            for (y, inks) in raster.raster().iter().enumerate() {
                for (pixel, ink) in
                    self.row(top + y, left + column * CHARACTER_WIDTH, CHARACTER_WIDTH).iter_mut().zip(*inks)
                {
                    let steps = u16::try_from(INK_LEVELS - 1).unwrap_or_default();
                    // Added to the background: a pixel has the level 0 before the text is written.
                    *pixel += u8::try_from((u16::from(*ink) * steps + 127) / 255).unwrap_or_default();
                }
            }
        }
    }

    /// Encodes the picture. Empty if that fails, which it cannot: the size is valid, and the writer is memory.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_png(&mut bytes).map_or_else(|_| Vec::new(), |()| bytes)
    }

    fn write_png(&self, bytes: &mut Vec<u8>) -> Result<(), ::png::EncodingError> {
        let side = |length: usize| u32::try_from(length).unwrap_or_default();
        let mut encoder = ::png::Encoder::new(bytes, side(self.width), side(self.height));
        encoder.set_color(::png::ColorType::Indexed);
        encoder.set_depth(::png::BitDepth::Eight);
        encoder.set_palette(palette().into_flattened());
        encoder.set_compression(::png::Compression::Balanced);
        // Differences of palette indices mean nothing, so filters would only make the picture larger.
        encoder.set_filter(::png::Filter::NoFilter);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        writer.finish()
    }
}

/// Returns the colours of the indices: every background with every level of ink.
fn palette() -> Vec<Rgb> {
    const INK: Rgb = [24, 24, 24];
    let shades = [false, true]
        .into_iter()
        .flat_map(|is_foreign| (0..SHADES).map(move |index| FlameBarShade { is_foreign, index }.colour()));
    let backgrounds = [[255; 3], ROOT_COLOUR].into_iter().chain(shades);
    debug_assert_eq!((WHITE, GREY), (0, 1));
    let mix = |background: Rgb, ink: usize| {
        let mut mixed = background;
        for (part, full) in mixed.iter_mut().zip(INK) {
            let steps = INK_LEVELS - 1;
            let value = (usize::from(*part) * (steps - ink) + usize::from(full) * ink) / steps;
            *part = u8::try_from(value).unwrap_or_default();
        }
        mixed
    };
    backgrounds.flat_map(|background| (0..INK_LEVELS).map(move |ink| mix(background, ink))).collect()
}
