//! How a value changes from one call of a recursion to the next. Pure.

/// Smallest number of rounds of a cycle that must be seen before values are said to repeat.
const ROUNDS: usize = 3;
/// Smallest number of values that must follow a pattern.
const LEAST: usize = 6;

/// How a value changes from one call of a recursive function to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// The value is the same in each call.
    Constant,
    /// The value changes by this number with each call.
    Steps(i128),
    /// The values repeat after this number of calls, at least two.
    Repeats(usize),
    /// The values follow none of the other patterns.
    Other,
}

impl Pattern {
    /// Returns the pattern of the values that a variable has in calls which follow each other; of
    /// fewer than [`LEAST`] values that is [`Pattern::Other`].
    pub fn of(values: &[i128]) -> Pattern {
        if values.len() < LEAST {
            return Pattern::Other;
        }
        let most = values.len() / ROUNDS;
        let step = values[1].wrapping_sub(values[0]);
        let patterns = [Pattern::Constant, Pattern::Steps(step)].into_iter();
        let mut patterns = patterns.chain((2..=most).map(Pattern::Repeats));
        let found = patterns.find(|it| it.has(values));
        found.unwrap_or(Pattern::Other)
    }

    /// Returns true if all values follow this pattern.
    fn has(self, values: &[i128]) -> bool {
        let mut pairs = values.windows(2);
        match self {
            Pattern::Constant => pairs.all(|it| it[0] == it[1]),
            Pattern::Steps(step) => pairs.all(|it| it[1].wrapping_sub(it[0]) == step),
            Pattern::Repeats(period) => values.windows(period + 1).all(|it| it[0] == it[period]),
            Pattern::Other => false,
        }
    }

    /// Returns the index of the first of `values` from which on all follow this pattern; `None` if
    /// too few at the end do.
    pub fn since(self, values: &[i128]) -> Option<usize> {
        let least = match self {
            Pattern::Constant | Pattern::Steps(_) => LEAST,
            Pattern::Repeats(period) => LEAST.max(period * ROUNDS),
            Pattern::Other => return None,
        };
        let last = values.len().checked_sub(least)?;
        let starts = (0..=last).rev().take_while(|at| self.has(&values[*at..]));
        starts.last()
    }

    /// Returns the number of calls after which the values are the same again; `None` where they
    /// are not.
    pub fn period(self) -> Option<usize> {
        match self {
            Pattern::Constant => Some(1),
            Pattern::Repeats(period) => Some(period),
            Pattern::Steps(_) | Pattern::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_told_apart() {
        assert_eq!(Pattern::of(&[7; 6]), Pattern::Constant);
        assert_eq!(Pattern::of(&[7; 5]), Pattern::Other);
        assert_eq!(Pattern::of(&[3, 1, -1, -3, -5, -7]), Pattern::Steps(-2));
        assert_eq!(
            Pattern::of(&[1, 2, 3, 1, 2, 3, 1, 2, 3]),
            Pattern::Repeats(3)
        );
        // The third round is not complete.
        assert_eq!(Pattern::of(&[1, 2, 3, 1, 2, 3, 1, 2]), Pattern::Other);
        assert_eq!(Pattern::of(&[1, 2, 4, 8, 16, 32]), Pattern::Other);
    }

    #[test]
    fn a_pattern_begins_where_all_later_values_follow_it() {
        let values = [9, 8, 1, 2, 1, 2, 1, 2];
        assert_eq!(Pattern::Repeats(2).since(&values), Some(2));
        assert_eq!(Pattern::Constant.since(&values), None);
        assert_eq!(Pattern::Constant.since(&[1, 5, 5, 5, 5, 5, 5]), Some(1));
        assert_eq!(Pattern::Steps(1).since(&[1, 2, 3, 4, 5, 6]), Some(0));
        assert_eq!(Pattern::Repeats(4).since(&values), None);
    }
}
