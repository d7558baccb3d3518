//! Merging: its laws, on small random directories.

use std::fs;
use std::path::{Path, PathBuf};

use ddfuzz::store::{EntryId, Kind, Store, merge};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::mounts;
use crate::sample::{self, by_run, campaign, crash, outcome};
use crate::tree::tree;

/// One step of a small random history.
#[derive(Clone, Debug)]
enum Step {
    File {
        kind: Kind,
        major: u8,
        minor: u8,
        input: u8,
        run: u64,
    },
    Minimize {
        entry: usize,
        reproducer: Vec<u8>,
    },
    Finish {
        entry: usize,
        proved: bool,
        size: u64,
    },
    Log {
        entry: usize,
        search: u8,
        lines: u8,
    },
    Archive {
        entry: usize,
    },
    Script {
        entry: usize,
        program: u8,
    },
    Seen {
        entry: usize,
        campaign: u8,
        runs: u64,
    },
    Corpus {
        input: u8,
    },
    Forget {
        entry: usize,
        what: &'static str,
    },
    Tear {
        entry: usize,
        what: &'static str,
    },
    Begin {
        campaign: u8,
    },
    Options {
        entry: usize,
        lines: u8,
        arguments: usize,
    },
    Study {
        campaign: u8,
        shard: u32,
        place: u64,
        runs: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop::sample::select(vec![
        Kind::Crash,
        Kind::Crash,
        Kind::Flaky,
        Kind::Hang,
        Kind::Oom,
    ]);
    let forgotten = prop::sample::select(vec!["crash.json", "../../group.json", "minimized.json"]);
    let torn = prop::sample::select(vec![
        "crash.json",
        "../../group.json",
        "minimized.json",
        "original",
        "minimized",
    ]);
    let entry = 0..8usize;
    prop_oneof![
        8 => (kind, 0..2u8, 0..2u8, 0..3u8, 0..4u64).prop_map(|(kind, major, minor, input, run)| {
            Step::File { kind, major, minor, input, run }
        }),
        4 => (entry.clone(), prop::collection::vec(0..2u8, 0..3))
            .prop_map(|(entry, reproducer)| Step::Minimize { entry, reproducer }),
        4 => (entry.clone(), any::<bool>(), 0..3u64)
            .prop_map(|(entry, proved, size)| Step::Finish { entry, proved, size }),
        4 => (entry.clone(), 0..2u8, 0..3u8)
            .prop_map(|(entry, search, lines)| Step::Log { entry, search, lines }),
        2 => entry.clone().prop_map(|entry| Step::Archive { entry }),
        1 => (entry.clone(), 0..2u8).prop_map(|(entry, program)| Step::Script { entry, program }),
        2 => (entry.clone(), 0..3u8, 0..5u64)
            .prop_map(|(entry, campaign, runs)| Step::Seen { entry, campaign, runs }),
        1 => (0..3u8).prop_map(|input| Step::Corpus { input }),
        1 => (entry.clone(), forgotten)
            .prop_map(|(entry, what)| Step::Forget { entry, what }),
        2 => (entry, torn).prop_map(|(entry, what)| Step::Tear { entry, what }),
        1 => (0..3u8).prop_map(|campaign| Step::Begin { campaign }),
        2 => (0..8usize, 0..3u8, 0..3usize)
            .prop_map(|(entry, lines, arguments)| Step::Options { entry, lines, arguments }),
        3 => (0..2u8, 0..2u32, 0..3u64, 0..4u64)
            .prop_map(|(campaign, shard, place, runs)| Step::Study { campaign, shard, place, runs }),
    ]
}

/// Makes a directory by such a history.
fn build(root: &Path, name: &str, steps: &[Step]) {
    let mut store = Store::create_or_resume(root, campaign(name)).unwrap();
    let mut ids: Vec<(EntryId, ddfuzz::triage::Key)> = Vec::new();
    for step in steps {
        let pick = |entry: usize| ids.get(entry % ids.len().max(1)).cloned();
        match step.clone() {
            Step::File {
                kind,
                major,
                minor,
                input,
                run,
            } => {
                let crash = by_run(crash(&major.to_string(), &minor.to_string()), run);
                let id = store.file(kind, &crash, &[input; 3]).unwrap().id;
                ids.push((id, crash.keys.major));
            }
            Step::Corpus { input } => drop(store.add_to_corpus(&[input]).unwrap()),
            Step::Begin { campaign: id } => {
                let host = name.to_owned();
                let campaign = ddfuzz::store::Campaign {
                    host,
                    ..campaign(&id.to_string())
                };
                store.begin(campaign).unwrap();
            }
            Step::Study {
                campaign,
                shard,
                place,
                runs,
            } => write_study(&store, campaign, shard, place, runs),
            step => {
                let entry = match step {
                    Step::Minimize { entry, .. }
                    | Step::Finish { entry, .. }
                    | Step::Log { entry, .. }
                    | Step::Archive { entry }
                    | Step::Script { entry, .. }
                    | Step::Seen { entry, .. }
                    | Step::Options { entry, .. }
                    | Step::Forget { entry, .. }
                    | Step::Tear { entry, .. } => entry,
                    _ => continue,
                };
                if let Some((id, major)) = pick(entry) {
                    change(&mut store, &id, major, step);
                }
            }
        }
    }
}

/// Writes what a study has come to, with one utility more, or one that has gone on.
fn write_study(store: &Store, campaign: u8, shard: u32, place: u64, runs: u64) {
    let id = campaign.to_string();
    let mut studies = store.reader().studies().unwrap().into_iter();
    let mut study = studies
        .find(|study| study.campaign == id)
        .unwrap_or_else(|| sample::study(&id, Vec::new()));
    study.shard = Some((shard + 1, 2));
    study.utilities.retain(|utility| utility.place != place);
    study.utilities.push(sample::utility(place, runs));
    store.write_study(&study).unwrap();
}

/// Applies a step to an entry; on one that an earlier step made incomplete it fails, and nothing
/// is changed.
fn change(store: &mut Store, id: &EntryId, major: ddfuzz::triage::Key, step: Step) {
    let folder = id.folder(store.reader().root());
    match step {
        Step::Minimize { reproducer, .. } => drop(store.write_minimized(id, &reproducer)),
        Step::Finish { proved, size, .. } => {
            drop(store.write_outcome(id, &outcome(size, proved)));
        }
        Step::Log { search, lines, .. } => {
            let lines = format!("{{\"search\":{search}}}\n").repeat(lines.into());
            fs::write(id.log(store.reader().root()), lines).unwrap();
        }
        Step::Archive { .. } => {
            if let Some(entry) = store.reader().entry(id).unwrap() {
                entry.archive_minimization("set aside").unwrap();
            }
        }
        Step::Script { program, .. } => {
            store.install_program("ul", &[program]).unwrap();
            let program = ddfuzz::exec::Program::Bundled("ul".to_owned());
            drop(store.write_reproduce(id, &ddfuzz::exec::Target::new(program)));
        }
        Step::Seen { campaign, runs, .. } => {
            store
                .set_seen(id.kind(), major, &campaign.to_string(), runs)
                .unwrap();
        }
        Step::Options {
            lines, arguments, ..
        } => {
            fs::write(store.options_log(id).unwrap(), "{}\n".repeat(lines.into())).unwrap();
            drop(store.set_subject(id, &sample::subject("ul", arguments)));
        }
        Step::Forget { what, .. } => drop(fs::remove_file(folder.join(what))),
        // As another file system may leave it after a power cut.
        Step::Tear { what, .. } => {
            if let Ok(whole) = fs::read(folder.join(what)) {
                fs::write(folder.join(what), &whole[..whole.len() / 2]).unwrap();
            }
        }
        _ => {}
    }
}

struct Three {
    folder: TempDir,
    inputs: [PathBuf; 3],
    outs: u32,
}

impl Three {
    fn build(steps: &[Vec<Step>; 3]) -> Three {
        let folder = mounts::fast_tempdir();
        let inputs = ["a", "b", "c"].map(|name| folder.path().join(name));
        for (root, steps) in inputs.iter().zip(steps) {
            build(root, root.file_name().unwrap().to_str().unwrap(), steps);
        }
        Three {
            folder,
            inputs,
            outs: 0,
        }
    }

