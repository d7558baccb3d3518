//! Splitting a configuration.

use std::ops::Range;

/// Part number `index` (from 0) of `len` kept units cut into `parts` contiguous parts, as a range
/// of positions among the kept units. Sizes differ by at most one, the larger parts come first:
/// 7 units in 3 parts are 3, 2 and 2. An `index` beyond the last part gives an empty range.
///
/// ```
/// use ddfuzz_delta::part;
/// assert_eq!([0, 1, 2].map(|index| part(7, 3, index)), [0..3, 3..5, 5..7]);
/// ```
pub fn part(len: usize, parts: usize, index: usize) -> Range<usize> {
    if index >= parts {
        return len..len;
    }
    let (size, larger) = (len / parts, len % parts);
    let start = index * size + index.min(larger);
    start..start + size + usize::from(index < larger)
}
