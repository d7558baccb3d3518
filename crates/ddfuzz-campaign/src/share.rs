//! The part of the time that minimizing may take (`--minimize-share`).

use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// A share: more than nothing, at most all.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// A fifth: what minimizing may take where nobody says otherwise.
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

/// A text that says no share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a share above 0% and up to 100%, like 20% or 0.2")]
pub struct NoShare;

impl FromStr for Share {
    type Err = NoShare;

    fn from_str(text: &str) -> Result<Share, NoShare> {
        let (number, of) = match text.strip_suffix('%') {
            Some(number) => (number, 100.0),
            None => (text, 1.0),
        };
        let number: f64 = number.trim().parse().map_err(|_| NoShare)?;
        Share::new(number / of).ok_or(NoShare)
    }
}
