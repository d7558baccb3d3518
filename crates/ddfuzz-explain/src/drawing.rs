//! Drawings of the memory graphs of both runs side by side, one SVG each. They show the objects
//! that differ and those that point to them; objects that are the same in both runs are left out.

use std::collections::BTreeSet;
use std::fmt::Write;

use ddfuzz_model::files::escaped_markup as escaped;

use crate::delta::{Change, Differences};
use crate::graph::{Graph, LeafKind, Object, ObjectId, Origin};
use crate::types::Types;

/// Largest number of objects that are drawn of the memory graph of one run.
const MOST_BOXES: usize = 40;
/// Largest number of values that are drawn in one object.
const MOST_ROWS: usize = 10;
/// Width of an object's box in pixels.
const WIDTH: usize = 330;
/// Distance of the boxes from the left border of the drawing, in pixels.
const MARGIN: usize = 10;
/// Width of the space beside the boxes in which the arrows are drawn, in pixels.
const ARROWS: usize = 60;
/// Height of a line of text in a box, in pixels.
const ROW: usize = 15;

/// What is drawn of the memory graph of one run, the passing or the failing one.
struct Side<'a> {
    graph: &'a Graph,
    /// The drawn objects, in the order of their ids: those that differ between the runs, and those
    /// with pointers to a differing one. Each has the indices of its differing leaves (values).
    boxes: Vec<(ObjectId, BTreeSet<usize>)>,
    /// Number of objects that are not drawn because they are the same in both runs.
    folded: usize,
    /// Number of objects that are not drawn because there are more than [`MOST_BOXES`].
    left_out: usize,
    /// CSS class of the values that differ, which is also the name of the run: `passing` or
    /// `failing`.
    class: &'static str,
}

/// Draws the memory graphs of the passing and the failing run at `place` as HTML, with the
/// differences `all` marked.
pub fn draw(
    types: &Types,
    (passing, failing): (&Graph, &Graph),
    all: &Differences<'_>,
    place: &str,
) -> String {
    let mut changed: [Vec<(ObjectId, Option<usize>)>; 2] = Default::default();
    for delta in &all.deltas {
        match delta.change {
            Change::Value {
                passing,
                failing,
                leaf,
                ..
            }
            | Change::Pointer {
                passing,
                failing,
                leaf,
            } => {
                changed[0].push((passing, Some(leaf)));
                changed[1].push((failing, Some(leaf)));
            }
            Change::Create(id) => changed[1].push((id, None)),
            Change::Delete(id) => changed[0].push((id, None)),
            Change::Header(_) => {}
        }
    }
    let [one, other] = &changed;
    let sides = [
        Side::new(passing, one, "passing"),
        Side::new(failing, other, "failing"),
    ];
    let mut page = format!(
        "<h2>Memory in {}</h2>\n<p class=\"faint\">What differs, and what leads to it.</p>\n\
         <div class=\"pair\">\n",
        escaped(place)
    );
    for side in &sides {
        let mut drawn = String::new();
        let height = side.draw(types, &mut drawn);
        let (width, class) = (WIDTH + MARGIN + ARROWS, side.class);
        let _ = writeln!(
            page,
            "<figure>\n<figcaption>The {class} run</figcaption>\n<svg width=\"{width}\" \
             height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"memory of the {class} run\">\n{drawn}</svg>\n</figure>"
        );
    }
    page + "</div>\n"
}

impl<'a> Side<'a> {
    fn new(
        graph: &'a Graph,
        changed: &[(ObjectId, Option<usize>)],
        class: &'static str,
    ) -> Side<'a> {
        let is_shown =
            |id: &ObjectId| !matches!(graph.objects[*id].origin, Origin::Raw | Origin::Undescribed);
        let mut shown: BTreeSet<ObjectId> =
            changed.iter().map(|(id, _)| *id).filter(is_shown).collect();
        // The pointers by which what differs is reached.
        for id in shown.clone() {
            let mut at = id;
            while let Some((from, ..)) = graph.objects[at].reached {
                if !shown.insert(from) {
                    break;
                }
                at = from;
            }
        }
        let all = graph.objects.iter().enumerate();
        let visible = all.filter(|(id, _)| is_shown(id)).count();
        let (folded, left_out) = (
            visible.saturating_sub(shown.len()),
            shown.len().saturating_sub(MOST_BOXES),
        );
        let boxes: Vec<(ObjectId, BTreeSet<usize>)> = shown
            .into_iter()
            .take(MOST_BOXES)
            .map(|id| {
                let own = changed.iter().filter(|(changed, _)| *changed == id);
                (id, own.filter_map(|(_, leaf)| *leaf).collect())
            })
            .collect();
        Side {
            graph,
            folded,
            left_out,
            boxes,
            class,
        }
    }

    /// Appends the SVG elements of the run's memory graph to `drawn`, and returns the height of the
    /// drawing in pixels.
    fn draw(&self, types: &Types, drawn: &mut String) -> usize {
        let mut top = 10;
        let mut places: Vec<(ObjectId, usize)> = Vec::new();
        let mut pointers: Vec<(usize, ObjectId)> = Vec::new();
        for (id, differing) in &self.boxes {
            places.push((*id, top + ROW / 2));
            top += self.object(types, *id, differing, top, &mut pointers, drawn) + 12;
        }
        let right = MARGIN + WIDTH;
        for (from, to) in pointers {
            if let Some((_, to)) = places.iter().find(|(id, _)| *id == to) {
                let bend = right + (12 + from.abs_diff(*to) / 12).min(ARROWS + 10);
                let _ = writeln!(
                    drawn,
                    "<path class=\"grid\" d=\"M{right} {from} C{bend} {from} {bend} {to} {right} {to}\"/>"
                );
            }
        }
        for (number, what) in [
            (self.left_out, "more that differ or lead there"),
            (self.folded, "that match"),
        ] {
            if number > 0 {
                let plural = if number == 1 { "" } else { "s" };
                let text = format!("… and {number} object{plural} {what}");
                top += ROW;
                text_at(drawn, top, &text, "");
            }
        }
        top + 10
    }

    /// Appends the box of an object, with its upper edge at `top`, to `drawn`, and returns the
    /// box's height in pixels. `differing` has the indices of the leaves (values) that are marked.
    /// Adds the vertical position and the target of each drawn pointer to `pointers`.
    fn object(
        &self,
        types: &Types,
        id: ObjectId,
        differing: &BTreeSet<usize>,
        top: usize,
        pointers: &mut Vec<(usize, ObjectId)>,
        drawn: &mut String,
    ) -> usize {
        let object = &self.graph.objects[id];
        let rows = rows(object, differing);
        let height = (rows.len() + 1) * ROW + 8;
        let _ = writeln!(
            drawn,
            "<rect class=\"grid\" x=\"{MARGIN}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{height}\"/>"
        );
        let title = match object.is_variable() {
            true => object.name.clone(),
            false => self.graph.name(id, ""),
        };
        let title = format!("{title}: {}", types.get(object.of).name);
        text_at(drawn, top + ROW, &title, "font-weight=\"bold\"");
        for (index, leaf) in rows.iter().enumerate() {
            let y = top + (index + 2) * ROW;
            let Some(leaf) = leaf else {
                text_at(drawn, y, "…", "");
                continue;
            };
            let value = &object.leaves[*leaf];
            let path = if value.path.is_empty() {
                "="
            } else {
                value.path.as_str()
            };
            let bytes = object.value(value);
            let shown = match value.kind {
                LeafKind::Bytes => crate::types::show_bytes(bytes),
                _ => types.show(value.of, bytes, value.bits),
            };
            let style = match differing.contains(leaf) {
                true => format!("class=\"{}\"", self.class),
                false => String::new(),
            };
            text_at(drawn, y, &format!("{path} {shown}"), &style);
            if matches!(value.kind, LeafKind::Pointer(_))
                && let Some((to, _)) = self.graph.target(id, value)
            {
                pointers.push((y - ROW / 3, to));
            }
        }
        height
    }
}

