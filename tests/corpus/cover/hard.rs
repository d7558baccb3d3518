//! Instances that no reduction touches.

use ddfuzz::corpus::Features;
use ddfuzz::corpus::cover::{Cover, Effort, cover};

use super::brute::{assert_covers, cost};
use super::instances::{Instance, Item, Random, set};

/// Points as inputs of one size, lines as features: what has to be covered are the lines.
fn geometry(points: usize, lines: &[Vec<usize>]) -> Instance {
    let item = |point: usize| {
        let through = lines.iter().enumerate();
        let through = through.filter(|(_, line)| line.contains(&point));
        Item {
            bytes: 10,
            milliseconds: 1,
            name: point as u64,
            features: set(through.map(|(line, _)| line as u64)),
        }
    };
    Instance::of((0..points).map(item).collect())
}

/// The lines of the affine space over three elements: three points whose digits sum up to nothing.
fn affine(dimension: u32) -> Instance {
    let points = 3_usize.pow(dimension);
    let third = |one: usize, other: usize| {
        let places = (0..dimension).map(|place| 3_usize.pow(place));
        let digit = |point: usize, place: usize| point / place % 3;
        let sum = |place| (6 - digit(one, place) - digit(other, place)) % 3 * place;
        places.map(sum).sum::<usize>()
    };
    geometry(points, &lines(points, third))
}

/// The lines of the projective space over two elements: three points whose bits sum up to nothing.
fn projective(dimension: u32) -> Instance {
    let points = (1 << (dimension + 1)) - 1;
    geometry(
        points,
        &lines(points, |one, other| ((one + 1) ^ (other + 1)) - 1),
    )
}

fn lines(points: usize, third: impl Fn(usize, usize) -> usize) -> Vec<Vec<usize>> {
    let pairs = (0..points).flat_map(|one| (one + 1..points).map(move |other| (one, other)));
    let lines = pairs.map(|(one, other)| vec![one, other, third(one, other)]);
    lines.filter(|line| line[1] < line[2]).collect()
}

fn solved(instance: &mut Instance) -> Cover {
    let wanted = instance.reached();
    let found = cover(instance, &wanted, &Features::default(), &Effort::default()).unwrap();
    assert_covers(instance, &wanted, &found);
    found
}

/// What is left when the largest set without a line is taken out: caps of 4 and 9 points (Bose 1947),
/// complements of a line and of a plane.
#[test]
fn finite_geometries_have_the_covers_of_the_books() {
    for (mut instance, least) in [(affine(2), 5), (projective(2), 3), (projective(3), 7)] {
        let found = solved(&mut instance);
        assert_eq!(found.amount.files, least);
        assert!(found.optimal, "{found:?}");
    }
    // As good, but too symmetric to be proved within the limits.
    let found = solved(&mut affine(3));
    assert_eq!(found.amount.files, 18);
    assert!(found.lower_bound > found.weight / 2 && !found.optimal);
}

/// The least weight by dynamic programming over sets of features, on the terms of `terms`.
fn least(instance: &Instance, features: usize, terms: &Cover) -> u64 {
    let numbers: Vec<Features> = (0..features as u64).map(|number| set([number])).collect();
    let items: Vec<(usize, u64)> = (0..instance.0.len())
        .map(|at| {
            let has = |number: &usize| instance.0[at].features.has_all(&numbers[*number]);
            let bits = (0..features).filter(has).map(|number| 1 << number).sum();
            (bits, cost(instance, at, terms))
        })
        .collect();
    let all = items.iter().fold(0, |all, (bits, _)| all | bits);
    let mut weights = vec![u64::MAX; all + 1];
    weights[0] = 0;
    for covered in 0..all {
        if weights[covered] < u64::MAX {
            for (bits, weight) in &items {
                let sum = weights[covered] + weight;
                let next = &mut weights[covered | bits];
                *next = sum.min(*next);
            }
        }
    }
    weights[all]
}

#[test]
fn dense_instances_are_solved_exactly() {
    let mut random = Random::new(12);
    for round in 0..30 {
        let item = |random: &mut Random| {
            let numbers: Vec<u64> = (0..14).filter(|_| random.below(100) < 25).collect();
            Item {
                // Close to each other, so that none stands in for another.
                bytes: 100 + 10 * numbers.len() as u64 + random.below(40),
                milliseconds: 1,
                name: random.next(),
                features: set(numbers),
            }
        };
        let mut instance = Instance::of((0..60).map(|_| item(&mut random)).collect());
        let found = solved(&mut instance);
        assert_eq!(found.weight, least(&instance, 14, &found), "round {round}");
        assert!(found.optimal, "{found:?}");
    }
}
