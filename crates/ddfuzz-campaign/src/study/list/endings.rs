//! By which keys known programs end, from whatever state random keys have brought them to.
//!
//! Keys that have no meaning where the program stands are mostly harmless, so that one text
//! serves many states. What ends every terminal (end of file, hang-up, kill) comes after it, and
//! is not listed here.

/// Shells: what is open is abandoned (quotes, here-documents), and the shell is left.
const SHELL: &[u8] = b"\x03\n\x03\nexit\n\x03\nexit\n";
/// Editors like vi: out of insertion and half-typed commands, then away without saving.
const VI: &[u8] = b"\x1b\x1b\x1b:q!\n\x1b\x1b:qa!\n";
/// Line editors like ed: out of insertion, then away twice (the first is warned of changes).
const LINE: &[u8] = b"\n.\nQ\nQ\n";
/// Pagers: what is asked for is answered, as somebody would who reads on, then away.
const PAGER: &[u8] = b"\r\rq\x03\r\rqq\n";
/// Monitors and browsers: out of prompts, then away.
const QUIT: &[u8] = b"\x03\n\x1b\x1bqq\nq\n";
/// Editors like emacs: abandon, then away without saving.
const EMACS: &[u8] = b"\x07\x07\x07\x18\x03y\nyes\n";
/// Calculators and other readers of commands.
const COMMANDS: &[u8] = b"\x03\nquit\nexit\n";

/// Base names, and their keys.
const ENDINGS: &[(&[&str], &[u8])] = &[
    (
        &[
            "bash", "csh", "dash", "ksh", "mksh", "posh", "rbash", "rc", "sh", "tcsh", "yash",
            "zsh", "fish",
        ],
        SHELL,
    ),
    (
        &[
            "ex",
            "nex",
            "nvi",
            "nview",
            "rview",
            "rvim",
            "vi",
            "view",
            "vim",
            "vim.basic",
            "vim.tiny",
            "vimdiff",
            "bvi",
            "hexer",
            "elvis",
            "vis",
        ],
        VI,
    ),
    (&["ed", "red"], LINE),
    (
        &[
            "htop", "info", "ncdu", "top", "tig", "w3m", "watch", "vlock", "hexedit", "slabtop",
            "atop",
        ],
        QUIT,
    ),
    (&["less", "man", "more", "most", "zless", "zmore"], PAGER),
    (&["emacs", "jmacs", "jed", "mg", "zile"], EMACS),
    // Nano asks whether to save: no.
    (&["nano", "rnano", "pico"], b"\x03\x03\x18n\n\x18n\n"),
    // Joe asks whether to lose changes: yes.
    (&["joe", "jpico", "rjoe"], b"\x03\x03\x03y\x0b\x11y\n\x03y"),
    // Midnight Commander: out of dialogues, then F10 and yes.
    (&["mc"], b"\x1b\x1b\x1b\x1b\x1b0\n\x1b0y\n"),
    (
        &["mcedit", "mcview", "mcdiff"],
        b"\x1b\x1b\x1b\x1b\x1b0n\x1b0n",
    ),
    (
        &[
            "bc", "calc", "dc", "gdb", "gnuplot", "maxima", "qalc", "sqlite3", "units",
        ],
        COMMANDS,
    ),
    (&["dialog", "whiptail"], b"\x1b\x1b\x1b\n"),
    (&["ftp", "telnet", "tnftp"], b"\n\x1d\nquit\nbye\n"),
    (
        &[
            "lua", "lua5.4", "perl", "python3", "tclsh", "guile", "ocaml", "irb",
        ],
        b"\x03\n\x04\nexit()\nexit\n",
    ),
];

/// The keys that end `utility`, a name or a path; none where nothing is known.
pub fn of(utility: &str) -> &'static [u8] {
    let name = base(utility);
    let found = ENDINGS.iter().find(|(names, _)| names.contains(&name));
    found.map_or(b"", |(_, keys)| keys)
}

/// The last part of a path.
pub(super) fn base(utility: &str) -> &str {
    utility.rsplit('/').next().unwrap_or(utility)
}
