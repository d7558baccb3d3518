//! The settings of one call of the classic or guided campaign.

use std::fmt::{Display, Formatter};
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Deadline, Minimizing, SeedSources, Seeds, SessionSettings, Until, Words};
use ddfuzz_store::KnownGroups;

/// When the groups that a campaign finds are minimized (`--minimize`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// A group is minimized as soon as it is found. In the classic campaign (random inputs), a
    /// separate worker minimizes, as with [`When::Worker`]; in a guided one, the fuzzing workers
    /// minimize in time slices.
    Inline,
    /// Groups are minimized after fuzzing has ended.
    After,
    /// A separate worker minimizes groups while fuzzing goes on.
    Worker,
    /// Groups are never minimized.
    Off,
}

/// Which generator makes the inputs of a campaign (`--generator`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Generator {
    /// Inputs consist of random characters, as in the fuzz studies of Miller et al.
    Classic,
    /// Inputs are mutations of inputs that have reached new coverage.
    Guided,
}

/// Default greatest length of an input, in bytes.
pub const DEFAULT_MAX_LEN: u64 = 1 << 20;

/// Settings that link a guided campaign with campaigns on other hosts, through LibAFL's brokers,
/// which bind loopback addresses only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Port at which the broker of this campaign listens for others; `None` means any free port.
    pub port: Option<u16>,
    /// Address of the broker that this campaign joins; `None` means that it joins none.
    pub join: Option<SocketAddr>,
}

impl Network {
    /// Checks whether the user has asked for links with campaigns on other hosts.
    pub fn is_used(&self) -> bool {
        self.port.is_some() || self.join.is_some()
    }
}

/// Monitoring services that a guided campaign reports its status to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Monitoring {
    /// Address of a StatsD server, reached by UDP; `None` sends nothing.
    pub statsd: Option<SocketAddr>,
    /// Address at which the campaign serves `/metrics` to Prometheus by HTTP; `None` serves
    /// nothing.
    pub prometheus: Option<SocketAddr>,
}

/// The settings of one call of ddfuzz for a campaign.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Seed of all random numbers of the campaign, from which its inputs are made.
    pub seed: u64,
    /// Greatest length of an input, in bytes (`--max-len`). `None` takes the length that the
    /// campaign began with, and [`DEFAULT_MAX_LEN`] for a new campaign.
    pub max_len: Option<u64>,
    /// Inputs that the campaign runs and mutates.
    pub seeds: Seeds,
    /// Where the seeds were read from, for a later call that resumes the campaign.
    pub seed_sources: SeedSources,
    /// Words that mutations write into the inputs.
    pub words: Words,
    /// Number of runs to make; a call of ddfuzz that continues an unfinished one makes only the
    /// remaining runs. `None` means no limit.
    pub runs: Option<u64>,
    /// Wall time that this call of ddfuzz fuzzes; `None` means no limit.
    pub time: Option<Duration>,
    /// Deadline of the whole call of ddfuzz, including the minimizations after fuzzing
    /// (`--total-time`).
    pub deadline: Deadline,
    /// Conditions (`--until`) that end the fuzzing when one of them is met.
    pub until: Vec<Until>,
    /// Which generator makes the inputs of the campaign: random characters, or mutations guided by
    /// coverage.
    pub generator: Generator,
    /// Name of the structure (a file format or language) that mutations follow, in addition to
    /// havoc; `None` mutates with havoc only. Only guided campaigns use it.
    pub mutated_structure: Option<String>,
    /// Greatest share of each fuzzing worker's time that minimization may take. Only guided
    /// campaigns use it.
    pub share: Share,
    /// Number of workers that fuzz in parallel: threads in a classic campaign, processes in a
    /// guided one.
    pub jobs: usize,
    /// When the groups that the campaign finds are minimized.
    pub when: When,
    /// The target, and the settings of the minimization of groups.
    pub minimizing: Minimizing,
    /// Port and address by which a guided campaign is linked with campaigns on other hosts.
    pub network: Network,
    /// Monitoring services (StatsD, Prometheus) that a guided campaign reports its status to.
    pub monitoring: Monitoring,
    /// Groups that the user has muted: their findings are stored and counted, but they neither
    /// count as new nor are minimized.
    pub known: KnownGroups,
}

impl Settings {
    /// Returns the part of the settings that a [`CampaignSession`](crate::CampaignSession) needs.
    pub(super) fn session(&self) -> SessionSettings<'_> {
        SessionSettings {
            deadline: &self.deadline,
            minimizing: &self.minimizing,
            jobs: self.jobs,
            known: &self.known,
            time: self.time,
            until: &self.until,
        }
    }
}

/// A fraction above 0 and up to 1, such as the part of the workers' time that minimization may
/// take.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// Default fraction of a fuzzing worker's time that minimization may take: 20 %.
    pub const DEFAULT: Share = Share(0.2);

    /// Creates the share of a worker's time that minimization may take, from the fraction `part`;
    /// `None` unless `part` is above 0 and at most 1.
    pub fn new(part: f64) -> Option<Share> {
        (part > 0.0 && part <= 1.0).then_some(Share(part))
    }

    /// Returns the share as a fraction, above 0 and up to 1.
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

/// The error of parsing a text that is not a share above 0 % and up to 100 %.
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
