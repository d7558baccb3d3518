//! `ddfuzz gen`: generates random characters with the options of the studies' program `fuzz`.
//!
//! The published `fuzz` uses `rand(3)`, which differs between C libraries; this generator uses
//! BLAKE3, so that a name gives the same bytes on every machine.

mod write;

use std::ffi::OsString;
use std::fmt;
use std::io::{IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::results::{absolute, is_standard};
use super::{Exit, Failure, Output, values};
use crate::campaign::generator::unescape;
use crate::campaign::generator::{Characters, InputName, Kind, Lines, Preset};
use crate::files::OsText;
use write::{Parts, Sinks, write_preset};

/// Generate random characters, like the `fuzz` program of the fuzz studies
#[derive(clap::Args)]
#[command(
    args_override_self = true,
    after_help = "The options are those of the published `fuzz` and mean the same. The bytes are \
                  others: they come from blake3 instead of rand(3), so that they are the same on \
                  every machine.\n\nExample:\n  ddfuzz gen -p -l 80 -s 1 20\n  \
                  ddfuzz gen -0 -s 7 --print-name 100000\n  \
                  ddfuzz gen --name bytes+nul:0000000000000007:100000 | wc -c\n  \
                  ddfuzz gen --preset issta -o inputs/"
)]
pub struct GenArgs {
    /// Length of the input in bytes, or with -l in lines [default: random, below 100000]
    #[arg(value_name = "LENGTH", value_parser = values::size)]
    length: Option<u64>,
    /// Include NUL characters in the random ones
    #[arg(short = '0', long)]
    nul: bool,
    /// Generate all 8-bit characters, newline as likely as any other [default]
    #[arg(short, long, overrides_with = "printable")]
    all: bool,
    /// Generate printable ASCII characters only
    #[arg(short, long, overrides_with = "all")]
    printable: bool,
    /// Generate lines of random length, each shorter than N characters [255 if no N is given]
    #[arg(short, long, value_name = "N", num_args = 0..=1, default_missing_value = "255",
          value_parser = clap::value_parser!(u32).range(1..))]
    lines: Option<u32>,
    /// Random seed, a whole number [default: the time in seconds; with --preset 0]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<Seed>,
    /// Use the random seed modulo N
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    modulus: Option<i64>,
    /// Append this text to the random characters; it may contain the escapes of C
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    epilog: Option<OsString>,
    /// Print the seed as the first line
    #[arg(short = 'x', long)]
    show_seed: bool,
    /// Also write the characters to FILE, which must not exist; - writes them to stdout even if it
    /// is a terminal. With --preset, the directory to write to
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Send the characters of FILE instead of random ones; - is stdin
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["name", "preset", "print_name"])]
    replay: Option<PathBuf>,
    /// Wait this long after each character: seconds, or with ms, s, m or h
    #[arg(short, long, value_name = "TIME", value_parser = values::time)]
    delay: Option<Duration>,
    /// Generate the input that has this name (see --print-name) again
    #[arg(long, value_name = "KIND:SEED:LENGTH",
          conflicts_with_all = ["length", "nul", "all", "printable", "lines", "seed", "modulus"])]
    name: Option<InputName>,
    /// Print the name of the random characters instead of the characters
    #[arg(long, conflicts_with_all = ["epilog", "show_seed", "out", "delay", "preset"])]
    print_name: bool,
    /// Write the inputs of a study into the directory --out, each under its name: issta, or a data
    /// set of the study of 2020: small1 to small3, medium1 to medium3, large1 to large3, huge1 to
    /// huge3
    #[arg(long, value_name = "NAME", requires = "out",
          conflicts_with_all = ["length", "nul", "all", "printable", "lines", "modulus", "epilog",
                                "show_seed", "delay", "name"])]
    preset: Option<Preset>,
    /// Write only N inputs of the preset, spread evenly over its kinds
    #[arg(long, value_name = "N", requires = "preset")]
    count: Option<u64>,
}

/// JSON result of `ddfuzz gen --print-name`: the name of a generated input, from which it can be
/// generated again.
#[derive(Serialize)]
struct Named {
    name: String,
    /// Length in bytes of the input that the name describes; `null` if its length is given in
    /// lines.
    bytes: Option<u64>,
}

/// JSON result of `ddfuzz gen` with `-o`: the written files and their total size.
#[derive(Serialize)]
struct Written {
    files: Vec<WrittenFile>,
    bytes: u64,
}

#[derive(Serialize)]
struct WrittenFile {
    file: OsText,
    /// Name of the generated input, which describes how to generate it again; `null` for a replayed
    /// file.
    name: Option<String>,
    bytes: u64,
}

pub fn run(mut args: GenArgs, output: &Output) -> Result<Exit, Failure> {
    let asked = args.out.as_deref().is_some_and(is_standard);
    if asked && args.preset.is_some() {
        let failure = Failure::usage("--preset makes many inputs, which do not fit on stdout");
        return Err(failure.hint("give a directory with -o"));
    }
    if asked {
        args.out = None;
    }
    if let (Some(preset), Some(folder)) = (args.preset, &args.out) {
        let seed = args.seed.map_or(0, Seed::bits);
        return write_preset(preset, seed, args.count, folder, output);
    }
    let (name, seed) = args.input();
    if args.print_name {
        let named = Named {
            name: name.to_string(),
            bytes: name.bytes(),
        };
        output.result(&named.name, &named);
        return Ok(Exit::Done);
    }
    if output.json && args.out.is_none() {
        return Err(
            Failure::usage("--json and the characters cannot both go to stdout").hint(
                "write the characters to a file (-o FILE), or print their name (--print-name)",
            ),
        );
    }
    if !asked && !output.json && !args.is_printable() && std::io::stdout().is_terminal() {
        return Err(
            Failure::usage("the characters would change the settings of the terminal").hint(
                "redirect stdout, or write to a file with -o FILE; -p makes printable characters \
                 only, -o - writes to the terminal all the same",
            ),
        );
    }
    if args.replay.is_none() {
        output.detail(&format!("ddfuzz gen --name {name}"));
    }
    args.emit(name, seed, output)
}

