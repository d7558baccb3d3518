//! Whether a target that the command line names gets its input as the failures of an output
//! directory were found: by the same channel, in the same environment and directory.

use std::ffi::OsString;
use std::path::Path;

use crate::exec::facts::TargetFacts;
use crate::exec::{Channel, Target, TargetRecord, Way};
use crate::report::text::{printable, shell_word};
use crate::triage::{Crash, Unobservable};

/// Compares the conditions under which `crash` was found, on the target `record`, with the
/// conditions of the target `now`. If they differ, the crash may be unfixed although runs of `now`
/// pass. Returns the reason: input on stdin in place of a file or the other way round, another
/// input channel, environment or working directory; and which options to add or omit. `None`
/// without a difference.
pub(super) fn other_conditions(
    record: &TargetRecord,
    crash: &Crash,
    now: &Target,
) -> Option<Unobservable> {
    let found = record.target(crash.limits)?;
    if lacks_files(&found, now) {
        return Some(Unobservable {
            why: "its input was given in a file (@@), and is not now".to_owned(),
            hint: "put @@ where the file is to stand".to_owned(),
        });
    }
    let by_main = record.way != Way::Harness && !matches!(found.channel, Channel::Terminal(_));
    if by_main && marks(&found) == 0 && marks(now) > 0 {
        return Some(Unobservable {
            why: "its input was given on stdin, and is given in a file (@@) now".to_owned(),
            hint: "leave @@ out".to_owned(),
        });
    }
    let mut difference = Difference::default();
    if found.channel != now.channel {
        let (add, omit) = (found.channel.options(), now.channel.options());
        difference.note("another input channel", add, omit);
    }
    let names_libraries = now.env.iter().any(|(name, _)| name == LIBRARIES);
    let [of_found, of_now] = [&found, now].map(|target| environment(target, names_libraries));
    if of_found != of_now {
        let assigned = |variables: &[&Variable], other: &[&Variable]| {
            let differing = variables.iter().filter(|one| !other.contains(one));
            differing.map(|one| assignment_option(one)).collect()
        };
        let add = assigned(&of_found.1, &of_now.1);
        let omit = assigned(&of_now.1, &of_found.1);
        difference.note("another environment", add, omit);
    }
    if !is_same_directory(found.cwd.as_deref(), now.cwd.as_deref()) {
        let words = |target: &Target| match &target.cwd {
            Some(cwd) => vec!["--cwd".into(), cwd.into()],
            None => Vec::new(),
        };
        difference.note("another working directory", words(&found), words(now));
    }
    difference.reason()
}

/// How the conditions of a run differ from those of the run that found a failure, and which options
/// of the command line make the difference.
#[derive(Default)]
struct Difference {
    what: Vec<&'static str>,
    /// Options that were given when the failure was found and that the present run lacks.
    add: Vec<OsString>,
    /// Options of the present run that were not given when the failure was found.
    omit: Vec<OsString>,
}

impl Difference {
    /// Adds a difference in one condition, such as the environment. `what`: name of the condition.
    /// `found`: its options when the failure was found. `now`: its options in the present run.
    fn note(&mut self, what: &'static str, found: Vec<OsString>, now: Vec<OsString>) {
        self.what.push(what);
        self.add.extend(found);
        self.omit.extend(now);
    }

    fn reason(&self) -> Option<Unobservable> {
        if self.what.is_empty() {
            return None;
        }
        let words = |options: &[OsString]| {
            let words = options.iter().map(|word| shell_word(Path::new(word)));
            printable(&words.collect::<Vec<_>>().join(" "))
        };
        let hints = [("add", &self.add), ("omit", &self.omit)];
        let hints = hints.iter().filter(|(_, options)| !options.is_empty());
        let hints: Vec<String> = hints
            .map(|(verb, options)| format!("{verb} {}", words(options)))
            .collect();
        Some(Unobservable {
            why: format!("it was found with {}", self.what.join(" and ")),
            hint: match hints.is_empty() {
                true => "check it without a program: then all is as it was recorded".to_owned(),
                false => hints.join(", and "),
            },
        })
    }
}

fn assignment_option((name, value): &Variable) -> OsString {
    let mut option = OsString::from("--env=");
    option.push(name);
    option.push("=");
    option.push(value);
    option
}

/// Returns true if two working directories are the same, even if their paths differ by links;
/// `None` stands for a temporary directory. Else false.
fn is_same_directory(one: Option<&Path>, other: Option<&Path>) -> bool {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    one.map(whole) == other.map(whole)
}

/// Returns true if the target `now` would not get its input: its arguments have fewer `@@` than
/// those of the recorded target `found`, and its program has no entry function that is given the
/// input. All crashes of such a target would seem to be fixed. Else false.
pub(super) fn lacks_files(found: &Target, now: &Target) -> bool {
    let needed = match &found.channel {
        Channel::TwoFiles => marks(found).min(2),
        _ => marks(found).min(1),
    };
    marks(now) < needed && !calls_entry(now)
}

/// Returns the number of times that the arguments of a target contain `@@`.
fn marks(target: &Target) -> usize {
    let count = |arg: &OsString| arg.to_string_lossy().matches("@@").count();
    target.args.iter().map(count).sum()
}

/// Returns true if the program has an entry function that gets the input as an argument, without a
/// file; else false.
fn calls_entry(target: &Target) -> bool {
    TargetFacts::of(target).is_ok_and(|facts| facts.libfuzzer || facts.target_main)
}

/// An environment variable: its name and its value.
type Variable = (OsString, OsString);

/// Environment variable that names the directories of shared libraries. A check may set it although
/// the failure was found without it: like the path of the program, it says which build is checked.
const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// Returns two facts about a target: whether it inherits no environment variables, and the
/// variables that ddfuzz sets for it, sorted. `names_libraries`: whether [`LIBRARIES`] is left out
/// of the variables.
fn environment(target: &Target, names_libraries: bool) -> (bool, Vec<&Variable>) {
    let counts = |(name, _): &&Variable| !(names_libraries && name == LIBRARIES);
    let mut variables: Vec<_> = target.env.iter().filter(counts).collect();
    variables.sort();
    (target.env_only, variables)
}
