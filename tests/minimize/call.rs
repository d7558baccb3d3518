//! Parts of a call as texts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use ddfuzz::exec::{Program, Target};
use ddfuzz::minimize::Call;
use ddfuzz::minimize::log::Part;

fn target(args: &[&str]) -> Target {
    Target {
        args: args.iter().map(OsString::from).collect(),
        ..Target::new(Program::Path("/bin/program".into()))
    }
}

/// What a part of these arguments becomes where only these units are kept.
fn kept(args: &[&str], part: Part, at: usize, units: &[usize]) -> Option<Vec<OsString>> {
    let call = Call::new(target(args), part, at);
    let text: Vec<u8> = units.iter().map(|unit| call.text()[*unit]).collect();
    call.target(&text).map(|target| target.args)
}

#[test]
fn whole_arguments_go_but_those_that_name_the_input_stay() {
    let args = ["-a", "--in=@@", "-b", "-a", "@@"];
    let call = Call::new(target(&args), Part::Args, 0);
    assert_eq!(call.text().len(), 3);
    assert_eq!(call.target(call.text()).unwrap().args, args);
    let one = kept(&args, Part::Args, 0, &[2]).unwrap();
    assert_eq!(one, ["--in=@@", "-a", "@@"]);
    assert_eq!(kept(&args, Part::Args, 0, &[]).unwrap(), ["--in=@@", "@@"]);
    assert!(
        Call::new(target(&args), Part::Argument, 1)
            .text()
            .is_empty()
    );
    assert!(
        Call::new(target(&args), Part::Argument, 9)
            .text()
            .is_empty()
    );
}

#[test]
fn characters_of_one_argument_go_alone() {
    let args = ["-a", "aäbä"];
    let call = Call::new(target(&args), Part::Argument, 1);
    assert_eq!(call.text().len(), 4);
    assert_eq!(
        kept(&args, Part::Argument, 1, &[0, 3]).unwrap(),
        ["-a", "aä"]
    );
    assert_eq!(kept(&args, Part::Argument, 1, &[]).unwrap(), ["-a", ""]);
}

#[test]
fn what_becomes_a_name_of_the_input_is_no_call() {
    assert_eq!(kept(&["@x@"], Part::Argument, 0, &[0, 2]), None);
    // Where the input is named anyway, nothing changes in how it comes.
    let both = kept(&["@x@", "@@"], Part::Argument, 0, &[0, 2]);
    assert_eq!(both.unwrap(), ["@@", "@@"]);
}

#[test]
fn arguments_that_are_no_text_go_by_bytes_and_so_do_those_of_many_characters() {
    let odd = OsString::from_vec(vec![b'a', 0xff, b'b']);
    let many: String = ('\u{4e00}'..='\u{4f00}').collect();
    for (arg, units) in [(odd, 3), (OsString::from(&many), many.len())] {
        let mut target = target(&[]);
        target.args = vec![arg];
        let call = Call::new(target.clone(), Part::Argument, 0);
        assert_eq!(call.text().len(), units);
        assert_eq!(call.target(call.text()), Some(target));
    }
    let few: String = ('\u{4e00}'..='\u{4eff}').collect();
    let call = Call::new(target(&[&few]), Part::Argument, 0);
    assert_eq!(call.text().len(), 256);
}

#[test]
fn more_units_than_bytes_are_taken_in_several_places() {
    let args: Vec<String> = (0..600).map(|number| number.to_string()).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let places = Call::places(&target(&args), true, false);
    let whole: Vec<usize> = places
        .iter()
        .filter(|(part, _)| *part == Part::Args)
        .map(|(_, at)| *at)
        .collect();
    assert_eq!(whole, [0, 256, 512]);
    let last = Call::new(target(&args), Part::Args, 512);
    assert_eq!(last.text().len(), 88);
    let left = last.target(&[]).unwrap().args;
    assert_eq!(left, &args[..512]);
    let middle = kept(&args, Part::Args, 256, &[1]).unwrap();
    assert_eq!((middle.len(), middle[256].to_str()), (345, Some("257")));
}

#[test]
fn variables_go_as_wholes() {
    let mut target = target(&["-a"]);
    target.env = vec![("A".into(), "1".into()), ("B".into(), "2".into())];
    let call = Call::new(target.clone(), Part::Env, 0);
    let left = call.target(&call.text()[1..]).unwrap();
    assert_eq!(left.env, [("B".into(), "2".into())]);
    assert_eq!(left.args, ["-a"]);
    assert_eq!(Call::places(&target, false, true), [(Part::Env, 0)]);
}