/// Appends a line of text with its baseline at `y` to the SVG text `drawn`, with the SVG
/// `attributes`; a long line is cut.
fn text_at(drawn: &mut String, y: usize, text: &str, attributes: &str) {
    const SHOWN: usize = 48;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if text.chars().count() > SHOWN {
        shown.push('…');
    }
    let x = MARGIN + 6;
    let _ = writeln!(
        drawn,
        "<text x=\"{x}\" y=\"{y}\" {attributes}>{}</text>",
        escaped(&shown)
    );
}

/// Returns the indices of an object's leaves (values) that are drawn, at most [`MOST_ROWS`]: those
/// that differ, and the first of the others. A `None` at the end stands for all that are left out.
fn rows(object: &Object, differing: &BTreeSet<usize>) -> Vec<Option<usize>> {
    let mut rows: Vec<usize> = differing.iter().copied().take(MOST_ROWS).collect();
    let others = (0..object.leaves.len()).filter(|leaf| !differing.contains(leaf));
    rows.extend(others.take(MOST_ROWS - rows.len()));
    rows.sort_unstable();
    let is_cut = rows.len() < object.leaves.len();
    let mut rows: Vec<Option<usize>> = rows.into_iter().map(Some).collect();
    if is_cut {
        rows.push(None);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Leaf, Place};
    use crate::types::{Encoding, Shape};

    /// Test helper: returns the memory graph of a state with 300 variables; those whose numbers are
    /// in `changed` have another value.
    fn state(types: &mut Types, changed: std::ops::Range<u64>) -> Graph {
        let int = types.add("int", 4, Shape::Base(Encoding::Signed));
        let mut graph = Graph::default();
        for number in 0..300 {
            let value = if changed.contains(&number) { 1u32 } else { 0 };
            graph.add(Object {
                origin: Origin::Global(number),
                place: Place::Memory(0x1000 + 8 * number),
                of: int,
                bytes: value.to_le_bytes().to_vec(),
                leaves: vec![Leaf {
                    offset: 0,
                    size: 4,
                    bits: None,
                    kind: LeafKind::Scalar,
                    of: int,
                    path: String::new(),
                }],
                name: format!("v{number}"),
                function: String::new(),
                reached: None,
                alias: None,
            });
        }
        graph
    }

    /// Draws two states of a test, which differ in the variables `changed`; returns the drawing
    /// with the number of its boxes.
    fn drawn(changed: std::ops::Range<u64>) -> (String, usize) {
        let mut types = Types::default();
        let passing = state(&mut types, 0..0);
        let mut failing = state(&mut types, changed);
        for (one, other) in passing.objects.iter().zip(&mut failing.objects) {
            (other.of, other.leaves[0].of) = (one.of, one.of);
        }
        let all = Differences::new(&types, &passing, &failing);
        let text = draw(&types, (&passing, &failing), &all, "f at x.c:1, time 2");
        let boxes = text.matches("<rect").count();
        (text, boxes)
    }

    #[test]
    fn what_matches_is_folded() {
        let (text, boxes) = drawn(7..8);
        assert_eq!(boxes, 2);
        assert!(text.contains("v7: int") && text.contains("… and 299 objects that match"));
        let (text, boxes) = drawn(0..300);
        assert_eq!(boxes, 2 * MOST_BOXES);
        assert!(
            text.contains("… and 260 objects more that differ"),
            "{text}"
        );
        assert!(!text.contains("that match"));
    }
}
