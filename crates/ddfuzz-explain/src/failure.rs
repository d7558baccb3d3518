//! The failure that is explained: which targets are refused, and what makes a run a failure.

use ddfuzz_exec::facts::TargetFacts;
use ddfuzz_exec::{Channel, Ended, ExecError, Program, RUST_PANIC, Target, Way};
use ddfuzz_triage::{Triager, Verdict, programs_avoiding_tracers};
use regex::bytes::Regex;

use crate::dwarf::DebugInfo;
use crate::engine::{Criterion, Ending, Engine, Side};
use crate::explain::{Early, ExplainError, Explaining, refuse};
use crate::places::crash_record;
use crate::plain_build::plain_build;
use crate::report::CrashRecord;

/// Class of crashes that are panics of Rust.
const RUST_PANIC_CLASS: &str = "rustpanic";

/// Prefix of the classes of crashes in which a failed check of UndefinedBehaviorSanitizer ends the
/// program.
pub(crate) const CHECKED_CLASS: &str = "ubsan:";

/// Returns the file name of a target's program.
fn program_name(target: &Target) -> String {
    match &target.program {
        Program::Path(path) => path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned(),
        Program::Bundled(name) => name.clone(),
    }
}

/// Returns why a program without usable debug information in its own file cannot be explained, and
/// a hint what would help.
pub(crate) fn without_debug_info(info: &DebugInfo, target: &Target) -> (String, String) {
    if info.is_split {
        let reason = "the program's debug information is in files of its own (.dwo)";
        let hint = "compile it without -gsplit-dwarf";
        return (reason.to_owned(), with_command(hint, target));
    }
    if info.has_lines_only() {
        let reason = "the program's debug information has lines, but no variables, as by -g1 or -gline-tables-only";
        return (
            reason.to_owned(),
            with_command("compile it with -g", target),
        );
    }
    match &info.stripped_to {
        Some(file) => {
            let reason = format!(
                "the program's debug information is in another file, {file}, which is neither beside \
                 it nor below /usr/lib/debug, or of another build"
            );
            let hint = format!(
                "install it (Debian: the package with -dbgsym), or explain the program as it was \
                 before it was stripped, or join both by `eu-unstrip PROGRAM {file} -o JOINED`"
            );
            (reason, hint)
        }
        None => {
            let hint = match info.code_symbols.is_empty() {
                true => {
                    "compile it with -g, and do not strip it, or install its debug information \
                     (Debian: the package with -dbgsym)"
                }
                false => "compile it with -g, and do not strip it",
            };
            let reason = "the program has no debug information".to_owned();
            (reason, with_command(hint, target))
        }
    }
}

/// Returns the hint `hint` with the command that builds a target so that it can be explained, if
/// this command is known.
pub(crate) fn with_command(hint: &str, target: &Target) -> String {
    let Program::Path(program) = &target.program else {
        return hint.to_owned();
    };
    let facts = TargetFacts::of(target).ok();
    let sanitizers = facts
        .and_then(|it| it.instrumentation())
        .unwrap_or_default();
    let is_fuzzer = sanitizers.iter().any(|it| it == "fuzzer");
    match plain_build(program, is_fuzzer) {
        Some(command) if command.starts_with("cargo") => format!("{hint}, such as by `{command}`"),
        Some(command) => format!(
            "{hint}, such as by `{command}` with the other options of its build (-I, -D, -l)"
        ),
        None => hint.to_owned(),
    }
}

/// Runs a target on an input, and returns the failure as the program's sanitizer or runtime reports
/// it, with the text of its report.
pub(crate) fn reported(target: &Target, input: &[u8]) -> Result<CrashRecord, Early> {
    Ok(examined(target, input)?.0)
}

