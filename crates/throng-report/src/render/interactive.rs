//! Figures for the page: data for plotly.js, whose script is embedded so that the page works
//! without a network. Colours are left to the page's own script, which knows light from dark.

mod heat;
mod stacked;

use serde_json::{Value, json};

use super::ticks;
use crate::figures::{Axis, Figure, Kind, Series, Trace};
use crate::palette::{hex, look};
use throng_record::format::number;

/// The script of plotly.js, without its `<script>` tags. The crate hands out `MathJax` too, which
/// nothing here needs: 2 MB less in every page.
pub fn script() -> String {
    let tags = plotly::Plot::offline_js_sources();
    let inner = tags
        .split_once('>')
        .and_then(|(_, rest)| rest.split_once("</script>"))
        .map_or("", |(script, _)| script);
    inner.to_owned()
}

/// All figures as JSON that may stand within a `<script>` element.
pub fn data(figures: &[Figure]) -> String {
    let all: Vec<Value> = figures.iter().map(figure).collect();
    // `<` cannot end the element or open a comment when it is written as an escape.
    Value::from(all).to_string().replace('<', "\\u003c")
}

fn figure(figure: &Figure) -> Value {
    let (traces, layout) = match figure.kind {
        Kind::Stacked => (stacked::traces(figure), stacked::layout(figure)),
        Kind::Heat => (heat::traces(figure), heat::layout(figure)),
        Kind::Lines | Kind::Course | Kind::Points | Kind::Bars => plain(figure),
    };
    json!({ "id": figure.id, "traces": traces, "layout": layout })
}

/// A trace a series, and lines all across where there are such.
fn plain(figure: &Figure) -> (Vec<Value>, Value) {
    let (levels, series): (Vec<&Series>, Vec<&Series>) = figure
        .series
        .iter()
        .partition(|series| series.trace == Trace::Level);
    let mut layout = json!({
        "xaxis": horizontal(figure),
        "yaxis": axis(&figure.y),
        "bargap": 0.25,
    });
    if !levels.is_empty() {
        layout["shapes"] = levels.into_iter().filter_map(level).collect();
    }
    let series = series.into_iter();
    (series.map(|series| trace(figure, series)).collect(), layout)
}

/// A line all across, in a grey that is seen on light and dark.
fn level(series: &Series) -> Option<Value> {
    let y = series.points.first()?.y;
    Some(json!({
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y,
        "line": { "color": "#7d8590", "width": 1.5, "dash": "dot" },
    }))
}

fn horizontal(figure: &Figure) -> Value {
    let values = figure.marked();
    match figure.kind {
        Kind::Bars => json!({ "type": "category", "title": { "text": "" } }),
        Kind::Points | Kind::Stacked | Kind::Heat | Kind::Course => axis(&figure.x),
        Kind::Lines => {
            let mut axis = axis(&figure.x);
            if values.len() <= 10 {
                let marks = ticks::at_values(&values, figure.x.log);
                axis["tickvals"] = marks.iter().map(|mark| mark.at).collect();
                axis["ticktext"] = marks.into_iter().map(|mark| mark.text).collect();
            }
            axis
        }
    }
}

fn axis(axis: &Axis) -> Value {
    let mut value = json!({
        "title": { "text": escaped(&axis.title()) },
        "type": if axis.log { "log" } else { "linear" },
    });
    if axis.log {
        value["dtick"] = json!("D2");
        value["tickformat"] = json!("~r");
    } else {
        value["tickformat"] = json!(",~r");
        if axis.from_zero {
            value["rangemode"] = json!("tozero");
        }
    }
    value
}

