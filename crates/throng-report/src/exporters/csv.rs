//! All values of the summary as a table, for spreadsheets (RFC 4180).

use std::io::{self, Write};

use super::Exporter;
use crate::Report;
use crate::study::StudyReport;
use throng_record::format::harmless;
use throng_record::metrics::{Quantity, Values, named};
use throng_record::{Find, Load, Trial};
use throng_spec::registry::Info;

pub(super) const CSV: Exporter = Exporter {
    info: Info {
        name: "csv",
        summary: "every value in a table, for spreadsheets",
    },
    file_name: Some("summary.csv"),
    render: |report, to| {
        header(to)?;
        Ok(rows("", report, to)?)
    },
    render_study,
};

fn render_study(report: &StudyReport<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    header(to)?;
    for part in &report.parts {
        if let Some(of_part) = &part.report {
            rows(&part.record.name, of_part, to)?;
        }
    }
    Ok(())
}

/// Writes the same table for a single load.
///
/// # Errors
/// When a histogram cannot be read, or writing to `to` fails.
pub fn of_load(load: &Load, to: &mut dyn Write) -> anyhow::Result<()> {
    let trial = Trial {
        clients: load.clients,
        load: Some(load.clone()),
        ..Trial::default()
    };
    header(to)?;
    let values = Values::of([&trial])?;
    Ok(write(&["", "", &load.clients.to_string()], &values, to)?)
}

fn header(to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "part,server,clients,metric,unit,value,low,high,note")
}

fn rows(part: &str, report: &Report<'_>, to: &mut dyn Write) -> io::Result<()> {
    for row in &report.summary.rows {
        let of = [part, &row.server, &row.clients.to_string()];
        write(&of, &row.metrics, to)?;
        // Metrics without a value, and why.
        for (name, why) in &row.absent {
            line(&of, [name, unit(name), "", "", "", why.text()], to)?;
        }
    }
    let Some(limits) = &report.limits else {
        return Ok(());
    };
    let (metric, unit) = match limits.find {
        Find::Clients => ("limit_clients", "clients"),
        Find::Rate => ("limit_rate_per_s", "/s"),
        Find::Sessions => ("limit_sessions_per_s", "/s"),
    };
    for limit in &limits.servers {
        let passed = limit.passed.map(|passed| passed.value.to_string());
        let note = limit.sentences.join(" ");
        let values = [metric, unit, &passed.unwrap_or_default(), "", "", &note];
        line(&[part, &limit.server, ""], values, to)?;
    }
    Ok(())
}

fn write(of: &[&str; 3], values: &Values, to: &mut dyn Write) -> io::Result<()> {
    for (name, value) in values.iter() {
        let quantity = value.quantity;
        let text = |end: Option<f64>| end.map(|end| end.to_string()).unwrap_or_default();
        let numbers = [
            quantity.value.to_string(),
            text(quantity.low),
            text(quantity.high),
        ];
        let [value_text, low, high] = numbers.each_ref().map(String::as_str);
        let note = Quantity::estimator([quantity]);
        line(of, [name, unit(name), value_text, low, high, &note], to)?;
    }
    Ok(())
}

fn unit(metric: &str) -> &'static str {
    named(metric).map_or("", |metric| metric.unit.name())
}

fn line(of: &[&str; 3], values: [&str; 6], to: &mut dyn Write) -> io::Result<()> {
    let fields: Vec<String> = of.iter().chain(&values).map(|text| field(text)).collect();
    writeln!(to, "{}", fields.join(","))
}

/// A field, quoted if necessary. A field that a spreadsheet could take for a formula is turned into text.
fn field(text: &str) -> String {
    let is_number = text.parse::<f64>().is_ok();
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number;
    let text = harmless(&if is_formula {
        format!("'{text}")
    } else {
        text.to_owned()
    });
    if text.contains(['"', ',', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        for (text, written) in [
            ("a b", "a b"),
            ("a,b", "\"a,b\""),
            ("a \"b\"\n", "\"a \"\"b\"\"\n\""),
            ("=1+1", "'=1+1"),
            ("-1.5", "-1.5"),
            ("", ""),
        ] {
            assert_eq!(field(text), written);
        }
    }

    #[test]
    fn a_load_is_a_line_for_each_value() {
        let load = Load {
            clients: 7,
            requests: 70,
            ..Load::default()
        };
        let mut text = Vec::new();
        of_load(&load, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.starts_with("part,server,clients,metric,unit,value,low,high,note\n"),
            "{text}"
        );
        assert!(text.contains("\n,,7,requests,"), "{text}");
        assert!(
            text.lines().all(|line| line.split(',').count() == 9),
            "{text}"
        );
    }
}
