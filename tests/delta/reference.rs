//! ddmin written down naively, recursive and on index lists, after ISSTA figure 1.

use ddfuzz::delta::Outcome;

use crate::trace::Trace;

/// Splits by dealing sizes out one by one: not the arithmetic of the library.
pub fn split(list: &[usize], parts: usize) -> Vec<Vec<usize>> {
    let mut sizes = vec![0; parts];
    (0..list.len()).for_each(|unit| sizes[unit % parts] += 1);
    let mut rest = list.to_vec();
    sizes
        .into_iter()
        .map(|size| rest.drain(..size).collect())
        .collect()
}

/// The tests and the result of ddmin on `units` units.
pub fn ddmin(units: usize, test: &dyn Fn(&[usize]) -> Outcome) -> Trace {
    let mut tests = Vec::new();
    let all = (0..units).collect();
    let result = recurse(all, 2, &mut |kept: &[usize]| {
        let outcome = test(kept);
        tests.push((kept.to_vec(), outcome));
        outcome == Outcome::Fail
    });
    Trace { tests, result }
}

fn recurse(c: Vec<usize>, n: usize, fails: &mut dyn FnMut(&[usize]) -> bool) -> Vec<usize> {
    if c.len() <= 1 {
        return c;
    }
    let subsets = split(&c, n);
    if let Some(subset) = subsets.iter().find(|subset| fails(subset)) {
        return recurse(subset.clone(), 2, fails);
    }
    if n > 2 {
        let complements = subsets.iter().map(|subset| {
            c.iter()
                .filter(|unit| !subset.contains(unit))
                .copied()
                .collect::<Vec<_>>()
        });
        for complement in complements {
            if fails(&complement) {
                return recurse(complement, (n - 1).max(2), fails);
            }
        }
    }
    if n < c.len() {
        let finer = c.len().min(2 * n);
        return recurse(c, finer, fails);
    }
    c
}
