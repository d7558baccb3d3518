//! Filters of the system, of which many runs are made in one process.

use std::fmt;
use std::path::PathBuf;

use ddfuzz::campaign::Plan;
use ddfuzz::exec::{Ended, Executor, Freshness, Program, Target, Way, start};

/// Inputs of a turn; each turn has the same.
const TURN: usize = 256;
/// Greatest length of an input, in bytes.
const MAX_LEN: u64 = 1000;
/// Runs before the first look: some turns.
pub const WARM_UP: u64 = 16 * TURN as u64;

/// A filter of the system.
pub struct Filter {
    pub name: &'static str,
    args: &'static [&'static str],
    /// Whether runs share what the program reads before its input: `--freeze-start`.
    is_frozen: bool,
}

pub const ALL: [Filter; 5] = [
    filter("grep", &["-c", "a[0-9]*"], false),
    filter("jq", &["."], true),
    filter("sed", &["s/a/b/g"], false),
    filter("sort", &[], false),
    filter("troff", &[], true),
];

const fn filter(name: &'static str, args: &'static [&'static str], is_frozen: bool) -> Filter {
    Filter {
        name,
        args,
        is_frozen,
    }
}

impl Filter {
    pub fn start(&self) -> Result<Box<dyn Executor>, String> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let found: Option<PathBuf> = std::env::split_paths(&paths)
            .map(|directory| directory.join(self.name))
            .find(|path| path.is_file());
        let mut target = Target::new(Program::Path(found.ok_or("it is not installed")?));
        target.args = self.args.iter().map(Into::into).collect();
        target.freeze_start = self.is_frozen;
        let started = start(&target, Some(Way::Snapshot), Freshness::Shared);
        started
            .map(|started| started.executor)
            .map_err(|error| error.to_string())
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.args.join(" "))?;
        match self.is_frozen {
            true => f.write_str(", --freeze-start"),
            false => Ok(()),
        }
    }
}

/// Runs of one filter: the same inputs turn by turn, and each must end as it did in the first turn.
pub struct Series {
    inputs: Vec<Vec<u8>>,
    ends: Vec<Ended>,
    done: u64,
    requests: u64,
}

impl Series {
    pub fn new() -> Series {
        let plan = Plan {
            seed: 1,
            max_len: MAX_LEN,
        };
        let inputs = (0..TURN as u64).map(|run| {
            let mut bytes = Vec::new();
            plan.input(run).write_into(&mut bytes);
            bytes.truncate(1 + (run as usize * 37) % MAX_LEN as usize);
            bytes
        });
        Series {
            inputs: inputs.collect(),
            ends: Vec::new(),
            done: 0,
            requests: 0,
        }
    }

    /// Makes runs until there are so many in all.
    pub fn run(&mut self, executor: &mut dyn Executor, until: u64) {
        while self.done < until {
            let next = (self.done % TURN as u64) as usize;
            let end = TURN.min(next + usize::try_from(until - self.done).unwrap_or(TURN));
            let inputs: Vec<&[u8]> = self.inputs[next..end].iter().map(Vec::as_slice).collect();
            let runs = executor.run_some(&inputs).expect("the target runs");
            self.requests += 1;
            self.done += runs.len() as u64;
            for (number, run) in (next..).zip(runs) {
                if number == self.ends.len() {
                    self.ends.push(run.ended);
                }
                assert_eq!(run.ended, self.ends[number], "input {number}");
            }
        }
    }

    /// Whether many runs were made by one request; says if they were not, since then each was made
    /// in a new process.
    pub fn shares_processes(&self) -> bool {
        let shares = self.requests * 4 < self.done;
        if !shares {
            println!("{} requests for {} runs", self.requests, self.done);
        }
        shares
    }
}