fn trace(figure: &Figure, series: &Series) -> Value {
    let look = look(series.place);
    let unit = figure.y.unit.unwrap_or_default();
    let (above, below): (Vec<f64>, Vec<f64>) = series
        .points
        .iter()
        .map(|p| {
            (
                p.high.map_or(0.0, |high| high - p.y),
                p.low.map_or(0.0, |low| p.y - low),
            )
        })
        .unzip();
    let hover: Vec<String> = series
        .points
        .iter()
        .map(|point| match (point.low, point.high) {
            (Some(low), Some(high)) => format!(" ({} to {})", number(low), number(high)),
            _ => String::new(),
        })
        .collect();
    let mut trace = json!({
        "name": escaped(&series.name),
        "meta": { "light": hex(look.light), "dark": hex(look.dark), "server": series.place },
        "x": series.points.iter().map(|point| point.x).collect::<Vec<_>>(),
        "y": series.points.iter().map(|point| point.y).collect::<Vec<_>>(),
        "hovertemplate": format!(
            "%{{x:,}} {}: <b>%{{y:,.4~r}}</b> {unit}%{{text}}",
            match figure.kind {
                Kind::Points | Kind::Stacked | Kind::Heat => "",
                Kind::Course => "s",
                Kind::Lines | Kind::Bars => figure.x.label,
            }
        ),
        "textposition": "none",
    });
    if series.points.iter().any(|point| point.low.is_some()) {
        trace["text"] = json!(hover);
        trace["error_y"] = json!({
            "type": "data", "symmetric": false, "array": above, "arrayminus": below,
            "thickness": 1.4, "width": 4,
        });
    } else {
        trace["text"] = json!("");
    }
    match figure.kind {
        Kind::Lines => draw_lines(&mut trace, series),
        Kind::Course => {
            trace["type"] = json!("scatter");
            trace["mode"] = json!("lines");
            let (width, dash) = match (series.trace, look.dashed) {
                (Trace::Dotted, _) => (1.2, "dot"),
                (_, true) => (2.0, "dash"),
                (_, false) => (2.0, "solid"),
            };
            trace["line"] = json!({ "width": width, "dash": dash });
        }
        Kind::Points => {
            trace["type"] = json!("scatter");
            trace["mode"] = json!("markers");
            trace["marker"] = json!({ "size": 4, "opacity": 0.6, "symbol": if look.dashed { "circle-open" } else { "circle" } });
        }
        Kind::Bars => {
            let partial = series.points.iter().any(|point| point.partial);
            trace["type"] = json!("bar");
            trace["x"] = json!([escaped(&series.name)]);
            trace["hovertemplate"] = json!(format!("<b>%{{y:,.4~r}}</b> {unit}%{{text}}"));
            trace["marker"] = json!({ "opacity": if partial { 0.4 } else { 1.0 } });
            if figure.y.log {
                trace["type"] = json!("scatter");
                trace["mode"] = json!("markers");
                trace["marker"] = json!({ "size": 9, "symbol": look.marker.plotly() });
            }
        }
        // Made by part, not by server; and not of points.
        Kind::Stacked | Kind::Heat => {}
    }
    trace
}

/// Markers, lines or both, in the look of a server.
fn draw_lines(trace: &mut Value, series: &Series) {
    let look = look(series.place);
    if series.trace == Trace::Curve {
        trace["hovertemplate"] = json!("%{x:,.0f} clients, fitted: <b>%{y:,.4~r}</b>");
    }
    if series.trace == Trace::Mark {
        trace["hovertemplate"] = json!("limit: <b>%{x:,.0f}</b>");
    }
    let open = if series.points.iter().any(|point| point.partial) {
        "-open"
    } else {
        ""
    };
    let symbols: Vec<String> = series
        .points
        .iter()
        .map(|p| {
            format!(
                "{}{}",
                look.marker.plotly(),
                if p.partial { open } else { "" }
            )
        })
        .collect();
    trace["type"] = json!("scatter");
    trace["mode"] = json!(match series.trace {
        Trace::Joined => "lines+markers",
        Trace::Markers => "markers",
        Trace::Curve | Trace::Mark | Trace::Level | Trace::Dotted => "lines",
    });
    trace["line"] = json!({ "width": 2, "dash": if look.dashed { "dash" } else { "solid" } });
    trace["marker"] = json!({ "size": 9, "symbol": symbols });
}

/// plotly.js reads a little HTML in names, and a template's braces; neither may come from outside.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace("%{", "% {")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_plotly_alone() {
        let script = script();
        assert!(script.trim_start().starts_with("/**\n* plotly.js"));
        assert!(!script.contains("</script"));
        assert!(script.len() > 1_000_000);
    }
}
