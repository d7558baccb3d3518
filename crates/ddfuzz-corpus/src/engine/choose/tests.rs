//! Tests of the choice, on scripted inputs.

use super::*;
use crate::features::set;

/// Scripted inputs of ten bytes each, with the features that each run of each input reaches.
#[derive(Default)]
struct Script {
    runs: Vec<Vec<Vec<u32>>>,
    /// Features that each input reaches in a separate process; `None` if every run has a separate
    /// process anyway.
    alone: Option<Vec<Vec<u32>>>,
    /// Features of code that runs once per process: of the inputs that reach them in a separate
    /// process, only the one that is run first in a shared process reaches them there.
    once: Vec<u32>,
    /// Numbers of the inputs that the choice has had run again.
    repeated: Vec<usize>,
    slow: Vec<usize>,
}

impl CandidateSource for Script {
    fn len(&self) -> usize {
        self.runs.len()
    }

    fn bytes(&self, _: usize) -> u64 {
        10
    }

    fn first(&mut self, item: usize, into: &mut Vec<Feature>) -> io::Result<Duration> {
        *into = set(&self.runs[item][0]).as_slice().to_vec();
        Ok(match self.slow.contains(&item) {
            true => FAST * 5,
            false => Duration::ZERO,
        })
    }

    fn rerun(&mut self, items: &[usize]) -> Result<Vec<Reruns>, CleanError> {
        self.repeated.extend_from_slice(items);
        let of = |item: &usize| {
            let runs = &self.runs[*item];
            let steady = runs.iter().map(|run| set(run)).reduce(|a, b| a.and(&b));
            let steady = steady.unwrap_or_default();
            let hits = |feature: &u32| {
                let repeats = runs[1..].iter();
                repeats.filter(|run| run.contains(feature)).count() as u32
            };
            let all = runs.iter().flatten();
            let unsteady = all.filter(|feature| !steady.contains(Feature(**feature)));
            let sometimes = unsteady.map(|feature| (Feature(*feature), hits(feature)));
            Reruns {
                sometimes: sometimes.collect(),
                runs: runs.len() as u32 - 1,
                steady: steady.clone(),
                time: match self.slow.contains(item) {
                    true => FAST * 5,
                    false => Duration::ZERO,
                },
            }
        };
        Ok(items.iter().map(of).collect())
    }

    fn run_alone(&mut self, items: &[usize]) -> Result<Option<Vec<Features>>, CleanError> {
        let alone = self.alone.as_ref();
        Ok(alone.map(|alone| items.iter().map(|item| set(&alone[*item])).collect()))
    }

    fn together(&mut self, items: &[usize]) -> Result<Vec<Option<Features>>, CleanError> {
        let mut past = Features::default();
        let alone = self.run_alone(items)?.unwrap_or_default();
        let runs = alone.into_iter().map(|alone| {
            let reached = alone.less(&past);
            past = past.or(&reached.and(&set(&self.once)));
            Some(reached)
        });
        Ok(runs.collect())
    }

    fn run_twice(&mut self, items: &[usize]) -> Result<Option<Vec<Option<Features>>>, CleanError> {
        let alone = self.run_alone(items)?;
        let second = |alone: Vec<Features>| {
            let second = alone.into_iter();
            second
                .map(|first| Some(first.less(&set(&self.once))))
                .collect()
        };
        Ok(alone.map(second))
    }

    fn repeats(&self) -> bool {
        self.runs.iter().any(|runs| runs.len() > 1)
    }
}

fn script(runs: &[&[&[u32]]]) -> Script {
    let of = |runs: &&[&[u32]]| runs.iter().map(|run| run.to_vec()).collect();
    Script {
        runs: runs.iter().map(of).collect(),
        ..Script::default()
    }
}

fn chosen(script: &mut Script, covered: &[u32]) -> Choice {
    choose_beside(script, covered, &[]).unwrap()
}

fn choose_beside(script: &mut Script, covered: &[u32], seen: &[u32]) -> Option<Choice> {
    let already = AlreadyCovered {
        covered: &set(covered),
        seen: &set(seen),
    };
    choose(script, already, &Effort::default()).unwrap()
}

#[test]
fn what_does_not_come_each_time_counts_for_who_has_it_each_time() {
    // The first reaches all, once; the others each a part, each time.
    let mut all = script(&[&[&[1, 2, 3], &[1]], &[&[1, 2], &[1, 2]], &[&[3], &[3]]]);
    let choice = chosen(&mut all, &[]);
    assert_eq!(choice.cover.chosen, [1, 2]);
    assert_eq!(choice.universe, set(&[1, 2, 3]));
    assert!(choice.sometimes.is_empty());
    assert_eq!(all.repeated, [0, 1, 2]);
}

