//! Colours and emphasis.

use ratatui::style::{Color, Modifier, Style};

/// How things look. Without colour only weight and reversal tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    colored: bool,
}

impl Palette {
    /// With or without colour.
    pub fn new(colored: bool) -> Palette {
        Palette { colored }
    }

    fn of(self, color: Color) -> Style {
        match self.colored {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }

    /// Names of things, rules.
    pub fn faint(self) -> Style {
        self.of(Color::DarkGray)
    }

    /// Titles.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The name of the program, keys.
    pub fn accent(self) -> Style {
        self.of(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Plots of what is good when it is much.
    pub fn good(self) -> Style {
        self.of(Color::Green)
    }

    /// What is not done yet.
    pub fn pending(self) -> Style {
        self.of(Color::Yellow)
    }

    /// Crashes, and trouble.
    pub fn bad(self) -> Style {
        self.of(Color::Red)
    }

    /// The selected line.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
