//! `ddfuzz min`: minimizes one failing input, or all groups of an output directory. `--export-test`
//! writes the crash as an interestingness test for other reducers.

mod alone;
pub(in crate::cli) mod call_script;
pub(in crate::cli) mod command_line;
pub(in crate::cli) mod directory;
mod job;
mod wrapper;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::behaviour::advice_on_end;
use super::campaign_args::{Structures, searches};
use super::results::{
    InputFile, ResultArgs, ResultPlace, input_file, is_same_path, read_input, shown_path,
    slip_on_file, unlisted_slips, with_ending,
};
use super::run::workers;
use super::target::TargetArgs;
use super::{Exit, Failure, Output, signals, ui, values};
use crate::campaign::{Finished, Minimizing, StartedTarget};
use crate::exec::{AbandonWhen, Ended, Target, Way, inherited};
use crate::files::atomic;
use crate::minimize::{Claim, MinRecord};
use crate::report::export::{InputSource, interestingness_test};
use crate::report::text::{self, cut, printable, shell_word};
use crate::report::{claim, place, size};
use crate::structure::language_of_file;
use crate::triage::{Class, Crash, Found, Triager, Verdict};
use call_script::CallFiles;
use command_line::CallMinimization;
use job::{CrashJob, minimize_by_test};

/// Suffix that is appended to the input's name to get the default name of the result file.
const ENDING: &str = ".min";

/// Minimize one failing input, or all groups of an output directory
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz min crash-1 -- ./program @@\n  \
                        ddfuzz min ddfuzz-out\n  \
                        ddfuzz min crash-1 -o smaller --search ddmin --target ul\n  \
                        ddfuzz min crash-1 --args --env-vars -- ./program -v @@\n  \
                        ddfuzz min crash-1 --test ./is-interesting.sh")]
pub struct MinArgs {
    /// The crashing input, or - for stdin; the file is only read. With --args or --env-vars it may
    /// be omitted: stdin is then empty. If it is an output directory, all its groups are minimized
    /// that are not yet: each within 60s unless a budget is given, with the recorded program unless
    /// one is given. With --resume also those whose budget was used up
    #[arg(required_unless_present_any = ["args", "env_vars"])]
    input: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) target: TargetArgs,
    /// Minimize the program's arguments, too: first whole arguments, then their characters.
    /// Arguments with @@ are kept
    #[arg(long, conflicts_with = "test")]
    args: bool,
    /// Minimize the program's environment, too: inherited variables and those of --env are removed
    /// one by one. The logs contain all of them
    #[arg(long, conflicts_with = "test")]
    env_vars: bool,
    /// Minimize by an interestingness test instead of a crash. SCRIPT gets each candidate as its
    /// first argument (a path), on stdin, and under the input's name in its working directory; it
    /// exits with 0 if the candidate is interesting and with 125 if it cannot tell. --timeout
    /// limits the CPU time of one test [default: 10s, adapted while minimizing]
    #[arg(long, value_name = "SCRIPT", conflicts_with_all = ["program", "target", "way", "cwd", "crash_exit", "sandbox", "terminal", "ending", "file_name", "two_files"])]
    test: Option<PathBuf>,
    /// Write an interestingness test for this crash to FILE, an executable script for other
    /// reducers; it calls ddfuzz
    #[arg(
        hide_short_help = true,
        long,
        value_name = "FILE",
        conflicts_with = "test"
    )]
    export_test: Option<PathBuf>,
    #[command(flatten)]
    results: ResultArgs,
    /// Search algorithm of the minimization
    #[arg(long, value_name = "NAME", default_value = "full", value_parser = searches())]
    search: String,
    /// Structure of the input that the search `full` uses: a grammar, a file format, text, binary,
    /// or none; or a shared library with a grammar of tree-sitter, named after its language, like
    /// lua.so [default: by the ending of the file's name and the input's content]
    #[arg(hide_short_help = true, long, value_name = "NAME|FILE.so", value_parser = Structures)]
    grammar: Option<String>,
    /// For an output directory, also minimize crashes with up to N further minor keys of each group
    /// of crashes [default: 3, but none where a sanitizer reports the crash]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16))]
    variants: Option<u16>,
    /// Number of workers; the result does not depend on it [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
}

