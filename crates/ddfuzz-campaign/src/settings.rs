//! The settings of a call of a campaign.

use std::fmt::{Display, Formatter};
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::{Duration, Instant};

use super::dictionary::Words;
use super::minimizing::Minimizing;
use super::seeds::Seeds;
use super::until::{Deadline, Until};
use ddfuzz_store::KnownGroups;

/// When a new group is minimized (`--minimize`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// As soon as it is found; results after it wait to be committed, fuzzing goes on until
    /// there are too many of them.
    Inline,
    /// When the fuzzing has ended.
    After,
    /// By a separate worker, beside the fuzzing.
    Worker,
    /// Not at all.
    Off,
}

/// What makes the inputs (`--generator`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// The random characters of the fuzz studies.
    Classic,
    /// Mutations of inputs that have reached something new.
    Guided,
}

/// The default of the greatest length of an input, in bytes.
pub const DEFAULT_MAX_LEN: u64 = 1 << 20;

/// The campaigns on other hosts that a guided one is linked to, by LibAFL's brokers. They bind
/// loopback addresses only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The port at which the broker of this campaign listens for others; any free one where
    /// `None`.
    pub port: Option<u16>,
    /// The broker that this one joins.
    pub join: Option<SocketAddr>,
}

impl Network {
    /// Whether there may be other hosts.
    pub fn is_used(&self) -> bool {
        self.port.is_some() || self.join.is_some()
    }
}

/// Where the status of a guided campaign is reported to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Monitoring {
    /// A StatsD server, by UDP.
    pub statsd: Option<SocketAddr>,
    /// Where Prometheus asks, by HTTP at `/metrics`.
    pub prometheus: Option<SocketAddr>,
}

/// The settings of one call of a campaign.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The seed of all inputs.
    pub seed: u64,
    /// The greatest length of an input, in bytes; `None`: that of the campaign so far, or
    /// [`DEFAULT_MAX_LEN`].
    pub max_len: Option<u64>,
    /// The inputs that are mutated beside what the classic generator makes.
    pub seeds: Seeds,
    /// What mutations write into them.
    pub words: Words,
    /// Runs that this call makes.
    pub runs: Option<u64>,
    /// Wall time that this call fuzzes.
    pub time: Option<Duration>,
    /// The end of the whole call.
    pub deadline: Deadline,
    /// What else ends this call; whichever comes first.
    pub until: Vec<Until>,
    /// What makes the inputs.
    pub generator: Generator,
    /// The most that minimizing takes of the time of workers which also fuzz. The classic campaign
    /// minimizes beside them.
    pub share: Share,
    /// Workers.
    pub jobs: usize,
    /// When groups are minimized.
    pub when: When,
    /// What is run, and how groups are minimized.
    pub minimizing: Minimizing,
    /// Other hosts.
    pub network: Network,
    /// Monitors.
    pub monitoring: Monitoring,
    /// Groups to mute: they are counted and stored, not minimized.
    pub known: KnownGroups,
}

impl Settings {
    /// When the fuzzing of a call that has begun now is over; `None`: at no time that a clock will
    /// see.
    pub(super) fn end_of(&self, began: Instant) -> Option<Instant> {
        began.checked_add(self.time?)
    }
}

/// A share: more than nothing, at most all.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// A fifth, the default of what minimizing may take.
    pub const DEFAULT: Share = Share(0.2);

    /// The share `part` of 1; `None` where that is no share.
    pub fn new(part: f64) -> Option<Share> {
        (part > 0.0 && part <= 1.0).then_some(Share(part))
    }

    /// As a part of 1.
    pub fn part(self) -> f64 {
        self.0
    }
}

impl Default for Share {
    fn default() -> Share {
        Share::DEFAULT
    }
}

impl Display for Share {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}%", (self.0 * 1e6).round() / 1e4)
    }
}

/// A text that is not a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a share above 0% and up to 100%, like 20% or 0.2")]
pub struct InvalidShare;

impl FromStr for Share {
    type Err = InvalidShare;

    fn from_str(text: &str) -> Result<Share, InvalidShare> {
        let (number, of) = match text.strip_suffix('%') {
            Some(number) => (number, 100.0),
            None => (text, 1.0),
        };
        let number: f64 = number.trim().parse().map_err(|_| InvalidShare)?;
        Share::new(number / of).ok_or(InvalidShare)
    }
}
