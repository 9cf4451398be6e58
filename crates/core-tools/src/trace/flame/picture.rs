//! A flame graph as PNG (W3C, Portable Network Graphics, third edition): a palette of 256 colours and one filter,
//! so that a picture has some tens of kilobytes. The font is in the program, none of the system's is needed.

use super::layout::Layout;
use super::svg::fit;
use super::{ROOT, Rgb, SHADES, Title, colour, percent, shade};
use crate::trace::calls::{CallTree, Frame};
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use std::io::Write as _;

const WIDTH: usize = 1200;
const MARGIN: usize = 8;
const ROW: usize = 19;
const HEAD: usize = 52;
const FOOT: usize = 8;
/// Rows that are drawn: what is taller is scaled down by those who show it until nothing can be read.
const MOST_ROWS: usize = 56;
/// A narrower bar is left out, in pixels.
const NARROWEST: f64 = 1.0;
const CHARACTER: usize = get_raster_width(FontWeight::Regular, RasterHeight::Size16);

/// The strength of the ink of a letter, from none to full.
const INKS: usize = 5;
const WHITE: usize = 0;
const GREY: usize = 1;
const FIRST_SHADE: usize = 2;

/// The flame graph of `tree`, 1200 pixels wide. Callers stand below what they call. `amount` writes what was spent.
pub fn png(tree: &CallTree, title: &Title, amount: impl Fn(u64) -> String) -> Vec<u8> {
    #[allow(clippy::cast_precision_loss, reason = "pixels")]
    let layout = Layout::new(tree, (WIDTH - 2 * MARGIN) as f64, NARROWEST, MOST_ROWS);
    let mut picture = Picture::new(WIDTH, HEAD + layout.rows * ROW + FOOT);
    picture.write(MARGIN, 6, &fit(&title.title, (WIDTH - 2 * MARGIN) / CHARACTER));
    let mut note = title.note.clone();
    if layout.hidden_rows > 0 {
        note = format!("{note}; {} deeper rows are not drawn", layout.hidden_rows);
    }
    picture.write(MARGIN, 26, &fit(&note, (WIDTH - 2 * MARGIN) / CHARACTER));
    for bar in &layout.bars {
        let top = HEAD + (layout.rows - 1 - bar.row) * ROW;
        let (left, right) = (MARGIN + pixels(bar.left), MARGIN + pixels(bar.left + bar.width));
        let colour = match bar.frame {
            Some(frame) => {
                let (foreign, shade) = shade(frame);
                FIRST_SHADE + usize::from(foreign) * SHADES + shade
            }
            None => GREY,
        };
        // A gap to the neighbours, where there is room for one.
        let width = (right - left).max(2) - 1;
        picture.fill(left, top, width, ROW - 1, colour);
        let name = bar.frame.map_or_else(|| "all".to_owned(), Frame::label);
        let room = width.saturating_sub(6) / CHARACTER;
        let told = format!("{name}  {} {}", amount(bar.total), percent(bar.total, layout.total));
        let label = if told.chars().count() <= room { told } else { fit(&name, room) };
        picture.write(left + 3, top + 1, &label);
    }
    picture.encode()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the picture")]
fn pixels(at: f64) -> usize {
    at.round().clamp(0.0, WIDTH as f64) as usize
}

/// Pixels, each the number of a colour: the background, times [`INKS`], and how much ink is on it.
struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Picture {
    fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![0; width * height] }
    }

    fn row(&mut self, y: usize, left: usize, width: usize) -> &mut [u8] {
        let (start, end) = (left.min(self.width), (left + width).min(self.width));
        self.pixels.get_mut(y * self.width + start..y * self.width + end).unwrap_or_default()
    }

    fn fill(&mut self, left: usize, top: usize, width: usize, height: usize, colour: usize) {
        let colour = u8::try_from(colour * INKS).unwrap_or_default();
        for y in top..(top + height).min(self.height) {
            self.row(y, left, width).fill(colour);
        }
    }

    /// Puts ink on what is there.
    fn write(&mut self, left: usize, top: usize, text: &str) {
        for (at, character) in text.chars().enumerate() {
            let raster = get_raster(character, FontWeight::Regular, RasterHeight::Size16)
                .or_else(|| get_raster('?', FontWeight::Regular, RasterHeight::Size16));
            let Some(raster) = raster else { continue };
            for (y, inks) in raster.raster().iter().enumerate() {
                for (pixel, ink) in self.row(top + y, left + at * CHARACTER, CHARACTER).iter_mut().zip(*inks)
                {
                    let steps = u16::try_from(INKS - 1).unwrap_or_default();
                    *pixel += u8::try_from((u16::from(*ink) * steps + 127) / 255).unwrap_or_default();
                }
            }
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        let mut head = Vec::new();
        for side in [self.width, self.height] {
            head.extend(u32::try_from(side).unwrap_or_default().to_be_bytes());
        }
        // Eight bits a pixel, a palette, the only compression, the only set of filters, no interlace.
        head.extend([8, 3, 0, 0, 0]);
        chunk(&mut png, b"IHDR", &head);
        chunk(&mut png, b"PLTE", palette().as_flattened());
        let mut data = ZlibEncoder::new(Vec::new(), Compression::new(6));
        for row in self.pixels.chunks(self.width) {
            // No filter. Writing to memory cannot fail.
            let _ = data.write_all(&[0]).and_then(|()| data.write_all(row));
        }
        chunk(&mut png, b"IDAT", &data.finish().unwrap_or_default());
        chunk(&mut png, b"IEND", &[]);
        png
    }
}

fn palette() -> Vec<Rgb> {
    const INK: Rgb = [24, 24, 24];
    let shades =
        [false, true].into_iter().flat_map(|foreign| (0..SHADES).map(move |shade| colour((foreign, shade))));
    let backgrounds = [[255; 3], ROOT].into_iter().chain(shades);
    debug_assert_eq!((WHITE, GREY), (0, 1));
    let mix = |background: Rgb, ink: usize| {
        let mut mixed = background;
        for (part, full) in mixed.iter_mut().zip(INK) {
            let steps = INKS - 1;
            let value = (usize::from(*part) * (steps - ink) + usize::from(full) * ink) / steps;
            *part = u8::try_from(value).unwrap_or_default();
        }
        mixed
    };
    backgrounds.flat_map(|background| (0..INKS).map(move |ink| mix(background, ink))).collect()
}

fn chunk(png: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    png.extend(u32::try_from(data.len()).unwrap_or_default().to_be_bytes());
    png.extend(kind);
    png.extend(data);
    let mut crc = Crc::new();
    crc.update(kind);
    crc.update(data);
    png.extend(crc.sum().to_be_bytes());
}
