//! The inputs that a process has run before the one of now: what it remembers of them may be why
//! it dies.

use std::collections::VecDeque;

/// So many are kept, at most.
const MOST: usize = 32;
/// Bytes of a longer one are not kept, nor what was before it.
const LONGEST: usize = 64 << 10;

/// The last inputs of a process, oldest first.
#[derive(Default)]
pub(crate) struct Recent {
    inputs: VecDeque<Vec<u8>>,
    /// The process has died of its last input, which is not among them.
    died: bool,
    /// The process has ended by itself; its last input is among them.
    ended: bool,
}

impl Recent {
    /// These were run, and the process lives, or has died of the last one.
    pub(crate) fn ran(&mut self, inputs: &[&[u8]], lives: bool) {
        if self.died || self.ended {
            self.inputs.clear();
        }
        (self.died, self.ended) = (!lives, false);
        let kept = inputs.len().saturating_sub(usize::from(self.died));
        for input in &inputs[kept.saturating_sub(MOST)..kept] {
            self.push(input);
        }
    }

    fn push(&mut self, input: &[u8]) {
        if input.len() > LONGEST {
            self.inputs.clear();
            return;
        }
        let mut oldest = match self.inputs.len() {
            MOST => self.inputs.pop_front().unwrap_or_default(),
            _ => Vec::new(),
        };
        oldest.clear();
        oldest.extend_from_slice(input);
        self.inputs.push_back(oldest);
    }

    /// The process has ended with its last input, which it survived.
    pub(crate) fn end(&mut self) {
        if !self.died {
            self.ended = true;
        }
    }

    /// A new process has run nothing.
    pub(crate) fn clear(&mut self) {
        self.inputs.clear();
        (self.died, self.ended) = (false, false);
    }

    /// Those before the last one that was run.
    pub(crate) fn before_the_last(&self) -> Vec<Vec<u8>> {
        let count = self.inputs.len().saturating_sub(usize::from(!self.died));
        self.inputs.iter().take(count).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_inputs_are_kept_in_order() {
        let mut recent = Recent::default();
        let all: Vec<[u8; 1]> = (0..MOST as u8 + 5).map(|byte| [byte]).collect();
        let slices: Vec<&[u8]> = all.iter().map(|input| &input[..]).collect();
        recent.ran(&slices[..3], true);
        recent.ran(&slices[3..], true);
        let kept = recent.before_the_last();
        assert_eq!((kept.len(), kept[0][0]), (MOST - 1, 5));
        recent.ran(&[&[0; LONGEST + 1], b"next", b"last"], true);
        assert_eq!(recent.before_the_last(), [b"next"]);
    }

    #[test]
    fn a_process_that_died_is_forgotten_with_the_next_run() {
        let mut recent = Recent::default();
        recent.ran(&[b"one", b"deadly"], false);
        assert_eq!(recent.before_the_last(), [b"one"]);
        recent.ran(&[b"other", b"last"], true);
        assert_eq!(recent.before_the_last(), [b"other"]);
    }

    #[test]
    fn a_process_that_ended_is_forgotten_with_the_next_run() {
        let mut recent = Recent::default();
        recent.ran(&[b"one", b"two"], true);
        recent.end();
        assert_eq!(recent.before_the_last(), [b"one"]);
        recent.ran(&[b"other", b"last"], true);
        assert_eq!(recent.before_the_last(), [b"other"]);
    }
}
