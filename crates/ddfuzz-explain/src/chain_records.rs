//! The chain of an explanation: finds it, tests its links, and stores their records in the result.

use ddfuzz_delta::Outcome;

use crate::alignment::Matched;
use crate::chain::{Cause, Confidence, Evidence, Link, find_chain};
use crate::delta::Delta;
use crate::engine::freed::Lifetime;
use crate::engine::writer::{By, Writer};
use crate::engine::{EngineError, Side};
use crate::experiments::Runs;
use crate::explain::{Early, Explaining};
use crate::failing_facts::origin_record;
use crate::links::{drop_uninformative, merge_places, with_later_values};
use crate::places::{callers_of, frame_record, frame_records, point_record};
use crate::report::{FrameRecord, LinkRecord, OriginRecord, RoundsRecord, WriterRecord};
use crate::story::look_first;

impl Explaining<'_> {
    /// Finds the cause–effect chain between the passing and the failing run, and stores it in the
    /// result. If the time is over before the chain is complete, stores the part that was found,
    /// and sets `out_of_time`.
    pub(crate) fn chain(&mut self, runs: &mut Runs) -> Result<(), Early> {
        let (links, ended) = find_chain(runs);
        self.unless_late(runs, ended)?;
        let links = with_later_values(runs, links)?;
        self.check_visibility(runs, &links)?;
        if links.is_empty() {
            return Err(self.without_chain(runs));
        }
        if let Some(parted) = runs.failure_parted() {
            (self.result.parted, self.result.decided) = self.parting(runs, &parted)?;
        }
        runs.links = links.clone();
        let mut records = Vec::new();
        for (index, link) in links.iter().enumerate() {
            records.extend(self.link(runs, link)?.map(|record| (index, record)));
        }
        merge_places(&mut records, &links);
        if !self.request.raw {
            drop_uninformative(&mut records);
        }
        let mut holds: Option<Cause> = None;
        let (mut points, mut indices) = (Vec::new(), Vec::new());
        for (index, mut record) in records {
            let link = &links[index];
            let before = index
                .checked_sub(1)
                .map(|before| links[before].cause.clone());
            match self.evidence(runs, link, [holds.clone(), before]) {
                Ok((cause, evidence)) => {
                    record.confidence = evidence.confidence();
                    move_to(&mut record, runs, (link, &cause));
                    record.by_hand = runs.by_hand(&cause);
                    if record.confidence > Confidence::NotConfirmed {
                        holds = Some(cause);
                    }
                }
                // What there was no time for is not confirmed.
                Err(early) => self.unless_late(runs, Err(early))?,
            }
            self.result.chain.push(record);
            points.push(link.cause.point);
            indices.push(index);
        }
        let look = look_first(&self.result.chain);
        if let Some(look) = look {
            let made = runs.made_of(&links[indices[look]]);
            let made = made.or_else(|error| late(runs, error))?;
            self.result.chain[look].made_of = made.map(|it| origin_record(&runs.engine, &it));
        }
        if let Some(look) = look.or(points.len().checked_sub(1)) {
            self.result.drawing = runs.drawing(points[look]);
        }
        Ok(())
    }

    /// Sets `out_of_time` in the result if `ended` is an error and the time is over; returns any other
    /// error.
    fn unless_late(
        &mut self,
        runs: &Runs,
        ended: Result<(), impl Into<Early>>,
    ) -> Result<(), Early> {
        match ended {
            Err(_) if runs.engine.check_time().is_err() => {
                self.result.out_of_time = true;
                Ok(())
            }
            other => other.map_err(Into::into),
        }
    }

    /// Tests whether the variable of `link` carries the failure at the link's first point. If the
    /// tests confirm it, or no test at a later point could (the tests show that the variable
    /// follows from an earlier cause, but never makes a run fail alone), returns this point.
    /// Otherwise tests the variable at the link's last point, too, and returns the point whose
    /// tests support it better. The outcomes of the tests come with the point. `before` has causes
    /// earlier in the chain: the variable must follow from one of them.
    fn evidence(
        &self,
        runs: &mut Runs,
        link: &Link,
        before: [Option<Cause>; 2],
    ) -> Result<(Cause, Evidence), Early> {
        let mut before: Vec<Cause> = before.into_iter().flatten().collect();
        before.dedup();
        let last = Cause {
            point: link.last,
            ..link.cause.clone()
        };
        // Nothing else can confirm what does not make a run fail alone.
        let is_refuted = |runs: &Runs, cause: &Cause| {
            let outcome = runs.outcome_alone(cause.point, &cause.variable);
            outcome.is_some_and(|it| it != Outcome::Fail)
        };
        if is_refuted(runs, &last) && (last == link.cause || is_refuted(runs, &link.cause)) {
            return Ok((link.cause.clone(), Evidence::default()));
        }
        let first = self.evidence_at(runs, &link.cause, &before)?;
        let is_weak = first.follows && first.alone_fails == 0 || last == link.cause;
        if first.confidence() == Confidence::Confirmed || is_weak {
            return Ok((link.cause.clone(), first));
        }
        let second = self.evidence_at(runs, &last, &before)?;
        Ok(match second.confidence() > first.confidence() {
            true => (last, second),
            false => (link.cause.clone(), first),
        })
    }

    /// Tests the variable of `cause` at its point. First tests whether it follows from one of the
    /// earlier causes `before`. If there are some and it follows from none, no other test could
    /// confirm the variable: no more tests are made, and the returned evidence is empty.
    fn evidence_at(
        &self,
        runs: &mut Runs,
        cause: &Cause,
        before: &[Cause],
    ) -> Result<Evidence, Early> {
        let mut follows = before.is_empty();
        for from in before {
            if !follows && from.point < cause.point {
                follows = runs.follows(from, cause)?;
            }
        }
        // Without it the other tests cannot confirm the variable.
        match follows {
            true => runs
                .evidence(cause)
                .map(|it| Evidence { follows, ..it })
                .map_err(Early::from),
            false => Ok(Evidence::default()),
        }
    }

    /// Finds where the two runs go different ways after `last`, the last point that they share.
    /// Returns the statement whose condition decides the way, and the origin of the value that the
    /// condition tests; each is `None` where it is not known.
    fn parting(
        &self,
        runs: &mut Runs,
        last: &Matched,
    ) -> Result<(Option<FrameRecord>, Option<OriginRecord>), Early> {
        let decided = runs.decided(last).or_else(|error| late(runs, error))?;
        let statement = decided
            .as_ref()
            .map(|it| it.at)
            .or_else(|| runs.deciding(last));
        let statement = statement.map(|pc| frame_record(&runs.engine, pc));
        let decided = decided.map(|it| origin_record(&runs.engine, &it.by));
        Ok((statement, decided))
    }

    fn link(&self, runs: &mut Runs, link: &Link) -> Result<Option<LinkRecord>, Early> {
        let Some(delta) = runs.delta(link.cause.point, &link.cause.variable) else {
            return Ok(None);
        };
        let part = runs.needed_part(link).or_else(|error| late(runs, error))?;
        let delta = part.unwrap_or(delta);
        let life = runs.behind_same_pointer(link, &delta);
        if let Some(life) = life.or_else(|error| late(runs, error))? {
            return Ok(Some(block_record(runs, (link, &delta), &life)));
        }
        let writer = runs
            .writer(link, &delta)
            .or_else(|error| late(runs, error))?;
        let mut record = link_record(runs, link, &delta, writer.as_ref());
        let parted = match &writer {
            Some(writer) => runs.parted(link, writer),
            None => runs.parted_since(link),
        };
        if let Some(parted) = parted {
            (record.parted, record.decided) = self.parting(runs, &parted)?;
        }
        let Some(writer) = writer else {
            return Ok(Some(record));
        };
        let place = |runs: &Runs, pc| Some(frame_record(&runs.engine, pc));
        if writer.side == Side::Passing {
            let kept = runs.writer_before(link, &delta);
            let kept = kept.or_else(|error| late(runs, error))?;
            record.kept = kept.and_then(|it| place(runs, it.pc));
            if let Some(parted) = parted {
                let instead = runs.instead(&parted, link, &delta);
                let instead = instead.map(Some).or_else(|error| late(runs, error))?;
                record.instead = instead.unwrap_or_default();
            }
        }
        let returned = runs.returned(link, &delta, &writer);
        let returned = returned.or_else(|error| late(runs, error))?;
        record.returned = returned.and_then(|pc| place(runs, pc));
        if returned.is_none() {
            let selected = runs.selected(link, &delta, &writer);
            let selected = selected.or_else(|error| late(runs, error))?;
            record.selected = selected.map(|it| origin_record(&runs.engine, &it));
        }
        Ok(Some(record))
    }
}

