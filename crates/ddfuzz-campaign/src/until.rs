//! When a campaign ends: conditions on what it finds (`--until`), the deadline of the whole call
//! (`--total-time`), and the stop condition of its workers.

use std::fmt::{Display, Formatter};
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::PauseGate;
use ddfuzz_exec::{Ended, Target};

/// A condition that ends the fuzzing of a campaign (`--until`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Fuzzing ends as soon as one new group of crashes is found.
    First,
    /// Fuzzing ends as soon as this number of new groups of crashes are found.
    Groups(u64),
    /// Fuzzing ends when no new group of crashes was found for this time of fuzzing.
    NoNewFor(Duration),
}

/// The numbers of a campaign on which the conditions of `--until` depend: new groups, and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CampaignStatus {
    /// Number of groups of crashes that are new: not muted, not there before the campaign, and not
    /// reported by a completed call of ddfuzz.
    pub groups: u64,
    /// Fuzzing time since the last new group was found; `None` if no group is new.
    pub since_new: Option<Duration>,
    /// Time for which this call of ddfuzz has fuzzed so far.
    pub elapsed: Duration,
}

impl Until {
    /// Checks whether a campaign with this status meets the condition, so that its fuzzing ends.
    pub fn is_reached(&self, status: &CampaignStatus) -> bool {
        match self {
            Until::First => status.groups >= 1,
            Until::Groups(groups) => status.groups >= *groups,
            Until::NoNewFor(time) => status.since_new.unwrap_or(status.elapsed) >= *time,
        }
    }

    /// Returns true if the condition depends on the results of the runs alone ([`Until::First`] and
    /// [`Until::Groups`]), and false if it depends on the clock.
    pub fn is_of_runs(&self) -> bool {
        !matches!(self, Until::NoNewFor(_))
    }
}

/// The number of new groups of crashes with which conditions of `--until` are compared, and the
/// fuzzing time at which it last grew.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewGroups {
    count: u64,
    last: Option<Duration>,
}

impl NewGroups {
    /// Raises the number of new groups to `count`, which was counted after the fuzzing time
    /// `elapsed`; does nothing if `count` is not higher.
    pub(super) fn update(&mut self, count: u64, elapsed: Duration) {
        if count > self.count {
            *self = NewGroups {
                count,
                last: Some(elapsed),
            };
        }
    }

    /// Returns the numbers on which the conditions of `--until` depend, when the call of ddfuzz has
    /// fuzzed for the time `elapsed`.
    pub(super) fn status(&self, elapsed: Duration) -> CampaignStatus {
        CampaignStatus {
            groups: self.count,
            since_new: self.last.map(|last| elapsed.saturating_sub(last)),
            elapsed,
        }
    }
}

/// Returns the first of the conditions `ends` that a campaign with this status meets; `None` if it
/// meets none.
pub fn reached(ends: &[Until], status: &CampaignStatus) -> Option<Until> {
    ends.iter().copied().find(|end| end.is_reached(status))
}

impl Display for Until {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Until::First => f.write_str("first"),
            Until::Groups(1) => f.write_str("1 group"),
            Until::Groups(groups) => write!(f, "{groups} groups"),
            Until::NoNewFor(time) if time.subsec_millis() != 0 => {
                write!(f, "no new for {}ms", time.as_millis())
            }
            Until::NoNewFor(time) => write!(f, "no new for {}s", time.as_secs()),
        }
    }
}

/// Why a text is not a valid condition of the option `--until`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUntil {
    /// The text has none of the forms of a condition of `--until`.
    #[error("write `first`, `3 groups` or `no new for 10m`")]
    Unknown,
    /// The condition of `--until` asks for 0 groups.
    #[error("write at least 1 group")]
    NoGroups,
    /// The time in the condition of `--until` is 0 or invalid.
    #[error("write a time above 0 as a number with ms, s, m or h")]
    NoTime,
}

impl FromStr for Until {
    type Err = InvalidUntil;

