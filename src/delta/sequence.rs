//! `ddmin` over any sequence, for those who want a result and no machine.

use super::{Cache, Caching, Ddmin, Outcome, Search, Seen, TextId};

/// The whole input does not fail: half of the axiom does not hold, and there is nothing to
/// minimize. UNRESOLVED counts as not failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFailing {
    /// What the test of the whole input said.
    pub outcome: Outcome,
}

impl std::fmt::Display for NotFailing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the whole input does not fail: its test is {}",
            self.outcome
        )
    }
}

impl std::error::Error for NotFailing {}

/// Minimizes a failing sequence with [`Ddmin`]: the result's test is FAIL, it is a subsequence of
/// `items`, and removing any one item of it makes FAIL go away (1-minimal, A.12).
///
/// The axiom is tested first: all items, then none. Where the test of no items is FAIL, the
/// result is empty. A configuration is never tested twice.
///
/// # Errors
/// [`NotFailing`] where the test of all items is not FAIL.
///
/// ```
/// use ddfuzz::delta::{Outcome, ddmin};
///
/// let has_both = |kept: &[char]| match kept.contains(&'<') && kept.contains(&'>') {
///     true => Outcome::Fail,
///     false => Outcome::Pass,
/// };
/// let letters: Vec<char> = "some <b>bold</b> text".chars().collect();
/// assert_eq!(ddmin(&letters, has_both), Ok(vec!['<', '>']));
/// ```
pub fn ddmin<T: Clone>(
    items: &[T],
    mut test: impl FnMut(&[T]) -> Outcome,
) -> Result<Vec<T>, NotFailing> {
    let outcome = test(items);
    if outcome != Outcome::Fail {
        return Err(NotFailing { outcome });
    }
    if items.is_empty() || test(&[]) == Outcome::Fail {
        return Ok(Vec::new());
    }
    let mut machine = Ddmin::new(items.len());
    let mut cache = Cache::new(Caching::Configuration);
    let mut kept = Vec::new();
    while let Some(config) = machine
        .next()
        .and_then(|asked| asked.edit.apply(machine.best()))
    {
        // Items cannot be hashed, so that a configuration has to stand for its own text.
        let text = TextId(config.id().to_bytes());
        let outcome = match cache.lookup(Some(config.id()), text) {
            Some(hit) => hit.outcome(),
            None => {
                config.write_into(items, &mut kept);
                test(&kept)
            }
        };
        cache.record(
            Some(config.id()),
            text,
            Seen {
                outcome,
                test: None,
            },
        );
        machine.tell(outcome);
    }
    machine.best().write_into(items, &mut kept);
    Ok(kept)
}