    /// Merges into a new directory.
    fn merged(&mut self, inputs: &[&Path]) -> PathBuf {
        self.outs += 1;
        let out = self.folder.path().join(format!("out{}", self.outs));
        let inputs: Vec<PathBuf> = inputs.iter().map(|input| input.to_path_buf()).collect();
        merge(&inputs, &out).unwrap();
        out
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]

    #[test]
    fn merging_depends_neither_on_order_nor_on_grouping_nor_on_repetition(
        steps in prop::array::uniform3(prop::collection::vec(step(), 0..24)),
    ) {
        let mut three = Three::build(&steps);
        let inputs = three.inputs.clone();
        let [a, b, c] = inputs.each_ref().map(PathBuf::as_path);
        let before: Vec<_> = inputs.iter().map(|input| tree(input)).collect();
        let all = three.merged(&[a, b, c]);
        let expected = tree(&all);
        let permuted = three.merged(&[c, a, b, a]);
        prop_assert_eq!(&tree(&permuted), &expected);
        let ab = three.merged(&[a, b]);
        let left = three.merged(&[&ab, c]);
        prop_assert_eq!(&tree(&left), &expected);
        let cb = three.merged(&[c, b]);
        let right = three.merged(&[a, &cb]);
        prop_assert_eq!(&tree(&right), &expected);
        for input in [c, b, a] {
            merge(&[input.to_owned()], &cb).unwrap();
        }
        prop_assert_eq!(&tree(&cb), &expected);
        let alone = three.merged(&[&all]);
        prop_assert_eq!(&tree(&alone), &expected);
        let after: Vec<_> = inputs.iter().map(|input| tree(input)).collect();
        prop_assert_eq!(before, after);
    }
}
