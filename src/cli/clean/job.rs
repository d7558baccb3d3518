//! Runs one corpus cleanup (`ddfuzz clean`), from its options to its printed result, and shows its
//! progress.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use indicatif::ProgressBar;

use super::destination::{add_to, check_places};
use super::libfuzzer::LibFuzzer;
use super::{CleanArgs, SkipArg, TrimArg, destination};
use crate::campaign::{Minimizing, Screen, Variants};
use crate::cli::run::{campaign_of, workers};
use crate::cli::target::{WayArg, install_bundled};
use crate::cli::{Exit, Failure, Output, signals, ui};
use crate::corpus::quarantine::QuarantineSettings;
use crate::corpus::{
    CleanPaths, CleanPhase, CleanSettings, OwnFuzzer, Trim, TrimBy, check_any_input, clean,
};
use crate::exec::{Program, Started, Target, Way, bundled, start_uncounted};
use crate::files::{OsText, atomic};
use crate::report::clean::{CleanResult, clean_html, clean_table};
use crate::report::size;
use crate::store::{KnownGroups, Store};

/// Default of `--max-len` of a cleanup, in bytes: larger files are left out.
pub const MAX_LEN: u64 = 1 << 20;
/// Default of `--trim-tests`: maximum number of runs to trim one file.
const TRIM_TESTS: u64 = 1000;

/// One call of `ddfuzz clean`: its options, and the flag that stops it.
pub struct CleanJob {
    pub args: CleanArgs,
    /// Flag that turns true when the user stops the cleanup.
    pub stop: Arc<AtomicBool>,
}

impl CleanJob {
    /// Runs the corpus cleanup and prints its result. Returns the exit code.
    ///
    /// # Errors
    /// When the corpus cannot be cleaned; it is then unchanged, unless only the result could not be
    /// written.
    pub fn run(self, output: &Output) -> Result<Exit, Failure> {
        let began = Instant::now();
        let in_place = (self.args.in_place)
            .then(|| destination::ReplacedCorpus::of(&self.args))
            .transpose()?;
        super::check_trim(&self.args)?;
        check_places(&self.args)?;
        let target = counting(&self.target()?);
        let (started, way) = self.start(&target, output)?;
        // No other call may write to the output directory before its files are copied from there.
        let (mut result, _store) = self.clean(target, way, started, output)?;
        let whole = result.missing.is_empty();
        if whole && let Some(old) = &in_place {
            result.old = old.replace(&result)?.as_deref().map(OsText::from);
            result.in_place = true;
            if self.args.delete_old && result.old.is_some() {
                output.say("the old corpus is not deleted: it was changed while it was replaced");
            }
        }
        if whole && let Some(onto) = &self.args.onto {
            add_to(&result, onto)?;
        }
        result.wall_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.tell(&result, output)?;
        Ok(if whole { Exit::Done } else { Exit::Found })
    }

    /// Starts the target by the way of execution that `--exec` names; if it names none, by one that
    /// reports which features the runs reach, if there is such a way. Returns the started target
    /// and the way.
    fn start(&self, target: &Target, output: &Output) -> Result<(Started, Way), Failure> {
        let args = &self.args.target;
        let by_main = match args.way {
            WayArg::Auto => {
                signals::unless_stopped(&self.stop, start_uncounted(target).map_err(Failure::from))?
            }
            _ => None,
        };
        match by_main {
            Some(started) => {
                args.warn_of_surroundings(target, output);
                let way = started.executor.way();
                output.detail(&format!("executed by {way}: {}", started.why));
                Ok((started, way))
            }
            None => args.start(target, &self.stop, output),
        }
    }

    fn clean(
        &self,
        target: Target,
        way: Way,
        started: Started,
        output: &Output,
    ) -> Result<(CleanResult, Store), Failure> {
        let args = &self.args;
        check_any_input(&args.corpus, args.out(), args.max_len.unwrap_or(MAX_LEN))?;
        let filed_for = self.target()?;
        let fresh = campaign_of(&filed_for, way, None);
        let mut store = Store::create_or_resume(args.out(), fresh.clone())?;
        let id = store.join_campaign(fresh)?;
        install_bundled(&mut store, &filed_for)?;
        let cleaning = self.cleaning(target, filed_for, way);
        let store = Mutex::new(store);
        let mut screen = CleanScreen::new(output);
        let executor = started.executor;
        let result = clean(&store, &id, &cleaning, executor, &mut screen, &self.stop);
        drop(screen);
        let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
        let result = signals::unless_stopped(&self.stop, result.map_err(Failure::from))?;
        Ok((result, store))
    }

    /// Returns the target that the options name; its runs are abandoned when the user stops the
    /// cleanup.
    fn target(&self) -> Result<Target, Failure> {
        let target = self.args.target.target()?;
        Ok(target.abandoned_when(signals::abandon_at(&self.stop)))
    }

