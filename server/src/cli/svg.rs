//! Line charts as SVG, without a library: axes from 0 to 1, lines, bands, a legend. The background is light, so that a
//! chart is legible on any page.

use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 420.0;
/// Margins for the labels, in pixels: left, right, top and bottom.
const MARGINS: (f64, f64, f64, f64) = (64.0, 24.0, 76.0, 64.0);
/// Number of intervals between the labels of an axis.
const TICKS: u32 = 5;

/// Content of a chart.
#[derive(Debug, Default)]
pub(super) struct Chart {
    /// Title above the chart.
    pub(super) title: String,
    /// Label below the horizontal axis.
    pub(super) across: &'static str,
    /// Label beside the vertical axis, which runs from 0 to 1.
    pub(super) up: &'static str,
    /// Positions (0 to 1) and labels on the horizontal axis. If empty, every fifth is labelled with its value.
    pub(super) ticks: Vec<(f64, String)>,
    pub(super) lines: Vec<Line>,
    /// Position (0 to 1) on the horizontal axis to mark, and its label.
    pub(super) mark: Option<(f64, String)>,
}

/// A line of the chart. Both axes run from 0 to 1.
#[derive(Debug)]
pub(super) struct Line {
    /// Name in the legend.
    pub(super) name: String,
    /// Colour, as in SVG.
    pub(super) colour: &'static str,
    /// Points from left to right, each with its horizontal and vertical position.
    pub(super) points: Vec<(f64, f64)>,
    /// Confidence band: lower and upper bound for each point. May be empty.
    pub(super) band: Vec<(f64, f64)>,
    /// True if the points are shown as dots.
    pub(super) dots: bool,
}

impl Chart {
    /// Returns the chart as the text of an SVG file.
    pub(super) fn to_svg(&self) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#222222\">\n\
             <title>{title}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n",
            title = escaped(&self.title),
        );
        self.draw_axes(&mut svg);
        for line in &self.lines {
            draw_line(&mut svg, line);
        }
        if let Some((at, name)) = &self.mark {
            draw_mark(&mut svg, *at, name);
        }
        self.draw_legend(&mut svg);
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_axes(&self, svg: &mut String) {
        for step in 0..=TICKS {
            let share = f64::from(step) / f64::from(TICKS);
            let level = y(share);
            let colour = if step == 0 { "#222222" } else { "#dddddd" };
            stroke(svg, at(x(0.0), level), at(x(1.0), level), colour);
            text(svg, at(x(0.0) - 8.0, level + 4.0), "end", &format!("{share:.1}"));
            if self.ticks.is_empty() {
                text(svg, at(x(share), y(0.0) + 20.0), "middle", &format!("{share:.1}"));
            }
        }
        for (tick, name) in &self.ticks {
            stroke(svg, at(x(*tick), y(0.0)), at(x(*tick), y(0.0) + 5.0), "#222222");
            text(svg, at(x(*tick), y(0.0) + 20.0), "middle", name);
        }
        stroke(svg, at(x(0.0), y(0.0)), at(x(0.0), y(1.0)), "#222222");
        let middle = at((x(0.0) + x(1.0)) / 2.0, (y(0.0) + y(1.0)) / 2.0);
        text(svg, at(middle.x, HEIGHT - 16.0), "middle", self.across);
        let _ = writeln!(
            svg,
            "<text x=\"18\" y=\"{up:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {up:.1})\">{words}</text>",
            up = middle.y,
            words = escaped(self.up),
        );
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"22\" font-size=\"15\" font-weight=\"bold\">{}</text>",
            x(0.0),
            escaped(&self.title)
        );
    }

    fn draw_legend(&self, svg: &mut String) {
        let mut left = x(0.0);
        for line in &self.lines {
            stroke(svg, at(left, 40.0), at(left + 20.0, 40.0), line.colour);
            text(svg, at(left + 26.0, 44.0), "start", &line.name);
            // Estimated width of the letters.
            left += 50.0 + 7.2 * line.name.chars().count() as f64;
        }
    }
}

