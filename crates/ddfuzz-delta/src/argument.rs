//! Values that delta debugging takes apart.

use std::hash::{Hash, Hasher};

use super::Config;

/// A value handed to the function being debugged.
///
/// Strings are sequences of characters, vectors of their items; numbers, `bool` and `char` have no
/// units and stay as they are. A type of one's own stays as it is too, unless it says otherwise:
/// `impl Argument for Mine { fn hash_into(…) … }`.
pub trait Argument: Clone {
    /// Number of units that can be left out.
    fn units(&self) -> usize {
        0
    }

    /// The value with only these units.
    fn keep(&self, config: &Config) -> Self {
        let _ = config;
        self.clone()
    }

    /// Feeds the value to `hasher`: equal values alike, so that none is tested twice.
    fn hash_into(&self, hasher: &mut dyn Hasher);
}

impl Argument for String {
    fn units(&self) -> usize {
        self.chars().count()
    }

    fn keep(&self, config: &Config) -> String {
        let mut letters = self.chars();
        let mut at = 0;
        let mut kept = String::new();
        for range in config.ranges() {
            kept.extend(letters.by_ref().skip(range.start - at).take(range.len()));
            at = range.end;
        }
        kept
    }

    fn hash_into(&self, hasher: &mut dyn Hasher) {
        hash(self, hasher);
    }
}

impl<T: Clone + Hash> Argument for Vec<T> {
    fn units(&self) -> usize {
        self.len()
    }

    fn keep(&self, config: &Config) -> Vec<T> {
        let mut kept = Vec::new();
        config.write_into(self, &mut kept);
        kept
    }

    fn hash_into(&self, hasher: &mut dyn Hasher) {
        hash(self, hasher);
    }
}

/// Hashes with a hasher of any kind.
fn hash(value: &(impl Hash + ?Sized), mut hasher: &mut dyn Hasher) {
    value.hash(&mut hasher);
}

macro_rules! without_units {
    ($($type:ty),*) => {$(
        impl Argument for $type {
            fn hash_into(&self, hasher: &mut dyn Hasher) {
                hash(self, hasher);
            }
        }
    )*};
}

without_units!(
    bool, char, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize
);

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Argument for $type {
            fn hash_into(&self, hasher: &mut dyn Hasher) {
                hash(&self.to_bits(), hasher);
            }
        }
    )*};
}

floats!(f32, f64);