pub fn run(mut args: MinArgs, output: &Output) -> Result<Exit, Failure> {
    let output = &args.results.output(output)?;
    let input = args.input.take().map(input_file);
    let input = input.transpose()?;
    args.input = input.as_ref().map(|input| input.path.clone());
    let done = minimize(&args, output).map_err(|failure| args.results.explain(failure));
    let inputs: Vec<InputFile> = input.into_iter().collect();
    let result = with_ending(&args.subject(), ENDING);
    args.results
        .keep_or_remove_saved(&done, &inputs, &result, output);
    done
}

/// Minimizes the input file, by its crash or an interestingness test, or all groups if it is an
/// output directory; prints the result.
fn minimize(args: &MinArgs, output: &Output) -> Result<Exit, Failure> {
    if args.grammar.is_some() && args.search != "full" {
        let message = format!("--grammar does not work with --search {}", args.search);
        return Err(Failure::usage(message).hint("only the search `full` uses a structure"));
    }
    let input = match &args.input {
        Some(path) if directory::is_output_directory(path) => {
            return directory::run(args, path, output);
        }
        _ if args.variants.is_some() => {
            let message = "--variants works with an output directory, but one input is given";
            return Err(
                Failure::usage(message).hint("omit --variants, or give an output directory")
            );
        }
        Some(path) => read_input(path)?,
        None => Vec::new(),
    };
    let stop = signals::stop_flag()?;
    let began = Instant::now();
    let screen = MinScreen {
        stop: &stop,
        abandon_when: signals::abandon_at(&stop),
        screen: ui::MinimizationScreen::new(output),
    };
    let done = match (&args.test, &args.input) {
        (Some(script), Some(path)) => minimize_by_test(script, args, path, &input, &screen),
        _ => minimize_crash(args, input, &screen, output),
    };
    let done = done.map_err(|failure| alone::hint_if_disturbed(failure, args, &screen));
    let (finished, mut record) = signals::unless_stopped(&stop, done)?;
    let disturbance = alone::disturbance(args, &finished, &screen)?;
    drop(screen);
    record.wall_ms = began.elapsed().as_millis() as u64;
    for warning in &finished.minimized.warnings {
        output.say(&format!("warning: {warning}"));
    }
    if let Some(warning) = disturbance {
        output.say(&warning);
    }
    let printed = args.results.take_output(&mut record.output);
    output.result(&result_text(&record, &finished), &record);
    args.results.print(printed)?;
    say_slips(&record, output);
    say_next(args, &record, output)?;
    Ok(Exit::Done)
}

/// Prints how many inputs with another crash the search has met, and where the first one is stored;
/// prints nothing if there are none.
fn say_slips(record: &MinRecord, output: &Output) {
    let files = record.slips.iter().filter_map(|slip| slip.file.as_ref());
    let places: Vec<&Path> = files.map(|file| Path::new(&file.0)).collect();
    if let [first, ..] = places[..] {
        let count = size::counted(places.len() as u64, "input");
        let path = shell_word(first);
        output.say(&format!(
            "found {count} with another crash while minimizing: {path}"
        ));
    }
}

/// Prints the commands that the user could type next: one that continues the search, if a budget
/// has ended it; and `show`, `export` and `check` for the group in an output directory, or `log
/// verify` for the log in other cases.
fn say_next(args: &MinArgs, record: &MinRecord, output: &Output) -> Result<(), Failure> {
    let budget = values::first_given(&[
        ("--budget-time", args.results.budget_time.is_some()),
        ("--budget-tests", args.results.budget_tests.is_some()),
    ]);
    if let Some(budget) = budget.filter(|_| record.claim == Claim::BestSoFar) {
        output.say(&format!(
            "to continue: the same command with --resume and a larger {budget}"
        ));
        return Ok(());
    }
    let out = args.results.out.as_deref().filter(|out| out.is_dir());
    match (out, &record.outcome.major, &record.log) {
        (Some(out), Some(major), _) => {
            let target = args.target.target()?;
            output.suggest_for_groups(out, major, Some(&target));
        }
        (_, _, Some(log)) => {
            output.suggest(&format!(
                "ddfuzz log verify {}",
                shell_word(Path::new(&log.0))
            ));
        }
        _ => {}
    }
    Ok(())
}

