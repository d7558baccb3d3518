//! The failing inputs that minimizers are measured on: for each case a program in C, an input that
//! makes it fail, and the smallest such input.
//!
//! The same families twice, with other seeds and sizes: one set to tune on, and one held out. A
//! third set has real programs and files of the machine.
//! Nothing of the searches is used here, nor were cases chosen by what the searches do.

mod binary;
mod deep;
mod dense;
mod file;
mod language;
pub mod real;
pub mod sparse;
mod stream;
mod targets;
mod text;

pub use stream::Stream;
pub use targets::{FAMILIES, family};

/// Which of the two sets a case belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "not each bench draws seeds")]
pub enum Set {
    /// With the sizes of the table of targets.
    Tuned,
    /// With other seeds, and other sizes where the family's name fixes none.
    HeldOut,
    /// With the sizes of the table of targets, and seeds of which this is the number.
    Seed(u64),
    /// Files of this machine at which installed programs fail.
    Real,
}

impl Set {
    /// The two whose inputs are generated and that are printed, in their order.
    pub const ALL: [Set; 2] = [Set::Tuned, Set::HeldOut];

    /// The name on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Set::Tuned => "tuned",
            Set::HeldOut => "held-out",
            Set::Seed(_) => "seed",
            Set::Real => "real",
        }
    }

    /// The stream of one case of this set.
    fn stream(self, case: u64) -> Stream {
        let number = match self {
            Set::Tuned | Set::Real => 0,
            Set::HeldOut => 1,
            Set::Seed(seed) => (seed + 1) << 32,
        };
        Stream::new(case * 2 + number)
    }

    /// The size of a case of which the table says `size`: up to 30 % less or more, if held out.
    fn size(self, size: usize, stream: &mut Stream) -> usize {
        match self {
            Set::Tuned | Set::Seed(_) | Set::Real => size,
            Set::HeldOut => size * 7 / 10 + stream.below(size * 6 / 10),
        }
    }
}

/// One failing input with its program.
#[derive(Clone, Debug)]
pub struct Case {
    /// Which family, as in [`family`].
    pub family: &'static str,
    /// Which reading of the family's description, in words.
    pub variant: &'static str,
    /// The C source in `benches/families`.
    pub source: &'static str,
    /// Its `-D` options.
    pub defines: Vec<(&'static str, String)>,
    /// The function that the input crashes in.
    pub bug: &'static str,
    /// The failing input.
    pub input: Vec<u8>,
    /// A smallest input that fails by the same bug.
    pub minimum: Vec<u8>,
    /// Whether it is a text, which tools for texts may read.
    pub is_text: bool,
    /// The ending of the input's name, without the dot; empty where it has none.
    pub ending: &'static str,
}

impl Case {
    /// `FAMILY/VARIANT`, with which it is named in tables.
    pub fn name(&self) -> String {
        match self.variant {
            "" => self.family.to_owned(),
            variant => format!("{}/{variant}", self.family),
        }
    }

    /// Whether an interestingness test says what fails; else a crash does.
    pub fn is_judged_by_a_script(&self) -> bool {
        self.family == "real"
    }

    /// A name of a file with this case's ending.
    pub fn file_name(&self, stem: &str) -> String {
        match self.ending {
            "" => stem.to_owned(),
            ending => format!("{stem}.{ending}"),
        }
    }
}

/// All cases of a set, in the order of the table of targets.
pub fn cases(set: Set) -> Vec<Case> {
    if set == Set::Real {
        return real::cases();
    }
    [
        sparse::cases(set),
        text::brackets(set),
        binary::cases(set),
        dense::cases(set),
        text::header_lines(set),
        sparse::two_bugs(set),
        text::jsons(set),
        text::selects(set),
        deep::cases(set),
        language::cases(set),
        file::cases(set),
    ]
    .concat()
}