impl GenArgs {
    /// Returns true if `ddfuzz gen` can only write printable characters with these options; else
    /// false, as always for replayed files and for inputs given by name.
    fn is_printable(&self) -> bool {
        let random = self.name.is_none() && self.replay.is_none();
        self.printable && random && !self.nul && self.epilog.is_none()
    }

    /// Returns the name of the input to generate, which describes how it is generated, and its seed
    /// as `--show-seed` prints it.
    fn input(&self) -> (InputName, Seed) {
        if let Some(name) = self.name {
            return (name, Seed::from(name.seed));
        }
        let kind = Kind {
            characters: match self.printable {
                true => Characters::Printable,
                false => Characters::Bytes,
            },
            nul: self.nul,
            lines: match self.lines {
                Some(below) => Lines::Strings { below },
                None => Lines::None,
            },
        };
        let seed = self.seed.unwrap_or_else(Seed::now);
        let seed = self.modulus.map_or(seed, |modulus| seed.modulo(modulus));
        let name = InputName {
            kind,
            seed: seed.bits(),
            length: self.length.unwrap_or_else(|| seed.length()),
        };
        (name, seed)
    }

    fn emit(&self, name: InputName, seed: Seed, output: &Output) -> Result<Exit, Failure> {
        let parts = self.parts(name, seed)?;
        let sinks = Sinks {
            file: self.out.as_deref(),
            stdout: !output.json,
            delay: self.delay.unwrap_or_default(),
        };
        let bytes = write::send_parts(parts, &sinks)?;
        if output.json
            && let Some(file) = &self.out
        {
            let name = self.replay.is_none().then(|| name.to_string());
            let file = WrittenFile {
                file: OsText::from(&absolute(file)),
                name,
                bytes,
            };
            let files = vec![file];
            output.result("", &Written { files, bytes });
        }
        Ok(Exit::Done)
    }

    /// Builds the parts of the output: the line with the seed, the random characters or the
    /// replayed file, and the epilog.
    fn parts(&self, name: InputName, seed: Seed) -> Result<Parts, Failure> {
        let epilog = match &self.epilog {
            Some(epilog) => unescape(epilog.as_bytes())
                .map_err(|error| Failure::usage(format!("--epilog: {error}")))?,
            None => Vec::new(),
        };
        let body: Box<dyn Read> = match &self.replay {
            Some(file) if is_standard(file) => Box::new(std::io::stdin()),
            Some(file) => Box::new(replayed(file)?),
            None => Box::new(name.stream()),
        };
        let first = match self.show_seed && self.replay.is_none() {
            true => format!("{seed}\n"),
            false => String::new(),
        };
        Ok(Parts {
            first: first.into_bytes(),
            body,
            body_from: self.replay.clone(),
            epilog,
        })
    }
}

fn replayed(file: &Path) -> Result<std::fs::File, Failure> {
    let unreadable = |error| Failure::file(file, "cannot read the recorded stream", &error);
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    // Opening a directory succeeds; reading it does not.
    match opened.metadata().map_err(unreadable)?.is_dir() {
        true => Err(Failure::usage(format!("{} is a directory", file.display())).path(file)),
        false => Ok(opened),
    }
}

/// Upper limit (exclusive) of the randomly chosen lengths of generated inputs, in bytes or lines,
/// as in `fuzz` (the program of 1990).
const LENGTHS: u64 = 100_000;

/// A seed of the random input generator: any 64-bit integer, with or without a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(i128);

impl Seed {
    /// Returns the current time in seconds as a seed.
    pub fn now() -> Seed {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Seed(since.map_or(0, |time| i128::from(time.as_secs())))
    }

    /// Returns the remainder of dividing the seed by `modulus` as a new seed; it has the sign of
    /// the old one, as in C.
    pub fn modulo(self, modulus: i64) -> Seed {
        Seed(self.0 % i128::from(modulus))
    }

    /// Returns the seed as an unsigned 64-bit number with the same bits; -1 becomes the number
    /// whose bits are all ones.
    pub fn bits(self) -> u64 {
        self.0 as u64
    }

    /// Returns a length below 100,000 (in bytes, or in lines for inputs made of lines), derived
    /// from the seed, for `ddfuzz gen` without a length.
    pub fn length(self) -> u64 {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"ddfuzz-classic-length-1");
        hasher.update(&self.bits().to_le_bytes());
        let mut bytes = [0; 8];
        hasher.finalize_xof().fill(&mut bytes);
        u64::from_le_bytes(bytes) % LENGTHS
    }
}

impl From<u64> for Seed {
    fn from(bits: u64) -> Seed {
        Seed(i128::from(bits))
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Seed {
    type Err = String;

    fn from_str(text: &str) -> Result<Seed, String> {
        let number: Option<i128> = text.parse().ok();
        let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
        let number = number.filter(|number| range.contains(number));
        number
            .map(Seed)
            .ok_or_else(|| format!("a seed is a whole number from {} to {}", i64::MIN, u64::MAX))
    }
}
