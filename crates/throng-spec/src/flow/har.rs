//! Recordings of a browser's requests (HTTP Archive 1.2).

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use throng_protocol::{FlowStep, HttpRequest, Part};

use super::scope::Scope;
use super::{Context, Found, Wrong, name_of, split_url};

#[derive(Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    started_date_time: Option<String>,
    /// Milliseconds until the end of the reply.
    #[serde(default)]
    time: f64,
    request: Request,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Header>,
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    #[serde(default)]
    mime_type: String,
    #[serde(default)]
    text: String,
}

/// Headers that belong to the recorded connection or session.
const LEFT_OUT: [&str; 7] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "cookie",
    "te",
    "content-type",
];

/// Reads the requests to the server of the first one.
pub(super) fn steps(text: &str, _scope: &mut Scope, context: &Context<'_>) -> Result<Found, Wrong> {
    let archive: Archive = serde_json::from_str(text).map_err(|error| Wrong {
        line: error.line(),
        column: error.column().max(1),
        why: format!("it is no recording (HAR): {error}"),
    })?;
    let mut found = Found {
        steps: Vec::new(),
        origin: None,
    };
    let mut last_end: Option<Timestamp> = None;
    for entry in archive.log.entries {
        let Entry {
            started_date_time,
            time,
            request,
        } = entry;
        let started: Option<Timestamp> = started_date_time.and_then(|begun| begun.parse().ok());
        let Some((origin, path)) = split_url(&request.url) else {
            continue;
        };
        let host = origin.split_once("://").map_or(origin, |(_, host)| host);
        if context.recorded_host.is_some_and(|wanted| wanted != host)
            || found.origin.get_or_insert_with(|| origin.to_owned()) != origin
        {
            continue;
        }
        let place = text.find(&request.url).unwrap_or_default();
        let mut step = step(&request, path, context).map_err(|why| Wrong {
            line: text[..place].lines().count().max(1),
            column: 1,
            why,
        })?;
        if context.keeps_delays
            && let Some((started, last_end)) = started.zip(last_end)
        {
            let delay = started.duration_since(last_end);
            step.delay = Duration::try_from(delay).unwrap_or_default();
        }
        last_end = started.map(|started| {
            let took = Duration::try_from_secs_f64(time / 1000.0).unwrap_or_default();
            started.checked_add(took).unwrap_or(started)
        });
        found.steps.push(step);
    }
    Ok(found)
}

fn step(request: &Request, url: &str, context: &Context<'_>) -> Result<FlowStep, String> {
    let without_fragment = url.split('#').next().unwrap_or_default();
    let path = if without_fragment.starts_with('/') {
        without_fragment.to_owned()
    } else {
        format!("/{without_fragment}")
    };
    let is_own = |header: &&Header| {
        !matches!(header.name.as_bytes(), [b':', ..])
            && !LEFT_OUT
                .iter()
                .any(|left_out| header.name.eq_ignore_ascii_case(left_out))
    };
    let own = request.headers.iter().filter(is_own);
    let mut headers: Vec<(String, String)> = own
        .map(|header| (header.name.clone(), header.value.clone()))
        .collect();
    if let Some(data) = &request.post_data {
        headers.push(("Content-Type".to_owned(), data.mime_type.clone()));
    }
    for header in context.headers {
        let (name, value) = header.split_once(':').unwrap_or((header, ""));
        let is_set = |(known, _): &(String, String)| known.eq_ignore_ascii_case(name.trim());
        if !headers.iter().any(is_set) {
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    let written: Vec<String> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let made = HttpRequest::new(Some(&request.method), &path, &written, None);
    let text = |text: &str| vec![Part::Text(text.into())];
    Ok(FlowStep {
        name: name_of(&request.method, &path),
        request: made.map_err(|(_, why)| why)?,
        path: text(&path),
        headers: headers
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect(),
        cookies: Vec::new(),
        body: request.post_data.as_ref().map(|data| text(&data.text)),
        expected: None,
        delay: Duration::ZERO,
        limit: None,
        captures: Vec::new(),
        asserts: Vec::new(),
    })
}
