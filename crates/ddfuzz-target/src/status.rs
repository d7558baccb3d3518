//! The return values of a harness and their exit status.

use std::{ffi::c_int, fmt::Debug};

/// A type that a harness may return. Each of its values stands for an exit status; the process ends
/// with the low eight bits of this status.
pub trait Status {
    /// Returns the exit status that stands for this return value.
    fn status(self) -> c_int;
}

/// A harness that returns nothing has exit status 0.
impl Status for () {
    fn status(self) -> c_int {
        0
    }
}

/// An integer that a harness returns is its exit status.
impl Status for c_int {
    fn status(self) -> c_int {
        self
    }
}

/// A harness that returns `Ok` has the exit status of the value inside; an error is printed to
/// stderr, and its exit status is 1, as with Rust's `main`.
impl<S: Status, E: Debug> Status for Result<S, E> {
    fn status(self) -> c_int {
        match self {
            Ok(done) => done.status(),
            Err(error) => {
                eprintln!("Error: {error:?}");
                1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_return_value_has_its_status() {
        assert_eq!(().status(), 0);
        assert_eq!(7.status(), 7);
        assert_eq!(Ok::<(), ()>(()).status(), 0);
        assert_eq!(Ok::<c_int, ()>(3).status(), 3);
        assert_eq!(Err::<(), _>("odd").status(), 1);
    }
}
