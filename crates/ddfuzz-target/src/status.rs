//! What a target may return.

use std::{ffi::c_int, fmt::Debug};

/// What a target may return, as an exit status: one that the process ends with, of which eight
/// bits are left.
pub trait Status {
    /// The exit status.
    fn status(self) -> c_int;
}

/// Done: status 0.
impl Status for () {
    fn status(self) -> c_int {
        0
    }
}

/// The status itself.
impl Status for c_int {
    fn status(self) -> c_int {
        self
    }
}

/// As of Rust's `main`: an error is told on stderr, and is status 1.
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
