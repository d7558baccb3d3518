//! Figures over time, in bounded memory.

use ddfuzz::campaign::Progress;
use ddfuzz::cli::ui::campaign::History;

fn at(time_ms: u64, runs: u64) -> Progress {
    Progress {
        time_ms,
        runs,
        edges: Some(runs / 10),
        ..Progress::default()
    }
}

#[test]
fn a_week_takes_as_much_memory_as_minutes() {
    let mut history = History::default();
    let week = 7 * 24 * 3600;
    for second in 0..week {
        history.add(&at(second * 1000, second * 100));
        assert!(history.len() <= 480);
    }
    assert!(history.len() >= 240);
    let rates = history.rates(60);
    assert_eq!(rates.len(), 60);
    assert!(
        rates.iter().all(|rate| (rate - 100.0).abs() < 1.0),
        "{rates:?}"
    );
    let edges = history.levels(60, |one| one.edges);
    assert!(edges.is_sorted());
    assert_eq!(edges[59], ((week - 1) * 10) as f64);
}

#[test]
fn the_rate_of_now_is_that_of_the_last_seconds() {
    let mut history = History::default();
    assert_eq!(history.rate_now(), None);
    history.add(&at(0, 0));
    assert_eq!(history.rate_now(), None);
    for tenth in 1..=600 {
        history.add(&at(tenth * 100, tenth * 100));
    }
    assert_eq!(history.rate_now().map(f64::round), Some(1000.0));
    for tenth in 601..=700 {
        history.add(&at(tenth * 100, 60_000));
    }
    assert_eq!(history.rate_now(), Some(0.0));
    let rates = history.rates(7);
    assert_eq!(
        rates.iter().map(|rate| rate.round()).collect::<Vec<_>>()[5..],
        [1000.0, 0.0]
    );
}

#[test]
fn times_that_go_back_are_passed_over() {
    let mut history = History::default();
    for time in [5000, 4000, 5000, 6000, 0] {
        history.add(&at(time, time));
    }
    assert_eq!(history.rate_now(), Some(1000.0));
    assert_eq!(history.rates(3).len(), 3);
    assert!(History::default().rates(10).is_empty());
    assert!(History::default().is_empty());
}
