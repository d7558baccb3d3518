//! Cause–effect chains (*Why Programs Fail*, A.3): which variable carries the failure at which
//! point (execution of a statement), and at which point another variable takes over. Pure: the
//! caller runs the experiments, by a trait.

use std::ops::Range;

use crate::delta::Identity;

/// A cause of the failure: a point of the run, and the variable that makes the passing run fail
/// when it is set there as in the failing run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Index of the point at which the variable causes the failure, among the points that both runs
    /// share.
    pub point: usize,
    /// The variable whose failing value makes the passing run fail when it is set at the point.
    pub variable: Identity,
}

/// Result of the search for the variable that causes the failure at a point of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This variable causes the failure at the point.
    Cause(Cause),
    /// There is no cause: the states of both runs do not differ at the point, or their differences
    /// do not matter for the failure.
    Nothing,
    /// The cause is unknown: tests at the point tell nothing, for example because even all
    /// differences together do not make the passing run fail.
    Skipped,
}

/// Experiments that the search for a cause–effect chain calls: which variable causes the failure at
/// a point that the passing and the failing run share.
pub trait Experiments {
    /// Why an experiment (a test of variables in a run) could not be made.
    type Error;

    /// Returns the number of points that both runs share. Points are numbered in the order of time.
    fn points(&self) -> usize;

    /// Looks for the variable that causes the failure at a point; returns the variable, or that
    /// there is none, or that it is unknown. `near` has the causes at nearby points, which are
    /// tried first.
    ///
    /// # Errors
    /// When the experiments cannot be made.
    fn cause(&mut self, point: usize, near: &[Identity]) -> Result<Answer, Self::Error>;

    /// Looks for another variable than the given one that makes the passing run fail at a point;
    /// returns [`Answer::Nothing`] if there is none.
    ///
    /// # Errors
    /// When the experiments cannot be made.
    fn other_cause(
        &mut self,
        _point: usize,
        _than: &Identity,
        _near: &[Identity],
    ) -> Result<Answer, Self::Error> {
        Ok(Answer::Nothing)
    }

    /// Returns the first point after the point `after` from which the variable of `cause` has kept,
    /// up to the point of `cause`, the failing value with which it causes the failure, as far as
    /// the states tell without a test. Returns the point of `cause` by default.
    ///
    /// # Errors
    /// When the states of the runs cannot be read.
    fn beginning(&mut self, cause: &Cause, _after: usize) -> Result<usize, Self::Error> {
        Ok(cause.point)
    }

    /// Returns true if most of the time is used up, so that no more points between two causes are
    /// examined: the rest of the time is for testing the chain that was found. Always false by
    /// default.
    fn is_late(&self) -> bool {
        false
    }
}

/// A link of a cause–effect chain: a variable that carries the failure from a point of the run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The variable, with the first examined point at which it causes the failure.
    pub cause: Cause,
    /// Index of the last examined point before this link, at which another variable causes the
    /// failure; `None` for the first link of the chain.
    pub before: Option<usize>,
    /// Index of the last examined point at which the variable of this link of the chain causes the
    /// failure.
    pub last: usize,
}

/// Largest number of points next to the middle of an interval that are examined if the point in the
/// middle has no cause.
const NEIGHBOURS: usize = 4;
/// Positions in an interval of points, in sixteenths of its length. They are examined, in this
/// order, if no cause was found in the middle and beside it.
const SPREAD: [usize; 8] = [12, 4, 14, 2, 10, 6, 15, 1];
/// Largest number of points, from the end of the runs backwards, at which the last cause of the
/// chain is searched for.
const ENDS: usize = 24;
/// Largest number of links of a chain: a longer one would only follow a data structure from one
/// element to the next.
const MOST_LINKS: usize = 24;

