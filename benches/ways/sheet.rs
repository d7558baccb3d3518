//! One program's table: its subjects, measured in turns, and the promises beside what was found.

use std::time::Duration;

use crate::Plan;
use crate::cost::Cost;
use crate::difference::{BOTH, Of, median};
use crate::promise::{Floor, Goal, compare, compare_to_floor, not_measured};
use crate::subjects::Subject;

/// `subject` makes at least `target` times as many runs as `peer` does in the same time; without a
/// peer, a run takes at most `target` microseconds of CPU time.
pub struct Promise {
    subject: &'static str,
    peer: Option<&'static str>,
    /// The subject than which none can be faster.
    floor: Option<&'static str>,
    target: f64,
}

impl Promise {
    /// At least `target` times the rate of `peer`.
    pub fn times(subject: &'static str, peer: &'static str, target: f64) -> Promise {
        Promise {
            subject,
            peer: Some(peer),
            floor: None,
            target,
        }
    }

    /// The same, and no more is possible than what the subject `floor` makes.
    pub fn with_floor(self, floor: &'static str) -> Promise {
        Promise {
            floor: Some(floor),
            ..self
        }
    }

    /// At most `target` microseconds of CPU time for a run.
    pub fn micros(subject: &'static str, target: f64) -> Promise {
        Promise {
            subject,
            peer: None,
            floor: None,
            target,
        }
    }
}

/// The subjects of one program.
pub struct Sheet {
    title: String,
    /// Runs of a round, in multiples of the plan's.
    longer: u32,
    subjects: Vec<(Box<dyn Subject>, Vec<Cost>)>,
    promises: Vec<Promise>,
    notes: Vec<String>,
}

impl Sheet {
    /// An empty one.
    pub fn new(title: &str) -> Sheet {
        Sheet {
            title: title.to_owned(),
            longer: 1,
            subjects: Vec::new(),
            promises: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Rounds of so many times the planned runs, where one takes too little time to be measured or
    /// where what happens now and then is to have its share.
    pub fn lengthen(&mut self, times: u32) {
        self.longer = times;
    }

    /// The first one added is what the others' ratios stand to.
    pub fn add_boxed(&mut self, subject: Box<dyn Subject>) {
        self.subjects.push((subject, Vec::new()));
    }

    /// Holds what was measured against it.
    pub fn promise(&mut self, promise: Promise) {
        self.promises.push(promise);
    }

    /// Says why something is not in the table.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Round by round, each in its turn, so that a busy moment of the machine hits all alike.
    pub fn measure(&mut self, plan: &Plan) {
        for _ in 0..plan.rounds {
            for (subject, costs) in &mut self.subjects {
                costs.push(subject.measure(plan.runs * self.longer));
            }
        }
    }

    /// CPU time of a run of the subject `name`, in microseconds.
    pub fn cpu_micros(&self, name: &str) -> f64 {
        micros(self.costs(name), |cost| cost.cpu)
    }

    /// How many runs of `name` cost what one of `floor` does, in CPU time.
    pub fn cpu_ratio(&self, name: &str, floor: &str) -> f64 {
        ratio(self.costs(name), self.costs(floor), |cost| cost.cpu)
    }

    fn costs(&self, name: &str) -> &[Cost] {
        let found = self.subjects.iter().find(|(who, _)| who.name() == name);
        found.map_or(&[], |(_, costs)| costs)
    }

    /// Prints both tables, in Markdown.
    pub fn print(&self) {
        let longer = match self.longer {
            1 => String::new(),
            times => format!(" ({times} times as many runs a round)"),
        };
        println!("\nOn {}{longer}:\n", self.title);
        println!("| subject | runs/s | wall µs | CPU µs | × by wall | × by CPU |");
        println!("|---|--:|--:|--:|--:|--:|");
        if let Some((_, first)) = self.subjects.first() {
            self.subjects
                .iter()
                .for_each(|subject| line(subject, first));
        }
        for note in &self.notes {
            println!("\n{note}");
        }
        if !self.promises.is_empty() {
            println!("\n| promised | by | measured | |");
            println!("|---|---|--:|---|");
            self.promises.iter().for_each(|promise| self.hold(promise));
        }
    }

    fn hold(&self, promise: &Promise) {
        let costs = |name| {
            let found = self.subjects.iter().find(|(who, _)| who.name() == name);
            found.map(|(_, costs)| costs)
        };
        let (subject, target) = (promise.subject, promise.target);
        let Some(peer) = promise.peer else {
            let measured = self.cpu_micros(subject);
            let figure = format!("{}: {subject}, CPU time of a run", self.title);
            let verdict = compare(&figure, measured, "µs", Goal::AtMost(target));
            println!("| {subject}, µs | CPU | {measured:.1} | {verdict} |");
            return;
        };
        let (Some(ours), Some(theirs)) = (costs(subject), costs(peer)) else {
            let figure = format!("{}: {subject} to {peer}", self.title);
            let verdict = not_measured(&figure, &self.notes.join("; "));
            println!("| {subject} to {peer} | | | {verdict} |");
            return;
        };
        for (name, of) in BOTH {
            let measured = ratio(ours, theirs, of);
            let figure = format!("{}: {subject} to {peer}, by {name} time", self.title);
            let goal = Goal::AtLeast(target);
            let verdict = match promise.floor.and_then(costs) {
                Some(least) => {
                    let floor = Floor {
                        work: "the words of the protocol and the runs alone",
                        measured: ratio(least, theirs, of),
                    };
                    compare_to_floor(&figure, measured, "x", goal, floor)
                }
                None => compare(&figure, measured, "x", goal),
            };
            println!("| {subject} to {peer} | {name} | {measured:.2} | {verdict} |");
        }
    }
}

/// A line of the table; all ratios are to the first subject.
fn line((subject, costs): &(Box<dyn Subject>, Vec<Cost>), first: &[Cost]) {
    let [wall, cpu] = BOTH.map(|(_, of)| micros(costs, of));
    let [by_wall, by_cpu] = BOTH.map(|(_, of)| ratio(costs, first, of));
    let (name, rate) = (subject.name(), 1e6 / wall);
    println!("| {name} | {rate:.0} | {wall:.1} | {cpu:.1} | {by_wall:.2} | {by_cpu:.2} |");
}

/// Microseconds of a run, the median over the rounds.
fn micros(costs: &[Cost], of: Of) -> f64 {
    median(costs.iter().map(of)).as_secs_f64() * 1e6
}

/// How many runs of `ours` cost what one of `theirs` does: the median over the rounds, each of
/// which compares what was measured side by side.
fn ratio(ours: &[Cost], theirs: &[Cost], of: Of) -> f64 {
    let share =
        |ours: Duration, theirs: Duration| theirs.as_secs_f64() / ours.as_secs_f64().max(1e-9);
    let pairs = ours.iter().zip(theirs);
    median(pairs.map(|(ours, theirs)| share(of(ours), of(theirs))))
}
