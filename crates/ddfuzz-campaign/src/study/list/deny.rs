//! Utilities that a study does not run, because they could harm the machine or send data to others.
//!
//! The sandbox restrains harmful programs that this list misses. Interpreters that read programs on
//! stdin (`sh`, `perl`, `python3`, `awk`) are not denied: random characters are hardly ever a
//! program that does anything, and the published studies ran them, too.

use std::ffi::OsString;

use super::base;

/// Utilities that run other programs: they are denied if any of their arguments is the name of a
/// denied utility.
const WRAPPERS: [&str; 11] = [
    "nohup", "busybox", "env", "find", "nice", "parallel", "stdbuf", "time", "timeout", "watch",
    "xargs",
];

/// Prefixes with which Debian's alternatives distinguish programs of the same name in several
/// packages.
const PREFIXES: [&str; 2] = ["inetutils-", "bsd-"];
/// Suffixes with which Debian's alternatives distinguish programs of the same name in several
/// packages.
const SUFFIXES: [&str; 5] = [".mailutils", ".db", ".netkit", ".traditional", ".openbsd"];

/// Harmless utilities that are links to a denied program, each with the name of that program.
const HARMLESS: [(&str, &str); 1] = [("pidof", "killall5")];

/// Returns the reason not to run the utility `utility` (a name or a path), which is a link to
/// `program`: the reason why `program` could do harm. `None` if the utility may be run. `words`:
/// the utility's arguments, and all options that may be added.
pub fn reason_of_program(utility: &str, program: &str, words: &[OsString]) -> Option<&'static str> {
    let is_harmless = HARMLESS.contains(&(base(utility), base(program)));
    reason(program, words).filter(|_| !is_harmless)
}

/// Returns the reason not to run the utility `utility` (a name or a path): its name or its
/// arguments show that it could do harm. `None` if it may be run. `args`: its arguments, and all
/// options that may be added.
pub fn reason(utility: &str, args: &[OsString]) -> Option<&'static str> {
    let name = base(utility);
    if let Some(why) = by_name(name) {
        return Some(why);
    }
    let args: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
    let begins = |beginning: &str| args.iter().any(|arg| arg.starts_with(beginning));
    let has = |word: &str| args.iter().any(|arg| arg == word);
    if WRAPPERS.contains(&name) {
        let wrapped = args.iter().find_map(|arg| by_name(base(arg)));
        if wrapped.is_some() {
            return wrapped;
        }
    }
    match name {
        "dd" if begins("of=") => Some(DELETES),
        "find"
            if ["-delete", "-fprint", "-fprintf", "-fls", "-fprint0"]
                .into_iter()
                .any(has) =>
        {
            Some(DELETES)
        }
        "openssl" if ["s_client", "s_server", "ocsp"].into_iter().any(has) => Some(NETWORK),
        "lynx" | "w3m" | "html2text" | "xmllint" | "xsltproc" | "ffmpeg" | "mpg123" | "mplayer"
            if args.iter().any(|arg| arg.contains("://")) =>
        {
            Some(NETWORK)
        }
        _ => None,
    }
}

fn by_name(name: &str) -> Option<&'static str> {
    in_table(name).or_else(|| in_table(stem(name)))
}

/// Returns the name of a program without the prefixes and suffixes that Debian's alternatives add.
fn stem(name: &str) -> &str {
    let mut begins = PREFIXES.iter();
    let name = begins.find_map(|it| name.strip_prefix(it)).unwrap_or(name);
    let mut ends = SUFFIXES.iter();
    ends.find_map(|it| name.strip_suffix(it)).unwrap_or(name)
}

fn in_table(name: &str) -> Option<&'static str> {
    if name == "mkfs" || name.starts_with("mkfs.") || name.starts_with("fsck.") {
        return Some(DISKS);
    }
    let found = DENIED
        .iter()
        .find(|(_, names)| names.split(' ').any(|one| one == name));
    found.map(|(why, _)| *why)
}

const NETWORK: &str = "it connects to other machines";
const DISKS: &str = "it writes to disks and file systems below files";
const DELETES: &str = "it deletes or overwrites files";