/// Which point between two successive causes of the chain is examined first.
#[derive(Clone, Copy)]
enum Step {
    /// The point from which the variable of the later cause has its failing value, as far as the
    /// states tell without a test; the middle if that point is the later cause itself.
    Beginning,
    /// The last point before the later cause, whose variable begins to differ right after it.
    Before,
    /// The point from which the variable of the later cause has its failing value, if it is in the
    /// first half of the interval; else the last point of a short interval, or the middle of a long
    /// one, so that long runs are halved again and again.
    Half,
}

fn middle(interval: &Range<usize>) -> usize {
    interval.start + interval.len() / 2
}

struct Search<'a, E: Experiments> {
    experiments: &'a mut E,
    links: Vec<Link>,
    /// A variable that is taken as the cause at a point only if no other variable makes the run
    /// fail at this point.
    avoided: Option<Identity>,
    /// Error of an experiment that could not be made; after it, no more experiments are made.
    failed: Option<E::Error>,
}

/// Finds the cause–effect chain of a failure by experiments; empty if no point close to the end of
/// the runs has a cause. If an experiment cannot be made, returns its error as well, and the links
/// that were found before: a shorter chain, whose links hold nonetheless.
pub fn find_chain<E: Experiments>(experiments: &mut E) -> (Vec<Link>, Result<(), E::Error>) {
    let mut search = Search {
        experiments,
        links: Vec::new(),
        avoided: None,
        failed: None,
    };
    if let Some(last) = search.last() {
        let first = search.first(&last);
        search.links.push(Link {
            last: first.point,
            cause: first.clone(),
            before: None,
        });
        search.transitions(&first, &last, Step::Half);
        search.beside_first();
    }
    (search.links, search.failed.map_or(Ok(()), Err))
}

