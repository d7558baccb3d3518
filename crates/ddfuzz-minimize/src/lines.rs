//! The lines of a log as a run of a search writes them, one after the other.

use super::MinimizeError;
use super::log::Line;

/// What gives the lines of a log, and can go on behind an end that a budget has brought about.
pub(super) trait Lines {
    /// The line that comes next, asking the oracle where it has to be asked; `None` behind the
    /// last.
    fn next_line(&mut self) -> Result<Option<Line>, MinimizeError>;

    /// Goes on behind an end that came of a smaller budget than this one; whether it does.
    fn goes_on(&mut self) -> bool;

    /// The line that comes next; also behind an end that came of a smaller budget.
    fn next_line_or_more(&mut self) -> Result<Option<Line>, MinimizeError> {
        match self.next_line()? {
            None if self.goes_on() => self.next_line(),
            line => Ok(line),
        }
    }
}
