//! The arguments of a call that is debugged: which values can be taken apart, and into what units.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{Config, TextId};

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

/// The arguments of one call: a single [`Argument`], or a tuple of two to four.
///
/// Their units are counted through, those of the first argument first.
pub trait Arguments: Clone {
    /// Number of units of each argument.
    fn units(&self) -> Vec<usize>;

    /// The arguments with only these units; one configuration for each argument.
    ///
    /// What has no configuration is left as it is.
    fn keep(&self, configs: &[Config]) -> Self;

    /// Feeds the arguments to `hasher`.
    fn hash_into(&self, hasher: &mut dyn Hasher);
}

/// Names arguments by 128 bits of hashes.
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
