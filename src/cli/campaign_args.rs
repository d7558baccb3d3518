//! Options that campaigns share: seeds and dictionaries, the minimization of new groups, the
//! generator, and the list of known groups.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, ValueEnum};

use super::behaviour::{TargetWarning, is_disturbed};
use super::results::{absolute, is_standard};
use super::{Exit, Failure, Output, values};
use crate::campaign::{
    Generator, Minimizing, RecordedSettings, SeedSources, Seeds, SkippedSeeds, Source, Variants,
    When, Words, dictionary,
};
use crate::delta::Structure;
use crate::exec::facts::program_words;
use crate::exec::{Program, Started, Target, Way, bundled};
use crate::minimize::log::NO_STRUCTURE;
use crate::minimize::{SEARCHES, search_summary, usual_structure};
use crate::report::size;
use crate::store::{BaselineGroups, KnownGroups};
use crate::structure::{is_library, load_grammar, structure_names};

/// Heading of the options about seeds and dictionaries in `--help`.
const INPUTS_HEADING: &str = "Inputs";

/// Options that name the seeds and dictionaries of a campaign.
#[derive(Args, Clone, Debug)]
pub struct SeedArgs {
    /// Seed inputs: a file, or all files below a directory; may be repeated
    #[arg(help_heading = INPUTS_HEADING, long, value_name = "PATH")]
    seeds: Vec<PathBuf>,
    /// With --target, also use the seeds and the dictionary that come with that target
    #[arg(help_heading = INPUTS_HEADING, hide_short_help = true, long)]
    pub bundled_seeds: bool,
    /// Dictionary in AFL's format (lines like name="value"); may be repeated
    #[arg(help_heading = INPUTS_HEADING, long, value_name = "FILE")]
    dict: Vec<PathBuf>,
    /// Do not extract a dictionary from the program (its strings and the constants it compares
    /// with)
    #[arg(help_heading = INPUTS_HEADING, hide_short_help = true, long)]
    pub no_auto_dict: bool,
    /// Seed files and directories that the command itself adds, in each call, to the seeds that the
    /// user has given.
    #[arg(skip)]
    added: Vec<PathBuf>,
}

impl SeedArgs {
    /// Adds a seed file, or a directory of seeds, to those that the user has given.
    pub fn add(&mut self, path: PathBuf) {
        self.added.push(path);
    }

    /// Returns true if the user has given seeds, by `--seeds` or `--bundled-seeds`.
    pub fn has_seeds(&self) -> bool {
        self.bundled_seeds || !self.seeds.is_empty()
    }

    /// Returns the seeds' sources for the record of the campaign: the paths that the user has
    /// given, added seeds, and whether those of a bundled target are used.
    pub fn sources(&self) -> SeedSources {
        SeedSources {
            paths: self.seeds.iter().map(|path| absolute(path)).collect(),
            added: self.added.clone(),
            bundled: self.bundled_seeds,
        }
    }

    /// Reads the seeds and dictionary words of a resumed campaign; returns them with the sources of
    /// the seeds. `recorded`: the settings with which the campaign began. Seeds and dictionaries
    /// that the user gives in this call replace the recorded ones. For a classic `generator`, only
    /// the seeds of this call are returned, because such a campaign finds the recorded ones itself.
    /// Seeds of more than `max_len` bytes are left out.
    pub fn read_resumed(
        &self,
        recorded: &RecordedSettings,
        (target, generator): (&Target, Generator),
        max_len: u64,
        output: &Output,
    ) -> Result<(Seeds, SeedSources, Words), Failure> {
        let mut all = self.clone();
        if !self.has_seeds() {
            let sources = recorded.seed_sources();
            (all.seeds, all.bundled_seeds) = (sources.paths, sources.bundled);
        }
        let is_classic = generator == Generator::Classic;
        let seeds = match self.has_seeds() {
            false if is_classic => Seeds::default(),
            false => all.seeds(target, max_len, output).map_err(|failure| {
                failure.hint(
                    "the campaign began with these seeds: give them at their present place with \
                     --seeds, or the folder corpus of its output directory to go on without them",
                )
            })?,
            true if is_classic => self.without_added().seeds(target, max_len, output)?,
            true => all.seeds(target, max_len, output)?,
        };
        let has_words = !self.dict.is_empty();
        let mut words = match has_words {
            true => Words::default(),
            // The runs of a classic campaign depend on its words.
            false => recorded.words(!self.has_seeds() && (is_classic || !self.no_auto_dict)),
        };
        if has_words || self.has_seeds() {
            let given = all.words(target, !seeds.is_empty())?;
            for source in [Source::Dictionary, Source::Program] {
                words.add(source, given.of(source));
            }
        }
        Ok((seeds, all.sources(), words))
    }