/// Runs a target on an input once, without the engine (the tracer of explanations). Returns a
/// record of the crash, or of how the run ended; and if it did not crash, the last line that the
/// program wrote to stderr (`None` if it wrote none).
fn examined(target: &Target, input: &[u8]) -> Result<(CrashRecord, Option<String>), Early> {
    let error = |error: ExecError| Early::Error(error.into());
    let mut triager = Triager::of_target(target, Way::Command).map_err(error)?;
    let mut record = CrashRecord {
        program: program_name(target),
        ..CrashRecord::default()
    };
    match triager.examine(input).map_err(error)? {
        Verdict::Crash(crash) => {
            let site = crash.site().unwrap_or_default();
            let mut source = site.source.as_deref().unwrap_or_default().split(':');
            record.file = source.next().filter(|it| !it.is_empty()).map(str::to_owned);
            record.line = source.next().and_then(|line| line.parse().ok());
            record.function = site.function;
            record.class = Some(crash.class.to_string());
            record.ended = crash.class.to_string();
            record.message = crash.details.message.clone();
        }
        Verdict::Flaky { ended, .. } => {
            record.ended = ended.to_string();
            return Ok((record, triager.last_line().map(str::to_owned)));
        }
    }
    Ok((record, None))
}

/// Largest number of bytes of an output that are shown.
const SHOWN_OUTPUT: usize = 60;

/// Returns the first [`SHOWN_OUTPUT`] bytes of an output for a message, quoted and escaped.
pub(crate) fn shown_output(output: &[u8]) -> String {
    let shown = &output[..output.len().min(SHOWN_OUTPUT)];
    let more = if shown.len() < output.len() {
        "…"
    } else {
        ""
    };
    format!("\"{}\"{more}", shown.trim_ascii_end().escape_ascii())
}

/// Returns the first line of an output that the pattern `wrong` matches; `None` if it matches no
/// line.
fn wrong_line(wrong: &Regex, output: &[u8]) -> Option<String> {
    let found = wrong.find(output)?;
    let start = output[..found.start()].iter().rposition(|it| *it == b'\n');
    let line = &output[start.map_or(0, |at| at + 1)..];
    Some(shown_output(
        line.split(|it| *it == b'\n').next().unwrap_or_default(),
    ))
}

