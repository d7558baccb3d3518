//! The bytes of the first contents, so that these are not read again to be run.

/// No more bytes than these are held.
const MOST: usize = 64 << 20;

/// The bytes of contents with the numbers from 0 on, as far as they have room.
#[derive(Debug, Default)]
pub(super) struct Held {
    bytes: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
    /// Those behind them have none.
    is_full: bool,
}

impl Held {
    /// Holds the bytes of the next content.
    pub(super) fn hold(&mut self, bytes: &[u8]) {
        self.is_full |= self.bytes.len() + bytes.len() > MOST;
        if !self.is_full {
            self.bytes.extend_from_slice(bytes);
            self.ends.push(self.bytes.len());
        }
    }

    /// The bytes of the content with this number; `None` where there was no room for them.
    pub(super) fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_held_in_their_order_until_there_is_no_room() {
        let mut held = Held::default();
        for bytes in [&b"abc"[..], b"", b"d", &vec![0; MOST], b"e"] {
            held.hold(bytes);
        }
        let found = [0, 1, 2, 3, 4].map(|number| held.get(number));
        assert_eq!(
            found,
            [Some(&b"abc"[..]), Some(b""), Some(b"d"), None, None]
        );
    }
}