#[test]
fn of_what_nobody_has_each_time_those_are_kept_that_have_it_most_often() {
    let (both, one): (&[u32], &[u32]) = (&[1, 7], &[1]);
    let often: &[&[u32]] = &[vec![both; 10], vec![one]].concat();
    let rarely: &[&[u32]] = &[vec![both], vec![one; 10]].concat();
    let mut all = script(&[rarely, often, rarely, often, often, rarely]);
    let choice = chosen(&mut all, &[]);
    assert_eq!(choice.cover.chosen, [0]);
    assert_eq!(choice.universe, set(&[1]));
    assert_eq!(choice.seen, set(&[1, 7]));
    // Of a hundred times, none of the three reaches it once.
    assert_eq!(choice.sometimes, BTreeMap::from([(1, 1), (3, 1), (4, 1)]));
    assert_eq!(all.repeated, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn at_least_two_are_kept_and_no_more_than_the_most() {
    let rarely: &[&[u32]] = &[&[1, 7], &[1], &[1], &[1], &[1], &[1]];
    let choice = chosen(&mut script(&[rarely; 30]), &[]);
    assert_eq!(choice.sometimes.len(), MOST);
    let (both, one): (&[u32], &[u32]) = (&[1, 7], &[1]);
    let mostly = [vec![both; 99], vec![one]].concat();
    let choice = chosen(&mut script(&[&mostly, &mostly, &mostly]), &[]);
    assert_eq!(choice.sometimes, BTreeMap::from([(0, 1), (1, 1)]));
}

#[test]
fn what_is_seen_now_and_then_elsewhere_keeps_nobody() {
    let mut all = script(&[&[&[1, 7], &[1]], &[&[1, 7], &[1]]]);
    let choice = choose_beside(&mut all, &[], &[7]);
    assert!(choice.unwrap().sometimes.is_empty());
}

#[test]
fn what_happens_once_in_a_process_needs_one_that_makes_it_happen() {
    // 9 is a table that the first run of a process builds, 8 one that two of them need.
    let mut runs: Vec<Vec<Vec<u32>>> = vec![vec![vec![1, 9], vec![1]]];
    runs.extend((2..60).map(|own| vec![vec![own], vec![own]]));
    runs[20] = vec![vec![21, 8], vec![21]];
    runs[40] = vec![vec![41], vec![41, 8]];
    let mut alone: Vec<Vec<u32>> = (1..60).map(|own| vec![own, 9]).collect();
    alone[20].push(8);
    alone[40].push(8);
    let mut all = Script {
        runs,
        alone: Some(alone),
        ..Script::default()
    };
    let choice = chosen(&mut all, &[]);
    assert_eq!(choice.universe, set(&(1..60).collect::<Vec<u32>>()));
    assert!(choice.sometimes.is_empty(), "{choice:?}");
}

/// Makes a script of sixty inputs. The feature 99 belongs to code that runs once in a process;
/// input 0 has only this feature, because it is the first input of each process. Each other input
/// has one feature of its own. Those in `triggers` reach feature 99, too, when they are the first
/// in a process.
fn first_by_chance(triggers: &[usize]) -> Script {
    let mut runs: Vec<Vec<Vec<u32>>> = (0..60).map(|own| vec![vec![own + 1]; 3]).collect();
    runs[0] = vec![vec![99]; 3];
    let mut alone: Vec<Vec<u32>> = runs.iter().map(|runs| runs[0].clone()).collect();
    triggers.iter().for_each(|item| alone[*item].push(99));
    Script {
        runs,
        alone: Some(alone),
        once: vec![99],
        ..Script::default()
    }
}

#[test]
fn no_input_is_kept_since_it_was_run_first_each_time() {
    let choice = chosen(&mut first_by_chance(&[7, 9]), &[]);
    assert_eq!(choice.cover.chosen, (1..60).collect::<Vec<usize>>());
    assert_eq!(choice.universe.len(), 60);
    assert_eq!(choice.once_per_process, set(&[99]));
}

#[test]
fn an_input_is_kept_for_code_that_runs_once_if_no_other_one_reaches_it() {
    let choice = chosen(&mut first_by_chance(&[]), &[]);
    assert_eq!(choice.cover.chosen, (0..60).collect::<Vec<usize>>());
    // Nobody says that no other input can reach it.
    assert_eq!(choice.once_per_process, set(&[99]));
    assert_eq!(choice.unique_features.private[0], set(&[99]));
}

#[test]
fn a_target_that_remembers_much_gets_a_process_for_each_run() {
    let of = |own: u32| vec![vec![own, own + 100], vec![own]];
    let mut all = Script {
        runs: (0..60).map(of).collect(),
        alone: Some((0..60).map(|own| vec![own, own + 100]).collect()),
        ..Script::default()
    };
    assert!(choose_beside(&mut all, &[], &[]).is_none());
}

#[test]
fn what_is_covered_already_needs_nobody() {
    let mut all = script(&[&[&[1, 2], &[1, 2]], &[&[3], &[3]]]);
    let choice = chosen(&mut all, &[1, 2]);
    assert_eq!(choice.cover.chosen, [1]);
    assert_eq!(all.repeated, [1]);
}

#[test]
fn of_two_that_reach_the_same_the_faster_one_is_kept() {
    let same: &[&[u32]] = &[&[1], &[1]];
    let mut all = script(&[same; 3]);
    all.slow = vec![0];
    assert_eq!(chosen(&mut all, &[]).cover.chosen, [1]);
}
