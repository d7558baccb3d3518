//! The inputs of the published studies, as functions of a seed.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use super::{Characters, InputName, Kind, Lines, number_from};

/// A preset: the inputs that a published fuzz study has used, made again from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    /// The sixteen inputs of the ISSTA study: printable or all characters, with or without NUL, of
    /// 10³ to 10⁶ bytes (Hildebrandt and Zeller, 2000, section 5).
    Issta,
    /// A data set of the fuzz study of 2020 (github.com/dyninst/fuzz, `generate_test`).
    Of2020(DataSet, Variant),
}

/// The size class of a data set of the study of 2020, which determines how long its inputs are and
/// how many it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataSet {
    /// A data set of 1200 inputs of up to 10³ bytes, or 100 lines.
    Small,
    /// A data set of 900 inputs (in the third variant 600) of up to 10⁵ bytes, or 10⁵ lines.
    Medium,
    /// A data set of 180 inputs of 10⁶ to 10⁷ bytes, or 10⁴ to 10⁵ lines.
    Large,
    /// A data set of 60 inputs of 10⁷ to 10⁸ bytes, or 10⁵ to 10⁶ lines.
    Huge,
}

/// Which of the three data sets of a size class in the fuzz study of 2020 is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// The first variant: inputs of random lengths, lines of fewer than 255 characters, and only
    /// random seeds from 0 to 36.
    First,
    /// The second variant: as [`Variant::First`], but with any random seed.
    Second,
    /// The third variant: each input has the maximum length of its size class, in bytes or in
    /// lines, except that inputs of lines have 1000 lines in [`DataSet::Medium`] and 10 in
    /// [`DataSet::Small`]. Lines have fewer than 100 characters, and seeds are any random numbers.
    Third,
}

/// Some inputs of a preset: `count` inputs of the kind `kind`, with lengths from `shortest` to
/// `longest`, in bytes, or in lines if the inputs consist of lines.
struct InputShare {
    count: u64,
    kind: Kind,
    shortest: u64,
    longest: u64,
}

/// Random seeds of the inputs in the first data set of each size class ([`Variant::First`]) of the
/// fuzz study of 2020 are below this number.
const MODULUS: u64 = 37;
/// The three kinds of characters in the data sets of the study of 2020, in the order of the study:
/// the characters, and whether NUL is among them. They stand for the options `-0`, `-a` and `-p` of
/// the `fuzz` program.
const OPTIONS: [(Characters, bool); 3] = [
    (Characters::Bytes, true),
    (Characters::Bytes, false),
    (Characters::Printable, false),
];

impl Preset {
    /// Returns all presets (inputs of published studies), in the order of the help.
    pub fn all() -> Vec<Preset> {
        let sizes = [
            DataSet::Small,
            DataSet::Medium,
            DataSet::Large,
            DataSet::Huge,
        ];
        let variants = [Variant::First, Variant::Second, Variant::Third];
        let of_2020 = sizes
            .into_iter()
            .flat_map(|size| variants.map(|variant| Preset::Of2020(size, variant)));
        std::iter::once(Preset::Issta).chain(of_2020).collect()
    }

    /// Returns the names of the inputs of the preset, in the order of the study, all different. A
    /// different `seed` gives different random bytes and, if the study drew the lengths at random,
    /// different lengths.
    pub fn inputs(self, seed: u64) -> impl Iterator<Item = InputName> {
        let mut drawn = SeededDraws {
            stream: blake3::Hasher::new()
                .update(b"ddfuzz-preset-1")
                .update(self.to_string().as_bytes())
                .update(&seed.to_le_bytes())
                .finalize_xof(),
            known: HashSet::new(),
            modulus: match self {
                Preset::Of2020(_, Variant::First) => Some(MODULUS),
                _ => None,
            },
        };
        let shares = self.shares().into_iter();
        shares.flat_map(move |share| {
            let inputs: Vec<InputName> = (0..share.count).map(|_| drawn.input(&share)).collect();
            inputs
        })
    }

