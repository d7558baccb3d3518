//! Files of known formats, as hostile as any input: what is opened gives its text again, and parts,
//! payloads and groups can be deleted. The first two bytes choose them.
#![no_main]

use std::sync::{Arc, LazyLock};

use ddfuzz::delta::{Document, Format, InnerItems, Structure};
use ddfuzz::structure::{structure_named, structure_names};
use libfuzzer_sys::fuzz_target;

/// All formats, without the grammars, whose parsers take longer to make than a file to read.
static FORMATS: LazyLock<Vec<Arc<dyn Format>>> = LazyLock::new(|| {
    let formats = structure_names().filter_map(|name| match structure_named(name)? {
        Structure::Format(format) => Some(format),
        _ => None,
    });
    formats.collect()
});

/// Deletes, or replaces by less, the group that `choice` chooses of each kind that a file may have.
fn without_groups(document: &dyn Document, choice: u8) {
    let one = |count: usize| usize::from(choice).checked_rem(count);
    if let Some(group) = one(document.tied()) {
        document.without_tied(&[group]).text();
    }
    if let Some(group) = one(document.reducible()) {
        document.reduced(&[group]).text();
    }
    if let Some(column) = one(document.columns()) {
        document.without_columns(&[column]).text();
    }
    if let Some(wrapper) = one(document.wrappers()) {
        for kept in [InnerItems::Largest, InnerItems::All] {
            let unwrapped = document.unwrapped(&[wrapper], kept);
            unwrapped.with(&unwrapped.payloads()).text();
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = data.split_first_chunk::<2>() else {
        return;
    };
    for format in FORMATS.iter() {
        let Some(document) = format.open(text) else {
            continue;
        };
        assert_eq!(document.text(), text);
        let fewer = document.without(&[usize::from(choice[0]) % document.parts().len().max(1)]);
        let mut payloads = fewer.payloads();
        let count = payloads.len().max(1);
        if let Some(payload) = payloads.get_mut(usize::from(choice[1]) % count) {
            *payload = payload[payload.len() / 2..].into();
        }
        fewer.with(&payloads).text();
        document.opaque().text();
        without_groups(document.as_ref(), choice[0]);
        let regions = document.regions().len().max(1);
        let with = choice[0]
            .is_multiple_of(2)
            .then_some(usize::from(choice[0]) % regions);
        if let Some(shared) = document.sharing(usize::from(choice[1]) % regions, with) {
            shared.text();
        }
        if let Some(repacked) = document.repacked() {
            repacked.with(&repacked.payloads()).text();
        }
    }
});
