//! Runs an input once more, to hear what a plain run does not say.

use super::{Again, Ended, ExecError, Said, Sanitizer, Target, Traceable, Way};
use crate::facts::TargetFacts;

/// Of one target, what runs the same inputs once more: started when it is first wanted, since
/// servers read their environment when they start.
pub(super) struct Twins {
    target: Target,
    way: Way,
    known: Vec<(Again, Traceable)>,
}

impl Twins {
    pub(super) fn new(target: &Target, way: Way) -> Twins {
        Twins {
            target: target.clone(),
            way,
            known: Vec::new(),
        }
    }

    /// What the program was compiled with; `None` where what runs is not known.
    pub(super) fn instrumentation(&self) -> Option<Vec<String>> {
        let facts = TargetFacts::of(&self.target).ok()?;
        facts.instrumentation()
    }

    /// The one for this; a copy, so that it can be asked while its owner is.
    pub(super) fn get(&mut self, why: Again) -> Result<Traceable, ExecError> {
        if let Some((_, known)) = self.known.iter().find(|(known, _)| *known == why) {
            return Ok(known.clone());
        }
        let mut target = self.target.clone();
        if why == Again::Backtrace {
            // What is set last holds.
            let variables = [("RUST_BACKTRACE", "1"), ("RUST_LIB_BACKTRACE", "0")];
            let set = variables.map(|(name, value)| (name.into(), value.into()));
            target.env.extend(set);
        }
        let mut way = self.way;
        if why == Again::Leaks && way == Way::Harness {
            // Calls of the entry end with `_exit`, and LeakSanitizer looks at `exit`.
            (target, way) = (target.by_main(), Way::Command);
        }
        let made = Traceable::forking(&target, way)?;
        made.tell_sanitizers(why);
        self.known.push((why, made.clone()));
        Ok(made)
    }
}

impl Traceable {
    /// What the program was compiled with that decides which crashes it can show
    /// ([`TargetFacts::instrumentation`]); `None` of a script.
    pub fn instrumentation(&self) -> Option<Vec<String>> {
        self.lock().twins.instrumentation()
    }

    /// Of a script, the sanitizers of the programs that a run on `input` starts, as `-fsanitize=`
    /// names them. UndefinedBehaviorSanitizer is not among them: that its runtime is there says
    /// nothing of the code.
    ///
    /// # Errors
    /// When the target cannot be run.
    pub fn sanitizers_of_run(&self, input: &[u8]) -> Result<Vec<String>, ExecError> {
        // Servers that fork have said it already.
        let (_, said) = self.run_again(input, true, Again::Introductions)?;
        let text = String::from_utf8_lossy(&said.stderr);
        let introduced = |it: &Sanitizer| {
            let line = format!("Available flags for {}:", it.title());
            *it != Sanitizer::Ubsan && text.contains(&line)
        };
        let found = Sanitizer::ALL.into_iter().filter(introduced);
        Ok(found.map(|it| it.flag().to_owned()).collect())
    }

    /// Runs an input once more, untraced, with or without address-space randomisation, and gives
    /// how that ended and what it said.
    ///
    /// # Errors
    /// When the target cannot be run.
    pub fn run_again(
        &self,
        input: &[u8],
        random_addresses: bool,
        why: Again,
    ) -> Result<(Ended, Said), ExecError> {
        let twin = self.twin(why)?;
        let mut run = twin.start(input, random_addresses)?;
        run.release()?;
        let ended = run.wait()?;
        Ok((ended, run.said()))
    }
}
