//! `ddfuzz gen`: the classic generator alone, with the options of `fuzz`.
//!
//! The first published `fuzz` takes its characters from `rand(3)`, which differs between C
//! libraries; ours come from blake3, so that a name gives the same bytes everywhere.

mod emit;
mod preset;
mod seed;

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::{Exit, Failure, Output, amounts};
use crate::campaign::generator::escapes::unescape;
use crate::campaign::generator::{Characters, InputName, Kind, Lines, Preset};
use emit::{Parts, Sinks};
use seed::Seed;

/// Make the random characters of the fuzz studies
#[derive(clap::Args)]
#[command(
    args_override_self = true,
    after_help = "The options of the published `fuzz`, with the same meaning. The bytes differ \
                  from its bytes: they come from blake3 instead of rand(3), and are the same on \
                  every machine.\n\nExample:\n  ddfuzz gen -p -l 80 -s 1 20\n  \
                  ddfuzz gen -0 -s 7 --print-name 100000\n  \
                  ddfuzz gen --name bytes+nul:0000000000000007:100000 | wc -c\n  \
                  ddfuzz gen --preset issta -o inputs/"
)]
pub struct Args {
    /// The length in bytes, or with -l in lines [default: random, below 100000]
    #[arg(value_name = "LENGTH", value_parser = amounts::size)]
    length: Option<u64>,
    /// NUL among the characters
    #[arg(short = '0', long)]
    nul: bool,
    /// All 8-bit characters, newlines as likely as others (the default)
    #[arg(short, long, overrides_with = "printable")]
    all: bool,
    /// Printable ASCII characters only
    #[arg(short, long, overrides_with = "all")]
    printable: bool,
    /// Lines of random lengths, each of less than N characters
    #[arg(short, long, value_name = "N", num_args = 0..=1, default_missing_value = "255",
          value_parser = clap::value_parser!(u32).range(1..))]
    lines: Option<u32>,
    /// The random seed, a whole number [default: the time in seconds; of a preset 0]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<Seed>,
    /// Take the remainder of the seed by N
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    modulus: Option<i64>,
    /// Send this behind the random characters; it may hold the escapes of C
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    epilog: Option<OsString>,
    /// Print the seed as the first line
    #[arg(short = 'x', long)]
    show_seed: bool,
    /// Record the characters in this file, too, which must not exist; of a preset, the directory
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replay the characters of this file instead of random ones
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["name", "preset", "print_name"])]
    replay: Option<PathBuf>,
    /// Wait so long after each character: seconds, or with ms, s, m or h
    #[arg(short, long, value_name = "TIME", value_parser = amounts::time)]
    delay: Option<Duration>,
    /// Rebuild the input of this name
    #[arg(long, value_name = "KIND:SEED:LENGTH",
          conflicts_with_all = ["length", "nul", "all", "printable", "lines", "seed", "modulus"])]
    name: Option<InputName>,
    /// Print the name of the random characters instead of them
    #[arg(long, conflicts_with_all = ["epilog", "show_seed", "out", "delay", "preset"])]
    print_name: bool,
    /// Write the inputs of a study into the directory --out, under their names: issta, or a data
    /// set of 2020: small1 to small3, medium1 to 3, large1 to 3, huge1 to 3
    #[arg(long, value_name = "NAME", requires = "out",
          conflicts_with_all = ["length", "nul", "all", "printable", "lines", "modulus", "epilog",
                                "show_seed", "delay", "name"])]
    preset: Option<Preset>,
    /// Only N inputs of the preset, spread evenly over its kinds
    #[arg(long, value_name = "N", requires = "preset")]
    count: Option<u64>,
}

/// What is made of a name.
#[derive(Serialize)]
struct Named {
    name: String,
    /// `null` where the length is in lines.
    bytes: Option<u64>,
}

/// What stands in files.
#[derive(Serialize)]
struct Written {
    files: Vec<WrittenFile>,
    bytes: u64,
}

#[derive(Serialize)]
struct WrittenFile {
    file: PathBuf,
    /// `null` for what was replayed.
    name: Option<String>,
    bytes: u64,
}

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    if let (Some(preset), Some(folder)) = (args.preset, &args.out) {
        let seed = args.seed.map_or(0, Seed::bits);
        return preset::write(preset, seed, args.count, folder, output);
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
            Failure::usage("stdout cannot have both the input and a JSON object")
                .hint("write the input to a file (-o FILE), or ask for its name (--print-name)"),
        );
    }
    if args.replay.is_none() {
        output.detail(&format!("ddfuzz gen --name {name}"));
    }
    args.emit(name, seed, output)
}

impl Args {
    /// What is asked for, and its seed as it was typed.
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
        let bytes = emit::emit(parts, &sinks)?;
        if output.json
            && let Some(file) = &self.out
        {
            let name = self.replay.is_none().then(|| name.to_string());
            let file = WrittenFile {
                file: absolute(file),
                name,
                bytes,
            };
            let files = vec![file];
            output.result("", &Written { files, bytes });
        }
        Ok(Exit::Done)
    }

    /// What is sent, one part behind the other.
    fn parts(&self, name: InputName, seed: Seed) -> Result<Parts, Failure> {
        let epilog = match &self.epilog {
            Some(epilog) => unescape(epilog.as_bytes())
                .map_err(|error| Failure::usage(format!("--epilog: {error}")))?,
            None => Vec::new(),
        };
        let body: Box<dyn Read> = match &self.replay {
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
    let unreadable = |error| Failure::file(file, "cannot read", &error);
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    // Opening a directory succeeds; reading it does not.
    match opened.metadata().map_err(unreadable)?.is_dir() {
        true => Err(Failure::usage(format!("{} is a directory", file.display())).path(file)),
        false => Ok(opened),
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