/// Returns the record of a chain's link, for the report. `delta` is the difference of the link's
/// variable, `writer` what wrote the variable. Where the written value came from is added later.
fn link_record(runs: &Runs, link: &Link, delta: &Delta, writer: Option<&Writer>) -> LinkRecord {
    let at = runs.matched[link.cause.point];
    let point = point_record(&runs.engine, &at);
    let mut place = FrameRecord {
        function: point.function.clone().unwrap_or_default(),
        file: point.file.clone(),
        line: point.line,
    };
    let mut by = None;
    if let Some(writer) = writer {
        place = frame_record(&runs.engine, writer.pc);
        by = Some(match (writer.is_input(), &writer.by) {
            (true, _) => WriterRecord::Input,
            (false, By::Kernel) => WriterRecord::Kernel,
            (false, _) if writer.side == Side::Passing => WriterRecord::Missed(place.clone()),
            (false, _) => WriterRecord::Statement(place.clone()),
        });
    }
    // A test of a text sets all bytes that differ, not only the first ones.
    let united = runs.united_delta(link.cause.point, delta);
    let united = united.filter(|united| united.name == delta.name);
    let shown = united.as_ref().unwrap_or(delta);
    LinkRecord {
        variable: delta.name.clone(),
        local_of: Some(delta.function.clone()).filter(|name| !name.is_empty()),
        type_name: delta.type_name.clone(),
        function: Some(place.function).filter(|name| !name.is_empty()),
        file: place.file,
        line: place.line,
        failing: shown.failing.clone(),
        passing: shown.passing.clone(),
        writer: by,
        in_both: writer.is_some_and(|it| it.in_both),
        input_offset: writer.filter(|it| it.is_input()).and_then(|it| it.offset),
        calls: writer.map_or_else(Vec::new, |it| callers_of(&runs.engine, it)),
        rounds: rounds_of(runs, link, writer),
        point,
        ..LinkRecord::default()
    }
}

