//! A check as one self-contained HTML page: no script, nothing fetched.

use std::fmt::Write as _;

use plumbline_diagnosis::Verdict;

use super::curve::{Curve, CurvePoint};
use super::{Checked, Report, words};

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1a1c1e;--paper:#fff;--soft:#5b6470;--line:#d5dae0;--good:#176f3d;--bad:#b3261e;\
--unsure:#7a5900;--right:#1f5fbf;--given:#c2410c;--zone:#00000014}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--paper:#14171a;--soft:#a3adb8;--line:#353c44;--good:#6fd49a;\
--bad:#ff8a80;--unsure:#f1c453;--right:#7fb0ff;--given:#ff9d66;--zone:#ffffff1a}}\
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:64rem;margin:2rem auto;\
padding:0 1rem}h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.5rem}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}td.n,th.n{text-align:right}\
.conforms{color:var(--good)}.differs,.broken{color:var(--bad)}.unsure{color:var(--unsure)}code,pre{font:14px ui-monospace,\
monospace}pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid var(--line);padding:.5rem}.soft{color:var(--soft)}\
figure{margin:1rem 0}svg{max-width:100%;height:auto}svg text{fill:var(--soft);font:12px system-ui,sans-serif}\
.axis{stroke:var(--line);fill:none}.right{stroke:var(--right);fill:none;stroke-width:2.5}\
.given{stroke:var(--given);fill:none;stroke-width:2;stroke-dasharray:6 4}.zone{fill:var(--zone)}\
a{color:var(--right)}.scroll{overflow-x:auto}";

/// The page.
pub fn as_html(report: &Report) -> String {
    let mut page = String::new();
    // Writing to a String does not fail.
    let _ = write(&mut page, report);
    page
}

fn write(page: &mut String, report: &Report) -> std::fmt::Result {
    let title = format!("{} {}: plumbline check", escaped(&report.name), escaped(&report.version));
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    )?;
    let conforming = report.operations.iter().filter(|checked| checked.holds()).count();
    writeln!(
        page,
        "<p>{conforming} of {} operations conform. Precision {}, seed {}.</p>",
        report.operations.len(),
        escaped(&report.dtype),
        report.seed
    )?;
    writeln!(page, "<pre>plumbline check --seed {} -- {}</pre>", report.seed, escaped(&report.command))?;
    writeln!(
        page,
        "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">operation</th><th scope=\"col\">dialect</th>\
         <th scope=\"col\">verdict</th><th scope=\"col\" class=\"n\">cases</th><th scope=\"col\">cause</th></tr></thead>\n<tbody>"
    )?;
    for (index, checked) in report.operations.iter().enumerate() {
        writeln!(
            page,
            "<tr><td><a href=\"#op-{index}\">{}</a></td><td>{}</td><td class=\"{}\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
            escaped(&checked.id),
            escaped(checked.dialect.as_deref().unwrap_or("-")),
            class(checked),
            escaped(&verdict(checked)),
            checked.diagnosis.compared,
            escaped(&super::text::cause(&checked.diagnosis))
        )?;
    }
    writeln!(page, "</tbody></table></div>")?;
    for stale in &report.stale {
        writeln!(
            page,
            "<p class=\"differs\">Listed as known and no longer there: {} of {}.</p>",
            escaped(&stale.cause),
            escaped(&stale.operation)
        )?;
    }
    for (index, checked) in report.operations.iter().enumerate() {
        operation(page, report, checked, index)?;
    }
    writeln!(page, "</main>\n</body>\n</html>")
}

fn verdict(checked: &Checked) -> String {
    let words = words(&checked.diagnosis.verdict);
    if checked.is_known() { format!("{words} (known)") } else { words }
}

fn class(checked: &Checked) -> &'static str {
    match checked.diagnosis.verdict {
        _ if checked.is_known() => "unsure",
        Verdict::Conforms | Verdict::ConformsToDialect(_) => "conforms",
        Verdict::Differs => "differs",
        Verdict::Broken => "broken",
        Verdict::NotCompared => "unsure",
    }
}

fn operation(page: &mut String, report: &Report, checked: &Checked, index: usize) -> std::fmt::Result {
    let diagnosis = &checked.diagnosis;
    writeln!(page, "<section id=\"op-{index}\">\n<h2>{}</h2>", escaped(&checked.id))?;
    let gradients = if diagnosis.gradients { "value and gradient" } else { "value only" };
    writeln!(
        page,
        "<p><span class=\"{}\">{}</span>: {} cases compared, {gradients}; {} left out.</p>",
        class(checked),
        escaped(&verdict(checked)),
        diagnosis.compared,
        diagnosis.skipped.len()
    )?;
    if let Some(worst) = &diagnosis.worst {
        writeln!(
            page,
            "<p>Farthest off: <code>{}</code> at {:?} of case <code>{}</code>: {} where {} is right.</p>",
            escaped(&worst.output),
            worst.position,
            escaped(&worst.case),
            worst.got,
            worst.expected
        )?;
    }
    for (finding, known) in diagnosis.findings.iter().zip(&checked.known) {
        writeln!(page, "<p><strong>{}.</strong> {}</p>", finding.kind.name(), escaped(&finding.text))?;
        if let Some(reason) = known {
            writeln!(page, "<p class=\"unsure\">Known: {}</p>", escaped(reason))?;
        }
        if !finding.case.is_empty() {
            writeln!(page, "<pre>{}</pre>", escaped(&report.reproduce(checked, &finding.case)))?;
        }
    }
    for curve in &checked.curves {
        figure(page, curve)?;
    }
    writeln!(page, "</section>")
}

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 18.0;

