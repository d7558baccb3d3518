//! How far groups are from bugs, in three figures.
//!
//! - **over**: groups too many. Each bug needs one group; every further one that it is found in
//!   counts: Σ over bugs of (groups in which the bug is found − 1).
//! - **under**: bugs too many in a group: Σ over groups of (bugs found in the group − 1).
//! - **lost**: bugs that own no group, so that somebody who looks at one input a group and takes
//!   the commonest would never see them. A group is owned by the bug with most inputs in it; of
//!   several with as many, by the one whose first input comes first.
//!
//! The sum by which formulas are compared is over + 3 × lost: a bug too many to look at costs
//! minutes, a bug that is not seen costs the bug.

use std::collections::{BTreeMap, BTreeSet};

/// One input: its bug and the group that a formula puts it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The bug.
    pub bug: String,
    /// The name of the group.
    pub group: String,
}

/// The three figures of one formula on one set of inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Bugs there are.
    pub bugs: usize,
    /// Groups made.
    pub groups: usize,
    /// Groups too many.
    pub over: usize,
    /// Bugs too many in a group.
    pub under: usize,
    /// Bugs that own no group, in the order of their names.
    pub lost: Vec<String>,
}

impl Score {
    /// The score of a placement.
    pub fn of(placed: &[Placed]) -> Score {
        let mut groups_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        // Per group and bug: how many inputs, and the place of the first.
        let mut bugs_of: BTreeMap<&str, BTreeMap<&str, (usize, usize)>> = BTreeMap::new();
        for (at, Placed { bug, group }) in placed.iter().enumerate() {
            groups_of.entry(bug).or_default().insert(group);
            let bugs = bugs_of.entry(group).or_default();
            bugs.entry(bug).or_insert((0, at)).0 += 1;
        }
        let owners: BTreeSet<&str> = bugs_of
            .values()
            .filter_map(|bugs| {
                let rank = |(count, first): (usize, usize)| (count, usize::MAX - first);
                let most = bugs.iter().max_by_key(|(_, counted)| rank(**counted));
                most.map(|(bug, _)| *bug)
            })
            .collect();
        let lost = groups_of.keys().filter(|bug| !owners.contains(*bug));
        Score {
            bugs: groups_of.len(),
            groups: bugs_of.len(),
            over: groups_of.values().map(|groups| groups.len() - 1).sum(),
            under: bugs_of.values().map(|bugs| bugs.len() - 1).sum(),
            lost: lost.map(|bug| (*bug).to_owned()).collect(),
        }
    }

    /// Over + 3 × lost.
    pub fn sum(&self) -> usize {
        self.over + 3 * self.lost.len()
    }

    /// Groups too many, in percent of the bugs.
    pub fn over_percent(&self) -> f64 {
        percent(self.over, self.bugs)
    }

    /// Bugs lost, in percent.
    pub fn lost_percent(&self) -> f64 {
        percent(self.lost.len(), self.bugs)
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// A line each: which bugs are split over several groups, and which groups hold several bugs.
pub fn mistakes(placed: &[Placed]) -> Vec<String> {
    let mut groups_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut bugs_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Placed { bug, group } in placed {
        groups_of.entry(bug).or_default().insert(group);
        bugs_of.entry(group).or_default().insert(bug);
    }
    let split = groups_of.iter().filter(|(_, groups)| groups.len() > 1);
    let split = split.map(|(bug, groups)| format!("{bug} has {} groups", groups.len()));
    let merged = bugs_of.values().filter(|bugs| bugs.len() > 1);
    let merged = merged.map(|bugs| format!("one group holds {bugs:?}"));
    split.chain(merged).collect()
}

#[cfg(test)]
fn placed(text: &str) -> Vec<Placed> {
    let one = |word: &str| Placed {
        bug: word[..1].to_owned(),
        group: word[1..].to_owned(),
    };
    text.split(' ').map(one).collect()
}

#[test]
fn groups_that_are_bugs_score_nothing() {
    let score = Score::of(&placed("a1 a1 b2 c3"));
    assert_eq!((score.bugs, score.groups, score.sum()), (3, 3, 0));
    assert_eq!((score.over, score.under), (0, 0));
}

#[test]
fn each_further_group_of_a_bug_is_over() {
    let score = Score::of(&placed("a1 a2 a3 b4"));
    assert_eq!((score.over, score.under, score.lost.len()), (2, 0, 0));
}

#[test]
fn a_bug_in_the_minority_everywhere_is_lost() {
    let score = Score::of(&placed("a1 a1 b1 c2 b2 c2"));
    assert_eq!((score.over, score.under), (1, 2));
    assert_eq!(score.lost, ["b"]);
    assert_eq!(score.sum(), 4);
}

#[test]
fn of_as_many_inputs_the_first_owns_the_group() {
    assert_eq!(Score::of(&placed("b1 a1")).lost, ["a"]);
}
