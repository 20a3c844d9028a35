//! The curve of finds a second over live lobbies, as SVG. Finds are on a logarithmic axis: the systems differ
//! by more than a linear one could show.

use std::fmt::Write as _;

use super::Step;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 460.0;
/// Where the plot lies in the drawing.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 690.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 360.0;
/// Of Muster and its peers, in the order of the table.
const COLORS: [&str; 3] = ["#0b6e4f", "#b5432a", "#2a5db5"];

/// One system's line.
struct Line {
    name: &'static str,
    color: &'static str,
    rates: Vec<f64>,
}

fn lines(steps: &[Step]) -> Vec<Line> {
    let mut lines: Vec<Line> = steps[0]
        .systems()
        .zip(COLORS)
        .map(|(system, color)| Line { name: system.name, color, rates: Vec::new() })
        .collect();
    for step in steps {
        for (line, system) in lines.iter_mut().zip(step.systems()) {
            line.rates.push(system.run.rate());
        }
    }
    lines
}

/// Draws the finds a second of all systems.
pub fn svg(steps: &[Step]) -> String {
    let lines = lines(steps);
    let live: Vec<f64> = steps.iter().map(|step| step.live as f64).collect();
    let most_live = round_up(live.iter().copied().fold(0.0, f64::max), 2_000.0);
    let rates = || lines.iter().flat_map(|line| line.rates.iter().map(|rate| rate.log10()));
    let least = rates().fold(f64::INFINITY, f64::min).floor();
    let most = rates().fold(least + 1.0, f64::max).ceil();
    let x = |live: f64| LEFT + (RIGHT - LEFT) * live / most_live;
    let y = |power: f64| BOTTOM - (BOTTOM - TOP) * (power - least) / (most - least);

    let mut drawing = Drawing::new();
    for live in ticks(0.0, most_live, 2_000.0) {
        drawing.rule((x(live), BOTTOM), (x(live), BOTTOM + 5.0), "#444");
        drawing.text((x(live), BOTTOM + 20.0), "middle", &grouped(live));
    }
    for power in ticks(least, most, 1.0) {
        drawing.rule((LEFT, y(power)), (RIGHT, y(power)), if power > least { "#ddd" } else { "#444" });
        drawing.text((LEFT - 8.0, y(power) + 4.0), "end", &grouped(10_f64.powf(power)));
    }
    drawing.text((f64::midpoint(LEFT, RIGHT), BOTTOM + 45.0), "middle", "live lobbies (capacity 8)");
    let axis = "finds per second (HTTP, 16 connections), logarithmic";
    drawing.text((LEFT - 60.0, TOP - 25.0), "start", axis);
    for (number, Line { name, color, rates }) in lines.iter().enumerate() {
        let points: Vec<_> = live.iter().zip(rates).map(|(live, rate)| (x(*live), y(rate.log10()))).collect();
        drawing.line(&points, color);
        let left = LEFT + 210.0 * number as f64;
        drawing.line(&[(left, BOTTOM + 75.0), (left + 25.0, BOTTOM + 75.0)], color);
        drawing.text((left + 35.0, BOTTOM + 79.0), "start", name);
    }
    drawing.end()
}

fn round_up(value: f64, unit: f64) -> f64 {
    (value / unit).ceil().max(1.0) * unit
}

fn ticks(least: f64, most: f64, unit: f64) -> impl Iterator<Item = f64> {
    (0..).map(move |number| f64::from(number).mul_add(unit, least)).take_while(move |tick| *tick <= most)
}

/// A whole number below a million, with a comma between thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    match digits.len().checked_sub(3).filter(|thousands| *thousands > 0) {
        Some(thousands) => format!("{},{}", &digits[..thousands], &digits[thousands..]),
        None => digits,
    }
}

/// SVG text in the making.
struct Drawing(String);

impl Drawing {
    fn new() -> Self {
        let mut drawing = Self(String::new());
        drawing.add(&format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13" fill="#222">"##
        ));
        drawing.add("<title>Finds per second over live lobbies, Muster and Colyseus</title>");
        drawing.add(&format!(r##"<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>"##));
        drawing
    }

    fn add(&mut self, element: &str) {
        self.0.push_str(element);
        self.0.push('\n');
    }

    fn rule(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), color: &str) {
        self.add(&format!(r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{color}"/>"#));
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        self.add(&format!(r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#));
    }

    fn line(&mut self, points: &[(f64, f64)], color: &str) {
        let mut list = String::new();
        for (x, y) in points {
            // Writing to a text cannot fail.
            let _ = write!(list, "{x:.1},{y:.1} ");
        }
        let list = list.trim_end();
        self.add(&format!(
            r#"<polyline points="{list}" fill="none" stroke="{color}" stroke-width="2.5" stroke-linejoin="round"/>"#
        ));
    }

    fn end(mut self) -> String {
        self.add("</svg>");
        self.0
    }
}
