//! The screen of a campaign: the whole terminal.
//!
//! What is told ([`crate::campaign::Screen`]) and what is pressed ([`Key`]) change the model
//! ([`Course`]); `draw` turns the model into characters and is a pure function of it. [`Full`]
//! joins both with a terminal and the files of the output directory.
//!
//! Localized here: `ratatui` (characters, and as `ratatui::crossterm` the terminal); `nix` and
//! `libc` for the modes of the terminal.

mod course;
mod detail;
mod draw;
mod group;
mod history;
mod key;
mod log;
mod overview;
mod page;
mod plot;
mod screen;
mod style;
mod table;
mod terminal;

pub use course::{Course, Event, Heading, Page, Tab};
pub use detail::Detail;
pub use draw::draw;
pub use group::Group;
pub use history::{History, Sample};
pub use key::{Action, Key};
pub use log::Log;
pub use plot::{left, plot};
pub use screen::Full;
pub use style::Palette;
pub use terminal::{Terminal, give_back};
