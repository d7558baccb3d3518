//! Payloads of a document as the text that passes edit: each edit of payloads (changeable bytes)
//! becomes an edit of the whole text, in which lengths, checksums and offsets are corrected.

use std::ops::Range;
use std::sync::Arc;

use crate::document::Document;
use crate::{Config, Edit, Replacement, one_change};

/// The document around the payloads (changeable bytes) that passes edit at present. It makes each
/// edit of the payloads an edit of the whole text, with corrected numbers, and holds the whole
/// current best meanwhile.
pub(super) struct Envelope {
    pub document: Arc<dyn Document>,
    /// Present contents of all payloads (changeable bytes) of the document (the parsed file),
    /// whether passes have edited them or not.
    payloads: Vec<Arc<[u8]>>,
    /// Indices, in the document (the parsed file), of the payloads (changeable bytes) that passes
    /// edit at present; joined, these are the text that passes see.
    edited: Range<usize>,
    /// The current best as a whole, put aside while passes edit only some of its payloads
    /// (changeable bytes).
    pub whole: Whole,
}

/// The current best as a whole (original input, kept positions, text), put aside while passes edit
/// only payloads (changeable bytes) of its document.
pub(super) struct Whole {
    pub original: Arc<[u8]>,
    pub best: Config,
    pub text: Arc<[u8]>,
    pub rewritten: bool,
}

/// The result of an edit of payloads (changeable bytes of a document, the parsed file). It has a
/// copy of the document with the new payloads, the text of that copy, and the edit that turns the
/// current best text into this text.
pub(super) struct Sealed {
    document: Arc<dyn Document>,
    payloads: Vec<Arc<[u8]>>,
    text: Vec<u8>,
    /// The edit that turns the whole current best text into the text of the document (the parsed
    /// file).
    pub edit: Edit,
}

impl Envelope {
    pub fn new(document: Arc<dyn Document>, edited: Range<usize>, whole: Whole) -> Envelope {
        let payloads = document.payloads();
        Envelope {
            edited: edited.start..edited.end.min(payloads.len()),
            document,
            payloads,
            whole,
        }
    }

    /// Returns the text that passes see and edit at present: the edited payloads (changeable
    /// bytes), one after the other.
    pub fn inside(&self) -> Vec<u8> {
        self.payloads[self.edited.clone()].concat()
    }

    /// Makes an edit of the payloads (changeable bytes) in the whole file. `edit` counts positions
    /// in the text that the edited payloads make, joined. Returns a copy of the document (the
    /// parsed file) with the edit, its text, and the same edit with positions in the whole text;
    /// `None` if the whole text would stay as it is, or would become longer.
    pub fn seal(&self, edit: &Edit) -> Option<Sealed> {
        let mut payloads = self.payloads.clone();
        let mut start = 0;
        for payload in &mut payloads[self.edited.clone()] {
            let place = start..start + payload.len();
            start = place.end;
            if let Some(new) = edited(edit, payload, &place) {
                *payload = new.into();
            }
        }
        let document = self.document.with(&payloads);
        let text = document.text();
        let edit = difference(&self.whole.text, &text)?;
        Some(Sealed {
            document,
            payloads,
            text,
            edit,
        })
    }

    /// Returns by how many bytes the whole text becomes shorter if `edit` is made in the payloads
    /// (changeable bytes) that passes edit; 0 if it would stay as it is or become longer.
    pub fn shortened_by(&self, edit: &Edit) -> usize {
        let sealed = self.seal(edit);
        sealed.map_or(0, |sealed| self.whole.text.len() - sealed.text.len())
    }

    /// Applies the edit `sealed`, whose text failed when it was tested: its document and its text
    /// become the current best document and text.
    pub fn take(&mut self, sealed: Sealed) {
        self.whole.best = self.whole.best.without(&lost(&sealed.edit));
        self.whole.rewritten = true;
        self.whole.text = sealed.text.into();
        self.document = sealed.document;
        self.payloads = sealed.payloads;
    }
}

/// Applies `edit` to one of several payloads (changeable bytes) of a file. `edit` is an edit of the
/// text that all of them make, joined; `payload` is the old content of this payload, and `place`
/// its range in that text. Returns its new content; `None` if it stays as it is.
fn edited(edit: &Edit, payload: &[u8], place: &Range<usize>) -> Option<Vec<u8>> {
    let nothing = Vec::new();
    let changes: Vec<(&Range<usize>, &Vec<u8>)> = match edit {
        Edit::Cut(cuts) => cuts.iter().map(|cut| (cut, &nothing)).collect(),
        Edit::Set(new) => new.iter().map(|new| (&new.at, &new.with)).collect(),
        Edit::Keep(_) => return None,
    };
    let mut new = Vec::with_capacity(payload.len());
    let (mut from, mut changed) = (0, false);
    for (at, with) in changes {
        let cut = at.start.clamp(place.start, place.end)..at.end.clamp(place.start, place.end);
        if cut.is_empty() {
            continue;
        }
        changed = true;
        new.extend_from_slice(&payload[from..cut.start - place.start]);
        // Of a replacement across payloads, each takes the bytes that stand for its own.
        let inserted = cut.start - at.start..cut.end - at.start;
        let end = inserted.end.min(with.len());
        new.extend_from_slice(&with[inserted.start.min(end)..end]);
        from = cut.end - place.start;
    }
    new.extend_from_slice(&payload[from..]);
    changed.then_some(new)
}

/// Returns the edit that makes the text `new` of the text `old`: one replacement of everything from
/// the first to the last difference. `None` if both are equal or `new` is longer.
pub(super) fn difference(old: &[u8], new: &[u8]) -> Option<Edit> {
    if new.len() > old.len() || new == old {
        return None;
    }
    let change = one_change(old, new);
    let replacement = Replacement {
        at: change.at,
        with: new[change.with].to_vec(),
    };
    Some(Edit::Set(vec![replacement]))
}

/// Returns the positions of the current best text that replacements in `edit` remove. A replacement
/// may insert fewer bytes than it replaces: then the last of the replaced bytes count as removed.
pub(super) fn lost(edit: &Edit) -> Vec<Range<usize>> {
    let Edit::Set(replacements) = edit else {
        return Vec::new();
    };
    let gone = replacements
        .iter()
        .map(|new| (new.at.start + new.with.len()).min(new.at.end)..new.at.end);
    gone.filter(|gone| !gone.is_empty()).collect()
}