/// What a minimization shares with the user: a flag that turns true when the user stops ddfuzz, and
/// the progress display.
pub(super) struct MinScreen<'a> {
    stop: &'a AtomicBool,
    /// When runs of the target or the interestingness test are abandoned: when the user stops
    /// ddfuzz.
    abandon_when: AbandonWhen,
    screen: ui::MinimizationScreen,
}

impl MinScreen<'_> {
    /// Returns the target that the options name; its runs are abandoned when the user stops ddfuzz.
    fn target(&self, args: &MinArgs) -> Result<Target, Failure> {
        let target = args.target.target()?;
        Ok(target.abandoned_when(self.abandon_when.clone()))
    }

    /// Prints the class, message, place and group of the crash that is minimized, and the way in
    /// which the target is executed.
    fn say_crash(&self, crash: &Crash, way: Way) {
        self.screen
            .say(&format!("{}, executed by {way}", holding(crash)));
        if crash.ended == Ended::OutOfMemory {
            let limit = crash.limits.memory >> 20;
            self.screen.say(&format!(
                "a run that needs more than {limit} MiB of memory counts as this crash; --memory sets \
                 another limit"
            ));
        }
        if crash.came_with_random_addresses() {
            self.screen.say(&format!(
                "warning: of {} runs only the last crashed, which had randomized addresses; the search \
                 makes its runs without, and may not see the crash",
                crash.tries
            ));
        }
    }

    /// Sets in `record` the file of each slip (another crash, found while `result` was minimized).
    /// `stored`: the files that this call has written. Those that belong to no slip in `record` are
    /// named in a message.
    fn name_slips(&self, record: &mut MinRecord, result: &Path, stored: &[PathBuf]) {
        for slip in &mut record.slips {
            *slip = slip_on_file(result, slip, stored);
        }
        for path in unlisted_slips(stored, &record.slips) {
            let path = path.display();
            self.screen.say(&format!(
                "stored {path}: another crash, found while minimizing"
            ));
        }
    }
}

/// Runs the target on the input, and minimizes the crash that it shows; with `--args` or
/// `--env-vars`, also the command line. Returns the finished minimization, and its result for JSON.
fn minimize_crash(
    args: &MinArgs,
    input: Vec<u8>,
    screen: &MinScreen<'_>,
    output: &Output,
) -> Result<(Finished, MinRecord), Failure> {
    let target = screen.target(args)?;
    let place = args.place()?;
    let call_files = args.call_files(&place)?;
    check_test_export(args, &place)?;
    let named = target.clone();
    let target = args.with_environment(target, call_files.as_ref());
    let (mut triager, executor) = args.target.probe_with_triager(&target, output)?;
    let way = executor.way();
    // Names of functions are needed only if the crash record is shown or stored, or makes a script.
    let is_stored = !matches!(place, ResultPlace::File { .. }) || call_files.is_some();
    if output.quiet && !is_stored && args.export_test.is_none() {
        triager.leave_out_names();
    }
    let began = Instant::now();
    let crash = baseline(&target, args.input.as_deref(), &input, &mut triager)?;
    let shown_in = began.elapsed();
    if !is_stored {
        triager.leave_out_names();
    }
    args.clear_by_force(&place, call_files.as_ref())?;
    export_test(args, &crash, &named, way)?;
    if let (Some(files), ResultPlace::File { results, .. }) = (call_files, &place) {
        let minimization = CallMinimization {
            args,
            screen,
            crash: &crash,
            way,
            original: args.input.as_deref().map(|path| (path, input.as_slice())),
            result: &results[0],
            files,
            target,
            input: input.clone(),
            shown_in,
            done: Vec::new(),
        };
        return minimization.run();
    }
    let job = CrashJob {
        minimizing: Minimizing {
            structure: args.structure(args.input.as_deref(), &input),
            ..args.minimizing(target, way)
        },
        screen,
        path: args.input.as_deref().unwrap_or(Path::new("input")),
        crash,
        input,
        shown_in,
        started: StartedTarget { executor, triager },
    };
    match &place {
        ResultPlace::File { results, log } => job.into_file(&results[0], log),
        ResultPlace::Directory(out) => job.into_directory(out),
    }
}

