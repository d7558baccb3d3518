//! Tests searches that panic, and that searches are freed.

use std::sync::atomic::{AtomicUsize, Ordering};

use ddfuzz_afl::{Settings, TrimSearch, Trimmer};
use ddfuzz_delta::{Candidate, Config, Outcome, Search, Subset};

use crate::ffi::{State, at};

/// A search that counts its living instances.
struct Counted(Subset, &'static AtomicUsize);

impl Counted {
    fn new(entry: &[u8], count: &'static AtomicUsize) -> Counted {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(Subset::new(entry), count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Search for Counted {
    fn next(&mut self) -> Option<Candidate> {
        self.0.next()
    }

    fn tell(&mut self, outcome: Outcome) {
        self.0.tell(outcome);
    }

    fn best(&self) -> &Config {
        self.0.best()
    }

    fn boxed(&self) -> Box<dyn Search> {
        Box::new(self.0.clone())
    }
}

#[test]
fn an_instance_that_ends_frees_its_search() {
    static ALIVE: AtomicUsize = AtomicUsize::new(0);
    let settings = Settings {
        search: TrimSearch::from_fn(|entry| Box::new(Counted::new(entry, &ALIVE))),
        steps: None,
    };
    let state = State::of(Trimmer::new(settings));
    for _ in 0..3 {
        assert!(state.begin(b"some text of some length") > 0);
        state.tell(1);
        // That of the entry before is gone.
        assert_eq!(ALIVE.load(Ordering::Relaxed), 1);
    }
    drop(state);
    assert_eq!(ALIVE.load(Ordering::Relaxed), 0);
}

/// A search that panics when it has a certain number of outcomes, and again when it is dropped.
#[derive(Clone)]
struct Panics(Subset, u32);

impl Search for Panics {
    fn next(&mut self) -> Option<Candidate> {
        self.0.next()
    }

    fn tell(&mut self, outcome: Outcome) {
        self.1 += 1;
        assert!(self.1 < 3, "a made-up panic, of this test");
        self.0.tell(outcome);
    }

    fn best(&self) -> &Config {
        self.0.best()
    }

    fn boxed(&self) -> Box<dyn Search> {
        Box::new(self.clone())
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        assert!(self.1 < 3, "a made-up panic at the end, of this test");
    }
}

#[test]
fn a_panic_ends_trimming_and_not_the_campaign() {
    let settings = Settings {
        search: TrimSearch::from_fn(|entry| Box::new(Panics(Subset::new(entry), 0))),
        steps: Some(50),
    };
    let state = State::of(Trimmer::new(settings));
    assert_eq!(state.begin(b"some text of some length"), 50);
    let mut step = 0;
    while step < 50 {
        let (buffer, len) = state.candidate();
        let text = at(buffer, len);
        step = state.tell(text.contains(&b'x').into());
        assert!(step < 5 || step == 50, "{step}");
    }
    assert_eq!(state.begin(b"another text"), 0);
    assert_eq!(state.tell(1), 0);
}

#[test]
fn a_panic_at_the_beginning_leaves_the_entry_alone() {
    let settings = Settings {
        search: TrimSearch::from_fn(|_| panic!("a made-up panic, of this test")),
        steps: None,
    };
    let state = State::of(Trimmer::new(settings));
    assert_eq!(state.begin(b"some text"), 0);
    assert_eq!(state.begin(b"another text"), 0);
    let (buffer, len) = state.candidate();
    assert!(!buffer.is_null() && len == 0);
}
