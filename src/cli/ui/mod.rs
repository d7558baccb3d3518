//! Everything that draws on a terminal.

pub mod campaign;
mod counting;
mod line;
mod minimizing;
mod statuses;

pub use counting::Counting;
pub use line::Line;
pub use minimizing::Minimizing;
pub use statuses::Statuses;

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::output::Output;
use crate::report::size;

/// One line on stderr, with the time since it began; not drawn where stderr is no terminal, or
/// `output` is quiet.
pub fn bar(output: &Output) -> ProgressBar {
    let target = match output.quiet {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr_with_hz(5),
    };
    let style = ProgressStyle::with_template("{elapsed_precise} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::with_draw_target(None, target).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

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
