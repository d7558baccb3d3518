//! What keys mean.

/// Lines of a page that is turned.
const LEAF: usize = 10;

/// A key by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A line up.
    Up,
    /// A line down.
    Down,
    /// Ten lines up.
    PageUp,
    /// Ten lines down.
    PageDown,
    /// To the first line.
    First,
    /// To the last line.
    Last,
    /// The page of the selected group.
    Enter,
    /// Back to the campaign.
    Back,
    /// The next part of the page.
    Next,
    /// The part before.
    Previous,
    /// Back to the campaign from a group's page; on the campaign, its end.
    Quit,
    /// Back to the shell for a while.
    Suspend,
}

impl Key {
    /// The key where the last line stands at the bottom, and lines are counted from there.
    pub(super) fn turned(self) -> Key {
        match self {
            Key::Up => Key::Down,
            Key::Down => Key::Up,
            Key::PageUp => Key::PageDown,
            Key::PageDown => Key::PageUp,
            Key::First => Key::Last,
            Key::Last => Key::First,
            other => other,
        }
    }

    /// A line, moved by the key between 0 and `last`.
    pub(super) fn moved(self, line: usize, last: usize) -> usize {
        let moved = match self {
            Key::Up => line.saturating_sub(1),
            Key::Down => line.saturating_add(1),
            Key::PageUp => line.saturating_sub(LEAF),
            Key::PageDown => line.saturating_add(LEAF),
            Key::First => 0,
            Key::Last => last,
            _ => line,
        };
        moved.min(last)
    }
}

/// What a key asks for beyond the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    None,
    /// An end, with the state saved.
    Stop,
    /// A rest, as by Ctrl-Z.
    Suspend,
}