fn figure(page: &mut String, curve: &Curve) -> std::fmt::Result {
    writeln!(page, "<figure>")?;
    panel(page, curve, curve.value, 0)?;
    panel(page, curve, curve.gradient, 1)?;
    writeln!(
        page,
        "<figcaption class=\"soft\">{}: solid is right, dashed is this implementation; shaded is where the right gradient \
         is 0 (clipped).</figcaption>",
        escaped(&curve.title)
    )?;
    writeln!(
        page,
        "<details><summary>The numbers</summary><div class=\"scroll\"><table><thead><tr><th scope=\"col\" class=\"n\">{}</th>\
         <th scope=\"col\" class=\"n\">right {v}</th><th scope=\"col\" class=\"n\">given {v}</th>\
         <th scope=\"col\" class=\"n\">right {g}</th><th scope=\"col\" class=\"n\">given {g}</th></tr></thead><tbody>",
        escaped(&curve.axis),
        v = curve.value,
        g = curve.gradient
    )?;
    for point in &curve.points {
        writeln!(
            page,
            "<tr><td class=\"n\">{:.3}</td><td class=\"n\">{:.6}</td><td class=\"n\">{:.6}</td><td class=\"n\">{:.6}</td><td class=\"n\">{:.6}</td></tr>",
            point.place, point.right[0], point.given[0], point.right[1], point.given[1]
        )?;
    }
    writeln!(page, "</tbody></table></div></details>\n</figure>")
}

/// One of the two plots: of the value (0) or of the gradient (1).
fn panel(page: &mut String, curve: &Curve, name: &str, which: usize) -> std::fmt::Result {
    let numbers = curve.points.iter().flat_map(|point| [point.right[which], point.given[which]]);
    let finite: Vec<f64> = numbers.filter(|number| number.is_finite()).collect();
    let (low, high) = finite
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| (low.min(*number), high.max(*number)));
    let room = if high > low { 0.06 * (high - low) } else { 0.5 };
    let (low, high) = if finite.is_empty() { (0.0, 1.0) } else { (low - room, high + room) };
    let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) else { return Ok(()) };
    let x = |place: f64| LEFT + (place - first.place) / (last.place - first.place) * (WIDTH - LEFT - 10.0);
    let y = |number: f64| TOP + (high - number) / (high - low) * (HEIGHT - TOP - BOTTOM);
    writeln!(
        page,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{} against {}, {}\">",
        escaped(name),
        escaped(&curve.axis),
        escaped(&curve.title)
    )?;
    for (from, to) in zones(&curve.points) {
        writeln!(
            page,
            "<rect class=\"zone\" x=\"{:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            x(from),
            x(to) - x(from),
            HEIGHT - TOP - BOTTOM
        )?;
    }
    let floor = HEIGHT - BOTTOM;
    writeln!(page, "<path class=\"axis\" d=\"M{LEFT} {TOP}V{floor}H{:.1}\"/>", WIDTH - 10.0)?;
    if first.place < 0.0 && last.place > 0.0 {
        writeln!(page, "<path class=\"axis\" stroke-dasharray=\"2 4\" d=\"M{:.1} {TOP}V{floor}\"/>", x(0.0))?;
    }
    for number in [low + room, 0.5 * (low + high), high - room] {
        writeln!(
            page,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{number:.3}</text>",
            LEFT - 6.0,
            y(number) + 4.0
        )?;
    }
    let ticks = [(first.place, "start"), (0.5 * (first.place + last.place), "middle"), (last.place, "end")];
    for (place, anchor) in ticks {
        writeln!(
            page,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{place:.2}</text>",
            x(place),
            floor + 14.0
        )?;
    }
    writeln!(page, "<text x=\"{LEFT}\" y=\"12\">{}</text>", escaped(name))?;
    writeln!(
        page,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        WIDTH - 10.0,
        HEIGHT - 4.0,
        escaped(&curve.axis)
    )?;
    let line = |pick: &dyn Fn(&CurvePoint) -> f64| {
        let mut path = String::new();
        let mut is_down = false;
        for point in &curve.points {
            let number = pick(point);
            if !number.is_finite() {
                is_down = false;
                continue;
            }
            let _ = write!(path, "{}{:.1} {:.1}", if is_down { 'L' } else { 'M' }, x(point.place), y(number));
            is_down = true;
        }
        path
    };
    writeln!(page, "<path class=\"right\" d=\"{}\"/>", line(&|point| point.right[which]))?;
    writeln!(page, "<path class=\"given\" d=\"{}\"/>\n</svg>", line(&|point| point.given[which]))
}

/// The stretches on which the right gradient is 0.
fn zones(points: &[CurvePoint]) -> Vec<(f64, f64)> {
    let mut zones: Vec<(f64, f64)> = Vec::new();
    let mut was_zero = false;
    for point in points {
        let is_zero = point.right[1] == 0.0;
        match zones.last_mut() {
            Some(zone) if is_zero && was_zero => zone.1 = point.place,
            _ if is_zero => zones.push((point.place, point.place)),
            _ => {}
        }
        was_zero = is_zero;
    }
    zones.retain(|(from, to)| to > from);
    zones
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