impl MinArgs {
    /// Returns the path that gives result files their names: that of the input if there is one,
    /// else that of the program, else `input`.
    fn subject(&self) -> PathBuf {
        let program = self.target.program.first().map(Path::new);
        let program = program.and_then(Path::file_name).map(PathBuf::from);
        let input = self.input.clone().or(program);
        input.unwrap_or_else(|| PathBuf::from("input"))
    }

    /// Chooses by `-o` and `--log` where the result and the log are written. Fails if one of the
    /// files exists without `--force` or `--resume`, or is the input, the interestingness test or
    /// the program.
    fn place(&self) -> Result<ResultPlace, Failure> {
        let program = self.target.program_file();
        let only_read = [&self.input, &self.test, &program].map(|path| path.as_deref());
        let only_read: Vec<&Path> = only_read.into_iter().flatten().collect();
        ResultPlace::choose(&self.results, &only_read, &self.subject(), &[ENDING])
    }

    /// Returns the paths of the logs and the script with `--args` or `--env-vars`, which minimize
    /// the command line; `None` without these options. Fails if such files exist and may not be
    /// overwritten, if one of them is a file of another option, or if the result is to go to an
    /// output directory.
    fn call_files(&self, place: &ResultPlace) -> Result<Option<CallFiles>, Failure> {
        if !self.args && !self.env_vars {
            return Ok(None);
        }
        let ResultPlace::File { log, .. } = place else {
            let message = "--args and --env-vars cannot store their result in an output directory";
            return Err(Failure::usage(message).hint("give a result file with -o FILE"));
        };
        let files = CallFiles::beside(log);
        let program = self.target.program_file();
        let own = [&self.input, &self.results.out, &self.export_test, &program];
        files.check_apart_from(own.into_iter().flatten().map(PathBuf::as_path))?;
        if !self.results.force {
            files.check_none(self.results.continues())?;
        }
        Ok(Some(files))
    }

    /// With `--force`, removes the files of an earlier result, and the script and the logs of an
    /// earlier minimization of the command line.
    fn clear_by_force(
        &self,
        place: &ResultPlace,
        files: Option<&CallFiles>,
    ) -> Result<(), Failure> {
        if self.results.force {
            place.clear()?;
            files.map_or(Ok(()), CallFiles::clear)?;
        }
        Ok(())
    }

    /// Returns the target. With `--env-vars`, all environment variables that it would inherit are
    /// set explicitly in it, so that each can be removed; if a search is continued, they are those
    /// of its logs `files`.
    fn with_environment(&self, target: Target, files: Option<&CallFiles>) -> Target {
        if !self.env_vars {
            return target;
        }
        let logged = files.filter(|_| self.results.continues());
        let logged = logged.and_then(CallFiles::logged_env);
        // With other variables on the command line the target is another one: resuming the log
        // fails.
        let logged = logged.filter(|all| target.env.iter().all(|one| all.contains(one)));
        Target {
            env: logged.unwrap_or_else(|| inherited(&target.env)),
            env_only: true,
            ..target
        }
    }

    /// Returns the name of the structure (grammar or file format) for minimizing the input: the one
    /// that `--grammar` names, else the programming language that belongs to the ending of the
    /// input's file name, if the input can be parsed in it; else `None`.
    fn structure(&self, path: Option<&Path>, input: &[u8]) -> Option<String> {
        let by_name = || {
            let name = path?.file_name()?.as_encoded_bytes();
            language_of_file(name, input).map(str::to_owned)
        };
        self.grammar.clone().or_else(by_name)
    }

