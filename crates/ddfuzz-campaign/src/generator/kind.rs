//! Which characters an input consists of, and where its lines end.

use std::fmt;
use std::str::FromStr;

use super::NotAName;

/// Which characters an input consists of, apart from NUL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Characters {
    /// The printable ones, 0x20 to 0x7e (`fuzz -p`).
    Printable,
    /// All 8-bit characters but the newline, so that lines end only where [`Lines`] says.
    All,
    /// All 8-bit characters, newlines as likely as any other (`fuzz -a`).
    Bytes,
}

impl Characters {
    const ALL: [Characters; 3] = [Characters::Printable, Characters::All, Characters::Bytes];

    fn name(self) -> &'static str {
        match self {
            Characters::Printable => "printable",
            Characters::All => "all",
            Characters::Bytes => "bytes",
        }
    }

    fn range(self) -> std::ops::RangeInclusive<u8> {
        match self {
            Characters::Printable => 0x20..=0x7e,
            Characters::All | Characters::Bytes => 0x01..=0xff,
        }
    }
}

/// Where the lines of an input end, beside the newlines that are among its characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lines {
    /// Nowhere.
    None,
    /// At random distances, of a scale that differs from input to input.
    Scaled,
    /// After 0 to `below - 1` characters, evenly (`fuzz -l below`). The length of such an input is
    /// a number of lines.
    Strings {
        /// What each line has fewer characters than; 1 gives empty lines. Never 0.
        below: u32,
    },
}

/// Which characters an input consists of, and where its lines end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// Its characters.
    pub characters: Characters,
    /// NUL bytes among them (`fuzz -0`).
    pub nul: bool,
    /// Where its lines end.
    pub lines: Lines,
}

impl Kind {
    /// The kinds of a campaign's inputs, in a fixed order.
    pub const ALL: [Kind; 8] = {
        let mut kinds = [Kind {
            characters: Characters::Printable,
            nul: false,
            lines: Lines::None,
        }; 8];
        let mut index = 0;
        while index < 8 {
            if index & 1 != 0 {
                kinds[index].characters = Characters::All;
            }
            kinds[index].nul = index & 2 != 0;
            if index & 4 != 0 {
                kinds[index].lines = Lines::Scaled;
            }
            index += 1;
        }
        kinds
    };

    /// The characters that the 256 values of a random byte are mapped to, as evenly as it goes.
    pub(super) fn alphabet(self) -> [u8; 256] {
        let with_newline = self.characters != Characters::All;
        let mut characters: Vec<u8> = self
            .characters
            .range()
            .filter(|&byte| with_newline || byte != b'\n')
            .collect();
        if self.nul {
            characters.push(0);
        }
        let mut table = [0; 256];
        for (value, character) in table.iter_mut().enumerate() {
            *character = characters[value * characters.len() / 256];
        }
        table
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.characters.name())?;
        f.write_str(if self.nul { "+nul" } else { "" })?;
        match self.lines {
            Lines::None => Ok(()),
            Lines::Scaled => f.write_str("+lines"),
            Lines::Strings { below } => write!(f, "+strings{below}"),
        }
    }
}

impl FromStr for Kind {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Kind, NotAName> {
        let mut parts = text.split('+');
        let first = parts.next();
        let characters = Characters::ALL
            .into_iter()
            .find(|known| Some(known.name()) == first);
        let mut kind = Kind {
            characters: characters.ok_or_else(|| NotAName::new(text))?,
            nul: false,
            lines: Lines::None,
        };
        for part in parts {
            match part {
                "nul" => kind.nul = true,
                "lines" => kind.lines = Lines::Scaled,
                part => {
                    let below = part.strip_prefix("strings").map(str::parse);
                    let Some(Ok(below @ 1..)) = below else {
                        return Err(NotAName::new(text));
                    };
                    kind.lines = Lines::Strings { below };
                }
            }
        }
        // One kind has one spelling: a part that comes twice or in another order is none.
        match kind.to_string() == text {
            true => Ok(kind),
            false => Err(NotAName::new(text)),
        }
    }
}
