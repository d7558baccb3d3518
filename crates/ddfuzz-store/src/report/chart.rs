//! Small drawings of curves and histograms as SVG inside an HTML page; colours come from the page's
//! style.

use std::fmt::Write;
use std::time::Duration;

use maud::{Markup, PreEscaped, html};

use crate::report::html::text;
use crate::report::size;

/// Width of a drawing, in SVG units (CSS pixels where the drawing is not scaled); the constants
/// after it are the drawing's height and margins, in the same units.
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 24.0;

/// How the values on an axis of a drawing are placed and marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// Places values linearly, with marks at round numbers.
    Linear,
    /// Places values by the logarithm of the value plus 1, with marks at powers of ten.
    Logarithmic,
    /// Places values in milliseconds linearly along the axis, with marks at round durations.
    Time,
    /// Places values in hundredths of a percent linearly along the axis, with marks at round
    /// percentages.
    Percent,
}

/// An axis of a drawing, which shows values from 0 to `most`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) most: u64,
    pub(super) scale: Scale,
}

impl Axis {
    /// Returns where the axis shows a value, as a fraction of its length: 0 at its start, 1 at the
    /// value `most`, above 1 for a greater value.
    fn share(self, value: u64) -> f64 {
        let most = self.most.max(1) as f64;
        match self.scale {
            Scale::Logarithmic => (value as f64 + 1.0).ln() / (most + 1.0).ln(),
            Scale::Linear | Scale::Time | Scale::Percent => value as f64 / most,
        }
    }

    /// Returns the values at which the axis has marks: 0, and at most `count` further values up to
    /// `most`.
    fn marks(self, count: u64) -> Vec<u64> {
        const DAY: u64 = 86_400_000;
        const TIMES: [u64; 16] = [
            1, 10, 100, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 300_000, 900_000,
            1_800_000, 3_600_000, 10_800_000, 43_200_000,
        ];
        let powers = (0..19).map(|power| 10_u64.pow(power));
        let fits = |step: &u64| self.most / step <= count;
        let step = match self.scale {
            Scale::Logarithmic => {
                let powers: Vec<u64> = powers.take_while(|power| *power <= self.most).collect();
                let every = powers.len().div_ceil(count as usize).max(1);
                let marked = powers.iter().rev().step_by(every).rev();
                return std::iter::once(0).chain(marked.copied()).collect();
            }
            Scale::Linear | Scale::Percent => {
                let steps = powers.flat_map(|power| [power, 2 * power, power.saturating_mul(5)]);
                steps.into_iter().find(fits)
            }
            Scale::Time => {
                let days = self.most / DAY / (count + 1) + 1;
                let whole_days = days.saturating_mul(DAY);
                TIMES.into_iter().chain([whole_days]).find(fits)
            }
        };
        let step = step.unwrap_or(self.most).max(1);
        (0..=self.most / step).map(|mark| mark * step).collect()
    }

    fn label(self, value: u64) -> String {
        match (self.scale, value) {
            (_, 0) => "0".to_owned(),
            (Scale::Percent, parts) => format!("{} %", parts as f64 / 100.0),
            (Scale::Time, ms) if ms % 86_400_000 == 0 => format!("{} d", ms / 86_400_000),
            (Scale::Time, ms) if ms % 3_600_000 == 0 => format!("{} h", ms / 3_600_000),
            (Scale::Time, ms) if ms % 60_000 == 0 => format!("{} min", ms / 60_000),
            (Scale::Time, ms) if ms % 1000 == 0 => format!("{} s", ms / 1000),
            (Scale::Time, ms) => size::duration(Duration::from_millis(ms)),
            (_, 0..10_000) => size::grouped(value),
            (_, 10_000..1_000_000) => format!("{}k", value / 1000),
            (_, 1_000_000..1_000_000_000) => format!("{}M", value / 1_000_000),
            _ => format!("{}G", value / 1_000_000_000),
        }
    }
}

/// Places values on a vertical axis, and draws its marks.
impl Axis {
    /// Returns the vertical coordinate of a value: the distance from the upper edge of the drawing,
    /// in its units. A value above `most` is placed at `most`.
    fn y(self, value: u64) -> f64 {
        HEIGHT - BOTTOM - self.share(value).min(1.0) * (HEIGHT - TOP - BOTTOM)
    }

