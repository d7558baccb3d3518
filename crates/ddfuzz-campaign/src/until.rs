//! Ends of a campaign that depend on what it finds (`--until`).

use std::fmt::{Display, Formatter};
use std::str::FromStr;
use std::time::Duration;

/// When a campaign has found enough, or finds nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// With the first new group of crashes.
    First,
    /// With so many of them.
    Groups(u64),
    /// When no group has been new for so long.
    NoNewFor(Duration),
}

/// How far a campaign has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// New groups of crashes: those that a committed run has founded in this count, muted ones and
    /// those known before it excepted.
    pub groups: u64,
    /// Time that was fuzzed since the last of them.
    pub since_new: Option<Duration>,
    /// Time that was fuzzed in this call.
    pub elapsed: Duration,
}

impl Until {
    /// Whether the campaign is to end here.
    pub fn is_reached(&self, course: &Course) -> bool {
        match self {
            Until::First => course.groups >= 1,
            Until::Groups(groups) => course.groups >= *groups,
            Until::NoNewFor(time) => course.since_new.unwrap_or(course.elapsed) >= *time,
        }
    }

    /// Whether this depends on the runs alone, and not on the clock.
    pub fn is_of_runs(&self) -> bool {
        !matches!(self, Until::NoNewFor(_))
    }
}

/// Which of several ends is reached; the first of them in their order.
pub fn reached(ends: &[Until], course: &Course) -> Option<Until> {
    ends.iter().copied().find(|end| end.is_reached(course))
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

/// Why a text says no end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEnd {
    /// It is none of the forms.
    #[error("write `first`, `3 groups` or `no new for 10m`")]
    Unknown,
    /// A number of groups that is none.
    #[error("write at least 1 group")]
    NoGroups,
    /// A time that is none.
    #[error("write a time above 0 as a number with ms, s, m or h")]
    NoTime,
}

impl FromStr for Until {
    type Err = NoEnd;

    fn from_str(text: &str) -> Result<Until, NoEnd> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            ["first"] => Ok(Until::First),
            [number, "group" | "groups"] => match number.parse() {
                Ok(0) => Err(NoEnd::NoGroups),
                Ok(groups) => Ok(Until::Groups(groups)),
                Err(_) => Err(NoEnd::Unknown),
            },
            ["no", "new", "for", time] => time_of(time).map(Until::NoNewFor),
            _ => Err(NoEnd::Unknown),
        }
    }
}

/// Reads a time with its unit; seconds without.
fn time_of(text: &str) -> Result<Duration, NoEnd> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(NoEnd::NoTime),
    };
    let number: f64 = number.parse().map_err(|_| NoEnd::NoTime)?;
    match Duration::try_from_secs_f64(number * factor) {
        Ok(time) if time >= Duration::from_millis(1) => Ok(time),
        _ => Err(NoEnd::NoTime),
    }
}
