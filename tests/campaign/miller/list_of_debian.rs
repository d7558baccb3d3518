//! The list that comes along.

use std::collections::BTreeSet;
use std::path::Path;

use ddfuzz::campaign::study::list::installed::{find, package_of};
use ddfuzz::campaign::study::list::{List, deny};
use ddfuzz::exec::{Channel, Terminal};

use crate::needs;

#[test]
fn it_has_two_hundred_utilities_and_no_wrong_line() {
    let list = List::debian();
    assert_eq!(list.skipped, []);
    let utilities = list.utilities();
    assert!(utilities.len() >= 200, "{} utilities", utilities.len());
    for listed in &list.entries {
        assert!(listed.package.is_some(), "{listed:?}");
        assert!(
            listed.invocation.pool_at <= listed.invocation.args.len(),
            "{listed:?}"
        );
        assert_eq!(
            deny::reason(&listed.utility, &listed.invocation.words()),
            None
        );
    }
}

#[test]
fn no_line_stands_there_twice() {
    let list = List::debian();
    let mut seen = BTreeSet::new();
    for listed in &list.entries {
        let call = (
            &listed.utility,
            listed.invocation.name(),
            &listed.invocation.args,
        );
        assert!(seen.insert(call), "{listed:?}");
        let options: BTreeSet<_> = listed.invocation.pool.iter().collect();
        assert_eq!(options.len(), listed.invocation.pool.len(), "{listed:?}");
    }
}

#[test]
fn each_program_in_a_terminal_knows_how_to_end() {
    let list = List::debian();
    let mut terminals = 0;
    for listed in &list.entries {
        if let Channel::Terminal(Terminal { ending, .. }) = &listed.invocation.channel {
            terminals += 1;
            assert!(!ending.0.is_empty(), "{listed:?}");
        }
    }
    assert!(terminals > 20, "only {terminals} in terminals");
}

#[test]
fn packages_are_those_that_own_the_installed_programs() {
    if !Path::new("/var/lib/dpkg/status").is_file() {
        return needs::missing("dpkg", "this is no Debian system");
    }
    let mut looked_at = 0;
    for listed in &List::debian().entries {
        let Some(path) = find(&listed.utility) else {
            continue;
        };
        // What administrators have put in front is theirs.
        if path.starts_with("/usr/local") {
            continue;
        }
        let owner = package_of(&path).map(|package| package.name);
        assert_eq!(owner, listed.package, "{}", path.display());
        looked_at += 1;
    }
    assert!(looked_at > 20, "only {looked_at} are installed");
}