impl<E: Experiments> Search<'_, E> {
    /// Makes an experiment and returns its answer. If it ends with an error, keeps the error and
    /// returns [`Answer::Skipped`]; all later experiments are then skipped without being made.
    fn ask(&mut self, experiment: impl FnOnce(&mut E) -> Result<Answer, E::Error>) -> Answer {
        if self.failed.is_some() {
            return Answer::Skipped;
        }
        experiment(self.experiments).unwrap_or_else(|error| {
            self.failed = Some(error);
            Answer::Skipped
        })
    }

    fn is_late(&self) -> bool {
        self.failed.is_some() || self.experiments.is_late()
    }

    /// Returns the cause at the last point that has a cause, searched backwards from the end of the
    /// runs; `None` if none is found.
    fn last(&mut self) -> Option<Cause> {
        let points = self.experiments.points();
        let mut distance = 0;
        for attempt in 0..ENDS {
            let point = points.checked_sub(1 + distance)?;
            if let Answer::Cause(cause) = self.ask(|it| it.cause(point, &[])) {
                return Some(cause);
            }
            distance += 1 + attempt / 8 * (points / 64);
        }
        None
    }

    /// Looks for a second variable that makes the run fail, at the last point of the chain's first
    /// link, and inserts the links that lead from the first variable to it; does nothing if there
    /// is none. Then the chain also contains a value that was computed from the input, even if the
    /// input itself stays a cause, because it is compared with that value later.
    fn beside_first(&mut self) {
        let Some(link) = self.links.first().cloned() else {
            return;
        };
        if link.last <= link.cause.point + 1 {
            return;
        }
        let variable = link.cause.variable;
        let near: Vec<Identity> = self
            .links
            .get(1)
            .map(|it| it.cause.variable)
            .into_iter()
            .collect();
        let found = self.ask(|it| it.other_cause(link.last, &variable, &near));
        let Answer::Cause(other) = found else {
            return;
        };
        let mut rest = self.links.split_off(1);
        self.links[0].last = link.cause.point;
        self.avoided = Some(variable);
        self.transitions(&link.cause, &other, Step::Half);
        self.avoided = None;
        // Where nothing else was found, there is no transition back.
        let mut is_first = true;
        (self.links).retain(|it| std::mem::take(&mut is_first) || it.cause.variable != variable);
        if let (Some(next), Some(last)) = (rest.first_mut(), self.links.last_mut()) {
            next.before = Some(other.point);
            if next.cause.variable == other.variable {
                last.last = next.last;
                rest.remove(0);
            }
        }
        self.links.extend(rest);
    }

    /// Returns the cause at a point. The avoided variable (`self.avoided`) is returned only if no
    /// other variable makes the run fail.
    fn cause(&mut self, point: usize, near: &[Identity]) -> Answer {
        if let Some(avoided) = self.avoided {
            let found = self.ask(|it| it.other_cause(point, &avoided, near));
            if let Answer::Cause(_) = found {
                return found;
            }
        }
        self.ask(|it| it.cause(point, near))
    }

    /// Finds the first cause of the chain. If a difference at the first point that both runs share,
    /// such as an argument, makes the run fail, this is the cause; else a bisection between the
    /// first point and the cause `last` finds it.
    fn first(&mut self, last: &Cause) -> Cause {
        if last.point > 0
            && let Answer::Cause(first) = self.cause(0, &[])
        {
            return first;
        }
        let mut first = last.clone();
        let mut without = 1;
        while without < first.point {
            let (near, interval) = ([first.variable], without..first.point);
            match self.inside(interval.clone(), middle(&interval), &near, true) {
                Answer::Cause(cause) => first = cause,
                _ => without = middle(&interval) + 1,
            }
        }
        first
    }

    /// Searches an interval of points for one at which a variable causes the failure, and returns
    /// this cause. Examines the point `from` first, then its neighbours, then points spread over
    /// the interval; at each point, tries the variables `near` first. If `is_start`, returns
    /// [`Answer::Nothing`] as soon as `from` or a neighbour has no cause. Returns
    /// [`Answer::Skipped`] if no examined point has one.
    fn inside(
        &mut self,
        interval: Range<usize>,
        from: usize,
        near: &[Identity],
        is_start: bool,
    ) -> Answer {
        let steps =
            (1..=NEIGHBOURS).flat_map(|step| [from.checked_add(step), from.checked_sub(step)]);
        let others = steps.flatten().filter(|other| interval.contains(other));
        let close: Vec<usize> = std::iter::once(from)
            .chain(others.take(NEIGHBOURS))
            .collect();
        let spread = SPREAD.map(|part| interval.start + interval.len() * part / 16);
        let far = spread.iter().filter(|point| !close.contains(point));
        for (index, point) in close.iter().chain(far).enumerate() {
            if index > 0 && self.is_late() {
                break;
            }
            match self.cause(*point, near) {
                Answer::Cause(cause) => return Answer::Cause(cause),
                Answer::Nothing if is_start && index < close.len() => return Answer::Nothing,
                Answer::Nothing | Answer::Skipped => {}
            }
        }
        Answer::Skipped
    }

    /// Finds the points between the causes `from` and `to` at which another variable becomes
    /// relevant (`cts` in *Why Programs Fail*, A.3), and appends a link to the chain for each.
    /// `step` chooses the point that is examined first.
    fn transitions(&mut self, from: &Cause, to: &Cause, step: Step) {
        if from.variable == to.variable {
            if let Some(link) = self.links.last_mut() {
                link.last = link.last.max(to.point);
            }
            return;
        }
        let is_open = to.point > from.point + 1 && self.links.len() < MOST_LINKS && !self.is_late();
        let found = match is_open {
            true => self.between(from, to, step),
            false => None,
        };
        let Some((between, next)) = found else {
            self.links.push(Link {
                cause: to.clone(),
                before: Some(from.point),
                last: to.point,
            });
            return;
        };
        self.transitions(from, &between, next);
        self.transitions(&between, to, Step::Beginning);
    }

    /// Returns a cause between the causes `from` and `to`, and the step that chooses the point to
    /// examine first between `from` and the returned cause; `None` if no cause is found.
    fn between(&mut self, from: &Cause, to: &Cause, step: Step) -> Option<(Cause, Step)> {
        let interval = from.point + 1..to.point;
        let beginning = match step {
            Step::Before => to.point,
            Step::Beginning | Step::Half => self.beginning(to, from.point),
        };
        let middle = middle(&interval);
        let (start, next) = match step {
            Step::Before => (to.point - 1, Step::Half),
            Step::Beginning if beginning < to.point => (beginning, Step::Before),
            Step::Half if beginning <= middle => (beginning, Step::Before),
            Step::Half if interval.len() <= NEIGHBOURS => (to.point - 1, Step::Half),
            Step::Beginning | Step::Half => (middle, Step::Beginning),
        };
        match self.inside(interval, start, &[], false) {
            Answer::Cause(between) => Some((between, next)),
            Answer::Nothing | Answer::Skipped => None,
        }
    }

    /// Returns the first point after the point `after` from which the variable of `cause` keeps its
    /// failing value; the point of `cause` if that is not known.
    fn beginning(&mut self, cause: &Cause, after: usize) -> usize {
        if self.failed.is_some() {
            return cause.point;
        }
        let found = self.experiments.beginning(cause, after);
        found.unwrap_or_else(|error| {
            self.failed = Some(error);
            cause.point
        })
    }
}

