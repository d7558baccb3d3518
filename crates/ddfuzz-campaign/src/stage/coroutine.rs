//! A thread used as a coroutine: it runs only while its owner waits for it.

use std::io;
use std::thread::{Builder, JoinHandle};

use crossbeam::channel::{Receiver, Sender, bounded};

/// What a slice came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Slice<T> {
    /// It has parked, and can be resumed.
    Parked,
    /// It has come to its end.
    Done(T),
    /// It has panicked, and the panic was told on stderr.
    Broken,
}

enum Word<T> {
    Parked,
    Done(T),
}

/// A computation that is handed the processor by [`resume`](Coroutine::resume), and hands it back
/// by parking. Strictly one of both runs at a time. Dropping it ends the thread: whatever it holds
/// is dropped there before.
pub(super) struct Coroutine<O, T> {
    /// `None` behind its end.
    orders: Option<Sender<O>>,
    words: Receiver<Word<T>>,
    thread: Option<JoinHandle<()>>,
}

/// By what a coroutine parks.
pub(super) struct Parking<O> {
    orders: Receiver<O>,
    /// Whether it is there to be told is what the owner drops first.
    park: Box<dyn Fn() -> bool + Send>,
}

impl<O> Parking<O> {
    /// Hands the processor back until it is resumed, with what the owner says then; `None`: never
    /// again, the coroutine has to come to its end.
    pub(super) fn park(&self) -> Option<O> {
        if !(self.park)() {
            return None;
        }
        self.orders.recv().ok()
    }
}

impl<O: Send + 'static, T: Send + 'static> Coroutine<O, T> {
    /// A coroutine that begins `body` when it is first resumed. `body` has to come to its end
    /// where parking gives `None`; one that is dropped before it began is not begun.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn new(
        body: impl FnOnce(O, &Parking<O>) -> T + Send + 'static,
    ) -> io::Result<Coroutine<O, T>> {
        let (order, orders) = bounded::<O>(1);
        let (word, words) = bounded::<Word<T>>(1);
        let parked = word.clone();
        let parking = Parking {
            orders,
            park: Box::new(move || parked.send(Word::Parked).is_ok()),
        };
        let thread = Builder::new().name("ddmin".to_owned()).spawn(move || {
            if let Ok(first) = parking.orders.recv() {
                let done = body(first, &parking);
                // Nobody listens where the owner has dropped it.
                let _ = word.send(Word::Done(done));
            }
        })?;
        Ok(Coroutine {
            orders: Some(order),
            words,
            thread: Some(thread),
        })
    }

    /// Lets it run until it parks or ends, and waits for that.
    pub(super) fn resume(&mut self, order: O) -> Slice<T> {
        let Some(orders) = &self.orders else {
            return Slice::Broken;
        };
        let said = orders
            .send(order)
            .ok()
            .and_then(|()| self.words.recv().ok());
        match said {
            Some(Word::Parked) => return Slice::Parked,
            Some(Word::Done(done)) => {
                self.end();
                return Slice::Done(done);
            }
            None => {}
        }
        self.end();
        Slice::Broken
    }
}

impl<O, T> Coroutine<O, T> {
    fn end(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // It may want to park once more before it ends.
            while self.words.recv().is_ok() {}
            let _ = thread.join();
        }
    }
}

impl<O, T> Drop for Coroutine<O, T> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn it_runs_only_while_it_is_waited_for() {
        let steps = Arc::new(AtomicU32::new(0));
        let theirs = Arc::clone(&steps);
        let mut coroutine = Coroutine::new(move |first: u32, parking| {
            let mut sum = first;
            while let Some(more) = parking.park() {
                theirs.fetch_add(1, Ordering::SeqCst);
                sum += more;
                if sum > 10 {
                    return Some(sum);
                }
            }
            None
        })
        .unwrap();
        assert_eq!(coroutine.resume(1), Slice::Parked);
        assert_eq!(steps.load(Ordering::SeqCst), 0);
        assert_eq!(coroutine.resume(4), Slice::Parked);
        assert_eq!(steps.load(Ordering::SeqCst), 1);
        assert_eq!(coroutine.resume(6), Slice::Done(Some(11)));
        assert_eq!(coroutine.resume(6), Slice::Broken);
    }

    /// Counts that it was dropped.
    struct Held(Arc<AtomicU32>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn dropped_in_the_midst_it_ends_and_lets_go_of_what_it_holds() {
        let dropped = Arc::new(AtomicU32::new(0));
        let held = Held(Arc::clone(&dropped));
        let mut coroutine = Coroutine::new(move |(), parking| {
            let held = held;
            // Parks again although it was told to end.
            while parking.park().is_some() {}
            assert!(parking.park().is_none());
            drop(held);
        })
        .unwrap();
        assert_eq!(coroutine.resume(()), Slice::Parked);
        drop(coroutine);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn dropped_before_its_beginning_it_does_nothing() {
        let dropped = Arc::new(AtomicU32::new(0));
        let held = Held(Arc::clone(&dropped));
        let coroutine = Coroutine::new(move |(), _| {
            let _held = held;
            panic!("it was not to begin");
        })
        .unwrap();
        drop(coroutine);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_panic_is_no_end_of_the_owner() {
        let mut coroutine: Coroutine<(), ()> =
            Coroutine::new(|(), _| std::panic::resume_unwind(Box::new(()))).unwrap();
        assert_eq!(coroutine.resume(()), Slice::Broken);
        assert_eq!(coroutine.resume(()), Slice::Broken);
    }
}
