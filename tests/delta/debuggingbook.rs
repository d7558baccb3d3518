//! The runs of the Debugging Book's own package (tests/golden/debuggingbook.json).

use ddfuzz::delta::{Caching, Config, Dd, Ddmin2002, Mode, Outcome, Search, Tester, TextId};
use serde::Deserialize;

/// One run of the package.
#[derive(Deserialize)]
pub struct Run {
    case: String,
    pub predicate: Predicate,
    pub input: String,
    pub algorithm: String,
    /// What `ddmin-2002` returns.
    result: Option<String>,
    /// What `dd` returns.
    pub pass: Option<String>,
    pub fail: Option<String>,
    pub difference: Option<String>,
    /// The inputs that were run, in order.
    pub tests: Vec<(String, Outcome)>,
}

/// When an input fails.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Predicate {
    Subsequence { needle: String },
    Contains { needle: String },
    AllOf { needle: String },
    Count { needle: String, n: usize },
    Balanced { needle: String },
    Length { n: usize },
    Either { needles: Vec<String> },
}

fn fails(yes: bool) -> Outcome {
    if yes { Outcome::Fail } else { Outcome::Pass }
}

/// Whether each round bracket has its partner.
fn is_balanced(text: &str) -> bool {
    let mut open = 0u32;
    text.chars().all(|letter| match letter {
        '(' => {
            open += 1;
            true
        }
        ')' if open == 0 => false,
        ')' => {
            open -= 1;
            true
        }
        _ => true,
    }) && open == 0
}

impl Predicate {
    pub fn test(&self, text: &str) -> Outcome {
        match self {
            Predicate::Subsequence { needle } => {
                let mut letters = text.chars();
                fails(
                    needle
                        .chars()
                        .all(|one| letters.any(|letter| letter == one)),
                )
            }
            Predicate::Contains { needle } => fails(text.contains(needle)),
            Predicate::AllOf { needle } => {
                match needle.chars().filter(|one| text.contains(*one)).count() {
                    0 => Outcome::Pass,
                    some if some == needle.chars().count() => Outcome::Fail,
                    _ => Outcome::Unresolved,
                }
            }
            Predicate::Count { needle, n } => fails(text.matches(needle).count() >= *n),
            Predicate::Balanced { .. } if !is_balanced(text) => Outcome::Unresolved,
            Predicate::Balanced { needle } => fails(text.contains(needle)),
            Predicate::Length { n } => fails(text.chars().count() >= *n),
            Predicate::Either { needles } => {
                fails(needles.iter().any(|needle| text.contains(needle)))
            }
        }
    }
}

/// All runs by these algorithms.
pub fn runs(algorithms: &[&str]) -> Vec<Run> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/golden/debuggingbook.json"
    );
    let text = std::fs::read_to_string(path).expect("the golden runs");
    let mut runs: Vec<Run> = serde_json::from_str(&text).expect("JSON");
    assert_eq!(runs.len(), 40);
    runs.retain(|run| algorithms.contains(&run.algorithm.as_str()));
    assert_eq!(runs.len(), 10 * algorithms.len());
    runs
}

/// The mode of general delta debugging that an algorithm is.
pub fn mode(algorithm: &str) -> Mode {
    match algorithm {
        "dd-minimize" => Mode::Minimize,
        "dd-maximize" => Mode::Maximize,
        "dd-isolate" => Mode::Isolate,
        other => panic!("{other} is no mode"),
    }
}

pub const DD: [&str; 3] = ["dd-minimize", "dd-maximize", "dd-isolate"];

/// The letters of `input` that a configuration keeps.
fn text(input: &str, config: &Config) -> String {
    let letters: Vec<char> = input.chars().collect();
    let mut kept = Vec::new();
    config.write_into(&letters, &mut kept);
    kept.into_iter().collect()
}

/// Tests the `axiom`, then runs `search`; gives what was run, in order.
fn reproduce(
    run: &Run,
    caching: Caching,
    axiom: &[Config],
    search: &mut dyn Search,
) -> Vec<(String, Outcome)> {
    let mut tests = Vec::new();
    let mut tester = Tester::new(|config| {
        let text = text(&run.input, config);
        let outcome = run.predicate.test(&text);
        tests.push((text, outcome));
        outcome
    });
    tester.answer_by(caching);
    tester.name_inputs_by(|config| {
        let hash = blake3::hash(text(&run.input, config).as_bytes());
        let bytes = hash.as_bytes().first_chunk();
        TextId(*bytes.expect("a hash has 32 bytes"))
    });
    for config in axiom {
        tester.answer(config);
    }
    tester.run(search);
    drop(tester);
    tests
}

#[test]
fn ddmin_2002_runs_the_inputs_of_the_book_in_their_order() {
    for run in runs(&["ddmin-2002"]) {
        let units = run.input.chars().count();
        let mut search = Ddmin2002::new(units);
        let tests = reproduce(&run, Caching::Off, &[Config::all(units)], &mut search);
        assert_eq!(tests, run.tests, "{}", run.case);
        let result = text(&run.input, search.best());
        assert_eq!(Some(result), run.result, "{}", run.case);
    }
}

#[test]
fn dd_runs_the_inputs_of_the_book_in_their_order() {
    for run in runs(&DD) {
        let units = run.input.chars().count();
        let mut search = Dd::new(units, mode(&run.algorithm));
        let axiom = [Config::empty(), Config::all(units)];
        let tests = reproduce(&run, Caching::Text, &axiom, &mut search);
        assert_eq!(tests, run.tests, "{} {}", run.case, run.algorithm);
        let sides = [search.pass(), search.fail(), search.difference()];
        let [pass, fail, difference] = sides.map(|side| Some(text(&run.input, side)));
        assert_eq!(
            (pass, fail, difference),
            (run.pass, run.fail, run.difference),
            "{} {}",
            run.case,
            run.algorithm
        );
    }
}