/// How well tests support a link of a cause–effect chain: its variable is confirmed, confirmed one
/// way only, or not confirmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Setting the variable of a chain's link alone does not make the passing run fail each time,
    /// or the variable does not follow from an earlier link's variable.
    #[default]
    NotConfirmed,
    /// Setting the variable of a chain's link makes the passing run fail, and the variable follows
    /// from an earlier link's variable; but resetting it does not avert the failure.
    OneWayOnly,
    /// Setting the variable of a chain's link makes the passing run fail, resetting it averts the
    /// failure, and it follows from an earlier link's variable.
    Confirmed,
}

impl Confidence {
    /// Returns the words for this confidence in reports: `confirmed`, `one way only` or `not
    /// confirmed`.
    pub fn word(self) -> &'static str {
        match self {
            Confidence::NotConfirmed => "not confirmed",
            Confidence::OneWayOnly => "one way only",
            Confidence::Confirmed => "confirmed",
        }
    }
}

/// The outcomes of the tests of one variable at a point, from which a [`Confidence`] is derived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Whether a fork of the passing run in which nothing is changed passes.
    pub nothing_passes: bool,
    /// Whether a fork of the passing run in which all differences are set to their failing values
    /// fails.
    pub all_fail: bool,
    /// Number of tests in which setting the variable alone made the passing run fail.
    pub alone_fails: u32,
    /// Number of tests in which only the variable was set to its failing value.
    pub alone_tried: u32,
    /// Whether a fork of the passing run in which all differences but the variable are set to their
    /// failing values does not fail.
    pub without_averts: bool,
    /// Whether the variable follows from a variable earlier in the chain: when the earlier one is
    /// set to its failing value, this variable gets its failing value, too. True for the first
    /// link.
    pub follows: bool,
}

/// Number of repetitions of the test that sets a variable alone as in the failing run: the variable
/// is confirmed only if the passing run fails in all repetitions.
pub const REPEATS: u32 = 3;

