//! What the function being debugged says of a call.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Outcome;

/// What a function returns that is tested. A function that returns nothing passes, unless it
/// panics.
pub trait Verdict {
    /// The outcome that it stands for.
    fn outcome(self) -> Outcome;
}

impl Verdict for () {
    fn outcome(self) -> Outcome {
        Outcome::Pass
    }
}

impl Verdict for Outcome {
    fn outcome(self) -> Outcome {
        self
    }
}

/// `Ok` passes as far as what is in it does, `Err` fails.
impl<V: Verdict, E> Verdict for Result<V, E> {
    fn outcome(self) -> Outcome {
        self.map_or(Outcome::Fail, V::outcome)
    }
}

/// How a call failed: which panic it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The function said FAIL.
    Said,
    /// It panicked with this message, less what differs with the arguments.
    Panicked(String),
}

/// Calls a function.
pub(super) fn call<V: Verdict>(function: impl FnOnce() -> V) -> Result<Outcome, Failure> {
    match catch_unwind(AssertUnwindSafe(|| function().outcome())) {
        Ok(Outcome::Fail) => Err(Failure::Said),
        Ok(outcome) => Ok(outcome),
        Err(payload) => Err(Failure::Panicked(lasting(message(payload.as_ref())))),
    }
}

/// The message of a panic; empty where it is no text.
fn message(payload: &(dyn Any + Send)) -> &str {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    let text = owned.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or_default()
}

/// A message without its numbers and what it quotes.
fn lasting(message: &str) -> String {
    let mut letters = message.chars().peekable();
    let mut lasting = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            '0'..='9' => {
                while letters.next_if(char::is_ascii_digit).is_some() {}
                lasting.push('#');
            }
            '"' => {
                while let Some(quoted) = letters.next().filter(|quoted| *quoted != '"') {
                    // What is escaped ends no quotation.
                    letters.next_if(|_| quoted == '\\');
                }
                lasting.push('"');
            }
            other => lasting.push(other),
        }
    }
    lasting
}
