//! One triage: from files to a result.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::archive::Archive;
use super::crew::{Answer, Crew};
use super::inputs::say_unread;
use super::tally::{Fate, Outcome, Tally};
use crate::campaign::{Examined, examined, fails_on_anything, identity, kind_of, may_leak};
use crate::cli::{Failure, Output, ui};
use crate::exec::facts::TargetFacts;
use crate::exec::{Ended, Target, Way};
use crate::files::regular;
use crate::minimize::log::ContentHash;
use crate::report::{TriageGroup, TriageInput, TriageResult, size};
use crate::store::Kind;
use crate::store::foreign::{Input, Inputs, Promise};
use crate::triage::{Quick, Triager};

/// What is to be done.
pub struct Job<'a> {
    pub target: Target,
    pub way: Way,
    pub jobs: usize,
    pub max_len: u64,
    /// Look for leaks in all inputs that do not crash.
    pub leaks: bool,
    pub out: Option<PathBuf>,
    pub resume: bool,
    pub found: &'a Inputs,
    pub stop: &'a AtomicBool,
}

/// What is done so far.
struct Course {
    tally: Tally,
    archive: Option<Archive>,
    fates: Vec<Fate>,
    done: u64,
}

impl Job<'_> {
    /// Runs all inputs.
    pub fn run(&self, output: &Output) -> Result<TriageResult, Failure> {
        let mut course = self.begin()?;
        let files = &self.found.inputs;
        let known = course.tally.contents().map(|(content, _)| *content);
        let crew = Crew {
            target: &self.target,
            way: self.way,
            files,
            max_len: self.max_len,
            leaks: self.leaks,
            stop: self.stop,
            taken: Mutex::new(known.collect()),
            routes: Mutex::new(course.tally.steady_routes().collect()),
        };
        let line = ui::Counting::new(output, "file", files.len() as u64);
        crew.run(self.jobs, |answer| {
            if let Some((at, answer)) = answer {
                course.take(at, answer, files)?;
            }
            let groups = course.tally.seen_groups();
            line.show(course.done, &size::counted(groups, "group"));
            Ok(())
        })?;
        drop(line);
        self.settle(&mut course)?;
        let mut result = self.result(&course, output);
        self.find_careless(&mut result)?;
        if let Some(archive) = course.archive.take() {
            archive.close(&course.tally)?;
        }
        Ok(result)
    }

    fn begin(&self) -> Result<Course, Failure> {
        let mut tally = Tally::new(identity(&self.target)?);
        let archive = match &self.out {
            Some(out) => {
                let (target, way) = (&self.target, self.way);
                Some(Archive::open(out, target, way, self.resume, &mut tally)?)
            }
            None => None,
        };
        Ok(Course {
            tally,
            archive,
            fates: vec![Fate::Waiting; self.found.inputs.len()],
            done: 0,
        })
    }

    /// Examines and files the least input of each route: what is said of a route is what its
    /// least input shows, whichever worker was first.
    fn settle(&self, course: &mut Course) -> Result<(), Failure> {
        let mut triager = None;
        for (route, (_, at)) in course.tally.least(&course.fates) {
            let Some((input, _)) = course.tally.outcome(&course.fates[at]) else {
                continue;
            };
            let known = &course.tally.routes[route];
            let filed = |archive: &Archive| archive.has(&known.line, input);
            let is_filed = course.archive.as_ref().is_none_or(filed);
            let settled = known.examined == input && is_filed;
            // An earlier call has examined it.
            if settled && known.trace.is_none() {
                let archive = course.archive.as_ref();
                let trace = archive.and_then(|archive| archive.trace(&known.line, input));
                course.tally.routes[route].trace = trace;
            }
            let known = &course.tally.routes[route];
            if settled || known.line.kind == Kind::Flaky || self.stop.load(Ordering::Relaxed) {
                continue;
            }
            let file = &self.found.inputs[at];
            // What has changed or gone since was run before: what that run told stands.
            let bytes = regular::read(&file.path, self.max_len);
            let Some(bytes) = bytes.ok().filter(|bytes| ContentHash::of(bytes) == input) else {
                continue;
            };
            let triager = match &mut triager {
                Some(triager) => triager,
                none => none.insert(Triager::of_target(&self.target, self.way)?),
            };
            let leaks = self.leaks || may_leak(file);
            let examined = examined(triager, &bytes, leaks)?;
            let route = (known.line.kind, known.line.major, known.line.minor);
            let same = examined
                .crash
                .as_deref()
                .is_some_and(|crash| (kind_of(crash), crash.keys.major, crash.keys.minor) == route);
            if same {
                course.examined(at, input, &bytes, &examined, &self.found.inputs, true)?;
            }
        }
        Ok(())
    }

    /// Notes the group that the target crashes in whatever the input is, if there is one.
    fn find_careless(&self, result: &mut TriageResult) -> Result<(), Failure> {
        let crashes = |group: &&mut TriageGroup| group.kind == Kind::Crash;
        let mut groups = result.groups.iter_mut().filter(crashes).peekable();
        if groups.peek().is_none() || self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut triager = Triager::of_target(&self.target, self.way)?;
        let Quick::Crash { major, .. } = triager.key(b"")? else {
            return Ok(());
        };
        if let Some(group) = groups.find(|group| group.major == major.short()) {
            group.any_input = fails_on_anything(&mut triager, major)?;
        }
        Ok(())
    }

    fn result(&self, course: &Course, output: &Output) -> TriageResult {
        let mut result = TriageResult {
            interrupted: self.stop.load(Ordering::Relaxed),
            ..TriageResult::default()
        };
        let mut contents = std::collections::HashSet::new();
        for (file, fate) in self.found.inputs.iter().zip(&course.fates) {
            if let Fate::Refused(why) = fate {
                say_unread(&file.path, why, output);
                result.inputs.push(unread(file.path.clone(), why.clone()));
            } else if let Some((content, outcome)) = course.tally.outcome(fate) {
                contents.insert(content);
                compare(file, outcome, &course.tally, output);
                result.flaky += u64::from((1..outcome.tries).contains(&outcome.hits));
                result.healthy += u64::from(outcome.route.is_none());
                result.inputs.push(row(file, outcome, &course.tally));
            }
        }
        for (path, why) in &self.found.unread {
            say_unread(path, why, output);
            result.inputs.push(unread(path.clone(), why.clone()));
        }
        let unread = result.inputs.iter().filter(|input| input.error.is_some());
        result.unread = unread.count() as u64;
        result.contents = contents.len() as u64;
        let facts = TargetFacts::of(&self.target);
        result.instrumentation = facts.ok().and_then(|facts| facts.instrumentation());
        result.groups = course.tally.groups(&self.found.inputs, &course.fates);
        result
    }
}

