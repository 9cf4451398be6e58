//! [`PrecedingLines`]: the lines before a line, as far as they tell whether it continues an entry.

use super::line::{LineKind, LineRole, PreviousLine};

/// The lines before a line, as far as they tell how it is taken. The streams of a container are told apart: a line
/// continues the last entry of its own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PrecedingLines {
    /// The lines that no runtime wrapped.
    plain: PrecedingStream,
    /// The lines of each stream of a container, standard output first, if there are any.
    streams: [Option<PrecedingStream>; 2],
    /// How far behind an anchor text still continues its entry, and how far behind a line of a stream the next one of that
    /// stream does, in bytes.
    max_distance: u64,
}

/// The lines of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PrecedingStream {
    /// How the last line takes the next one, as a line of its entry.
    carried: PreviousLine,
    /// How the last line alone takes the next one.
    own: PreviousLine,
    /// The end of the last line that is an anchor.
    anchor_end: u64,
    /// The end of the last line.
    end: u64,
    /// A container's runtime cut the last line.
    is_cut: bool,
}

impl PrecedingStream {
    /// Nothing that matters stands before the offset.
    fn none(offset: u64) -> Self {
        let other = PreviousLine::Other;
        Self { carried: other, own: other, anchor_end: offset, end: offset, is_cut: false }
    }

    /// Returns how the line that begins at `offset` is taken.
    fn at(&self, offset: u64, max_distance: u64) -> PreviousLine {
        if offset.saturating_sub(self.anchor_end) > max_distance { self.own } else { self.carried }
    }

    fn add(&mut self, kind: LineKind, start: u64, end: u64, max_distance: u64) {
        (self.carried, self.own) = (kind.following(self.at(start, max_distance)), kind.as_previous());
        if kind.is_anchor() {
            self.anchor_end = end;
        }
        self.end = end;
        self.is_cut = kind.stream_piece().is_some_and(|piece| piece.partial);
    }
}

impl PrecedingLines {
    /// Nothing that matters stands before the offset. Text continues an entry up to `max_distance` behind its head.
    pub(super) fn none(offset: u64, max_distance: u64) -> Self {
        Self { plain: PrecedingStream::none(offset), streams: [None; 2], max_distance }
    }

    /// Returns the same lines, of which nothing matters but which of them were cut.
    pub(super) fn cuts_only(self) -> Self {
        let cut = |stream: Option<PrecedingStream>| {
            let stream = stream.filter(|stream| stream.is_cut)?;
            Some(PrecedingStream { end: stream.end, is_cut: true, ..PrecedingStream::none(stream.end) })
        };
        let [stdout, stderr] = self.streams;
        Self {
            plain: PrecedingStream::none(self.plain.end),
            streams: [cut(stdout), cut(stderr)],
            max_distance: self.max_distance,
        }
    }

    /// Returns the lines of a stream, if a line at `offset` may continue them.
    fn stream(&self, stderr: bool, offset: u64) -> Option<&PrecedingStream> {
        let stream = self.streams.get(usize::from(stderr))?.as_ref()?;
        (offset.saturating_sub(stream.end) <= self.max_distance).then_some(stream)
    }

    /// Returns whether a line of the stream at `offset` may continue an entry.
    pub(super) fn is_open(&self, stderr: bool, offset: u64) -> bool {
        self.stream(stderr, offset).is_some()
    }

    /// Returns the part of the line `kind`, which begins at `offset`.
    pub(super) fn role(&self, kind: LineKind, offset: u64) -> LineRole {
        let Some(piece) = kind.stream_piece() else {
            return kind.role(self.plain.at(offset, self.max_distance));
        };
        match self.stream(piece.stderr, offset) {
            Some(stream) if stream.is_cut => LineRole::Rest,
            Some(stream) => kind.role(stream.at(offset, self.max_distance)),
            None => kind.role_alone(),
        }
    }

    /// Adds the line from `start` to `end`.
    pub(super) fn add(&mut self, kind: LineKind, start: u64, end: u64) {
        if kind.is_transparent() {
            return;
        }
        let max_distance = self.max_distance;
        match kind.stream_piece() {
            Some(piece) => {
                let known = self.stream(piece.stderr, start).copied();
                let mut stream = known.unwrap_or_else(|| PrecedingStream::none(start));
                stream.add(kind, start, end, max_distance);
                if let Some(slot) = self.streams.get_mut(usize::from(piece.stderr)) {
                    *slot = Some(stream);
                }
                self.plain = PrecedingStream::none(end);
            }
            None => {
                self.plain.add(kind, start, end, max_distance);
                self.streams = [None; 2];
            }
        }
    }
}