    /// Draws a horizontal line with a label for each mark of the vertical axis, as SVG.
    fn lines(self) -> String {
        let mut svg = String::new();
        for mark in self.marks(4) {
            let y = self.y(mark);
            let _ = write!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 5.0,
                y + 4.0,
                self.label(mark),
            );
        }
        svg
    }
}

/// A range of values on the horizontal axis of a curve, with a name, drawn as a band behind the
/// curve.
#[derive(Clone, Debug)]
pub(super) struct Band {
    pub(super) name: String,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// A curve over a horizontal axis, to be drawn with single points and named ranges.
pub(super) struct Curve<'a> {
    /// Title of the drawing, which says what its vertical axis is.
    pub(super) title: &'a str,
    /// The horizontal axis of the curve: its greatest value, and how values are placed on it.
    pub(super) across: Axis,
    /// The vertical axis of the curve: its greatest value, and how values are placed on it.
    pub(super) up: Axis,
    /// The points of the curve, in the order of the horizontal axis.
    pub(super) line: Vec<(u64, u64)>,
    /// Single points drawn beside the curve: the value on the horizontal axis, the value on the
    /// vertical axis, and whether the point has the colour of the curve.
    pub(super) dots: Vec<(u64, u64, bool)>,
    /// Named ranges of the horizontal axis, drawn as bands behind the curve.
    pub(super) bands: Vec<Band>,
    /// Text below the horizontal axis of the curve; empty for none.
    pub(super) below: &'a str,
}

impl Curve<'_> {
    /// Returns the x and y coordinates of a point of the curve, in units of the drawing.
    fn place(&self, across: u64, up: u64) -> (f64, f64) {
        let x = LEFT + self.across.share(across).min(1.0) * (WIDTH - LEFT - RIGHT);
        (x, self.up.y(up))
    }

    fn grid(&self) -> String {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let mut svg = self.up.lines();
        for mark in self.across.marks(4) {
            let x = self.place(mark, 0).0;
            let label = self.across.label(mark);
            let anchor = if x > right - 20.0 { "end" } else { "middle" };
            let _ = write!(
                svg,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{label}</text>",
                bottom + 14.0,
            );
        }
        svg
    }

    fn bands(&self) -> Markup {
        let tall = HEIGHT - TOP - BOTTOM;
        html! {
            @for (index, band) in self.bands.iter().enumerate() {
                @let (from, to) = (self.place(band.from, 0).0, self.place(band.to, 0).0);
                rect class={ "band b" (index % 6) } x=(format!("{from:.1}")) y=(TOP)
                    width=(format!("{:.1}", (to - from).max(0.5))) height=(tall) {
                    title { (text(&band.name)) }
                }
            }
        }
    }

    fn points(&self) -> String {
        let mut svg = String::new();
        for (across, up, is_strong) in &self.dots {
            let (x, y) = self.place(*across, *up);
            let class = if *is_strong { "fail" } else { "pass" };
            let _ = write!(
                svg,
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.5\"/>"
            );
        }
        let points: Vec<String> = (self.line.iter())
            .map(|(across, up)| self.place(*across, *up))
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = write!(
            svg,
            "<polyline class=\"line\" points=\"{}\"/>",
            points.join(" ")
        );
        svg
    }

    /// Returns the HTML of the curve: a figure with the title as caption, an inline SVG drawing
    /// (bands, grid, dots and line), the text below the horizontal axis, and the names of the
    /// bands.
    pub(super) fn markup(&self) -> Markup {
        html! {
            figure {
                figcaption { (text(self.title)) }
                svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(text(self.title)) {
                    (self.bands())
                    (PreEscaped(self.grid()))
                    (PreEscaped(self.points()))
                }
                @if !self.below.is_empty() { p class="below" { (text(self.below)) } }
                @if !self.bands.is_empty() {
                    p class="legend" {
                        @for (index, band) in self.bands.iter().enumerate() {
                            span { i class={ "b" (index % 6) } {} (text(&band.name)) } " "
                        }
                    }
                }
            }
        }
    }
}

/// Two distributions, before and after, over the same ranges of values, drawn as pairs of columns
/// with logarithmic heights.
pub(super) struct Histogram<'a> {
    /// Title of the drawing, which says what is counted and in which unit.
    pub(super) title: &'a str,
    /// Ranges of values: the name of the range, and the number of values in it in the first
    /// distribution (before) and in the second (after).
    pub(super) ranges: Vec<(String, u64, u64)>,
}

