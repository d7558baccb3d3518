//! The course of a campaign over time, in bounded memory.

use std::collections::VecDeque;

use crate::campaign::Progress;

/// Samples kept at most: twice the columns of the widest plot.
const KEPT: usize = 480;
/// Milliseconds between two samples at first.
const STEP_MS: u64 = 500;
/// Milliseconds that the rate of now is taken over.
const NOW_MS: u64 = 3000;
/// Most points that the rate of now is taken from.
const NOW_POINTS: usize = 64;

/// What is kept of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Milliseconds since the campaign began.
    pub time_ms: u64,
    /// Runs until then.
    pub runs: u64,
    /// Edges reached until then, where coverage is known.
    pub edges: Option<u64>,
    /// Inputs in the corpus then.
    pub corpus: u64,
}

impl Sample {
    fn of(progress: &Progress) -> Sample {
        Sample {
            time_ms: progress.time_ms,
            runs: progress.runs,
            edges: progress.edges,
            corpus: progress.corpus,
        }
    }
}

/// Samples at even distances. When there are too many of them, every second one goes and the
/// distance doubles, so that a week takes as much memory as a minute.
#[derive(Clone, Debug)]
pub struct History {
    samples: Vec<Sample>,
    step_ms: u64,
    recent: VecDeque<Sample>,
}

impl Default for History {
    fn default() -> Self {
        History {
            samples: Vec::new(),
            step_ms: STEP_MS,
            recent: VecDeque::new(),
        }
    }
}

impl History {
    /// Takes the course at one moment; moments that go back in time are passed over.
    pub fn add(&mut self, progress: &Progress) {
        let sample = Sample::of(progress);
        if self.recent.back().is_some_and(|last| {
            last.time_ms >= sample.time_ms
                || self.recent.len() > 1
                    && sample.time_ms - last.time_ms < NOW_MS / NOW_POINTS as u64
        }) {
            return;
        }
        self.recent.push_back(sample);
        let too_old = |one: &Sample| sample.time_ms - one.time_ms > NOW_MS;
        while self.recent.len() > 2 && (self.recent.len() > NOW_POINTS || too_old(&self.recent[1]))
        {
            self.recent.pop_front();
        }
        let due = |last: &Sample| sample.time_ms >= last.time_ms + self.step_ms;
        if self.samples.last().is_none_or(due) {
            self.samples.push(sample);
        }
        if self.samples.len() > KEPT {
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.step_ms *= 2;
        }
    }

    /// Runs per second of the last seconds; `None` before there are two moments.
    pub fn rate_now(&self) -> Option<f64> {
        let (first, last) = (self.recent.front()?, self.recent.back()?);
        rate(first, last)
    }

    /// Samples that are kept.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether nothing is kept yet.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Runs per second in `columns` even parts of the time so far.
    pub fn rates(&self, columns: usize) -> Vec<f64> {
        let (Some(first), Some(last)) = (self.samples.first(), self.recent.back()) else {
            return Vec::new();
        };
        let points: Vec<(f64, f64)> = self
            .with_last()
            .map(|one| (one.time_ms as f64, one.runs as f64))
            .collect();
        let (begin, end) = (first.time_ms as f64, last.time_ms as f64);
        if end <= begin {
            return Vec::new();
        }
        let width = (end - begin) / columns as f64;
        let runs = |column: usize| between(&points, begin + width * column as f64);
        (0..columns)
            .map(|column| ((runs(column + 1) - runs(column)) / (width / 1000.0)).max(0.0))
            .collect()
    }

    /// What `level` takes of a sample, at the ends of `columns` even parts of the time so far.
    pub fn levels(&self, columns: usize, level: impl Fn(&Sample) -> Option<u64>) -> Vec<f64> {
        let (Some(first), Some(last)) = (self.samples.first(), self.recent.back()) else {
            return Vec::new();
        };
        let span = (last.time_ms - first.time_ms) as f64;
        let all: Vec<Sample> = self.with_last().copied().collect();
        (1..=columns)
            .map(|column| {
                let time = first.time_ms + (span * column as f64 / columns as f64) as u64;
                let behind = all.partition_point(|one| one.time_ms <= time);
                let at = &all[behind.saturating_sub(1)];
                level(at).unwrap_or_default() as f64
            })
            .collect()
    }

    /// The samples, and the last moment of all.
    fn with_last(&self) -> impl Iterator<Item = &Sample> {
        let newer = self
            .recent
            .back()
            .filter(|last| self.samples.last().is_some_and(|kept| kept != *last));
        self.samples.iter().chain(newer)
    }
}

fn rate(first: &Sample, last: &Sample) -> Option<f64> {
    let time = last.time_ms.checked_sub(first.time_ms)?;
    let runs = last.runs.saturating_sub(first.runs);
    (time > 0).then(|| runs as f64 * 1000.0 / time as f64)
}

/// The value at `x` on the line through the points, which ascend.
fn between(points: &[(f64, f64)], x: f64) -> f64 {
    let behind = points.partition_point(|(at, _)| *at < x);
    match (points.get(behind.wrapping_sub(1)), points.get(behind)) {
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        (None, Some((_, y))) | (Some((_, y)), None) => *y,
        (None, None) => 0.0,
    }
}
