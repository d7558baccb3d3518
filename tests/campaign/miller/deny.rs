//! What is not run, and why.

use std::ffi::OsString;

use ddfuzz::campaign::miller::list::{List, deny};

fn reason(line: &str) -> Option<&'static str> {
    let mut words = line.split_whitespace();
    let utility = words.next().expect("a utility");
    let args: Vec<OsString> = words.map(OsString::from).collect();
    deny::reason(utility, &args)
}

#[test]
fn what_could_harm_or_leave_the_machine_is_refused() {
    for line in [
        "mail -s subject someone",
        "shutdown",
        "/sbin/reboot",
        "killall5",
        "mkfs.ext4",
        "mkfs",
        "dd of=out",
        "rm",
        "mount",
        "su",
        "sudo",
        "passwd",
        "at",
        "crontab",
        "ssh",
        "ftp",
        "telnet",
        "wget",
        "curl",
        "nc",
        "strace",
        "find . -delete",
        "env kill",
        "xargs rm",
        "nice /bin/rm",
        "openssl s_client",
        "w3m http://localhost",
    ] {
        assert!(reason(line).is_some(), "{line}");
    }
}

#[test]
fn what_reads_its_input_only_is_run() {
    for line in [
        "dd",
        "dd conv=ucase",
        "sh",
        "bash",
        "perl",
        "python3",
        "find . -print",
        "xargs -0",
        "openssl asn1parse",
        "w3m -dump",
        "mailcap-reader",
        "gdb -batch",
        "date -f",
    ] {
        assert_eq!(reason(line), None, "{line}");
    }
}

#[test]
fn the_line_of_the_study_that_mails_its_input_is_skipped_and_says_so() {
    for line in [
        "stdin mail -s \"subject\" somebody@example.org < ",
        "file mail -s \"subject\" somebody@example.org <",
    ] {
        let list = List::parse("test", line);
        assert!(list.entries.is_empty());
        let [skipped] = &list.skipped[..] else {
            panic!("{list:?}");
        };
        assert!(skipped.why.contains("mail"), "{}", skipped.why);
        let denied = skipped.denied.as_ref().expect("--allow may run it");
        assert_eq!(denied.utility, "mail");
    }
}
