//! The table of a build: every formula, and its figures.

use crate::formulas::{Formula, MAJOR, MINOR, OF_OBJECTS, OTHERS, group};
use crate::runs::Seen;
use crate::score::{Placed, Score, mistakes};

/// The scores of one build.
pub struct Table {
    /// By our major key.
    pub major: Score,
    /// By our minor key.
    pub minor: Score,
    /// By the formulas of others, with their names.
    pub others: Vec<(&'static str, Score)>,
    /// By ours with other parts of the object that a report is about, where there are such reports.
    pub of_objects: Vec<(&'static str, Score)>,
    /// Inputs that were no crash.
    pub missed: Vec<String>,
    text: String,
}

/// Where a formula puts each input.
pub fn place(formula: &Formula, all: &[Seen]) -> Vec<Placed> {
    let placed = all.iter().enumerate().map(|(at, seen)| Placed {
        bug: seen.planted.bug.clone(),
        group: group(formula, seen, at),
    });
    placed.collect()
}

impl Table {
    /// Scores what was seen of a build.
    pub fn of(build: &str, all: &[Seen]) -> Table {
        let score = |formula: &Formula| Score::of(&place(formula, all));
        let missed = all.iter().filter(|seen| seen.crash.is_none());
        let missed: Vec<String> = missed
            .map(|seen| {
                let input = String::from_utf8_lossy(&seen.planted.input);
                let begin: String = input.chars().take(40).collect();
                format!("{} by {begin:?}: {}", seen.planted.bug, seen.ended)
            })
            .collect();
        let (major, minor) = (score(&MAJOR), score(&MINOR));
        let others = OTHERS.iter().map(|one| (one.name, score(one))).collect();
        let is_of_object = |seen: &Seen| {
            let crash = seen.crash.as_ref();
            crash.is_some_and(|crash| crash.details.object.is_some())
        };
        let of_objects = OF_OBJECTS.iter().filter(|_| all.iter().any(is_of_object));
        let of_objects = of_objects.map(|one| (one.name, score(one))).collect();
        let mut table = Table {
            major,
            minor,
            others,
            of_objects,
            missed,
            text: String::new(),
        };
        table.text = table.write(build, all);
        table
    }

    fn write(&self, build: &str, all: &[Seen]) -> String {
        let bugs = self.major.bugs;
        let mut text = format!("\n{build}: {bugs} bugs, {} inputs\n", all.len());
        text += "  formula          groups   over  under   lost   over + 3 lost\n";
        let ours = [(MAJOR.name, &self.major), (MINOR.name, &self.minor)];
        let others = self.others.iter().map(|(name, score)| (*name, score));
        let of_objects = self.of_objects.iter().map(|(name, score)| (*name, score));
        for (name, score) in ours.into_iter().chain(others).chain(of_objects) {
            text += &format!(
                "  {name:<16} {:>6} {:>6} {:>6} {:>6} {:>15}\n",
                score.groups,
                score.over,
                score.under,
                score.lost.len(),
                score.sum()
            );
        }
        for (name, formula) in [("major", &MAJOR), ("minor", &MINOR)] {
            for mistake in mistakes(&place(formula, all)) {
                text += &format!("    {name}: {mistake}\n");
            }
        }
        for missed in &self.missed {
            text += &format!("    no crash: {missed}\n");
        }
        text
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}
