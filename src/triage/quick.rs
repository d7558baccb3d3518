//! Class and keys of one snapshot.

use super::abort_text::{assertion, last_line};
use super::class::classify;
use super::keys::{frameless_keys, keys};
use super::normalise::{Normalised, normalise};
use super::snapshot::Snapshot;
use super::{Class, Confidence, Keys};

/// A crash with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// What kind of death.
    pub class: Class,
    /// Its keys, without the stable one.
    pub keys: Keys,
    /// The frames that they were computed from.
    pub normalised: Normalised,
    /// How far they can be trusted.
    pub confidence: Confidence,
}

impl Named {
    /// A crash of which only the class is known.
    pub fn of_class(class: Class) -> Named {
        let keys = frameless_keys(&class);
        Named {
            class,
            keys,
            normalised: Normalised::default(),
            confidence: Confidence::Low,
        }
    }
}

/// Functions by which an assertion fails.
const ASSERTS: [&str; 3] = ["__assert_fail", "__assert", "__assert_perror_fail"];

/// Names the crash that a snapshot shows. `depth` is the number of frames in the minor key;
/// `stderr` gives the last that the target wrote there and is asked only where it matters.
pub fn name(snapshot: &Snapshot, depth: usize, stderr: impl FnOnce() -> Vec<u8>) -> Named {
    let normalised = normalise(snapshot);
    let class = classify(snapshot);
    let text = text(snapshot, &class, stderr);
    let keys = keys(&class, snapshot, &normalised, depth, text.as_deref());
    let unsure = snapshot.torn
        || normalised.own.is_empty()
        || normalised.runtime_only
        || snapshot.opaque_runtime;
    let confidence = if unsure {
        Confidence::Low
    } else {
        Confidence::High
    };
    Named {
        class,
        keys,
        normalised,
        confidence,
    }
}

/// What an aborting program said, where keys take that in.
fn text(snapshot: &Snapshot, class: &Class, stderr: impl FnOnce() -> Vec<u8>) -> Option<String> {
    if class.0 != "abrt" {
        return None;
    }
    let failed = snapshot.runtime_on_top().iter().any(|frame| {
        frame
            .exported
            .as_deref()
            .is_some_and(|name| ASSERTS.contains(&name))
    });
    if failed {
        let said = snapshot.abort_message.as_deref().and_then(assertion);
        return said.or_else(|| assertion(&String::from_utf8_lossy(&stderr())));
    }
    if snapshot.opaque_runtime {
        return last_line(&String::from_utf8_lossy(&stderr()));
    }
    None
}