    fn without_added(&self) -> SeedArgs {
        SeedArgs {
            added: Vec::new(),
            ..self.clone()
        }
    }

    /// Returns the paths given by `--seeds`, and those given by `--dict`.
    pub fn given_paths(&self) -> (&[PathBuf], &[PathBuf]) {
        (&self.seeds, &self.dict)
    }

    /// Reads and returns the seeds of at most `max_len` bytes, and the dictionary words that the
    /// mutator inserts into inputs.
    pub fn read(
        &self,
        target: &Target,
        max_len: u64,
        output: &Output,
    ) -> Result<(Seeds, Words), Failure> {
        let seeds = self.seeds(target, max_len, output)?;
        let words = self.words(target, !seeds.is_empty())?;
        Ok((seeds, words))
    }

    /// Reads the seeds of at most `max_len` bytes that `--seeds` names, and with `--bundled-seeds`
    /// those of the bundled target. Fails if `--seeds` names some and none of them can be used.
    pub fn seeds(&self, target: &Target, max_len: u64, output: &Output) -> Result<Seeds, Failure> {
        let paths: Vec<PathBuf> = self.seeds.iter().chain(&self.added).cloned().collect();
        let (seeds, left_out) = Seeds::read(&paths, max_len)?;
        if seeds.is_empty() && !paths.is_empty() {
            return Err(none(&paths, left_out, max_len));
        }
        if !paths.is_empty() {
            let said = seeds_summary(seeds.len() as u64, left_out);
            match left_out.too_long + left_out.too_many {
                0 => output.detail(&said),
                _ => output.say(&said),
            }
        }
        if !self.bundled_seeds {
            return Ok(seeds);
        }
        Ok(seeds.with_bundled(self.bundled(target)?, max_len))
    }

    /// Reads the words of the given dictionaries, and with `--bundled-seeds` those of the bundled
    /// target's dictionary. If `automatic` is true or one of these dictionaries has a word, also
    /// extracts words from the program, unless `--no-auto-dict` is given.
    pub fn words(&self, target: &Target, automatic: bool) -> Result<Words, Failure> {
        let mut words = Words::default();
        for path in &self.dict {
            words.add(Source::Dictionary, dictionary::read(path)?);
        }
        if self.bundled_seeds
            && let Some(text) = bundled::dictionary(self.bundled(target)?)
        {
            // A test parses them all.
            words.add(
                Source::Dictionary,
                dictionary::parse(text).unwrap_or_default(),
            );
        }
        if !self.no_auto_dict && (automatic || !words.is_empty()) {
            words.add(Source::Program, program_words(target)?);
        }
        Ok(words)
    }

    fn bundled<'a>(&self, target: &'a Target) -> Result<&'a str, Failure> {
        match &target.program {
            Program::Bundled(name) => Ok(name),
            Program::Path(_) => Err(Failure::usage("--bundled-seeds works only with --target")
                .hint("give your own seeds with --seeds")),
        }
    }
}

