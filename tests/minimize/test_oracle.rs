//! The oracle of interestingness tests.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use ddfuzz::delta::Outcome;
use ddfuzz::exec::{Ended, Program, Target};
use ddfuzz::minimize::{CutOff, Kind, Oracle, OracleError, Script, ScriptState, TestOracle};

struct Fixture {
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new(lines: &str) -> Fixture {
        let fixture = Fixture {
            dir: tempfile::tempdir().unwrap(),
        };
        std::fs::write(fixture.path(), format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(fixture.path(), Permissions::from_mode(0o755)).unwrap();
        fixture
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("test.sh")
    }

    fn oracle(&self) -> TestOracle {
        let mut target = Target::new(Program::Path(self.path()));
        target.limits.cpu = std::time::Duration::from_millis(200);
        let script = Script::read(&self.path()).unwrap();
        TestOracle::new(script, target, OsString::from("name")).unwrap()
    }
}

#[test]
fn each_end_has_its_outcome() {
    let lines = "case $(cat) in f) exit 0 ;; u) exit 125 ;; s) kill -SEGV $$ ;; \
                 l) while :; do :; done ;; esac; exit 124";
    let fixture = Fixture::new(lines);
    let mut oracle = fixture.oracle();
    for (text, outcome, ended) in [
        ("f", Outcome::Fail, Ended::Exit(0)),
        ("u", Outcome::Unresolved, Ended::Exit(125)),
        ("s", Outcome::Pass, Ended::Signal(libc::SIGSEGV)),
        ("", Outcome::Pass, Ended::Exit(124)),
        ("l", Outcome::Unresolved, Ended::Timeout),
        ("f", Outcome::Fail, Ended::Exit(0)),
    ] {
        let answer = oracle.ask(text.as_bytes(), Kind::Deleting).unwrap();
        assert_eq!(answer.outcome, outcome, "{text:?}");
        assert_eq!(oracle.last_ended(), Some(ended));
        let cut_off = (ended == Ended::Timeout).then_some(CutOff::Time);
        assert_eq!(answer.cut_off, cut_off);
        assert!(answer.slip.is_none() && answer.minor.is_none() && answer.process.is_own());
    }
    let answer = oracle.ask_fresh(b"f", Kind::Rewriting).unwrap();
    assert_eq!(answer.outcome, Outcome::Fail);
}

#[test]
fn what_a_changed_test_says_does_not_count() {
    let fixture = Fixture::new("exit 0");
    let mut oracle = fixture.oracle();
    oracle.ask(b"x", Kind::Deleting).unwrap();
    let whole = std::fs::read(fixture.path()).unwrap();
    std::fs::write(fixture.path(), "#!/bin/sh\nexit 1\n").unwrap();
    let error = oracle.ask(b"x", Kind::Deleting).unwrap_err();
    assert!(matches!(error, OracleError::TestChanged { .. }), "{error}");
    std::fs::remove_file(fixture.path()).unwrap();
    let error = oracle.ask(b"x", Kind::Deleting).unwrap_err();
    assert!(matches!(error, OracleError::TestGone { .. }), "{error}");
    assert!(error.to_string().contains("test.sh"));
    // Put back, it goes on.
    std::fs::write(fixture.path(), whole).unwrap();
    std::fs::set_permissions(fixture.path(), Permissions::from_mode(0o755)).unwrap();
    let answer = oracle.ask_fresh(b"x", Kind::Deleting).unwrap();
    assert_eq!(answer.outcome, Outcome::Fail);
}

#[test]
fn a_script_is_known_by_its_content() {
    let fixture = Fixture::new("exit 0");
    let mut script = Script::read(&fixture.path()).unwrap();
    assert_eq!(script.state(), ScriptState::Same);
    let whole = std::fs::read(fixture.path()).unwrap();
    std::fs::remove_file(fixture.path()).unwrap();
    assert_eq!(script.state(), ScriptState::Gone);
    std::fs::write(fixture.path(), &whole).unwrap();
    assert_eq!(script.state(), ScriptState::Same);
    std::fs::write(fixture.path(), [&whole[..], b"#"].concat()).unwrap();
    assert_eq!(script.state(), ScriptState::Changed);
}
