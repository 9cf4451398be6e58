//! Draws flame graphs: as SVG for people, and as PNG for models.

mod layout;
mod picture;
mod style;
mod svg;

pub use picture::png;
pub use style::FlameGraphTitle;
pub use svg::{SCRIPT, svg};

#[cfg(test)]
mod tests {
    use super::style::{FlameBarShade, ROOT_COLOUR, Rgb};
    use super::{FlameGraphTitle, png, svg};
    use crate::trace::call_tree::{CallTree, ProfiledFunction, tree};

    fn title() -> FlameGraphTitle {
        FlameGraphTitle { title: "CPU of <app> & \"more\"".to_owned(), note: "1,000 samples".to_owned() }
    }

    fn microseconds(spent: u64) -> String {
        format!("{spent} us")
    }

    /// The pixels of a decoded picture.
    struct DecodedPicture {
        width: usize,
        height: usize,
        pixels: Vec<u8>,
    }

    impl DecodedPicture {
        fn new(png: &[u8]) -> Self {
            let mut decoder = ::png::Decoder::new(std::io::Cursor::new(png));
            decoder.set_transformations(::png::Transformations::EXPAND);
            let mut reader = decoder.read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            let info = reader.next_frame(&mut pixels).unwrap();
            assert_eq!(info.color_type, ::png::ColorType::Rgb);
            pixels.truncate(info.buffer_size());
            Self { width: info.width as usize, height: info.height as usize, pixels }
        }

        fn at(&self, x: usize, y: usize) -> Rgb {
            let at = (y * self.width + x) * 3;
            [self.pixels[at], self.pixels[at + 1], self.pixels[at + 2]]
        }

        /// Returns the first and the last pixel of this colour in one row.
        fn extent(&self, y: usize, colour: Rgb) -> Option<(usize, usize)> {
            let found: Vec<_> = (0..self.width).filter(|x| self.at(*x, y) == colour).collect();
            Some((*found.first()?, *found.last()?))
        }
    }

    fn colour_of(name: &str) -> Rgb {
        FlameBarShade::of(&ProfiledFunction::new(name, None, None)).colour()
    }

    #[test]
    fn in_the_picture_each_bar_stands_where_and_as_wide_as_its_share() {
        // `hot` has 60 % of all, after `main`'s larger child begins at the left edge.
        let tree = tree("main;hot 600\nmain;cold 100\nmain 100\nother 200");
        let picture = DecodedPicture::new(&png(&tree, &title(), microseconds));
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
        assert_eq!(picture.extent(row(0), ROOT_COLOUR), Some((8, 1190)));
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
        let picture = DecodedPicture::new(&png(&tree, &title(), microseconds));
        assert_eq!(picture.height, 52 + 56 * 19 + 8);
        let svg = svg(&tree, &title(), microseconds);
        assert_eq!(svg.matches("<g ").count(), 101);
    }

    #[test]
    fn nothing_spent_is_a_graph_of_nothing() {
        let tree = CallTree::default();
        assert_eq!(DecodedPicture::new(&png(&tree, &title(), microseconds)).height, 52 + 19 + 8);
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
        let stack: Vec<_> = names
            .iter()
            .map(|name| tree.frame(ProfiledFunction::new(name, Some("<file>"), Some(1))))
            .collect();
        tree.add(&stack, 10);
        let svg = svg(&tree, &title(), microseconds);
        let document = roxmltree::Document::parse(&svg).unwrap();
        let elements: std::collections::BTreeSet<_> = document
            .descendants()
            .filter(roxmltree::Node::is_element)
            .map(|node| node.tag_name().name())
            .collect();
        assert_eq!(
            elements.into_iter().collect::<Vec<_>>(),
            ["g", "rect", "script", "style", "svg", "text", "title"]
        );
        // Its one script is what a server allows by its hash, also to a reader of XML.
        let scripts: Vec<_> = document
            .descendants()
            .filter(|node| node.has_tag_name("script"))
            .filter_map(|node| node.text())
            .collect();
        assert_eq!(scripts, [super::SCRIPT]);
        let titles: Vec<_> = document
            .descendants()
            .filter(|node| node.has_tag_name("title"))
            .map(|node| node.text().unwrap_or_default())
            .collect();
        assert!(
            titles
                .iter()
                .any(|title| title.starts_with("</title></svg><script>alert(1)</script> (<file>:1): 10 us"))
        );
        assert_eq!(tree.to_folded().lines().count(), 1);
        assert_eq!(tree.to_folded().matches(';').count(), names.len() - 1);
        DecodedPicture::new(&png(&tree, &title(), microseconds));
    }
}
