//! The beginning and the end of what a run wrote to its terminal.

/// How much of the end is kept, in bytes; and of the beginning: as of what is written to stderr.
const KEPT: usize = 1 << 16;
const BEGINNING: usize = 4096;
/// Stands where something is missing between the two.
const GAP: &[u8] = b"\n[...]\n";

/// What was heard of a run.
#[derive(Default)]
pub(super) struct Heard {
    beginning: Vec<u8>,
    tail: Vec<u8>,
    lost: bool,
}

impl Heard {
    /// Hears more.
    pub(super) fn hear(&mut self, bytes: &[u8]) {
        let room = BEGINNING.saturating_sub(self.beginning.len());
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.beginning.extend_from_slice(first);
        self.tail.extend_from_slice(rest);
        // Twice as much is let in before it is moved.
        if self.tail.len() > 2 * KEPT {
            self.lost = true;
            self.tail.drain(..self.tail.len() - KEPT);
        }
    }

    /// All of it, with lines that end as those of files do.
    pub(super) fn text(&self) -> Vec<u8> {
        let surplus = self.tail.len().saturating_sub(KEPT);
        let gap = if self.lost || surplus > 0 { GAP } else { b"" };
        let all = [&self.beginning, gap, &self.tail[surplus..]].concat();
        let behind = all.iter().skip(1).map(Some).chain([None]);
        let pairs = all.iter().zip(behind);
        let kept = pairs.filter(|pair| !matches!(pair, (b'\r', Some(b'\n'))));
        kept.map(|(byte, _)| *byte).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_in_files_and_the_middle_of_a_flood_is_lost() {
        let mut heard = Heard::default();
        heard.hear(b"a\r\nb\rc\r");
        heard.hear(b"\nd");
        assert_eq!(heard.text(), b"a\nb\rc\nd");
        for _ in 0..100 {
            heard.hear(&[b'x'; 4096]);
        }
        heard.hear(b"the end");
        let text = heard.text();
        assert_eq!(text.len(), BEGINNING - 2 + GAP.len() + KEPT);
        assert!(text.starts_with(b"a\nb\rc\ndxx") && text.ends_with(b"the end"));
    }
}