fn draw_line(svg: &mut String, line: &Line) {
    let place = |(across, up): (f64, f64)| format!("{:.1},{:.1}", x(across), y(up));
    if line.band.len() == line.points.len() && !line.band.is_empty() {
        let pairs = line.points.iter().zip(&line.band);
        let below = pairs.clone().map(|((across, _), (low, _))| place((*across, *low)));
        let above = pairs.rev().map(|((across, _), (_, high))| place((*across, *high)));
        let outline: Vec<String> = below.chain(above).collect();
        let _ = writeln!(
            svg,
            "<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.15\"/>",
            outline.join(" "),
            line.colour
        );
    }
    let points: Vec<String> = line.points.iter().copied().map(place).collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
        points.join(" "),
        line.colour
    );
    for (across, up) in line.points.iter().filter(|_| line.dots) {
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{}\"/>",
            x(*across),
            y(*up),
            line.colour
        );
        text(svg, at(x(*across), y(*up) - 10.0), "middle", &format!("{up:.3}"));
    }
}

fn draw_mark(svg: &mut String, place: f64, name: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{across:.1}\" y1=\"{:.1}\" x2=\"{across:.1}\" y2=\"{:.1}\" stroke=\"#222222\" \
         stroke-dasharray=\"4 4\"/>",
        y(0.0),
        y(1.0),
        across = x(place),
    );
    text(svg, at(x(place) + 6.0, y(1.0) + 14.0), "start", name);
}

/// Place in the picture, in pixels from its upper left corner.
#[derive(Debug, Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
}

fn at(x: f64, y: f64) -> Point {
    Point { x, y }
}

fn stroke(svg: &mut String, from: Point, to: Point, colour: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
        from.x, from.y, to.x, to.y
    );
}

fn text(svg: &mut String, place: Point, anchor: &str, words: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
        place.x,
        place.y,
        escaped(words)
    );
}

/// Returns the horizontal pixel position of a share from 0 to 1.
fn x(share: f64) -> f64 {
    let (left, right, ..) = MARGINS;
    left + share.clamp(0.0, 1.0) * (WIDTH - left - right)
}

/// Returns the vertical pixel position of a share from 0 to 1.
fn y(share: f64) -> f64 {
    let (.., above, below) = MARGINS;
    HEIGHT - below - share.clamp(0.0, 1.0) * (HEIGHT - above - below)
}

/// Escapes text for XML. Control characters are left out, because XML can't hold them.
fn escaped(words: &str) -> String {
    let mut escaped = String::with_capacity(words.len());
    for letter in words.chars().filter(|letter| !letter.is_control()) {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(band: Vec<(f64, f64)>) -> Line {
        Line {
            name: "a <b> & \"c\"".to_owned(),
            colour: "#1f4e9c",
            points: vec![(0.0, 0.0), (0.5, 0.5), (1.0, 2.0)],
            band,
            dots: true,
        }
    }

    #[test]
    fn lines_lie_where_their_values_are_and_never_outside() {
        let chart = Chart { lines: vec![line(Vec::new())], ..Chart::default() };
        let svg = chart.to_svg();
        assert!(svg.contains("<polyline points=\"64.0,356.0 340.0,216.0 616.0,76.0\""), "{svg}");
        assert!(!svg.contains("<polygon"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3);
    }

    #[test]
    fn a_band_goes_below_and_back_above() {
        let band = vec![(0.0, 0.1), (0.4, 0.6), (0.9, 1.0)];
        let svg = Chart { lines: vec![line(band)], ..Chart::default() }.to_svg();
        let wanted = "64.0,356.0 340.0,244.0 616.0,104.0 616.0,76.0 340.0,188.0 64.0,328.0";
        assert!(svg.contains(wanted), "{svg}");
    }

    #[test]
    fn words_are_no_markup() {
        let chart = Chart {
            title: "</svg>\u{1b}".to_owned(),
            lines: vec![line(Vec::new())],
            mark: Some((0.28, "a & b".to_owned())),
            ..Chart::default()
        };
        let svg = chart.to_svg();
        assert!(svg.contains("<title>&lt;/svg&gt;</title>"), "{svg}");
        assert!(
            svg.contains("a &lt;b&gt; &amp; &quot;c&quot;") && svg.contains("a &amp; b"),
            "{svg}"
        );
        assert_eq!((svg.matches("</svg>").count(), svg.contains('\u{1b}')), (1, false));
    }
}
