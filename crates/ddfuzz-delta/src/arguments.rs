//! The arguments of a call that [`DeltaDebugger`](crate::DeltaDebugger) simplifies: which values
//! have units that can be left out.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{Config, TextId};

/// A value that is passed to the function under test.
///
/// The units of a `String`, which are the parts that can be left out, are its characters, those of
/// a `Vec` its items. Numbers, `bool` and `char` have no units and are never changed. A user type
/// has no units by default: `impl Argument for MyType` needs only `hash_into`.
pub trait Argument: Clone {
    /// Returns the number of units (characters or items) that can be left out of the value; 0 if
    /// the value cannot be simplified.
    fn units(&self) -> usize {
        0
    }

    /// Returns a copy of the value that has only the units (characters or items) whose indices are
    /// in `config`.
    fn keep(&self, config: &Config) -> Self {
        let _ = config;
        self.clone()
    }

    /// Feeds the value to `hasher`. Equal values must hash alike, so that the function under test
    /// is not called twice with equal arguments.
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

/// Feeds `value` to `hasher`. Needed because `Hash::hash` takes no trait object, as `hasher` is.
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

/// The arguments of one call of the function under test: a single [`Argument`], or a tuple of two
/// to four of them.
///
/// The units of all arguments are numbered consecutively, beginning with those of the first
/// argument.
pub trait Arguments: Clone {
    /// Returns the number of units (characters or items that can be left out) of each argument, in
    /// the order of the arguments.
    fn units(&self) -> Vec<usize>;

    /// Returns a copy of the arguments in which argument `i` has only the units (characters or
    /// items) in `configs[i]`. An argument without a configuration is copied whole.
    fn keep(&self, configs: &[Config]) -> Self;

    /// Feeds all arguments of a call to `hasher`; equal arguments must hash alike.
    fn hash_into(&self, hasher: &mut dyn Hasher);
}

/// Returns a 128-bit hash of the arguments of a call, by which the cache of outcomes recognizes a
/// call that was made before.
pub(super) fn name(arguments: &impl Arguments) -> TextId {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(seed);
        arguments.hash_into(&mut hasher);
        hasher.finish().to_le_bytes()
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&half(0));
    bytes[8..].copy_from_slice(&half(1));
    TextId(bytes)
}

impl<A: Argument> Arguments for A {
    fn units(&self) -> Vec<usize> {
        vec![Argument::units(self)]
    }

    fn keep(&self, configs: &[Config]) -> A {
        match configs {
            [config, ..] => Argument::keep(self, config),
            [] => self.clone(),
        }
    }

    fn hash_into(&self, hasher: &mut dyn Hasher) {
        Argument::hash_into(self, hasher);
    }
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*)),*) => {$(
        impl<$($name: Argument),*> Arguments for ($($name,)*) {
            fn units(&self) -> Vec<usize> {
                vec![$(self.$index.units()),*]
            }

            fn keep(&self, configs: &[Config]) -> Self {
                ($(match configs.get($index) {
                    Some(config) => self.$index.keep(config),
                    None => self.$index.clone(),
                },)*)
            }

            fn hash_into(&self, hasher: &mut dyn Hasher) {
                $(self.$index.hash_into(hasher);)*
            }
        }
    )*};
}

tuples!(
    (A 0, B 1),
    (A 0, B 1, C 2),
    (A 0, B 1, C 2, D 3)
);
