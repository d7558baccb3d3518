//! Instances of set cover, made from seeds.

use std::io;
use std::time::Duration;

use ddfuzz::corpus::cover::{Sets, Slowness};
use ddfuzz::corpus::{Feature, Features};

/// Marsaglia's xorshift64*.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// From 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// An input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub bytes: u64,
    pub milliseconds: u64,
    /// Stands for the hash of the content.
    pub name: u64,
    pub features: Features,
}

/// Inputs in their canonical order.
#[derive(Clone, Debug)]
pub struct Instance(pub Vec<Item>);

impl Instance {
    pub fn of(mut items: Vec<Item>) -> Instance {
        items.sort_by_key(|item| (item.bytes, item.name));
        Instance(items)
    }

    /// All that is reached.
    pub fn reached(&self) -> Features {
        let all = self.0.iter().flat_map(|item| item.features.as_slice());
        Features::from_unsorted(all.copied().collect())
    }

    /// A few inputs of a few features.
    pub fn small(random: &mut Random) -> Instance {
        let (items, features) = (1 + random.below(12), 1 + random.below(14));
        let density = 1 + random.below(6);
        let item = |_| {
            let has = |random: &mut Random| random.below(8) < density;
            let some: Vec<u64> = (0..features).filter(|_| has(random)).collect();
            Item {
                bytes: random.below(200),
                milliseconds: [1, 1, 1, 30, 200][random.below(5) as usize],
                name: random.next(),
                features: set(some),
            }
        };
        Instance::of((0..items).map(item).collect())
    }

    /// What a campaign might have found: features by power law, common ones in most inputs, rare ones
    /// that come together (behind the same branch); larger inputs reach more.
    pub fn grown(seed: u64, items: usize, features: u64, mean: usize) -> Instance {
        let mut random = Random::new(seed);
        Instance::of(
            (0..items)
                .map(|_| grown_item(&mut random, features, mean))
                .collect(),
        )
    }
}

/// A set of features with these numbers, spread over a map.
pub fn set(numbers: impl IntoIterator<Item = u64>) -> Features {
    let spread = |number: u64| Feature((number * 37) as u32);
    Features::from_unsorted(numbers.into_iter().map(spread).collect())
}

/// See [`Instance::grown`].
pub fn grown_item(random: &mut Random, features: u64, mean: usize) -> Item {
    // Sizes by a power law between 1 and 4096; more bytes reach more, and what is rare.
    let bytes = (4096_f64.powf(random.unit().sqrt())) as u64;
    let reach = (bytes as f64 / 4096.0).powf(0.4);
    let draws = 1 + (2.0 * mean as f64 * reach * (0.2 + random.unit())) as usize;
    let mut numbers = Vec::with_capacity(2 * draws);
    for _ in 0..draws {
        let rank = (features as f64 * reach.max(0.02)).powf(random.unit().powf(0.6)) - 1.0;
        let rank = (rank as u64).min(features - 1);
        numbers.push(rank);
        // What stands behind a branch comes with it.
        if rank.is_multiple_of(3) {
            numbers.push((rank + 1).min(features - 1));
        }
    }
    Item {
        bytes,
        milliseconds: 1,
        name: random.next(),
        features: set(numbers),
    }
}

impl Sets for Instance {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self, item: usize) -> u64 {
        self.0[item].bytes
    }

    fn slowness(&self, item: usize) -> Slowness {
        Slowness::of(Duration::from_millis(self.0[item].milliseconds))
    }

    fn features(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<()> {
        into.clear();
        into.extend_from_slice(self.0[item].features.as_slice());
        Ok(())
    }
}