    fn from_str(text: &str) -> Result<Until, InvalidUntil> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            ["first"] => Ok(Until::First),
            [number, "group" | "groups"] => match number.parse() {
                Ok(0) => Err(InvalidUntil::NoGroups),
                Ok(groups) => Ok(Until::Groups(groups)),
                Err(_) => Err(InvalidUntil::Unknown),
            },
            ["no", "new", "for", time] => parse_duration(time).map(Until::NoNewFor),
            _ => Err(InvalidUntil::Unknown),
        }
    }
}

/// Parses a time with its unit (ms, s, m, h), like `10m`; without a unit, the time is in seconds.
/// Less than 1 ms is an error.
fn parse_duration(text: &str) -> Result<Duration, InvalidUntil> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(InvalidUntil::NoTime),
    };
    let number: f64 = number.parse().map_err(|_| InvalidUntil::NoTime)?;
    match Duration::try_from_secs_f64(number * factor) {
        Ok(time) if time >= Duration::from_millis(1) => Ok(time),
        _ => Err(InvalidUntil::NoTime),
    }
}

/// The deadline of a whole call of ddfuzz (`--total-time`). At the deadline the call ends as if the
/// user stopped it: its state is saved, and the next call continues.
#[derive(Clone, Debug, Default)]
pub struct Deadline {
    over: Arc<AtomicBool>,
}

impl Deadline {
    /// Begins a deadline: starts a thread that sets `stop` to true after the time `total` (`None`:
    /// no deadline). Fails if the thread cannot be started.
    pub fn begin(total: Option<Duration>, stop: &Arc<AtomicBool>) -> io::Result<Deadline> {
        let at = total.and_then(|total| Instant::now().checked_add(total));
        let deadline = Deadline::default();
        if let Some(at) = at {
            let (over, stop) = (Arc::clone(&deadline.over), Arc::clone(stop));
            let wait = move || {
                while let Some(left) = at.checked_duration_since(Instant::now()) {
                    std::thread::sleep(left);
                }
                // A call that was stopped before was stopped by the user.
                over.store(!stop.load(Ordering::Relaxed), Ordering::Relaxed);
                stop.store(true, Ordering::Relaxed);
            };
            std::thread::Builder::new().spawn(wait)?;
        }
        Ok(deadline)
    }

    /// Returns true if the deadline has stopped the call of ddfuzz, and not the user.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Returns the time limit for fuzzing (`None`: no limit), when the user asks for `time` of
    /// fuzzing and `total` for the whole call of ddfuzz: the shorter of both. With `total` alone,
    /// the limit is three quarters of `total`; the rest is for the work after fuzzing.
    pub fn fuzzing(total: Option<Duration>, time: Option<Duration>) -> Option<Duration> {
        match (total, time) {
            (Some(total), Some(time)) => Some(time.min(total)),
            (Some(total), None) => Some(total / 4 * 3),
            (None, time) => time,
        }
    }
}

/// Time for which the classification of a run may go on after the workers have to stop, so that a
/// crash that has occurred just before is still found.
pub(crate) const CLASSIFICATION_TIME: Duration = Duration::from_secs(2);

/// Returns a copy of `target` for runs that classify a run which has ended: they are abandoned two
/// seconds ([`CLASSIFICATION_TIME`]) later than other runs of `target`.
pub(crate) fn classifying(target: &Target) -> Target {
    Target {
        abandon_when: target.abandon_when.clone().delayed(CLASSIFICATION_TIME),
        ..target.clone()
    }
}

/// Tells the workers of a campaign when to stop and when to pause.
pub(crate) struct StopCondition<'a> {
    /// Turns true when the user stops the call of ddfuzz or its deadline is over; the workers then
    /// stop.
    stop: &'a AtomicBool,
    /// Point in time at which the time for fuzzing ends; `None` means no limit.
    deadline: Option<Instant>,
    /// Whether the workers have to stop for good, because a worker has failed or no more runs are
    /// counted.
    broken: Arc<AtomicBool>,
    /// Gate at which the workers pause while the disk is full.
    gate: &'a PauseGate,
}

