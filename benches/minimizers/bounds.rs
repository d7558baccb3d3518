//! What no minimizer can do without.

/// Lower bounds on the tests of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Tests of a proof: one for each distinct deletion of a byte of the minimum.
    pub proof: u64,
    /// Tests that locate the needed bytes, wherever they may be: log2 of the ways to choose them.
    /// Where they are known to be neighbours, fewer do.
    pub locate: u64,
}

impl Bounds {
    /// The bounds for an input of `size` bytes with this minimum.
    pub fn new(size: usize, minimum: &[u8]) -> Bounds {
        Bounds {
            proof: minimum.chunk_by(|one, next| one == next).count() as u64,
            locate: log2_choose(size, minimum.len()).ceil() as u64,
        }
    }
}

/// log2 of the binomial coefficient.
fn log2_choose(all: usize, chosen: usize) -> f64 {
    let chosen = chosen.min(all.saturating_sub(chosen));
    (0..chosen)
        .map(|index| ((all - index) as f64 / (index + 1) as f64).log2())
        .sum()
}