impl Course {
    fn take(&mut self, at: usize, answer: Answer, files: &[Input]) -> Result<(), Failure> {
        self.done += 1;
        self.fates[at] = match answer {
            Answer::Refused(why) => Fate::Refused(why),
            Answer::Same(input) => Fate::Content(input),
            Answer::Again { input, size, route } => {
                let line = self.tally.again(input, size, route);
                if let Some(archive) = &mut self.archive {
                    archive.note(line)?;
                }
                Fate::Content(input)
            }
            Answer::New {
                input,
                bytes,
                size,
                examined,
            } => {
                match examined.crash {
                    Some(_) => self.examined(at, input, &bytes, &examined, files, false)?,
                    None => {
                        let (line, _) = self.tally.take(input, size, &examined);
                        if let Some(archive) = &mut self.archive {
                            archive.note(line)?;
                        }
                    }
                }
                Fate::Content(input)
            }
        };
        Ok(())
    }

    /// Takes in a crash, and files it where it is the first of its route, or `anyway`. It is filed
    /// before it is noted as done.
    fn examined(
        &mut self,
        at: usize,
        input: ContentHash,
        bytes: &[u8],
        examined: &Examined,
        files: &[Input],
        anyway: bool,
    ) -> Result<(), Failure> {
        let (line, first) = self.tally.take(input, bytes.len() as u64, examined);
        let (Some(archive), Some(crash)) = (&mut self.archive, &examined.crash) else {
            return Ok(());
        };
        let kind = kind_of(crash);
        if first || anyway || kind == Kind::Flaky {
            archive.file(kind, crash, &files[at].path, bytes)?;
        }
        Ok(archive.note(line)?)
    }
}

fn row(file: &Input, outcome: Outcome, tally: &Tally) -> TriageInput {
    let line = outcome.route.map(|route| &tally.routes[route].line);
    TriageInput {
        file: file.path.clone(),
        ended: Some(outcome.ended.to_string()),
        class: line.map(|line| line.class.to_string()),
        major: line.map(|line| line.major.short()),
        minor: line.map(|line| line.minor.short()),
        way: line.map(|line| line.way),
        confidence: line.map(|line| line.confidence),
        hits: outcome.hits,
        tries: outcome.tries,
        error: None,
    }
}

fn unread(file: PathBuf, why: String) -> TriageInput {
    TriageInput {
        file,
        ended: None,
        class: None,
        major: None,
        minor: None,
        way: None,
        confidence: None,
        hits: 0,
        tries: 0,
        error: Some(why),
    }
}

/// Notes where an input does not end as its name says.
fn compare(file: &Input, outcome: Outcome, tally: &Tally, output: &Output) {
    let Some(named) = file.named else {
        return;
    };
    let crashed = outcome.route.is_some();
    let kind = outcome.route.map(|route| tally.routes[route].line.kind);
    let over = matches!(kind, Some(Kind::Hang | Kind::Oom));
    let agrees = match (named.promise, outcome.ended) {
        (Promise::Signal(named), Ended::Signal(seen)) => named == seen,
        (Promise::Signal(_), _) => false,
        (Promise::Crash | Promise::Leak, _) if over => false,
        (Promise::Crash | Promise::Leak, _) => crashed,
        (Promise::Timeout, ended) => ended == Ended::Timeout,
        (Promise::OutOfMemory, _) => kind == Some(Kind::Oom),
        (Promise::Slow, _) => true,
    };
    if !agrees {
        let path = crate::report::text::printable(&file.path.to_string_lossy());
        output.detail(&format!(
            "{path}: named {}, ended {}",
            named.said(),
            outcome.ended
        ));
    }
}
