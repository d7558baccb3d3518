//! Everything that draws on a terminal.

mod line;

pub use line::Line;

/// The width of the terminal that stdout is, in characters; `None` if it is none.
pub fn stdout_width() -> Option<usize> {
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(usize::from(columns))
}
