//! The call that names a hang in a recursion.

use std::collections::HashSet;

use super::stack::Stack;

/// The call that stands for the one at `level`, which is not left any more. Where a function of
/// it has come and gone in calls inside it, it is the recursion as a whole that takes so long
/// (backtracking); how deep the last call stands that is left is chance, and so is which of the
/// functions that call each other it is of. Then the outermost call of these functions stands for
/// it.
pub(super) fn outermost(stack: &Stack, level: usize) -> usize {
    let levels = &stack.levels;
    let Some(function) = levels.get(level).and_then(|level| level.function()) else {
        return level;
    };
    let inside: HashSet<_> = levels[..level]
        .iter()
        .filter_map(|level| level.function())
        .collect();
    if !inside.contains(&function) {
        return level;
    }
    let outermost = levels.iter().rposition(|level| {
        level.is_own() && level.function().is_some_and(|it| inside.contains(&it))
    });
    outermost.map_or(level, |outermost| outermost.max(level))
}