impl<'a> StopCondition<'a> {
    /// Creates a stop condition: workers stop when `stop` turns true or `deadline` is over, and
    /// pause at `gate`.
    pub(crate) fn new(
        stop: &'a AtomicBool,
        deadline: Option<Instant>,
        gate: &'a PauseGate,
    ) -> StopCondition<'a> {
        StopCondition {
            stop,
            deadline,
            broken: Arc::default(),
            gate,
        }
    }

    /// Makes all workers stop for good if `now` is true; does nothing otherwise.
    pub(crate) fn break_off_if(&self, now: bool) {
        self.broken.fetch_or(now, Ordering::Relaxed);
    }

    /// Called by a worker before each new piece of work. Blocks while the disk is full. Then
    /// returns true if the worker may begin the work, and false if it has to stop.
    pub(crate) fn go_on(&self) -> bool {
        self.gate.pass(|| self.is_over());
        !self.is_over()
    }

    /// Checks whether workers have to stop: the user has stopped the call of ddfuzz, its deadline
    /// or the time for fuzzing is over, or [`StopCondition::break_off_if`] was called.
    pub(crate) fn is_over(&self) -> bool {
        let stopped = self.stop.load(Ordering::Relaxed) || self.broken.load(Ordering::Relaxed);
        stopped || self.is_late()
    }

    /// Returns true if a run that ended with `ended` is to be classified. False only for a hang
    /// after the call of ddfuzz was stopped: classifying it takes as long as the run, and the next
    /// call repeats the run.
    pub(crate) fn may_classify(&self, ended: Ended) -> bool {
        ended != Ended::Timeout || !self.stop.load(Ordering::Relaxed)
    }

    /// Returns a copy of `target` whose runs are also abandoned as soon as the workers have to
    /// stop, so that a worker does not wait for the end of its current run; at the end of the time
    /// for fuzzing, they may go on for the time `patience`.
    pub(crate) fn abandoning(&self, target: &Target, patience: Duration) -> Target {
        let broken = Arc::clone(&self.broken);
        let stopped = target.abandon_when.clone();
        let stopped = stopped.or(move || broken.load(Ordering::Relaxed));
        Target {
            abandon_when: stopped.or_at(self.deadline.and_then(|end| end.checked_add(patience))),
            ..target.clone()
        }
    }

    /// Returns true if the time for fuzzing is over; false if it is not, or has no limit.
    pub(crate) fn is_late(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_whole_is_left_for_what_comes_after_the_fuzzing() {
        let seconds = |total, time| {
            let duration = |seconds: Option<u64>| seconds.map(Duration::from_secs);
            Deadline::fuzzing(duration(total), duration(time)).map(|time| time.as_secs())
        };
        assert_eq!(seconds(Some(60), None), Some(45));
        assert_eq!(seconds(Some(60), Some(50)), Some(50));
        assert_eq!(seconds(Some(60), Some(90)), Some(60));
        assert_eq!(seconds(None, Some(90)), Some(90));
        assert_eq!(seconds(None, None), None);
        assert!(seconds(Some(u64::MAX), None) > Some(u64::MAX / 2));
    }

    #[test]
    fn it_is_over_only_where_the_user_has_not_stopped_before() {
        let until = |stop: &Arc<AtomicBool>, deadline: &Deadline, raised: bool| {
            let begun = Instant::now();
            while deadline.is_over() != raised && begun.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
            (stop.load(Ordering::Relaxed), deadline.is_over())
        };
        let stop = Arc::new(AtomicBool::new(false));
        let deadline = Deadline::begin(Some(Duration::from_millis(5)), &stop).unwrap();
        assert_eq!(until(&stop, &deadline, true), (true, true));
        let stop = Arc::new(AtomicBool::new(true));
        let deadline = Deadline::begin(Some(Duration::ZERO), &stop).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(until(&stop, &deadline, false), (true, false));
    }

    #[test]
    fn a_hang_is_not_named_when_the_whole_time_is_over_and_a_crash_is() {
        let (stop, gate) = (AtomicBool::new(false), PauseGate::default());
        // The time for fuzzing ends no run that is under way.
        let condition = StopCondition::new(&stop, Some(Instant::now()), &gate);
        assert!(condition.is_over() && condition.may_classify(Ended::Timeout));
        stop.store(true, Ordering::Relaxed);
        assert!(!condition.may_classify(Ended::Timeout));
        assert!(
            condition.may_classify(Ended::Signal(11)) && condition.may_classify(Ended::Exit(0))
        );
    }
}
