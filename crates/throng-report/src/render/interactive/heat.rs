//! A heat map a server, each on an axis of its own that the page's script lays out, since servers can be
//! hidden.

use serde_json::{Value, json};

use super::{axis, escaped};
use crate::figures::{Figure, HeatMap};
use crate::palette::{HEAT, hex};

pub(super) fn traces(figure: &Figure) -> Vec<Value> {
    figure.maps.iter().map(|map| trace(figure, map)).collect()
}

pub(super) fn layout(figure: &Figure) -> Value {
    let mut upwards = axis(&figure.y);
    upwards["title"]["text"] = json!(figure.y.unit);
    json!({ "xaxis": axis(&figure.x), "yaxis": upwards })
}

fn trace(figure: &Figure, map: &HeatMap) -> Value {
    let (Some((darkest, ..)), unit) = (HEAT.last(), figure.y.unit.unwrap_or_default()) else {
        return Value::Null;
    };
    let scale = |colour: fn(&(f64, _, _)) -> _| -> Vec<Value> {
        let stops = HEAT.iter();
        stops
            .map(|stop| json!([stop.0 / darkest, hex(colour(stop))]))
            .collect()
    };
    // What is not there is not drawn.
    let cell = |column: &Vec<f64>, row: usize| {
        let share = column.get(row).copied().filter(|share| *share > 0.0);
        share.map_or(Value::Null, |share| json!((share * 1e4).ceil() / 1e4))
    };
    let rows = (0..map.rows.len().saturating_sub(1)).map(|row| -> Vec<Value> {
        let columns = map.shares.iter();
        columns.map(|column| cell(column, row)).collect()
    });
    let short = |value: &f64| (value * 1e6).round() / 1e6;
    json!({
        "type": "heatmap",
        "name": escaped(&map.name),
        "meta": {
            "server": map.place,
            "lightScale": scale(|stop| stop.1),
            "darkScale": scale(|stop| stop.2),
        },
        "x": map.columns.iter().map(short).collect::<Vec<_>>(),
        "y": map.rows.iter().map(short).collect::<Vec<_>>(),
        "z": rows.collect::<Vec<_>>(),
        "zmin": 0.0,
        "zmax": darkest,
        "showscale": false,
        "hoverongaps": false,
        "hovertemplate": format!(
            "%{{x:.2f}} s: <b>%{{z:.1%}}</b> of the replies took about <b>%{{y:.3~r}}</b> {unit}"
        ),
    })
}