/// Builds the failure that says that the files and directories `paths` give no seed of at most
/// `max_len` bytes. `left_out`: how many files gave none, by the reason.
fn none(paths: &[PathBuf], left_out: SkippedSeeds, max_len: u64) -> Failure {
    let message = match left_out.too_long {
        0 => "there is no file in what --seeds names".to_owned(),
        1.. => format!(
            "all seeds ({}) are longer than {}",
            size::grouped(left_out.too_long),
            size::counted(max_len, "byte"),
        ),
    };
    let hint = match left_out.too_long {
        0 => "give a file, or a directory with files in it",
        _ => "raise --max-len",
    };
    let failure = Failure::usage(message).hint(hint);
    match paths {
        [path] => failure.path(path),
        _ => failure,
    }
}

/// Formats how many seeds were read, and how many files were skipped, by the reason.
fn seeds_summary(count: u64, left_out: SkippedSeeds) -> String {
    let mut text = size::counted(count, "seed");
    for (files, why) in [
        (left_out.too_long, "longer than --max-len"),
        (left_out.too_many, "more than 256 MiB or 2^18 files"),
        (left_out.again, "duplicates"),
        (left_out.no_files, "not regular files"),
    ] {
        if files > 0 {
            text.push_str(&format!("; skipped: {} ({why})", size::grouped(files)));
        }
    }
    text
}

/// Heading of the options about the minimization of crashes in `--help`.
pub const MINIMIZATION_HEADING: &str = "Minimization of new groups";

/// Default of `--budget-time`, the maximum time for minimizing one crash in a campaign.
const DEFAULT_BUDGET: Duration = Duration::from_secs(60);

/// Options for the minimization of crash groups that a campaign finds.
#[derive(Args, Clone, Debug)]
pub struct MinimizationArgs {
    /// When new groups are minimized
    #[arg(help_heading = MINIMIZATION_HEADING, hide_short_help = true, long, value_enum, default_value_t = WhenArg::Inline)]
    minimize: WhenArg,
    /// Search algorithm of minimizations
    #[arg(help_heading = MINIMIZATION_HEADING, hide_short_help = true, long, value_name = "NAME", default_value = "full", value_parser = searches())]
    search: String,
    /// Maximum time for one minimization [default: 60s; of `run`, all hangs together a fifth of the
    /// fuzzing time]
    #[arg(help_heading = MINIMIZATION_HEADING, hide_short_help = true, long, value_name = "TIME", value_parser = values::time)]
    budget_time: Option<Duration>,
    /// Maximum number of tests for one minimization
    #[arg(help_heading = MINIMIZATION_HEADING, hide_short_help = true, long, value_name = "N")]
    budget_tests: Option<u64>,
    /// For each group of crashes, also minimize crashes with up to N further minor keys, after all
    /// groups are done: bugs in several callers of one function may share a group [default: 3, but
    /// none where a sanitizer reports the crash, and none of `revisit` and `clean`]
    #[arg(help_heading = MINIMIZATION_HEADING, hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u16))]
    variants: Option<u16>,
    /// Write the bytes of each tested candidate into the logs
    #[arg(help_heading = MINIMIZATION_HEADING, hide_short_help = true, long)]
    log_inputs: bool,
}

/// Values of `--minimize`: when new groups are minimized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WhenArg {
    /// Minimize new groups as soon as they are found, in between fuzzing
    Inline,
    /// Minimize new groups after fuzzing has ended
    After,
    /// Minimize new groups by one worker that does nothing else
    Worker,
    /// Do not minimize new groups
    Off,
}

/// Returns the parser for values of `--search`: the names of the search algorithms with their
/// descriptions.
pub fn searches() -> PossibleValuesParser {
    let value = |name: &&'static str| PossibleValue::new(*name).help(search_summary(name));
    PossibleValuesParser::new(SEARCHES.iter().map(value))
}

/// Parser for values of `--grammar`, which say how inputs are parsed: the name of a structure (a
/// grammar or file format), `none`, or the path of a shared library, whose tree-sitter grammar is
/// then loaded. Its result is the name of the structure.
#[derive(Clone)]
pub struct Structures;