    fn minimizing(&self, target: Target, way: Way) -> Minimizing {
        Minimizing {
            budget_time: self.results.budget_time,
            budget_tests: self.results.budget_tests,
            log_inputs: self.results.log_inputs,
            no_cache: self.results.no_cache,
            learn_limit: self.target.timeout.is_none(),
            jobs: workers(self.jobs),
            structure: self.grammar.clone(),
            structure_is_named: self.grammar.is_some(),
            ..Minimizing::of_target(target, way, &self.search)
        }
    }
}

/// Describes the crash that is minimized: class, message, place in the source code, and group.
pub(in crate::cli) fn holding(crash: &Crash) -> String {
    let said = crash.details.message.as_deref();
    let said = said.map_or_else(String::new, |said| {
        let line = said.lines().next().unwrap_or_default();
        format!(": {}", cut(&printable(line), 100))
    });
    let at = place(crash).map_or_else(String::new, |place| format!(" in {}", printable(&place)));
    let (class, major) = (&crash.class, crash.keys.major.short());
    format!("minimizing the crash {class}{said}{at}, group {major}")
}

/// Maximum number of examinations, each of up to three runs, of the original input before it counts
/// as not crashing; a flaky crash may not occur at once.
const EXAMINED: u32 = 7;

/// Runs the original input before its minimization begins, and returns its crash. Fails if none of
/// up to seven examinations shows a crash; gives up earlier if a run exceeds the time limit.
pub(in crate::cli) fn baseline(
    target: &Target,
    path: Option<&Path>,
    input: &[u8],
    triager: &mut Triager,
) -> Result<Crash, Failure> {
    let (mut runs, mut examined) = (0, 0);
    loop {
        examined += 1;
        match triager.examine(input)? {
            Verdict::Crash(crash) => {
                let absolute = path.and_then(|path| std::path::absolute(path).ok());
                return Ok(Crash {
                    found: absolute.map(|path| Found::File {
                        path,
                        campaign: None,
                    }),
                    tries: runs + crash.tries,
                    ..*crash
                });
            }
            Verdict::Flaky { tries, ended, .. } => {
                runs += tries;
                // An input that exceeds the time limit is not run so often again.
                if examined == EXAMINED || ended == Ended::Timeout {
                    let failure = not_failing(path, (runs, ended), triager.last_line());
                    let failure = failure.advise_first(advice_on_end(target, path, ended));
                    return Err(match leak(triager, input, ended)? {
                        Some(class) => failure.hint(format!(
                            "it leaks memory ({class}), and leaks are not minimized; `ddfuzz triage \
                             --leaks` groups them"
                        )),
                        None => failure,
                    });
                }
            }
        }
    }
}

/// Checks for memory leaks when a run of `input` has ended without a crash, by `ended`. Returns the
/// class of the leak; `None` if nothing leaks, or if the run exceeded the time limit.
fn leak(triager: &mut Triager, input: &[u8], ended: Ended) -> Result<Option<Class>, Failure> {
    if ended == Ended::Timeout {
        return Ok(None);
    }
    triager.look_for_leaks(true);
    Ok(match triager.examine(input)? {
        Verdict::Crash(crash) if crash.class.is_leak() => Some(crash.class),
        Verdict::Crash(_) | Verdict::Flaky { .. } => None,
    })
}

/// Returns the failure that says that the input at `path` does not crash the program. `runs`: how
/// many runs were made, and how the last one ended. `last_line`: the last line that the program
/// wrote to stderr.
fn not_failing(path: Option<&Path>, runs: (u32, Ended), last_line: Option<&str>) -> Failure {
    let what = path.unwrap_or(Path::new("the program without an input"));
    let (count, ended) = runs;
    let said = last_line.map_or_else(String::new, |line| format!("; it wrote: {line}"));
    let message = format!(
        "{} does not crash the program: the last of {count} runs ended with {ended}{said}",
        what.display()
    );
    let failure = Failure::new(Exit::Baseline, "not-failing", message);
    let failure = match path {
        Some(path) => failure.path(path),
        None => failure,
    };
    let name = path.and_then(Path::file_name).unwrap_or_default();
    failure.hint(match name.to_string_lossy().starts_with("slow-unit-") {
        true => {
            "libFuzzer has recorded that this input took long, which is no failure; with --timeout \
             TIME a run that takes longer is one"
        }
        false => {
            "give an input that crashes the program; if it reports a failure by its exit status, \
             add --crash-exit N"
        }
    })
}