impl Histogram<'_> {
    /// Returns the HTML of the histogram: a figure with the title as caption and an inline SVG
    /// drawing, in which each range of values has a pair of columns, before and after.
    pub(super) fn markup(&self) -> Markup {
        let most = self
            .ranges
            .iter()
            .map(|(_, before, after)| before.max(after));
        let up = Axis {
            most: most.max().copied().unwrap_or(0).max(1),
            scale: Scale::Logarithmic,
        };
        let step = (WIDTH - LEFT - RIGHT) / self.ranges.len().max(1) as f64;
        // As many names as there is room for.
        let every = (36.0 / step).ceil().max(1.0) as usize;
        html! {
            figure {
                figcaption { (text(self.title)) }
                svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(text(self.title)) {
                    (PreEscaped(up.lines()))
                    @for (at, (name, before, after)) in self.ranges.iter().enumerate() {
                        @let left = LEFT + at as f64 * step;
                        (column("before", left, step / 2.0, up, *before))
                        (column("after", left + step / 2.0, step / 2.0, up, *after))
                        @if at % every == 0 {
                            text x=(format!("{left:.1}")) y=(HEIGHT - BOTTOM + 14.0) { (text(name)) }
                        }
                    }
                }
            }
        }
    }
}

/// Draws one column of a histogram as SVG, for `count` values; nothing if `count` is 0. `left` is
/// the horizontal position of the column, `step` the distance to the next one, `class` its CSS
/// class. A browser shows the count as a tooltip.
fn column(class: &str, left: f64, step: f64, up: Axis, count: u64) -> Markup {
    let top = up.y(count);
    html! {
        @if count > 0 {
            rect class=(class) x=(format!("{left:.1}")) width=(format!("{:.1}", (step - 1.0).max(0.5)))
                y=(format!("{top:.1}")) height=(format!("{:.1}", HEIGHT - BOTTOM - top)) {
                title { (size::grouped(count)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_few_and_round() {
        let marks = |most, scale| Axis { most, scale }.marks(4);
        assert_eq!(marks(0, Scale::Linear), [0]);
        assert_eq!(marks(7, Scale::Linear), [0, 2, 4, 6]);
        assert_eq!(marks(10_000, Scale::Time), [0, 5000, 10_000]);
        assert_eq!(marks(999, Scale::Logarithmic), [0, 1, 10, 100]);
        for most in [1, 3, 99, 12_345, u64::MAX / 2, u64::MAX] {
            for scale in [
                Scale::Linear,
                Scale::Logarithmic,
                Scale::Time,
                Scale::Percent,
            ] {
                let marks = marks(most, scale);
                assert!(
                    marks.len() <= 6 && marks.iter().all(|mark| *mark <= most),
                    "{marks:?}"
                );
            }
        }
    }

    #[test]
    fn shares_are_labelled_in_percent() {
        let axis = Axis {
            most: 230,
            scale: Scale::Percent,
        };
        let labels: Vec<String> = (axis.marks(4).into_iter())
            .map(|mark| axis.label(mark))
            .collect();
        assert_eq!(labels, ["0", "0.5 %", "1 %", "1.5 %", "2 %"]);
        assert_eq!(axis.label(50), "0.5 %");
    }

    #[test]
    fn columns_stand_in_pairs_and_empty_ones_are_left_out() {
        let histogram = Histogram {
            title: "sizes",
            ranges: vec![("1".to_owned(), 7, 0), ("2".to_owned(), 0, 0)],
        };
        let svg = histogram.markup().into_string();
        assert_eq!(svg.matches("<rect").count(), 1);
        assert!(
            svg.contains("<title>7</title>") && !svg.contains("NaN"),
            "{svg}"
        );
        let nothing = Histogram {
            title: "sizes",
            ranges: Vec::new(),
        };
        assert!(!nothing.markup().into_string().contains("NaN"));
    }

    #[test]
    fn a_drawing_of_nothing_has_no_broken_numbers() {
        let axis = Axis {
            most: 0,
            scale: Scale::Logarithmic,
        };
        let curve = Curve {
            title: "bytes",
            across: axis,
            up: axis,
            line: vec![(0, 0)],
            dots: Vec::new(),
            bands: Vec::new(),
            below: "",
        };
        let svg = curve.markup().into_string();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