impl TypedValueParser for Structures {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let Some(path) = value.to_str().filter(|value| is_library(value)) else {
            return names().parse_ref(command, arg, value);
        };
        load_grammar(Path::new(path)).map_err(|error| {
            let message = format!("{error}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names: Vec<PossibleValue> = names().possible_values()?.collect();
        Some(Box::new(names.into_iter()))
    }
}

/// Returns the parser for values of `--grammar` that are not a path: the names of the structures
/// (grammars and file formats), and `none`.
fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(std::iter::once(NO_STRUCTURE).chain(structure_names()))
}

/// Option `--grammar` of commands that read a minimization log: it names the shared library of the
/// log's grammar, which is loaded when the option is parsed.
#[derive(Args, Clone, Debug)]
pub struct GrammarArgs {
    /// Shared library with the grammar that the log names, if that grammar was loaded from a
    /// library
    #[arg(hide_short_help = true, long, value_name = "FILE.so", value_parser = Structures, hide_possible_values = true)]
    grammar: Option<String>,
}

impl MinimizationArgs {
    pub fn when(&self) -> When {
        match self.minimize {
            WhenArg::Inline => When::Inline,
            WhenArg::After => When::After,
            WhenArg::Worker => When::Worker,
            WhenArg::Off => When::Off,
        }
    }

    /// Returns how many further crashes of a group are minimized after its first one: the value of
    /// `--variants`, or `otherwise` without that option. Each of these crashes has a minor key (a
    /// hash of the path into the bug) that no other minimized crash of the group has.
    pub fn variants(&self, otherwise: Variants) -> Variants {
        let asked = self.variants.map(usize::from);
        asked.map_or(otherwise, Variants::Most)
    }

    /// Builds the settings for minimizing crashes of `target`, executed by `way`. `learn_limit`:
    /// whether the time limit of a run is adapted to the target, because the user has set none.
    pub fn minimizing(&self, target: Target, way: Way, learn_limit: bool) -> Minimizing {
        Minimizing {
            budget_time: Some(self.budget_time.unwrap_or(DEFAULT_BUDGET)),
            hurried: self.budget_time.is_none(),
            budget_tests: self.budget_tests,
            log_inputs: self.log_inputs,
            variants: self.variants(Variants::Plain),
            learn_limit,
            ..Minimizing::of_target(target, way, &self.search)
        }
    }
}

/// Values of `--generator`: how a campaign generates its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GeneratorArg {
    /// Use the coverage-guided generator where the target reports coverage, else the classic one
    Auto,
    /// Generate random characters, as in the fuzz studies, and mutations of the seeds
    Classic,
    /// Mutate inputs that reached new coverage; of an unmodified program on x86-64, new basic
    /// blocks
    Guided,
}

impl GeneratorArg {
    /// Returns the generator that the user gives. If the user gives none and the campaign is
    /// resumed, returns the generator in `recorded`, the settings with which the campaign began.
    /// Fails if a guided campaign is to be continued as a classic one, whose runs depend on the
    /// seeds of its beginning.
    pub fn or_recorded(self, recorded: Option<&RecordedSettings>) -> Result<GeneratorArg, Failure> {
        match (self, recorded.map(|recorded| recorded.generator)) {
            (GeneratorArg::Classic, Some(Generator::Guided)) => {
                let message = "the campaign was started with --generator guided, and cannot be \
                               resumed with classic";
                Err(Failure::usage(message).hint(
                    "omit --generator to continue it, or start a classic campaign in another \
                     output directory (-o)",
                ))
            }
            (GeneratorArg::Auto, Some(Generator::Classic)) => Ok(GeneratorArg::Classic),
            (GeneratorArg::Auto, Some(Generator::Guided)) => Ok(GeneratorArg::Guided),
            (given, _) => Ok(given),
        }
    }

