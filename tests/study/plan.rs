//! Calls and inputs are a function of the seed, the utility and the run.

use ddfuzz::campaign::study::{Invocation, StudyInput, StudyPlan, Utility};
use ddfuzz::exec::{Channel, SEPARATOR, Terminal};

fn utility(name: &str, channels: &[Channel]) -> Utility {
    let invocation = |channel: &Channel| Invocation {
        channel: channel.clone(),
        args: vec!["@@".into()],
        pool: ["-a", "-b", "-c"].map(|option| vec![option.into()]).into(),
        pool_at: 0,
    };
    Utility {
        name: name.to_owned(),
        place: 0,
        package: None,
        version: None,
        path: None,
        skip_reason: None,
        interactive_only: false,
        invocations: channels.iter().map(invocation).collect(),
        runs: None,
    }
}

fn plan(seed: u64) -> StudyPlan {
    StudyPlan {
        seed,
        max_len: 1 << 20,
        set: [].into(),
    }
}

#[test]
fn the_first_run_of_each_course_is_empty_and_without_options() {
    let utility = utility("one", &[Channel::Plain, Channel::TwoFiles]);
    let (plan, chunk) = (plan(1), plan(1).chunk(&utility));
    for invocation in 0..2 {
        assert_eq!(plan.input(&utility, invocation * chunk), StudyInput::Empty);
        assert!(plan.call(&utility, invocation).drawn.is_empty());
        assert_eq!(
            plan.call(&utility, invocation).invocation,
            invocation as usize
        );
    }
    assert_ne!(plan.input(&utility, 2 * chunk), StudyInput::Empty);
}

#[test]
fn each_option_is_drawn_about_every_other_time() {
    let utility = utility("one", &[Channel::Plain]);
    let plan = plan(1);
    for option in 0..3 {
        let drawn = (1..1001).filter(|chunk| plan.call(&utility, *chunk).drawn.contains(&option));
        let drawn = drawn.count();
        assert!((440..560).contains(&drawn), "{option}: {drawn}");
    }
}

#[test]
fn other_seeds_and_other_utilities_have_other_inputs() {
    let (one, two) = (
        utility("one", &[Channel::Plain]),
        utility("two", &[Channel::Plain]),
    );
    let inputs = |plan: &StudyPlan, utility: &Utility| {
        (1..20)
            .map(|run| plan.input(utility, run))
            .collect::<Vec<_>>()
    };
    assert_eq!(inputs(&plan(1), &one), inputs(&plan(1), &one));
    assert_ne!(inputs(&plan(1), &one), inputs(&plan(2), &one));
    assert_ne!(inputs(&plan(1), &one), inputs(&plan(1), &two));
}

#[test]
fn two_files_are_apart_in_every_input() {
    let utility = utility("one", &[Channel::TwoFiles]);
    for run in 1..200 {
        let StudyInput::Two(first, second) = plan(3).input(&utility, run) else {
            panic!("run {run}");
        };
        let (mut up_to, mut behind) = (Vec::new(), Vec::new());
        first.write_into(&mut up_to);
        second.write_into(&mut behind);
        let input = StudyInput::Two(first, second).build();
        let at = input.iter().position(|byte| *byte == SEPARATOR).unwrap();
        assert_eq!(at, up_to.len());
        assert_eq!(&input[at + 1..], behind);
    }
}

#[test]
fn a_data_set_is_run_from_its_beginning_again_and_again() {
    let utility = utility("one", &[Channel::Plain]);
    let drawn = plan(1);
    let names = (1..=5).map(|run| match drawn.input(&utility, run) {
        StudyInput::Classic(name) => name,
        other => panic!("{other}"),
    });
    let set = StudyPlan {
        set: names.collect(),
        ..drawn
    };
    assert_eq!(set.input(&utility, 1), set.input(&utility, 6));
    assert_ne!(set.input(&utility, 1), set.input(&utility, 2));
}

#[test]
fn what_a_terminal_gets_is_mostly_keys() {
    let utility = utility("one", &[Channel::Terminal(Terminal::default())]);
    let is_keys = |run: &u64| matches!(plan(1).input(&utility, *run), StudyInput::Keys(_));
    let keys = (0..400).filter(is_keys).count();
    assert!((250..350).contains(&keys), "{keys}");
}
