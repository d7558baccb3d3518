//! Groups that wait to be minimized, and who is next.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::schedule::Turn;
use ddfuzz_store::Kind;

/// A group, by the first 12 hex digits of its major key.
pub(super) type GroupName = (Kind, String);

/// A group's place in the queue; the least is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    turn: Turn,
    /// How long it was worked on by those who gave it back: the hard ones come last.
    spent: Duration,
    /// Nobody has begun it: what was cut off comes first after a restart.
    untouched: bool,
    number: u64,
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    places: BTreeMap<GroupName, Place>,
    claimed: BTreeMap<GroupName, Place>,
    numbers: u64,
}

impl Waiting {
    /// Lets a group wait behind those of its turn; one that waits keeps its place, if it is not in
    /// a later turn. `begun`: its minimization was cut off.
    pub(super) fn enqueue(&mut self, group: GroupName, turn: Turn, begun: bool) {
        if self.claimed.contains_key(&group) {
            return;
        }
        self.numbers += 1;
        let new = Place {
            turn,
            spent: Duration::ZERO,
            untouched: !begun,
            number: self.numbers,
        };
        let place = self.places.entry(group).or_insert(new);
        place.turn = place.turn.min(turn);
    }

    /// How many wait, or are worked on.
    pub(super) fn len(&self) -> usize {
        self.places.len() + self.claimed.len()
    }

    /// The group that is next.
    pub(super) fn next(&self) -> Option<GroupName> {
        let least = self.places.iter().min_by_key(|(_, place)| **place);
        least.map(|(group, _)| group.clone())
    }

    /// Gives a group to somebody.
    pub(super) fn claim(&mut self, group: &GroupName) {
        if let Some(place) = self.places.remove(group) {
            self.claimed.insert(group.clone(), place);
        }
    }

    /// Takes a group back that was not ended, after so much more work.
    pub(super) fn give_back(&mut self, group: &GroupName, spent: Duration) {
        if let Some(place) = self.claimed.remove(group) {
            let place = Place {
                spent: place.spent + spent,
                untouched: place.untouched && spent.is_zero(),
                ..place
            };
            self.places.insert(group.clone(), place);
        }
    }

    /// A group waits no more, until it is let wait again.
    pub(super) fn remove(&mut self, group: &GroupName) {
        self.places.remove(group);
        self.claimed.remove(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str) -> GroupName {
        (Kind::Crash, name.to_owned())
    }

    fn claim(waiting: &mut Waiting) -> Option<String> {
        let group = waiting.next()?;
        waiting.claim(&group);
        Some(group.1)
    }

    #[test]
    fn what_was_cut_off_comes_first_and_hangs_come_last() {
        let mut waiting = Waiting::default();
        waiting.enqueue((Kind::Hang, "hang".to_owned()), Turn::Hang, true);
        waiting.enqueue(group("slip"), Turn::Slipped, true);
        waiting.enqueue(group("first"), Turn::Found, false);
        waiting.enqueue(group("second"), Turn::Found, false);
        waiting.enqueue(group("begun"), Turn::Found, true);
        let order: Vec<String> = std::iter::from_fn(|| claim(&mut waiting)).collect();
        assert_eq!(order, ["begun", "first", "second", "slip", "hang"]);
    }

    #[test]
    fn what_is_given_back_waits_behind_what_nobody_has_tried() {
        let mut waiting = Waiting::default();
        waiting.enqueue(group("hard"), Turn::Found, false);
        assert_eq!(claim(&mut waiting).as_deref(), Some("hard"));
        // It is found again meanwhile.
        waiting.enqueue(group("hard"), Turn::Found, false);
        assert_eq!(claim(&mut waiting), None);
        waiting.give_back(&group("hard"), Duration::from_secs(3));
        waiting.enqueue(group("new"), Turn::Found, false);
        assert_eq!(claim(&mut waiting).as_deref(), Some("new"));
        assert_eq!(claim(&mut waiting).as_deref(), Some("hard"));
        waiting.remove(&group("hard"));
        waiting.give_back(&group("hard"), Duration::ZERO);
        assert_eq!(claim(&mut waiting), None);
    }

    #[test]
    fn a_group_that_was_slipped_into_comes_sooner_when_a_run_finds_it() {
        let mut waiting = Waiting::default();
        waiting.enqueue(group("slip"), Turn::Slipped, false);
        waiting.enqueue((Kind::Hang, "hang".to_owned()), Turn::Hang, false);
        waiting.enqueue(group("other"), Turn::Slipped, false);
        waiting.enqueue(group("other"), Turn::Found, false);
        assert_eq!(claim(&mut waiting).as_deref(), Some("other"));
    }
}