    fn cleaning(&self, target: Target, filed_for: Target, way: Way) -> CleanSettings {
        let args = &self.args;
        let own_fuzzer = LibFuzzer::of(&target, way).map(|own| Arc::new(own) as Arc<dyn OwnFuzzer>);
        let jobs = workers(args.jobs);
        let learn_limit = args.target.timeout.is_none();
        let skips = |step| args.skip.contains(&step);
        let by = match args.trim() {
            TrimArg::Worth => Some(TrimBy::Worth),
            TrimArg::Signature => Some(TrimBy::Signature),
            TrimArg::Off => None,
        };
        CleanSettings {
            groups: (!skips(SkipArg::Groups)).then(|| QuarantineSettings {
                when: args.shrink.when(),
                jobs,
                minimizing: Minimizing {
                    variants: args.shrink.variants(Variants::None),
                    ..(args.shrink).minimizing(filed_for.clone(), way, learn_limit)
                },
                known: KnownGroups::default(),
            }),
            target,
            filed_for,
            way,
            corpus: args.corpus.clone(),
            onto: args.onto.clone(),
            jobs,
            max_len: args.max_len.unwrap_or(MAX_LEN),
            learn_limit,
            repeats: match skips(SkipArg::Flaky) {
                true => 1,
                false => args.repeats,
            },
            subset: !skips(SkipArg::Subset),
            trim: by.map(|by| Trim {
                by,
                search: args.trim_search.clone(),
                tests: args.trim_tests.unwrap_or(TRIM_TESTS),
                time: args.trim_time,
            }),
            keep_names: args.keep_names,
            own_fuzzer,
        }
    }

    /// Writes the cleanup's result to the output directory, as `clean.json` and as an HTML page,
    /// and prints it.
    fn tell(&self, result: &CleanResult, output: &Output) -> Result<(), Failure> {
        let place = CleanPaths::of(self.args.out());
        let write = |path: PathBuf, text: &[u8]| {
            atomic::write(&path, text).map_err(|error| Failure::unwritten(&path, error))
        };
        let json = serde_json::to_vec(result)
            .map_err(|error| Failure::new(Exit::Internal, "internal", error))?;
        write(place.page(), clean_html(result).as_bytes())?;
        write(place.result(), &json)?;
        let mut text = clean_table(result, ui::stdout_width());
        text.push_str(&self.where_it_is(result));
        output.result(&text, result);
        let may_trim = result.edges_before.is_some() && !self.args.skip.contains(&SkipArg::Subset);
        if result.missing.is_empty() && self.args.trim() == TrimArg::Off && may_trim {
            output.suggest("add --trim worth to shorten each kept file, which may take minutes");
        }
        Ok(())
    }

    fn where_it_is(&self, result: &CleanResult) -> String {
        let show = |path: &Path| crate::report::text::shell_word(path);
        let out = show(Path::new(&result.out.0));
        let mut lines = match (&self.args.onto, result.missing.is_empty()) {
            (Some(onto), true) => {
                let files = size::counted(result.after.files, "file");
                format!("{files} added to {}\n", show(onto))
            }
            _ => format!("kept files: {out}\n"),
        };
        if let Some(old) = &result.old {
            let old = show(Path::new(&old.0));
            lines += &format!("the old corpus: {old}\n");
        }
        if !result.groups.is_empty() {
            let groups = size::counted(result.groups.len() as u64, "group");
            lines += &format!("{groups}: ddfuzz show {}\n", show(self.args.out()));
        }
        lines + &format!("page: {}\n", show(&CleanPaths::of(self.args.out()).page()))
    }
}

/// Returns the target that a cleanup runs: for a target that comes with ddfuzz and gets no
/// arguments, its build with coverage counters; else `target` itself.
fn counting(target: &Target) -> Target {
    let mut target = target.clone();
    if let Program::Bundled(name) = &target.program
        && target.args.is_empty()
        && let Some(counted) = bundled::counted(name)
    {
        target.program = Program::Bundled(counted);
    }
    target
}

/// Progress line of a cleanup on stderr, drawn only on a terminal.
pub struct CleanScreen {
    bar: ProgressBar,
    output: Output,
}

impl CleanScreen {
    pub fn new(output: &Output) -> CleanScreen {
        CleanScreen {
            bar: ui::bar(output),
            output: output.clone(),
        }
    }
}

impl Screen<CleanPhase> for CleanScreen {
    fn progress(&mut self, phase: &CleanPhase) {
        let text = match *phase {
            CleanPhase::Reading { files, runs } => format!(
                "reading and running: {}, {}",
                size::counted(files, "file"),
                size::counted(runs, "run")
            ),
            CleanPhase::Filing { inputs } => format!(
                "triaging and minimizing {} that crash, hang or run out of memory",
                size::counted(inputs, "input")
            ),
            CleanPhase::Choosing { contents } => {
                format!("choosing a subset of {}", size::counted(contents, "file"))
            }
            CleanPhase::Repeating { contents } => {
                format!("running {} again", size::counted(contents, "file"))
            }
            CleanPhase::Trimming { round, done, of } => format!(
                "trimming, round {round}: {} of {}",
                size::grouped(done),
                size::counted(of, "file")
            ),
            CleanPhase::Checking { files } => {
                format!("checking the coverage of {}", size::counted(files, "file"))
            }
            CleanPhase::Counting { files } => format!(
                "comparing by libFuzzer's own count: {}",
                size::counted(files, "file")
            ),
        };
        self.bar.set_message(text);
    }

    fn note(&mut self, text: &str) {
        self.bar.suspend(|| self.output.say(text));
    }
}

impl Drop for CleanScreen {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
