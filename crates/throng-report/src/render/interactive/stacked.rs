//! Lying bars made of parts: a trace for each part, and one that writes the totals.

use serde_json::{Value, json};

use super::{axis, escaped};
use crate::figures::Figure;
use crate::palette::{hex, shades};
use throng_record::format::{hundredths, number};

pub(super) fn traces(figure: &Figure) -> Vec<Value> {
    let servers: Vec<usize> = figure.series.iter().map(|series| series.place).collect();
    let names: Vec<String> = figure
        .series
        .iter()
        .map(|series| escaped(&series.name))
        .collect();
    let opacity: Vec<f64> = figure
        .series
        .iter()
        .map(|series| {
            let partial = series.points.iter().any(|point| point.partial);
            if partial { 0.45 } else { 1.0 }
        })
        .collect();
    let most = figure.cut().unwrap_or(f64::INFINITY);
    let mut sums = vec![0.0; figure.series.len()];
    let mut traces = Vec::new();
    for (part, (light, dark)) in shades(&figure.parts).into_iter().enumerate() {
        let mut drawn = Vec::new();
        let mut whole = Vec::new();
        for (series, sum) in figure.series.iter().zip(&mut sums) {
            let mut points = series.points.iter();
            let value = points
                .find(|point| point.x as usize == part)
                .map_or(0.0, |point| point.y);
            drawn.push((*sum + value).min(most) - sum.min(most));
            whole.push(number(value));
            *sum += value;
        }
        traces.push(json!({
            "type": "bar",
            "orientation": "h",
            "name": escaped(&figure.parts[part]),
            "meta": { "light": hex(light), "dark": hex(dark), "servers": servers },
            "x": drawn,
            "y": names,
            "customdata": whole,
            "hovertemplate": "%{y}: %{fullData.name} <b>%{customdata}</b><extra></extra>",
            "marker": { "opacity": opacity },
        }));
    }
    let totals = sums.iter().map(|sum| {
        let cut = if *sum > most { "// " } else { "" };
        format!(" {cut}{}", hundredths(*sum))
    });
    traces.push(json!({
        "type": "scatter",
        "mode": "text",
        "name": "",
        "meta": { "servers": servers, "ink": true },
        "x": sums.iter().map(|sum| sum.min(most)).collect::<Vec<_>>(),
        "y": names,
        "text": totals.collect::<Vec<_>>(),
        "textposition": "middle right",
        "hoverinfo": "skip",
        "cliponaxis": false,
        "showlegend": false,
    }));
    traces
}

pub(super) fn layout(figure: &Figure) -> Value {
    let mut across = axis(&figure.y);
    if let Some(cut) = figure.cut() {
        across["range"] = json!([0.0, cut * 1.02]);
    }
    json!({
        "xaxis": across,
        "yaxis": { "type": "category", "autorange": "reversed" },
        "barmode": "stack",
        "bargap": 0.28,
        "showlegend": true,
        "legend": { "orientation": "h", "traceorder": "normal", "x": 0, "y": 1.01, "yanchor": "bottom" },
        "margin": { "l": 62, "r": 74, "t": 14, "b": 48 },
    })
}
