//! Small instances, held against all there is to choose.

use ddfuzz::corpus::Features;
use ddfuzz::corpus::cover::{Cover, Effort, cover};

use super::brute::{assert_covers, least};
use super::instances::{Instance, Random, set};

fn checked(instance: &mut Instance, wanted: &Features, effort: &Effort) -> (Cover, u64) {
    let found = cover(instance, wanted, &Features::default(), effort).expect("all can be read");
    assert_covers(instance, wanted, &found);
    let least = least(instance, wanted, &found);
    assert!(
        found.lower_bound <= least && least <= found.weight,
        "{least}: {found:?}"
    );
    (found, least)
}

#[test]
fn small_instances_are_solved_exactly() {
    let mut random = Random::new(1);
    for round in 0..400 {
        let mut instance = Instance::small(&mut random);
        let wanted = instance.reached();
        let (found, least) = checked(&mut instance, &wanted, &Effort::default());
        assert_eq!(found.weight, least, "round {round}");
        assert!(found.optimal && found.missing.is_empty());
    }
}

#[test]
fn bounds_hold_with_whatever_effort() {
    let mut random = Random::new(2);
    let whole = Effort::default();
    let efforts = [
        Effort {
            entries: 0,
            ..whole
        },
        Effort {
            entries: 12,
            ..whole
        },
        Effort { nodes: 0, ..whole },
        Effort { steps: 0, ..whole },
        Effort {
            steps: 300,
            ..whole
        },
        Effort {
            entries: 0,
            nodes: 0,
            steps: 0,
        },
    ];
    for round in 0..400 {
        let mut instance = Instance::small(&mut random);
        let wanted = instance.reached();
        checked(&mut instance, &wanted, &efforts[round % efforts.len()]);
    }
}

#[test]
fn what_is_covered_already_is_not_covered_again() {
    let mut random = Random::new(3);
    for _ in 0..100 {
        let mut instance = Instance::small(&mut random);
        let all = instance.reached();
        let covered = set((0..14).filter(|_| random.below(2) == 0));
        let effort = Effort::default();
        let found = cover(&mut instance, &all, &covered, &effort).unwrap();
        assert_covers(&instance, &all.less(&covered), &found);
        let direct = cover(
            &mut instance,
            &all.less(&covered),
            &Features::default(),
            &effort,
        );
        assert_eq!(found, direct.unwrap());
        let nothing = cover(&mut instance, &all, &all, &effort).unwrap();
        assert_eq!((nothing.chosen.len(), nothing.weight), (0, 0));
        assert!(nothing.optimal);
    }
}

#[test]
fn what_nobody_reaches_is_named() {
    let mut random = Random::new(4);
    let mut instance = Instance::small(&mut random);
    let all = instance.reached();
    let nowhere = set([100, 200]);
    let wanted = all.or(&nowhere);
    let found = cover(
        &mut instance,
        &wanted,
        &Features::default(),
        &Effort::default(),
    )
    .unwrap();
    assert_covers(&instance, &wanted, &found);
    assert_eq!(found.missing, nowhere);
    let mut none = Instance::of(Vec::new());
    let found = cover(&mut none, &wanted, &Features::default(), &Effort::default()).unwrap();
    assert_eq!((found.missing, found.chosen.len()), (wanted, 0));
}
