//! Everything that draws on a terminal.

mod counting;
mod line;
mod minimizing;

pub use counting::Counting;
pub use line::Line;
pub use minimizing::Minimizing;

use crate::report::size;

/// The width of the terminal that stdout is, in characters; `None` if it is none.
pub fn stdout_width() -> Option<usize> {
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(usize::from(columns))
}

/// Runs per second: with a decimal where a whole number would say too little.
pub fn rate(per_second: f64) -> String {
    match per_second {
        slow if slow < 10.0 => format!("{slow:.1}"),
        fast => size::grouped(fast.round() as u64),
    }
}
