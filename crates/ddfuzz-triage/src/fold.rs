//! Folding of recursion.

/// The longest cycle that is folded, in frames.
const LONGEST_CYCLE: usize = 10;

/// Folds adjacent repetitions of cycles of length 1…10 to one, shortest cycles first, so that the
/// depth of a recursion does not matter.
pub fn fold_cycles<T>(mut frames: Vec<T>, same: impl Fn(&T, &T) -> bool) -> Vec<T> {
    for length in 1..=LONGEST_CYCLE {
        let mut folded: Vec<T> = Vec::with_capacity(frames.len());
        for frame in frames {
            folded.push(frame);
            let Some(middle) = folded.len().checked_sub(length) else {
                continue;
            };
            let Some(start) = middle.checked_sub(length) else {
                continue;
            };
            let (earlier, later) = (&folded[start..middle], &folded[middle..]);
            if earlier.iter().zip(later).all(|(a, b)| same(a, b)) {
                folded.truncate(middle);
            }
        }
        frames = folded;
    }
    frames
}
