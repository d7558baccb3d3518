//! The other searches written down naively, on index lists and recursively where the papers are.

use ddfuzz::delta::{Mode, Outcome};

use crate::reference::split;

/// Tests a set of units, in any order.
pub type Test<'a> = dyn FnMut(&[usize]) -> Outcome + 'a;

fn minus(one: &[usize], other: &[usize]) -> Vec<usize> {
    let left = one.iter().filter(|unit| !other.contains(unit));
    left.copied().collect()
}

fn union(one: &[usize], other: &[usize]) -> Vec<usize> {
    let mut all = [one, other].concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// `ddmin-2002`, after the Python.
pub fn ddmin_2002(units: usize, test: &mut Test<'_>) -> Vec<usize> {
    let mut input: Vec<usize> = (0..units).collect();
    let mut n = 2;
    while input.len() >= 2 {
        let step = input.len() / n;
        let starts = (0..input.len()).step_by(step);
        let complements =
            starts.map(|start| [&input[..start], &input[input.len().min(start + step)..]].concat());
        let failing = complements
            .into_iter()
            .find(|complement| test(complement) == Outcome::Fail);
        match failing {
            Some(complement) => {
                input = complement;
                n = (n - 1).max(2);
            }
            None if n == input.len() => break,
            None => n = (2 * n).min(input.len()),
        }
    }
    input
}

/// `dd`, after the Debugging Book; what was tested before is not tested again. Gives both sides.
pub fn dd(units: usize, mode: Mode, test: &mut Test<'_>) -> (Vec<usize>, Vec<usize>) {
    let mut known: Vec<(Vec<usize>, Outcome)> = Vec::new();
    let mut test = |c: &[usize]| {
        if let Some((_, outcome)) = known.iter().find(|(kept, _)| kept == c) {
            return *outcome;
        }
        let outcome = test(c);
        known.push((c.to_vec(), outcome));
        outcome
    };
    let (minimizes, maximizes) = (mode != Mode::Maximize, mode != Mode::Minimize);
    let (mut pass, mut fail): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..units).collect());
    let (mut n, mut offset) = (2, 0);
    loop {
        let delta = minus(&fail, &pass);
        if delta.len() < n {
            return (pass, fail);
        }
        let deltas = split(&delta, n);
        let two = n == 2;
        let fewer = (n - 1).max(2);
        let mut found = None;
        for j in 0..n {
            let i = (j + offset) % n;
            let next_pass = union(&pass, &deltas[i]);
            let next_fail = minus(&fail, &deltas[i]);
            if minimizes && two && test(&next_pass) == Outcome::Fail {
                fail = next_pass;
                found = Some((i, 2));
            } else if maximizes && two && test(&next_fail) == Outcome::Pass {
                pass = next_fail;
                found = Some((i, 2));
            } else if minimizes && test(&next_fail) == Outcome::Fail {
                fail = next_fail;
                found = Some((i, fewer));
            } else if maximizes && test(&next_pass) == Outcome::Pass {
                pass = next_pass;
                found = Some((i, fewer));
            } else {
                continue;
            }
            break;
        }
        match found {
            Some(next) => (offset, n) = next,
            None if n >= delta.len() => return (pass, fail),
            None => n = (2 * n).min(delta.len()),
        }
    }
}

/// `dd2(c, r)` of ESEC.
pub fn dd2(c: &[usize], r: &[usize], test: &mut Test<'_>) -> Vec<usize> {
    if c.len() <= 1 {
        return c.to_vec();
    }
    let halves = split(c, 2);
    for half in &halves {
        if test(&union(half, r)) == Outcome::Fail {
            return dd2(half, r, test);
        }
    }
    let first = dd2(&halves[0], &union(&halves[1], r), test);
    let second = dd2(&halves[1], &union(&halves[0], r), test);
    union(&first, &second)
}

/// `dd3(c, r, n)` of ESEC.
pub fn dd3(c: &[usize], r: &[usize], n: usize, test: &mut Test<'_>) -> Vec<usize> {
    use Outcome::{Fail, Pass, Unresolved};
    if c.len() <= 1 {
        return c.to_vec();
    }
    let parts = split(c, n);
    let others: Vec<Vec<usize>> = parts.iter().map(|part| minus(c, &union(part, r))).collect();
    let mut t = Vec::new();
    for part in &parts {
        t.push(test(&union(part, r)));
        if t.last() == Some(&Fail) {
            return dd3(part, r, 2, test);
        }
    }
    let mut t_bar = Vec::new();
    for i in 0..n {
        t_bar.push(test(&union(&others[i], r)));
        if (t[i], t_bar[i]) == (Pass, Pass) {
            let one = dd3(&parts[i], &union(&others[i], r), 2, test);
            let other = dd3(&others[i], &union(&parts[i], r), 2, test);
            return union(&one, &other);
        }
    }
    if let Some(i) = (0..n).find(|i| (t[*i], t_bar[*i]) == (Unresolved, Pass)) {
        return dd3(&parts[i], &union(&others[i], r), 2, test);
    }
    let mut left = c.to_vec();
    let mut applied = r.to_vec();
    for i in 0..n {
        if t_bar[i] == Fail {
            left.retain(|unit| others[i].contains(unit));
        }
        if t[i] == Pass {
            applied = union(&applied, &parts[i]);
        }
    }
    match n < c.len() {
        true => dd3(&left, &applied, left.len().min(2 * n), test),
        false => left,
    }
}
