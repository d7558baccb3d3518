//! `ddfuzz explain`: why an input fails. Options, and which two runs are compared.

mod files;
mod page;

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;

use super::behaviour::advice_on_end;
use super::export::group::{self, ChosenGroup};
use super::results::read_input;
use super::target::TargetArgs;
use super::{Exit, Failure, Output, signals, ui, values};
use crate::delta::Outcome;
use crate::exec::Target;
use crate::explain::{
    self, ExplainError, Explanation, Pattern, PatternBuilder, Request, SliceGoal,
    engine::EngineError, story,
};
use crate::files::FileError;
use crate::minimize::log::{Line, Log};
use crate::report::size;
use crate::report::text::printable;
use crate::store::Reader;
use files::Files;

/// Explain why an input fails: which variables carried the failure from the input to the crash,
/// and which statements wrote them
///
/// The program is run on the failing input and on a passing one that hardly differs. At points that
/// both runs go through, variables of the passing run are set to their values in the failing run,
/// and it runs on: what makes it fail is a cause. Needs debug information (-g) on x86-64.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  ddfuzz explain ddfuzz-out 3fa4\n  ddfuzz explain crash.txt good.txt -- ./program @@\n  ddfuzz explain --failing-args '11 14' --passing-args '9 8 7' --wrong 'Output: 0' -- ./sample\n\n\
    Where no explanation is possible the reason is given, and what is certain; the exit code is 0."
)]
pub struct ExplainArgs {
    /// An output directory and a group in it (hex digits of its major key) [default: all groups of
    /// crashes]; or the failing input and a passing one [default: one that hardly differs is
    /// searched for]
    #[arg(value_name = "OUT [GROUP] | FAILING [PASSING]", num_args = 0..=2)]
    inputs: Vec<PathBuf>,
    /// The failure is a wrong output: stdout matches this regular expression
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    wrong: Option<Pattern>,
    /// Arguments that the program gets in the failing run, separated by blanks
    #[arg(
        long,
        value_name = "ARGS",
        requires = "passing_args",
        allow_hyphen_values = true
    )]
    failing_args: Option<OsString>,
    /// Arguments that the program gets in the passing run
    #[arg(
        long,
        value_name = "ARGS",
        requires = "failing_args",
        allow_hyphen_values = true
    )]
    passing_args: Option<OsString>,
    /// Also search for the statement executions that alone reproduce the failure, or the output of
    /// a run that does not fail: a critical slice
    #[arg(long)]
    slice: bool,
    /// Search for the statement executions that alone reproduce the lines of the output that match
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    slice_on: Option<Pattern>,
    /// Also list the points at which states were compared: the tests there, and what mattered
    #[arg(long)]
    points: bool,
    /// Compare registers and words of memory instead of variables, for programs that are optimized
    /// or have no debug information
    #[arg(long)]
    raw: bool,
    /// Maximum CPU time for one explanation; on a busy machine it ends after four times as much wall
    /// time
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = BUDGET)]
    budget_time: Duration,
    /// Directory for explanation.json, explanation.html, explanation.txt and explanation.passing;
    /// with several groups, each is written into DIR/KEY [default: that of the reproducer or of FAILING]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Overwrite files with the names of the explanation's files that ddfuzz has not written, and
    /// an edited explanation.txt
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    target: TargetArgs,
}

fn pattern(text: &str) -> Result<Pattern, String> {
    let pattern = PatternBuilder::new(text).multi_line(true).build();
    pattern.map_err(|error| error.to_string())
}

/// JSON result of `ddfuzz explain` for several groups of an output directory: the explanation of
/// each.
#[derive(Serialize)]
struct Explained {
    groups: Vec<ExplainedGroup>,
}

#[derive(Serialize)]
struct ExplainedGroup {
    major: String,
    #[serde(flatten)]
    explanation: Explanation,
}

pub fn run(args: ExplainArgs, output: &Output) -> Result<Exit, Failure> {
    args.target.check_given("explain", &args.inputs)?;
    // A second signal ends ddfuzz at once, and all traced processes with it.
    let stop = signals::stop_flag()?;
    let directory = (args.inputs.first()).filter(|out| out.join("ddfuzz.json").is_file());
    // Of a single explanation there is nothing to save.
    if directory.is_none() {
        signals::end_at_first(&stop, None, output)?;
    }
    match args.inputs.first() {
        Some(out) if directory.is_some() => args.explain_directory(out, &stop, output),
        Some(failing) => args.explain_input(failing, output),
        None if args.failing_args.is_some() => {
            let request = args.request(args.target.target()?, Vec::new(), None);
            args.explain_one((&request, None), args.out.as_deref(), output)
        }
        None => Err(Failure::usage("nothing to explain is given").hint(
            "give an output directory, a failing input, or --failing-args and --passing-args",
        )),
    }
}

