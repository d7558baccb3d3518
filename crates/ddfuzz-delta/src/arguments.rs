//! The arguments of one call.

use std::hash::{DefaultHasher, Hasher};

use super::{Argument, Config, TextId};

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
