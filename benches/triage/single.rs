//! What one crash costs.

use std::path::Path;
use std::time::{Duration, Instant};

use ddfuzz::exec::{Freshness, Limits, Program, Target, start};
use ddfuzz::triage::{Triager, Verdict};

use crate::cost::{Cost, cpu_of_this, measure, median};

/// What crashes.
pub struct Subject {
    target: Target,
    input: Vec<u8>,
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}

impl Subject {
    /// This program on this input.
    pub fn new(program: &Path, input: &[u8], limits: Limits) -> Subject {
        let mut target = Target::new(Program::Path(program.to_owned()));
        target.limits = limits;
        Subject {
            target,
            input: input.to_vec(),
        }
    }

    /// A triager as the command line would make it.
    fn triager(&self) -> Triager {
        let started = start(&self.target, None, Freshness::Fresh).expect("it can be started");
        let way = started.executor.way();
        Triager::of_target(&self.target, way).expect("it can be started")
    }

    fn examine(&self, triager: &mut Triager) -> Option<Duration> {
        match triager.examine(&self.input).expect("it can be run") {
            Verdict::Crash(crash) => Some(Duration::from_micros(crash.details.times.capture_us)),
            Verdict::Flaky { .. } => None,
        }
    }

    /// Prints what the capture costs: in a triager that has seen the program before, and in one
    /// that has not.
    pub fn capture(&self, rounds: usize) {
        let mut triager = self.triager();
        let mut warm: Vec<Duration> = (0..=rounds)
            .filter_map(|_| self.examine(&mut triager))
            .collect();
        warm.sort();
        let keyed: Vec<Cost> = (0..rounds)
            .map(|_| {
                let (cpu, began) = (cpu_of_this(), Instant::now());
                triager.key(&self.input).expect("it can be run");
                Cost {
                    cpu: cpu_of_this() - cpu,
                    wall: began.elapsed(),
                }
            })
            .collect();
        let mut cold: Vec<Cost> = Vec::new();
        for _ in 0..rounds.min(10) {
            let mut triager = self.triager();
            let cpu = cpu_of_this();
            let capture = self.examine(&mut triager).unwrap_or_default();
            cold.push(Cost {
                cpu: cpu_of_this() - cpu,
                wall: capture,
            });
        }
        let (warm, keyed, cold) = (warm[warm.len() / 2], median(&keyed), median(&cold));
        println!("  capture, warm: {} (promised: 1 ms CPU)", millis(warm));
        println!(
            "  capture and keys, warm: {} CPU of ddfuzz in {}",
            millis(keyed.cpu),
            millis(keyed.wall)
        );
        println!(
            "  capture, cold: {}; with names {} CPU of ddfuzz (promised: 50 ms CPU)",
            millis(cold.wall),
            millis(cold.cpu)
        );
    }

    /// Prints what it costs to run the input again and key its crash, and with its whole record.
    pub fn handled(&self, name: &str, rounds: usize, promised: Duration) {
        let mut triager = self.triager();
        let mut seen = self.examine(&mut triager).is_some();
        let mut costs = Vec::new();
        for _ in 0..rounds {
            let (crash, cost) = measure(|| self.examine(&mut triager));
            seen &= crash.is_some();
            costs.push(cost);
        }
        let keyed: Vec<Cost> = (0..rounds)
            .map(|_| measure(|| triager.key(&self.input).expect("it can be run")).1)
            .collect();
        let (whole, keyed) = (median(&costs), median(&keyed));
        let word = if seen { "" } else { "; it has no record" };
        println!(
            "  {name}: {} (promised: {}), {} CPU; with names and record {}{word}",
            millis(keyed.wall),
            millis(promised),
            millis(keyed.cpu),
            millis(whole.wall)
        );
    }
}
