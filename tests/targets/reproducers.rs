//! The bugs of the bundled targets, each with the shortest input that shows it.

/// A bug, and the shortest input that shows it.
pub struct Bug {
    pub target: &'static str,
    /// The function that it crashes in.
    pub function: &'static str,
    pub reproducer: Vec<u8>,
}

fn bug(target: &'static str, function: &'static str, reproducer: &[u8]) -> Bug {
    Bug {
        target,
        function,
        reproducer: reproducer.to_vec(),
    }
}

/// All bugs of all targets.
pub fn all() -> Vec<Bug> {
    let underlined = [&[b'x'; 516][..], b"\n"].concat();
    vec![
        bug("crtplot", "draw_label", b"t"),
        bug("flex", "copy_line", &[b'x'; 2121]),
        bug("nroff", "scale_units", b"\\D\n%0F"),
        bug("nroff", "is_lone_control", b"\xc2\n"),
        bug("nroff", "macro_argument", b"\\$1"),
        bug("troff", "take_delimited", b"\\D\n"),
        bug("troff", "is_tied", b"\xc2\n"),
        bug("troff", "change_font", b"\\f%"),
        bug("ul", "pack", &underlined),
        bug("units", "keep_odd", &[0x80; 77]),
    ]
}