    fn shares(self) -> Vec<InputShare> {
        match self {
            Preset::Issta => issta(),
            Preset::Of2020(size, variant) => of_2020(size, variant),
        }
    }
}

fn issta() -> Vec<InputShare> {
    let mut shares = Vec::new();
    for characters in [Characters::Printable, Characters::Bytes] {
        for nul in [false, true] {
            shares.extend(
                [1_000, 10_000, 100_000, 1_000_000].map(|length| InputShare {
                    count: 1,
                    kind: Kind {
                        characters,
                        nul,
                        lines: Lines::None,
                    },
                    shortest: length,
                    longest: length,
                }),
            );
        }
    }
    shares
}

fn of_2020(size: DataSet, variant: Variant) -> Vec<InputShare> {
    // Inputs of each kind; shortest and longest in bytes, shortest and longest in lines.
    let (count, mut bytes, mut lines) = match size {
        DataSet::Small => (200, (0, 1_000), (0, 100)),
        DataSet::Medium => (100, (0, 100_000), (0, 100_000)),
        DataSet::Large => (30, (1_000_000, 10_000_000), (10_000, 100_000)),
        DataSet::Huge => (10, (10_000_000, 100_000_000), (100_000, 1_000_000)),
    };
    let third = variant == Variant::Third;
    if third {
        bytes.0 = bytes.1;
        let fixed = match size {
            DataSet::Small => 10,
            DataSet::Medium => 1_000,
            DataSet::Large | DataSet::Huge => lines.1,
        };
        lines = (fixed, fixed);
    }
    let below = if third { 100 } else { 255 };
    let strings = Lines::Strings { below };
    let mut groups = vec![(Lines::None, bytes), (strings, lines)];
    if size == DataSet::Medium && !third {
        groups.push((strings, (0, 5_000)));
    }
    let of_group = |(lines, (shortest, longest))| {
        OPTIONS.map(|(characters, nul)| InputShare {
            count,
            kind: Kind {
                characters,
                nul,
                lines,
            },
            shortest,
            longest,
        })
    };
    groups.into_iter().flat_map(of_group).collect()
}

/// Draws names of inputs at random, from the seed of a preset of inputs; no name is drawn twice.
struct SeededDraws {
    stream: blake3::OutputReader,
    known: HashSet<InputName>,
    modulus: Option<u64>,
}

impl SeededDraws {
    fn input(&mut self, share: &InputShare) -> InputName {
        loop {
            let seed = number_from(&mut self.stream);
            let length = share.shortest
                + number_from(&mut self.stream) % (share.longest - share.shortest + 1);
            let name = InputName {
                kind: share.kind,
                seed: self.modulus.map_or(seed, |modulus| seed % modulus),
                length,
            };
            if self.known.insert(name) {
                return name;
            }
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, variant) = match self {
            Preset::Issta => return f.write_str("issta"),
            Preset::Of2020(size, variant) => (size, variant),
        };
        f.write_str(match size {
            DataSet::Small => "small",
            DataSet::Medium => "medium",
            DataSet::Large => "large",
            DataSet::Huge => "huge",
        })?;
        f.write_str(match variant {
            Variant::First => "1",
            Variant::Second => "2",
            Variant::Third => "3",
        })
    }
}

/// The error of a text that is not the name of a preset of inputs; lists the known names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no preset {name:?}; there are {known}")]
pub struct UnknownPreset {
    name: String,
    known: String,
}

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(text: &str) -> Result<Preset, UnknownPreset> {
        let all = Preset::all();
        let found = all.iter().find(|preset| preset.to_string() == text);
        found.copied().ok_or_else(|| {
            let names: Vec<String> = all.iter().map(Preset::to_string).collect();
            UnknownPreset {
                name: text.to_owned(),
                known: names.join(", "),
            }
        })
    }
}
