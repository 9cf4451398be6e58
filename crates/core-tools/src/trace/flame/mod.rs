//! Flame graphs: one layout, drawn as SVG for people and as PNG for models.

mod layout;
mod picture;
mod svg;

pub use picture::png;
pub use svg::svg;

use super::calls::Frame;

/// What stands above the graph.
#[derive(Clone, Debug, Default)]
pub struct Title {
    /// Of what it is.
    pub title: String,
    /// How it was taken.
    pub note: String,
}

/// A colour.
type Rgb = [u8; 3];

/// Shades of each kind.
const SHADES: usize = 12;

/// Which of the shades a function has: the same in every graph, and another family for what is not the
/// application's own code.
fn shade(frame: &Frame) -> (bool, usize) {
    // FNV-1a: stable from run to run.
    let hash = frame.function.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let foreign = frame.file.as_deref().is_none_or(|file| {
        file.starts_with("node:")
            || file.starts_with('[')
            || file.contains("node_modules")
            || file.contains("site-packages")
            || ["/usr/", "/lib", "/opt/", "/nix/"].iter().any(|folder| file.starts_with(folder))
    });
    (foreign, usize::try_from((hash >> 20) % SHADES as u64).unwrap_or_default())
}

/// The colour of one shade.
fn colour((foreign, shade): (bool, usize)) -> Rgb {
    let step = u8::try_from(shade).unwrap_or_default();
    // Red to yellow for the application, blue to grey-green for what it stands on.
    match foreign {
        false => [244 - step % 3 * 6, 118 + step * 9, 62 + step % 4 * 10],
        true => [138 + step * 4, 170 + step * 4, 214 - step * 5],
    }
}

/// The colour of the bar that stands for everything.
const ROOT: Rgb = [222, 222, 222];

/// A share in words: `12.3 %`.
fn percent(part: u64, whole: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "a share with one decimal")]
    let share = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    format!("{share:.1} %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::calls::{CallTree, tree};

    fn title() -> Title {
        Title { title: "CPU of <app> & \"more\"".to_owned(), note: "1,000 samples".to_owned() }
    }

    fn microseconds(spent: u64) -> String {
        format!("{spent} us")
    }

    /// The pixels of a picture that we wrote, by another's decoder.
    struct Decoded {
        width: usize,
        height: usize,
        pixels: Vec<u8>,
    }

    impl Decoded {
        fn new(png: &[u8]) -> Self {
            let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
            decoder.set_transformations(png::Transformations::EXPAND);
            let mut reader = decoder.read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            let info = reader.next_frame(&mut pixels).unwrap();
            assert_eq!(info.color_type, png::ColorType::Rgb);
            pixels.truncate(info.buffer_size());
            Self { width: info.width as usize, height: info.height as usize, pixels }
        }

        fn at(&self, x: usize, y: usize) -> Rgb {
            let at = (y * self.width + x) * 3;
            [self.pixels[at], self.pixels[at + 1], self.pixels[at + 2]]
        }

        /// Where the pixels of this colour in one row begin and end.
        fn extent(&self, y: usize, colour: Rgb) -> Option<(usize, usize)> {
            let found: Vec<_> = (0..self.width).filter(|x| self.at(*x, y) == colour).collect();
            Some((*found.first()?, *found.last()?))
        }
    }

    fn colour_of(name: &str) -> Rgb {
        colour(shade(&Frame::new(name, None, None)))
    }

    #[test]
    fn in_the_picture_each_bar_stands_where_and_as_wide_as_its_share() {
        // `hot` has 60 % of all, after `main`'s larger child begins at the left edge.
        let tree = tree("main;hot 600\nmain;cold 100\nmain 100\nother 200");
        let picture = Decoded::new(&png(&tree, &title(), microseconds));
        assert_eq!((picture.width, picture.height), (1200, 52 + 3 * 19 + 8));
        // The bottom row of pixels of each row of bars, where no letters are.
        let row = |depth: usize| 52 + (2 - depth) * 19 + 17;
        let inner = 1200.0 - 16.0;
        for (name, depth, from, to) in
            [("main", 1, 0.0, 0.8), ("other", 1, 0.8, 1.0), ("hot", 2, 0.0, 0.6), ("cold", 2, 0.6, 0.7)]
        {
            let (left, right) = picture.extent(row(depth), colour_of(name)).unwrap();
            let (first, last) = (8.0 + inner * from, 8.0 + inner * to - 2.0);
            #[allow(clippy::cast_precision_loss, reason = "pixels")]
            let off = (left as f64 - first).abs().max((right as f64 - last).abs());
            assert!(off <= 1.0, "{name}: {left} to {right}, expected {first} to {last}");
        }
        assert_eq!(picture.extent(row(0), ROOT), Some((8, 1190)));
        // What `main` itself took is empty above it.
        assert_eq!(picture.at(8 + 900, row(2)), [255; 3]);
        // There are letters on the bar.
        let inked = (8..700).any(|x| (52..52 + 17).any(|y| picture.at(x, y) == [24; 3]));
        assert!(inked);
    }

    #[test]
    fn a_graph_too_high_to_be_read_is_cut_and_says_so() {
        let stack = (0..100).map(|at| format!("f{at}")).collect::<Vec<_>>().join(";");
        let tree = tree(&format!("{stack} 5"));
        let picture = Decoded::new(&png(&tree, &title(), microseconds));
        assert_eq!(picture.height, 52 + 56 * 19 + 8);
        let svg = svg(&tree, &title(), microseconds);
        assert_eq!(svg.matches("<g>").count(), 101);
    }

    #[test]
    fn nothing_spent_is_a_graph_of_nothing() {
        let tree = CallTree::default();
        assert_eq!(Decoded::new(&png(&tree, &title(), microseconds)).height, 52 + 19 + 8);
        assert!(roxmltree::Document::parse(&svg(&tree, &title(), microseconds)).is_ok());
    }

    #[test]
    fn a_hostile_name_stays_text() {
        let mut tree = CallTree::default();
        let names = [
            "</title></svg><script>alert(1)</script>",
            "a\nb\0;c\u{7}",
            "\"'&&#x;]]>",
            "\u{202e}evil\u{fffe}",
            "漢字🦀",
        ];
        let stack: Vec<_> =
            names.iter().map(|name| tree.frame(Frame::new(name, Some("<file>"), Some(1)))).collect();
        tree.add(&stack, 10);
        let svg = svg(&tree, &title(), microseconds);
        let document = roxmltree::Document::parse(&svg).unwrap();
        let elements: std::collections::BTreeSet<_> = document
            .descendants()
            .filter(roxmltree::Node::is_element)
            .map(|node| node.tag_name().name())
            .collect();
        assert_eq!(elements.into_iter().collect::<Vec<_>>(), ["g", "rect", "style", "svg", "text", "title"]);
        let told: Vec<_> = document
            .descendants()
            .filter(|node| node.has_tag_name("title"))
            .map(|node| node.text().unwrap_or_default())
            .collect();
        assert!(
            told.iter()
                .any(|told| told.starts_with("</title></svg><script>alert(1)</script> (<file>:1): 10 us"))
        );
        assert_eq!(tree.to_folded().lines().count(), 1);
        assert_eq!(tree.to_folded().matches(';').count(), names.len() - 1);
        Decoded::new(&png(&tree, &title(), microseconds));
    }
}