/// Denied utilities, which could do harm: pairs of a reason and the utilities' names, separated by
/// spaces.
const DENIED: &[(&str, &str)] = &[
    (
        "it sends the input by mail",
        "mail mailx bsd-mailx s-nail heirloom-mailx mutt neomutt sendmail msmtp nullmailer-inject \
         exim exim4 postfix elm pine alpine mh send comp repl forw uux uucp biff swaks mpack \
         bounce",
    ),
    (
        "it prints the input on a printer",
        "lp lpr lpq lprm cupsfilter",
    ),
    (
        NETWORK,
        "ftp tnftp lftp ncftp tftp telnet telnet.netkit wget wget2 curl aria2c nc nc.openbsd \
         nc.traditional ncat netcat socat rsync scp sftp ping ping6 fping traceroute tracepath \
         mtr dig nslookup host whois finger nmap hping3 snmpget snmpwalk talk irssi weechat \
         tcpdump tshark arping dhclient rwho links elinks svn cvs hg git youtube-dl yt-dlp \
         smbclient ldapsearch kubectl docker podman gcloud gsutil",
    ),
    (
        "it runs commands on other machines",
        "ssh rsh rlogin rexec mosh ansible ssh-copy-id ssh-add ssh-keyscan pssh",
    ),
    (
        "it shuts the machine down, or changes which services run",
        "shutdown reboot halt poweroff init telinit systemctl service loginctl systemd-run kexec \
         rtcwake runlevel invoke-rc.d initctl start-stop-daemon",
    ),
    (
        "it sends signals to other processes",
        "kill killall killall5 pkill skill xkill fuser snice renice",
    ),
    (
        DISKS,
        "fdisk sfdisk cfdisk gdisk sgdisk parted mke2fs mkswap swapon swapoff fsck e2fsck tune2fs \
         resize2fs debugfs hdparm sdparm blkdiscard wipefs badblocks lvm mdadm cryptsetup losetup \
         partx addpart delpart wodim cdrecord growisofs flashrom nvme",
    ),
    (
        DELETES,
        "rm rmdir unlink shred srm wipe truncate tmpreaper tmpwatch mv",
    ),
    (
        "it changes what is mounted",
        "mount umount pivot_root chroot fusermount fusermount3 unshare nsenter",
    ),
    (
        "it acts as another user, or changes what users may do",
        "su sudo sudoedit doas pkexec runuser setpriv capsh setcap chown chgrp chmod chattr \
         setfacl newgrp sg ksu super",
    ),
    (
        "it changes accounts and passwords",
        "passwd chpasswd gpasswd chsh chfn chage useradd userdel usermod groupadd groupdel \
         groupmod adduser deluser addgroup delgroup vipw vigr expiry login newusers pwconv \
         grpconv",
    ),
    (
        "it schedules commands for later",
        "at batch atrm crontab cron anacron",
    ),
    (
        "it installs or removes software",
        "apt apt-get aptitude dpkg dpkg-reconfigure dpkg-divert dselect update-alternatives pip \
         pip3 npm npx gem cargo cpan snap flatpak rpm alien ldconfig",
    ),
    (
        "it changes settings of the machine",
        "sysctl insmod modprobe rmmod hwclock timedatectl hostnamectl hostname domainname \
         localectl ip ifconfig route iptables nft tc setterm loadkeys setfont dmesg swaplabel \
         ipcrm ipcmk prlimit chrt ionice taskset openvt chvt bpftool",
    ),
    (
        "it writes to terminals and logs of other users",
        "wall write mesg logger systemd-cat script",
    ),
    (
        "it inspects other processes, or starts programs outside of the campaign's control",
        "strace ltrace perf gcore reptyr tmux screen setsid daemon valgrind",
    ),
    (
        "it is a server, which does not end",
        "sshd httpd apache2 nginx postgres mysqld redis-server inetd xinetd dbus-daemon gpg-agent \
         ssh-agent busybox-httpd dictd",
    ),
    ("it writes without end", "yes stress stress-ng"),
];