impl Explaining<'_> {
    /// Refuses, before they are run, targets that cannot be explained: programs that run at a
    /// terminal, scripts, and programs compiled with a sanitizer. Returns the refusal as the error.
    pub(crate) fn check_target(&mut self) -> Result<(), Early> {
        let target = &self.request.failing_target;
        self.result.crash.program = program_name(target);
        if matches!(target.channel, Channel::Terminal(_)) {
            return Err(refuse(
                "the program runs at a terminal",
                "give it its input in a file or on stdin",
            ));
        }
        let facts = TargetFacts::of(target).map_err(|error| Early::Error(error.into()))?;
        let instrumentation = facts.instrumentation();
        if instrumentation.is_none() {
            return Err(refuse(
                "the program is a script",
                "explain the program that it starts, with the input that it gets",
            ));
        }
        self.is_program = true;
        let sanitizers = instrumentation.unwrap_or_default();
        // AddressSanitizer keeps its state apart from that of the program, and reports what fails;
        // UndefinedBehaviorSanitizer has no state.
        let real = ["memory", "thread", "hwaddress", "leak"];
        if let Some(one) = sanitizers.iter().find(|one| real.contains(&one.as_str())) {
            self.result.crash = reported(target, &self.request.failing)?;
            return Err(refuse(
                &format!(
                    "the program is compiled with -fsanitize={one}, which keeps its own state of the memory"
                ),
                &with_command(
                    "give the plain build: the same, compiled without sanitizers",
                    target,
                ),
            ));
        }
        Ok(())
    }

    pub(crate) fn criterion(
        &mut self,
        engine: &mut Engine,
        failing: &Ending,
    ) -> Result<Criterion, Early> {
        self.result.crash = crash_record(engine, failing);
        let crash = &mut self.result.crash;
        if let Some(class) = crash.class.as_ref().filter(|it| it.starts_with("asan:")) {
            // The signal is that by which the report ends the program.
            crash.ended = class.clone();
        }
        if engine.has_checks && failing.ended == Ended::Signal(libc::SIGABRT) {
            self.add_check()?;
        }
        if self.result.crash.library.is_some() {
            let told = reported(&self.request.failing_target, &self.request.failing)?;
            let crash = &mut self.result.crash;
            (crash.function, crash.file, crash.line) = (told.function, told.file, told.line);
            crash.source = None;
        }
        // Where panics abort, the signal says less than the panic.
        if engine.is_of_rust() && failing.ended == Ended::Signal(libc::SIGABRT) {
            let told = reported(&self.request.failing_target, &self.request.failing)?;
            if told.class.as_deref() == Some(RUST_PANIC_CLASS) {
                let stack = std::mem::take(&mut self.result.crash.stack);
                self.result.crash = CrashRecord { stack, ..told };
            }
        }
        if let Some(wrong) = &self.request.wrong {
            return match wrong.is_match(&failing.output) {
                true => {
                    self.result.crash.wrong = wrong_line(wrong, &failing.output);
                    Ok(Criterion::Wrong(wrong.clone()))
                }
                false => Err(Early::Error(ExplainError::NotWrong {
                    pattern: wrong.to_string(),
                    output: shown_output(&failing.output),
                    ended: failing.ended,
                })),
            };
        }
        match (&failing.crash, failing.ended) {
            (Some(crash), _) => Ok(Criterion::Crash(crash.major)),
            (None, Ended::Timeout | Ended::OutOfMemory) => Err(refuse(
                "the failing run does not end within its time limit: a hang has no last point",
                "`ddfuzz triage` shows the loop",
            )),
            (None, Ended::Exit(status)) if self.is_failure(status) => {
                // A panic says where it was.
                self.result.crash = reported(&self.request.failing_target, &self.request.failing)?;
                Ok(Criterion::exit(engine, status, failing))
            }
            (None, ended) => Err(self.not_failing(ended)?),
        }
    }

    /// Stores in the result the class of the crash and the message (with the values that failed the
    /// check) that UndefinedBehaviorSanitizer's runtime reports for the failing run. Stores nothing
    /// if the runtime reports nothing, or if the class is already one of AddressSanitizer.
    fn add_check(&mut self) -> Result<(), Early> {
        if (self.result.crash.class.as_ref()).is_some_and(|it| it.starts_with("asan:")) {
            return Ok(());
        }
        let told = reported(&self.request.failing_target, &self.request.failing)?;
        if (told.class.as_ref()).is_some_and(|it| it.starts_with(CHECKED_CLASS)) {
            let crash = &mut self.result.crash;
            (crash.class, crash.ended) = (told.class, told.ended);
            crash.message = told.message;
            // The check is made by the runtime, at a statement of the program.
            crash.library = None;
        }
        Ok(())
    }

    /// Returns the outcome for a failing run that has not failed under the tracer, but ended as
    /// `ended`: an error that says so or, if the program fails without a tracer, a refusal.
    fn not_failing(&mut self, ended: Ended) -> Result<Early, Early> {
        let (told, last_line) = examined(&self.request.failing_target, &self.request.failing)?;
        if told.class.is_none() || programs_avoiding_tracers().is_empty() {
            let said = last_line.map(|line| format!("; it wrote: {line}"));
            let error = ExplainError::NotFailing(ended, said.unwrap_or_default());
            return Ok(Early::Error(error));
        }
        self.result.crash = told;
        Ok(refuse(
            "the program avoids tracers: it fails only where none watches it",
            "give a build that does not look for one (ptrace, TracerPid)",
        ))
    }

    /// Returns true if an exit status is a failure: the user calls it one, or it is the status of a
    /// Rust panic.
    fn is_failure(&self, status: i32) -> bool {
        let asked = self.request.failing_target.crash_exit;
        asked == Some(status) || status == RUST_PANIC
    }

    /// Decides whether runs are to end where a Rust panic begins, stores this in `ends_at_panics`
    /// of `engine`, and returns it. True if the failing run panics and the user's passing input
    /// ends in the same way with and without the setting; without such an input, the panic is
    /// enough.
    pub(crate) fn panics(&self, engine: &mut Engine) -> Result<bool, Early> {
        let given = self.request.passing.clone();
        let passing = match given {
            Some(input) => {
                engine.set_input(Side::Passing, input);
                Some(engine.run_to_end(Side::Passing)?)
            }
            None => None,
        };
        engine.ends_at_panics = true;
        let failing = engine.run_to_end(Side::Failing)?;
        let is_same = match passing {
            Some(passing) => engine.run_to_end(Side::Passing)?.ended == passing.ended,
            None => true,
        };
        engine.ends_at_panics = is_same && !failing.stack.is_empty();
        Ok(engine.ends_at_panics)
    }
}
