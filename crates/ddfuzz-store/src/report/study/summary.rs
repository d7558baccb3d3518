//! What a study came to, in a line.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::rows::once_each;
use super::{Rate, Row};
use crate::report::size;

/// How many utilities failed in which way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The machines.
    pub hosts: Vec<String>,
    /// Of the utilities that were run, those that crashed.
    pub crash: Rate,
    /// Those that hung.
    pub hang: Rate,
    /// Those that ran out of memory.
    pub memory: Rate,
    /// Those that crashed or hung: what the published rates count.
    pub failing: Rate,
    /// Utilities that could not be run, by label.
    pub not_run: BTreeMap<String, u64>,
    /// Utilities whose turn has not come yet.
    pub waiting: u64,
}

impl Summary {
    /// That of these rows; those of one utility, in several versions or on several machines, count
    /// as one.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Summary {
        let (mut run, mut counts) = (0, [0; 4]);
        let mut hosts = BTreeSet::new();
        let mut not_run = BTreeMap::new();
        let mut waiting = 0;
        let rows = rows.into_iter().inspect(|row| {
            hosts.insert(row.host.clone());
        });
        for row in once_each(rows) {
            match (row.marks(), &row.label) {
                (Some(marks), _) => {
                    run += 1;
                    let all = [marks.crash, marks.hang, marks.memory, marks.fails()];
                    for (count, is_set) in counts.iter_mut().zip(all) {
                        *count += u64::from(is_set);
                    }
                }
                (None, Some(label)) => *not_run.entry(label.clone()).or_default() += 1,
                (None, None) => waiting += 1,
            }
        }
        let [crash, hang, memory, failing] = counts.map(|count| Rate::new(count, run));
        Summary {
            hosts: hosts.into_iter().collect(),
            crash,
            hang,
            memory,
            failing,
            not_run,
            waiting,
        }
    }

    /// In sentences, on one line.
    pub fn text(&self) -> String {
        let run = match self.failing.of {
            1 => "1 utility run".to_owned(),
            count => format!("{} utilities run", size::grouped(count)),
        };
        let mut text = match self.failing.of {
            0 => run,
            _ => format!(
                "{run}, {} crash ({}), {} hang ({}), {} run out of memory; {} crash or hang ({})",
                size::grouped(self.crash.hits),
                self.crash.text(),
                size::grouped(self.hang.hits),
                self.hang.text(),
                size::grouped(self.memory.hits),
                size::grouped(self.failing.hits),
                self.failing.text(),
            ),
        };
        let not_run: u64 = self.not_run.values().sum();
        if not_run > 0 {
            let labels = self.not_run.iter();
            let labels: Vec<String> = labels
                .map(|(label, count)| format!("{label} {}", size::grouped(*count)))
                .collect();
            let count = size::grouped(not_run);
            text += &format!("; {count} could not be run ({})", labels.join(", "));
        }
        if self.waiting > 0 {
            text += &format!("; {} not run yet", size::grouped(self.waiting));
        }
        text
    }
}

/// The summary of all rows; where a utility was run on several machines, one for each machine
/// instead, because that is what the published rates are of.
pub fn summaries(rows: &[Row]) -> Vec<Summary> {
    let names: BTreeSet<&str> = rows.iter().map(|row| row.utility.as_str()).collect();
    let on_hosts: BTreeSet<(&str, &str)> = (rows.iter())
        .map(|row| (row.host.as_str(), row.utility.as_str()))
        .collect();
    if names.len() == on_hosts.len() {
        return vec![Summary::of(rows)];
    }
    let hosts: BTreeSet<&str> = rows.iter().map(|row| row.host.as_str()).collect();
    let of = |host: &str| Summary::of(rows.iter().filter(|row| row.host == host));
    hosts.into_iter().map(of).collect()
}
