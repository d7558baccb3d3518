//! The planted bugs: what the files `programs/*.inputs` say.
//!
//! `bug NAME` begins a bug; each further line is an input of it, `ROUTE "TEXT"`. Inputs of one
//! route come to the bug by the same calls. In the text `\n` ends a line, `{TEXT*N}` is TEXT N
//! times, and `\u{HEX}` is a character.

/// One input, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planted {
    /// The bug that it sets off.
    pub bug: String,
    /// How it comes there.
    pub route: String,
    /// The input itself.
    pub input: Vec<u8>,
}

/// The inputs of one file.
pub fn parse(text: &str) -> Vec<Planted> {
    let mut bug = String::new();
    let mut all = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("bug ") {
            bug = name.trim().to_owned();
        } else if !line.trim().is_empty() {
            let (route, quoted) = line.trim().split_once(' ').expect("a route and a text");
            let quoted = quoted.trim().strip_prefix('"');
            let text = quoted.and_then(|text| text.strip_suffix('"'));
            all.push(Planted {
                bug: bug.clone(),
                route: route.to_owned(),
                input: unescape(text.expect("the text is quoted")).into_bytes(),
            });
        }
    }
    all
}

/// At most `most` inputs of each route, the first ones.
pub fn first_of_each_route(all: &[Planted], most: usize) -> Vec<Planted> {
    let mut kept: Vec<Planted> = Vec::new();
    for one in all {
        let same = |other: &&Planted| other.bug == one.bug && other.route == one.route;
        if kept.iter().filter(same).count() < most {
            kept.push(one.clone());
        }
    }
    kept
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '{']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(behind) = rest.strip_prefix("\\n") {
            out.push('\n');
            rest = behind;
        } else if let Some((hex, behind)) =
            rest.strip_prefix("\\u{").and_then(|it| it.split_once('}'))
        {
            let letter = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
            out.push(letter.expect("the number of a character"));
            rest = behind;
        } else if let Some((inside, behind)) = rest[1..].split_once('}') {
            let (what, times) = inside.rsplit_once('*').expect("{TEXT*N}");
            out.push_str(&what.repeat(times.parse().expect("how often")));
            rest = behind;
        }
    }
    out + rest
}

#[test]
fn escapes_and_repeats_are_read() {
    let all = parse("bug a\n  x \"1\\n{ab*3}\\u{e9}\"\n\nbug b\n  y  \"\"\n");
    let of = |bug: &str, route: &str, input: &str| Planted {
        bug: bug.to_owned(),
        route: route.to_owned(),
        input: input.into(),
    };
    assert_eq!(all, [of("a", "x", "1\nababab\u{e9}"), of("b", "y", "")]);
}