    /// Chooses the input generator of a campaign. `Auto` means the coverage-guided one if the
    /// started target reports coverage, else the classic one. `Guided` also takes the basic blocks
    /// of an unmodified program as its coverage, and fails if there is no coverage either way. If
    /// the breakpoints by which these blocks are found change how the program's runs end, the
    /// classic generator is chosen, and a warning is added to `warnings`.
    pub fn settle(
        self,
        started: &mut Started,
        warnings: &mut Vec<TargetWarning>,
    ) -> Result<Generator, Failure> {
        let places = match self {
            GeneratorArg::Guided => started.executor.cover_blocks()?,
            GeneratorArg::Auto | GeneratorArg::Classic => {
                started.executor.counter_count().ok_or("")
            }
        };
        match (self, places) {
            (GeneratorArg::Classic, _) | (GeneratorArg::Auto, Err(_)) => Ok(Generator::Classic),
            (GeneratorArg::Guided, Ok(_)) if is_disturbed(&mut *started.executor)? => {
                warnings.push(TargetWarning {
                    seen: "breakpoints change how the target's runs end".to_owned(),
                    fix: "the classic generator is used, without coverage: does the target handle \
                          or block SIGTRAP, or read its own code?"
                        .to_owned(),
                });
                Ok(Generator::Classic)
            }
            (GeneratorArg::Auto | GeneratorArg::Guided, Ok(_)) => Ok(Generator::Guided),
            (GeneratorArg::Guided, Err(why)) => {
                let message = format!(
                    "--generator guided needs coverage, but run by {} the target reports none: \
                     {why}",
                    started.executor.way()
                );
                Err(Failure::new(Exit::Baseline, "no-coverage", message).hint(
                    "build it with afl-clang-fast, or as a libFuzzer harness with clang \
                     -fsanitize=fuzzer; run a dynamically linked program by --exec inject or \
                     snapshot; or use --generator classic",
                ))
            }
        }
    }
}

/// Values of `--mutate-structure`: when a coverage-guided campaign also mutates inputs by their
/// structure (as trees of a grammar or file format).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MutateStructureArg {
    /// Mutate inputs by their structure if most seeds are files of a known format or programs in a
    /// known language
    Auto,
    /// Mutate inputs by the structure that most seeds have, even if it is only that of any text
    On,
    /// Never mutate inputs by their structure
    Off,
}

impl MutateStructureArg {
    /// Returns the name of the structure (grammar or file format) by which inputs are mutated: the
    /// one that most of the `seeds` have. `None` if inputs are not mutated by their structure.
    pub fn choose<'a>(self, seeds: impl ExactSizeIterator<Item = &'a [u8]>) -> Option<String> {
        let usual = match self {
            MutateStructureArg::Off => None,
            _ => usual_structure(seeds),
        };
        let is_plain = |name: &str| [Structure::TEXT, Structure::BINARY].contains(&name);
        usual.filter(|name| self == MutateStructureArg::On || !is_plain(name))
    }
}

/// Reads the list of known crash groups in the file `path` (`--known`), and adds the groups of the
/// output directory `against` (`--against`).
pub fn read_known_and_against(
    path: Option<&Path>,
    against: Option<&Path>,
) -> Result<KnownGroups, Failure> {
    let known = read_known(path)?;
    Ok(match against {
        Some(out) => known.with_baseline(BaselineGroups::read(out)?),
        None => known,
    })
}

/// Reads the list of known crash groups from the file of `--known`, or from stdin for `-`; without
/// a file, no group is known. Fails at a line that is not a crash key.
pub fn read_known(path: Option<&Path>) -> Result<KnownGroups, Failure> {
    let Some(path) = path else {
        return Ok(KnownGroups::default());
    };
    let text = match is_standard(path) {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(path),
    };
    let text =
        text.map_err(|error| Failure::file(path, "reading the list of known groups", &error))?;
    KnownGroups::parse(&text).map_err(|error| {
        Failure::usage(format!("{}, {error}", path.display()))
            .path(path)
            .hint("a line is 12 to 32 hex digits of a major key, or stable: and those of a stable key")
    })
}