/// Returns the loop around the point of `link` of which both runs are in different rounds, if the
/// value was written in the function with the loop, or in a function that was called there: `writer`
/// tells. `None` if the rounds are the same, or say nothing of when the value was written.
fn rounds_of(runs: &Runs, link: &Link, writer: Option<&Writer>) -> Option<RoundsRecord> {
    let engine = &runs.engine;
    let rounds = runs.rounds(link.cause.point)?;
    let calls = writer.map_or(&[][..], |it| &it.calls);
    let is_it = |pc: &u64| engine.function(*pc) == Some(rounds.at.function.as_str());
    (calls.is_empty() || calls.iter().any(is_it)).then_some(rounds)
}

/// Returns the record of a link whose pointer is the same in both runs: what differs is the heap
/// block there, of which `life` tells the last allocation and the last free in the failing run.
fn block_record(runs: &Runs, (link, delta): (&Link, &Delta), life: &Lifetime) -> LinkRecord {
    let [allocated, freed] =
        [&life.allocated, &life.freed].map(|calls| frame_records(&runs.engine, calls));
    let mut record = link_record(runs, link, delta, None);
    let told = freed.first().map(|free| allocated.first().unwrap_or(free));
    if let Some(place) = told.cloned() {
        record.function = Some(place.function).filter(|name| !name.is_empty());
        (record.file, record.line) = (place.file, place.line);
    }
    LinkRecord {
        allocated,
        freed,
        ..record
    }
}

/// Changes the record of a link: it is moved to the point of `tested`, where a test of its variable
/// was made, and gets the name that the variable has at that point.
fn move_to(record: &mut LinkRecord, runs: &Runs, (link, tested): (&Link, &Cause)) {
    if tested.point == link.cause.point {
        return;
    }
    record.point = point_record(&runs.engine, &runs.matched[tested.point]);
    let name = |point| Some(runs.delta(point, &link.cause.variable)?.name);
    if let (Some(before), Some(now)) = (name(link.cause.point), name(tested.point))
        && before == record.variable
    {
        record.variable = now;
    }
}

/// Returns `Ok(None)` (the result is not known) if a search has failed with `error` and the time of
/// the explanation is over; returns the error otherwise.
fn late<T>(runs: &Runs, error: EngineError) -> Result<Option<T>, EngineError> {
    match runs.engine.check_time() {
        Ok(()) => Err(error),
        Err(_) => Ok(None),
    }
}