/// Explains the failure that `request` describes. Meanwhile a terminal shows for how long, and that
/// it is the failure of `what`.
fn explained(request: &Request, what: &str, output: &Output) -> Result<Explanation, ExplainError> {
    let bar = ui::bar(output);
    let budget = size::duration(request.budget);
    bar.set_message(format!("explaining {what} (at most {budget} of CPU time)"));
    let explanation = explain::explain(request);
    bar.finish_and_clear();
    explanation
}

impl ExplainArgs {
    fn explain_input(&self, failing: &Path, output: &Output) -> Result<Exit, Failure> {
        let bytes = read_input(failing)?;
        let passing = self
            .inputs
            .get(1)
            .map(|path| read_input(path))
            .transpose()?;
        let target = self.target.target()?;
        self.target.warn_of_surroundings(&target, output);
        let request = self.request(target, bytes, passing);
        let folder = failing
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = self.out.as_deref().or(folder).unwrap_or(Path::new("."));
        self.explain_one((&request, Some(failing)), Some(folder), output)
    }

    /// Explains the failure that `request` describes, prints the explanation, and writes it into
    /// `folder`, if given. `path` is the file with the failing input; `None` if the failure comes
    /// from arguments, not from an input file.
    fn explain_one(
        &self,
        (request, path): (&Request, Option<&Path>),
        folder: Option<&Path>,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let files = folder
            .map(|folder| Files::choose(folder, self.force))
            .transpose()?;
        let what = path.map_or_else(String::new, |path| printable(&path.display().to_string()));
        let explanation = explained(request, &what, output).map_err(|error| {
            let advice = match error {
                ExplainError::NotFailing(ended, _) => {
                    advice_on_end(&request.failing_target, path, ended)
                }
                _ => None,
            };
            failure(error).advise_first(advice)
        })?;
        if let Some(files) = files {
            files.write(&explanation, &request.passing_target)?;
            output.detail(&format!("written: {}", files.page().display()));
        }
        output.result(&self.text(&explanation), &explanation);
        Ok(Exit::Done)
    }

    fn text(&self, explanation: &Explanation) -> String {
        match self.points {
            true => story::text(explanation) + &story::points(explanation),
            false => story::text(explanation),
        }
    }

    /// Opens the output directory `out`, and chooses the groups to explain: the one that the user
    /// names, or all. Returns a reader of the directory, the groups, and the error of the first
    /// group without a complete input, if there is such a group. Prints a message for each of
    /// these. Fails if there is no other group.
    fn chosen_groups(
        &self,
        out: &Path,
        output: &Output,
    ) -> Result<(Reader, Vec<ChosenGroup>, Option<Failure>), Failure> {
        if let Some(name) = self.inputs.get(1) {
            let (reader, chosen) = group::find(name, out)?;
            return Ok((reader, vec![chosen], None));
        }
        let reader = Reader::open(out)?;
        let group::AllGroups {
            complete,
            incomplete,
        } = group::all(&reader)?;
        for (_, error) in &incomplete {
            output.say(&format!("not explained: {}", error.message()));
        }
        let failed = incomplete.into_iter().map(|(_, error)| error).next();
        if complete.is_empty() {
            if let Some(error) = failed {
                return Err(error);
            }
            let message = format!("{} has no group of crashes", out.display());
            return Err(Failure::usage(message)
                .path(out)
                .hint("`ddfuzz show` lists the groups"));
        }
        Ok((reader, complete, failed))
    }

