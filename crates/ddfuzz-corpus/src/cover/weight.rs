//! What keeping an input costs.

use std::time::Duration;

/// How slow an input is, as a class: 0 for all that run in less than [`FAST`] of CPU time, and one
/// more for each further factor of four. Classes and not times, so that the noise of a machine does
/// not decide which file stays; the least time of several runs should be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slowness(u8);

/// The CPU time below which inputs are equally fast.
pub const FAST: Duration = Duration::from_millis(10);

/// The greatest weight of an input: so small that a million of them can be summed up.
pub(super) const HEAVIEST: u64 = 1 << 40;

/// No input counts as slower than this class (three hours).
const SLOWEST: u8 = 10;

impl Slowness {
    /// The class of this CPU time.
    pub fn of(time: Duration) -> Slowness {
        let mut class = 0;
        let mut limit = FAST;
        while time >= limit && class < SLOWEST {
            class += 1;
            limit *= 4;
        }
        Slowness(class)
    }

    /// By how much it makes an input dearer: 1, 4, 16 and so on.
    pub fn factor(self) -> u64 {
        1 << (2 * self.0)
    }
}

/// What it costs to keep an input of so many bytes: (bytes + price of a file, in bytes) × slowness,
/// at least 1 and at most 2^40.
pub fn weight(bytes: u64, slowness: Slowness, price: u64) -> u64 {
    let size = bytes.saturating_add(price);
    size.saturating_mul(slowness.factor()).clamp(1, HEAVIEST)
}
