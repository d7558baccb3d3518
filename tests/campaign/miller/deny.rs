//! What is not run, and why.

use std::ffi::OsString;

use ddfuzz::campaign::study::list::{List, deny};

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
fn the_names_behind_alternatives_are_refused_as_the_plain_ones_are() {
    for line in [
        "inetutils-telnet",
        "inetutils-ftp",
        "/usr/bin/mail.mailutils",
        "bsd-write",
        "bsd-mailx",
        "traceroute.db",
        "nc.traditional",
        "rsh.netkit",
        "env inetutils-ping",
    ] {
        assert!(reason(line).is_some(), "{line}");
    }
    for line in ["mawk.traditional", "inetutils-", ".db", "bsd-from"] {
        assert_eq!(reason(line), None, "{line}");
    }
}

#[test]
fn a_link_is_refused_by_the_name_of_its_program() {
    assert!(deny::reason_of_program("mua", "mail.mailutils", &[]).is_some());
    assert_eq!(deny::reason_of_program("awk", "mawk", &[]), None);
    assert_eq!(deny::reason_of_program("pidof", "killall5", &[]), None);
}

#[test]
fn options_that_may_be_drawn_are_looked_at_as_arguments_are() {
    for text in [
        "stdin find [-delete -print] .",
        "//: option of=out\nstdin dd",
        "stdin env [kill -i] true",
    ] {
        let list = List::parse("test", text);
        assert!(list.entries.is_empty(), "{text}");
        assert!(list.skipped[0].denied.is_some(), "{text}");
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