impl Evidence {
    /// Returns the confidence that these outcomes of tests support.
    pub fn confidence(&self) -> Confidence {
        let repeated = self.alone_tried >= REPEATS && self.alone_fails == self.alone_tried;
        let forward = self.nothing_passes && self.all_fail && repeated && self.follows;
        match (forward, self.without_averts) {
            (true, true) => Confidence::Confirmed,
            (true, false) => Confidence::OneWayOnly,
            (false, _) => Confidence::NotConfirmed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Place;
    use crate::types::Types;

    fn variable(number: u64) -> Identity {
        Identity {
            place: Place::Memory(number),
            declared: None,
            of: Types::BYTE,
            is_structural: false,
        }
    }

    /// Made-up experiments for unit tests. The first list has, for each point, the number of the
    /// variable that causes the failure there (0: no cause, 9: no answer). The second list collects
    /// the points that the search examines.
    struct Known(Vec<u64>, Vec<usize>);

    impl Experiments for Known {
        type Error = ();
        fn points(&self) -> usize {
            self.0.len()
        }
        fn cause(&mut self, point: usize, _: &[Identity]) -> Result<Answer, ()> {
            self.1.push(point);
            Ok(match self.0[point] {
                0 => Answer::Nothing,
                9 => Answer::Skipped,
                number => Answer::Cause(Cause {
                    point,
                    variable: variable(number),
                }),
            })
        }
    }

    /// Made-up experiments for a unit test in which the time for the search is over from the
    /// beginning: only the first and the last cause are searched for.
    struct Late(Known);

    impl Experiments for Late {
        type Error = ();
        fn points(&self) -> usize {
            self.0.points()
        }
        fn cause(&mut self, point: usize, near: &[Identity]) -> Result<Answer, ()> {
            self.0.cause(point, near)
        }
        fn is_late(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_late_search_keeps_the_ends() {
        let points = [0, 1, 1, 2, 2, 3, 3].to_vec();
        let links = find_chain(&mut Late(Known(points, Vec::new()))).0;
        let found: Vec<usize> = links.iter().map(|link| link.cause.point).collect();
        assert_eq!(found, [1, 6]);
    }

    /// Made-up experiments of a unit test, of which only the first ones can be made; the number
    /// says how many. All later ones return the error that the time is over.
    struct Ending(Known, usize);

    impl Experiments for Ending {
        type Error = &'static str;
        fn points(&self) -> usize {
            self.0.points()
        }
        fn cause(&mut self, point: usize, near: &[Identity]) -> Result<Answer, &'static str> {
            self.1 = self.1.checked_sub(1).ok_or("the time is over")?;
            self.0.cause(point, near).map_err(|()| "it fails")
        }
    }

    #[test]
    fn links_that_were_found_before_an_error_are_kept() {
        let points = [0, 1, 1, 2, 2, 3, 3].to_vec();
        let of = |count| {
            let known = Known(points.clone(), Vec::new());
            let (links, ended) = find_chain(&mut Ending(known, count));
            let found = links.iter().map(|link| (link.cause.point, link.last));
            (found.collect::<Vec<_>>(), ended.is_ok())
        };
        assert_eq!(of(0), (vec![], false));
        assert_eq!(of(1), (vec![(6, 6)], false));
        assert_eq!(of(2), (vec![(6, 6)], false));
        let (all, is_whole) = of(40);
        assert!(is_whole);
        for count in 3..12 {
            let (found, _) = of(count);
            assert!(found.iter().all(|it| (1..=6).contains(&it.0)), "{found:?}");
            let to = found.last().map(|it| it.1);
            assert!(to == Some(6) || found == all, "{found:?}");
        }
    }

    /// Made-up experiments for a unit test in which it is known where each variable got its value.
    struct Dated(Known);

    impl Experiments for Dated {
        type Error = ();
        fn points(&self) -> usize {
            self.0.points()
        }
        fn cause(&mut self, point: usize, near: &[Identity]) -> Result<Answer, ()> {
            self.0.cause(point, near)
        }
        fn beginning(&mut self, cause: &Cause, after: usize) -> Result<usize, ()> {
            let of = |point: usize| variable(self.0.0[point]) == cause.variable;
            let other = (after..cause.point).rfind(|point| !of(*point));
            Ok(other.map_or(after + 1, |point| point + 1))
        }
    }

    #[test]
    fn a_transition_is_looked_for_where_the_later_variable_got_its_value() {
        let mut points = vec![1; 301];
        points.extend([2; 40]);
        points.extend([3; 400]);
        let mut known = Dated(Known(points, Vec::new()));
        let links = find_chain(&mut known).0;
        let found: Vec<usize> = links.iter().map(|link| link.cause.point).collect();
        assert_eq!(found, [0, 301, 341]);
        let examined = &known.0.1;
        assert!(examined.len() <= 8, "{examined:?}");
    }

    fn links(points: &[u64]) -> Vec<(usize, Place)> {
        let mut known = Known(points.to_vec(), Vec::new());
        let links = find_chain(&mut known).0;
        assert!(known.1.len() <= 40, "{:?}", known.1);
        links
            .iter()
            .map(|link| (link.cause.point, link.cause.variable.place))
            .collect()
    }

    #[test]
    fn transitions_are_found_by_bisection() {
        let mut points = vec![0; 10];
        points.extend([1; 17]);
        points.extend([2; 3]);
        points.extend([3; 30]);
        let expected = [(10, 1), (27, 2), (30, 3)];
        let expected = expected.map(|(point, number)| (point, Place::Memory(number)));
        assert_eq!(links(&points), expected);
    }

    /// Made-up experiments for a unit test: variable 1 makes the run fail at every point, and at
    /// the last points a second variable does as well.
    struct Beside(Known);

    impl Experiments for Beside {
        type Error = ();
        fn points(&self) -> usize {
            self.0.points()
        }
        fn cause(&mut self, point: usize, _: &[Identity]) -> Result<Answer, ()> {
            let variable = variable(1);
            Ok(Answer::Cause(Cause { point, variable }))
        }
        fn other_cause(
            &mut self,
            point: usize,
            than: &Identity,
            near: &[Identity],
        ) -> Result<Answer, ()> {
            let found = self.0.cause(point, near)?;
            let is_first = matches!(&found, Answer::Cause(it) if it.variable == *than);
            Ok(if is_first { Answer::Nothing } else { found })
        }
    }

    #[test]
    fn what_was_made_of_the_first_variable_is_found_beside_it() {
        let points = [1, 1, 1, 2, 2, 2, 2, 3, 3].to_vec();
        let links = find_chain(&mut Beside(Known(points, Vec::new()))).0;
        let found: Vec<_> = (links.iter())
            .map(|link| (link.cause.point, link.cause.variable.place))
            .collect();
        let expected = [(0, 1), (3, 2), (7, 3)];
        assert_eq!(
            found,
            expected.map(|(point, it)| (point, Place::Memory(it)))
        );
    }

    #[test]
    fn skipped_points_are_passed_by() {
        assert_eq!(links(&[0, 9, 1, 9, 9, 2, 9]).len(), 2);
        assert_eq!(links(&[9, 9, 9]), []);
        assert_eq!(links(&[]), []);
        assert_eq!(links(&[4]), [(0, Place::Memory(4))]);
    }

    #[test]
    fn only_tested_words_are_given() {
        let all = Evidence {
            nothing_passes: true,
            all_fail: true,
            alone_fails: 3,
            alone_tried: 3,
            without_averts: true,
            follows: true,
        };
        assert_eq!(all.confidence(), Confidence::Confirmed);
        let one_way = Evidence {
            without_averts: false,
            ..all
        };
        assert_eq!(one_way.confidence(), Confidence::OneWayOnly);
        for weaker in [
            Evidence {
                nothing_passes: false,
                ..all
            },
            Evidence {
                all_fail: false,
                ..all
            },
            Evidence {
                alone_fails: 2,
                ..all
            },
            Evidence {
                alone_fails: 2,
                alone_tried: 2,
                ..all
            },
            Evidence {
                follows: false,
                ..all
            },
        ] {
            assert_eq!(weaker.confidence(), Confidence::NotConfirmed);
        }
    }
}
