//! Random numbers that are the same for a seed everywhere.

/// A splitmix64 generator.
#[derive(Clone, Debug)]
pub struct Stream(u64);

impl Stream {
    /// The stream that `seed` names.
    pub fn new(seed: u64) -> Stream {
        Stream(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 where that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        match bound {
            0 => 0,
            bound => (self.next() % bound as u64) as usize,
        }
    }

    /// One of these.
    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// `length` bytes, none of them among `without`.
    pub fn bytes(&mut self, length: usize, without: &[u8]) -> Vec<u8> {
        let alphabet: Vec<u8> = (0..=255).filter(|byte| !without.contains(byte)).collect();
        self.letters(length, &alphabet)
    }

    /// `length` bytes of an alphabet.
    pub fn letters(&mut self, length: usize, alphabet: &[u8]) -> Vec<u8> {
        (0..length)
            .map(|_| alphabet[self.below(alphabet.len())])
            .collect()
    }

    /// A word of 2 to 9 small letters.
    pub fn word(&mut self) -> String {
        let length = 2 + self.below(8);
        let letters = self.letters(length, b"abcdefghijklmnoprstuvwyz");
        letters.into_iter().map(char::from).collect()
    }
}

/// The stream of needed bytes, the same as `next_byte` of `family.h`.
#[derive(Clone, Debug)]
pub struct Lcg(pub u32);

impl Lcg {
    /// The next byte.
    pub fn next(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 24) as u8
    }
}
