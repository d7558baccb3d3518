//! Random numbers for the generators, always the same for a seed.

/// A splitmix64 stream.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x243f_6a88_85a3_08d3)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    pub fn letters(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| b'a' + self.below(26) as u8).collect()
    }

    /// `count` different positions below `end`, ascending.
    pub fn positions(&mut self, count: usize, end: usize) -> Vec<usize> {
        let mut at = std::collections::BTreeSet::new();
        while at.len() < count {
            at.insert(self.below(end));
        }
        at.into_iter().collect()
    }
}