    /// Explains the groups of the output directory `out`, or the one that the user names, one after
    /// the other. For a group that cannot be explained, prints why, and continues with the next
    /// one. Ends ddfuzz when `stop` turns true.
    fn explain_directory(
        &self,
        out: &Path,
        stop: &Arc<AtomicBool>,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let (reader, chosen, mut failed) = self.chosen_groups(out, output)?;
        // Explanations that are complete have their files.
        let hint = "the groups that are explained have their files; call it again for the others";
        signals::end_at_first(stop, (chosen.len() > 1).then_some(hint), output)?;
        let mut groups = Vec::new();
        for one in &chosen {
            let folder = self.folder_of(one, chosen.len());
            match folder.and_then(|folder| self.explain_group(&reader, one, &folder, output)) {
                Ok(explanation) => groups.push(ExplainedGroup {
                    major: one.major(),
                    explanation,
                }),
                Err(error) if chosen.len() > 1 => {
                    output.say(&not_explained(one, &error));
                    failed.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        let exit = match failed {
            Some(error) if groups.is_empty() => return Err(error),
            Some(error) => error.exit,
            None => Exit::Done,
        };
        let texts: Vec<String> = groups
            .iter()
            .map(|group| self.text(&group.explanation))
            .collect();
        let text = texts.join("\n");
        match &groups[..] {
            [only] if chosen.len() == 1 => output.result(&text, &only.explanation),
            _ => output.result(&text, &Explained { groups }),
        }
        Ok(exit)
    }

    /// Returns the directory for the files of a group's explanation. Without `--out`, it is the
    /// directory of the group's reproducer. With `--out`, it is the directory that `--out` names,
    /// or, if several groups are explained (`groups`: their number), a directory below it, named
    /// after the group's major key (hash that identifies the group); the directory of `--out` is
    /// then created.
    fn folder_of(&self, chosen: &ChosenGroup, groups: usize) -> Result<PathBuf, Failure> {
        let out = match &self.out {
            None => return Ok(chosen.entry().folder.clone()),
            Some(out) if groups == 1 => return Ok(out.clone()),
            Some(out) => out,
        };
        match std::fs::create_dir(out) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(Failure::unwritten(out, FileError::at("create", out)(error)))
            }
            // The caller reports a path that is no directory.
            _ if !out.is_dir() => Ok(out.clone()),
            _ => Ok(out.join(chosen.major())),
        }
    }

    /// Searches for the explanation of why the reproducer of a crash group fails, writes it into
    /// `folder`, and returns it.
    fn explain_group(
        &self,
        reader: &Reader,
        chosen: &ChosenGroup,
        folder: &Path,
        output: &Output,
    ) -> Result<Explanation, Failure> {
        let target = match chosen.target(reader) {
            Ok(recorded) => self.target.over(recorded)?,
            Err(_) if self.target.is_named() => self.target.target()?,
            Err(unknown) => return Err(unknown),
        };
        let entry = chosen.entry();
        let failing = entry.reproducer_bytes()?;
        let files = Files::choose(folder, self.force)?;
        let mut request = self.request(target, failing, None);
        request.others = passing_of_log(&entry.log());
        let explanation = explained(&request, &chosen.major(), output).map_err(failure)?;
        files.write(&explanation, &request.passing_target)?;
        Ok(explanation)
    }

    fn request(&self, target: Target, failing: Vec<u8>, passing: Option<Vec<u8>>) -> Request {
        let with = |args: &Option<OsString>| {
            let mut target = target.clone();
            let words = args.as_deref().map(words).unwrap_or_default();
            target.args.extend(words);
            target
        };
        let (passing_target, failing_target) = match self.failing_args.is_some() {
            true => explain::equally_long(with(&self.passing_args), with(&self.failing_args)),
            false => (target.clone(), target),
        };
        let same_input = self.failing_args.is_some().then(|| failing.clone());
        Request {
            passing_target,
            failing_target,
            failing,
            passing: passing.or(same_input),
            others: Vec::new(),
            wrong: self.wrong.clone(),
            slice: match &self.slice_on {
                Some(regex) => Some(SliceGoal::Lines(regex.clone())),
                None => self.slice.then_some(SliceGoal::Run),
            },
            raw: self.raw,
            budget: self.budget_time.min(LONGEST_BUDGET),
        }
    }
}

/// Greatest `--budget-time`: far above any time that somebody would wait, and small enough to be
/// added to a clock.
const LONGEST_BUDGET: Duration = Duration::from_secs(1 << 32);

/// Default of the maximum CPU time for one explanation, by `ddfuzz explain` or by the option
/// `--explain` of another command.
const BUDGET: &str = "24s";

/// Explains those groups of crashes in the output directory `out` whose present reproducer has no
/// explanation yet. For a group that cannot be explained, prints why and goes on. Ends early when
/// `stop` turns true.
pub(in crate::cli) fn explain_new(
    out: &Path,
    stop: &AtomicBool,
    output: &Output,
) -> Result<(), Failure> {
    let reader = Reader::open(out)?;
    for chosen in group::all(&reader)?.complete {
        let entry = chosen.entry();
        if stop.load(Ordering::Relaxed) {
            output.say("interrupted: `ddfuzz explain` explains the other groups");
            break;
        }
        if is_newer(&entry.folder.join("explanation.txt"), &entry.reproducer()) {
            continue;
        }
        let explained = || {
            let files = Files::choose(&entry.folder, false)?;
            let target = chosen.target(&reader)?;
            let request = Request {
                passing_target: target.clone(),
                failing_target: target,
                failing: entry.reproducer_bytes()?,
                passing: None,
                others: passing_of_log(&entry.log()),
                wrong: None,
                slice: None,
                raw: false,
                budget: values::time(BUDGET).map_err(Failure::usage)?,
            };
            let explanation = explain::explain(&request).map_err(failure)?;
            files.write(&explanation, &request.passing_target)
        };
        match explained() {
            Ok(()) => output.detail(&format!("group {} is explained", chosen.major())),
            Err(error) => output.say(&not_explained(&chosen, &error)),
        }
    }
    Ok(())
}

fn not_explained(group: &ChosenGroup, error: &Failure) -> String {
    format!(
        "group {} is not explained: {}",
        group.major(),
        error.message()
    )
}

fn is_newer(file: &Path, than: &Path) -> bool {
    let changed = |file: &Path| file.metadata().and_then(|facts| facts.modified()).ok();
    match (changed(file), changed(than)) {
        (Some(file), Some(than)) => file >= than,
        _ => false,
    }
}

/// Maximum number of passing inputs that are taken from a minimization log.
const LOGGED: usize = 8;

/// Returns the last candidates that passed in the minimization logged in `log`, at most eight;
/// these are the passing inputs most similar to the result. Only candidates whose bytes the log
/// contains are returned; none if the log cannot be read.
fn passing_of_log(log: &Path) -> Vec<Vec<u8>> {
    let Ok(log) = Log::read(log) else {
        return Vec::new();
    };
    let lines = log.lines.iter().rev();
    let passed = lines.filter_map(|(_, line)| match line {
        Line::Test(test) if test.outcome == Outcome::Pass => test.input.as_ref(),
        _ => None,
    });
    passed.take(LOGGED).map(|input| input.0.clone()).collect()
}

/// Splits a text into words at blanks; blanks inside quotes do not split.
fn words(text: &OsStr) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    for byte in text.as_bytes() {
        match (*byte, quote) {
            (byte, Some(open)) if byte == open => quote = None,
            (b'\'' | b'"', None) => {
                quote = Some(*byte);
                word.get_or_insert_default();
            }
            (b' ' | b'\t' | b'\n', None) => words.extend(word.take()),
            (byte, _) => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words
        .into_iter()
        .map(|word| OsStr::from_bytes(&word).to_owned())
        .collect()
}

fn failure(error: ExplainError) -> Failure {
    let text = error.to_string();
    match error {
        ExplainError::Engine(EngineError::Exec(error)) => error.into(),
        ExplainError::NotWrong { .. } => Failure::new(Exit::Baseline, "not-failing", text)
            .hint("give a pattern by --wrong that a line of the output of the failing run matches"),
        ExplainError::WrongAsWell { .. } => Failure::new(Exit::Baseline, "not-passing", text)
            .hint("give a passing input, or a pattern by --wrong that only the failing output matches"),
        ExplainError::NotFailing(..) => Failure::new(Exit::Baseline, "not-failing", text).hint(
            "give first an input on which the program crashes, then one on which it does not; or say by \
             --wrong which output is wrong, or by --crash-exit which exit status is a failure",
        ),
        ExplainError::NotPassing(_) => Failure::new(Exit::Baseline, "not-passing", text)
            .hint("give a passing input on which the program ends by itself, without the failure"),
        ExplainError::Engine(EngineError::Program { .. }) => {
            Failure::new(Exit::Internal, "system", text)
                .hint("build the program again, with debug information (-g)")
        }
        ExplainError::Gone => Failure::new(Exit::Internal, "system", text)
            .hint("this is a bug of ddfuzz: please report it, with the message above and the program"),
        ExplainError::Engine(_) => {
            Failure::new(Exit::Internal, "system", text)
                .hint("check that this machine allows ptrace: `ddfuzz doctor`")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_at_blanks_outside_of_quotes() {
        let split = |text: &str| -> Vec<String> {
            let words = words(text.as_ref()).into_iter();
            words.map(|word| word.into_string().unwrap()).collect()
        };
        assert_eq!(split("11 14"), ["11", "14"]);
        assert_eq!(split(" a 'b c'  \"\" d\"e f\" "), ["a", "b c", "", "de f"]);
        assert!(split("").is_empty());
    }
}