/// Checks, before the target is run, that the file of `--export-test` is not the input, the result
/// or the log, and that it may be written.
fn check_test_export(args: &MinArgs, place: &ResultPlace) -> Result<(), Failure> {
    let Some(file) = &args.export_test else {
        return Ok(());
    };
    let program = args.target.program_file();
    let only_read = args.input.iter().chain(&program);
    let mut taken: Vec<&Path> = only_read.map(PathBuf::as_path).collect();
    if let ResultPlace::File { results, log } = place {
        taken.extend(results.iter().chain([log]).map(PathBuf::as_path));
    }
    if taken.iter().any(|one| is_same_path(one, file)) {
        let message = format!(
            "{} is the input, the program, the result or the log",
            file.display()
        );
        return Err(Failure::usage(message)
            .path(file)
            .hint("give another file with --export-test"));
    }
    if file.is_dir() || (file.exists() && !args.results.force && !args.results.resume) {
        return Err(exported_exists(file));
    }
    Ok(())
}

/// Writes the interestingness test of `--export-test`, a script for other reducers. With
/// `--resume`, an existing file stays.
fn export_test(args: &MinArgs, crash: &Crash, target: &Target, way: Way) -> Result<(), Failure> {
    let Some(file) = &args.export_test else {
        return Ok(());
    };
    let name = args.input.as_deref().and_then(Path::file_name);
    let name = name.unwrap_or(OsStr::new("input"));
    let built = std::env::current_exe().unwrap_or_else(|_| "ddfuzz".into());
    let text = interestingness_test(InputSource::Anywhere, name, crash, (target, way), &built);
    let written = match args.results.force {
        true => atomic::write_program(file, &text),
        false => match atomic::create_new_program(file, &text) {
            Err(error) if error.is_existing() && args.results.resume => Ok(()),
            Err(error) if error.is_existing() => return Err(exported_exists(file)),
            written => written,
        },
    };
    written.map_err(|error| Failure::unwritten(file, error))
}

fn exported_exists(file: &Path) -> Failure {
    let hint = "overwrite it with --force, or give another file with --export-test";
    Failure::exists(file, hint)
}

/// Formats the result of a minimization for people.
fn result_text(record: &MinRecord, finished: &Finished) -> String {
    let claim = match record.claim {
        _ if record.call.is_none() => claim(&finished.outcome()),
        Claim::BestSoFar => format!(
            "{}, {} of {} removals proved",
            record.claim,
            size::grouped(record.proved.done),
            size::grouped(record.proved.of)
        ),
        of_all => format!(
            "{of_all}, proved by {}",
            size::counted(record.proved.of, "test")
        ),
    };
    let mut text = format!(
        "{} in {}: {claim}\n",
        size::reduction(record.size_before, record.size_after),
        size::counted(record.tests.executed, "test"),
    );
    let mut row = |name: &str, value: String| text.push_str(&format!("{name:<7}{value}\n"));
    if record.output.is_some() {
        row("input", text::hex_line(&finished.minimized.text, 16));
    }
    if let Some(call) = &record.call {
        row("args", count(call.args_before, call.args.len() - 1));
        if finished.start.target.env_only {
            row("env", count(call.env_before, call.env.len()));
        }
        row("call", call.command.clone());
        row("script", shown_path(&call.script));
    }
    if record.output.is_some() {
        row("file", shown_path(&record.output));
    }
    row("log", shown_path(&record.log));
    text
}

/// Formats the numbers of arguments, or of variables, before and after a minimization: `12 → 3`.
fn count(before: u64, after: usize) -> String {
    format!(
        "{} → {}",
        size::grouped(before),
        size::grouped(after as u64)
    )
}
