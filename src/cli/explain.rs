//! `throng explain MODEL`: how a model works, with the system calls of one request traced on the spot.

#[cfg(target_os = "linux")]
mod omission;

use std::path::PathBuf;

use super::{Exit, Usage, output};

use crate::learn::{calls, generated, page};
use crate::record::traced::Traced;
use crate::registry;
use crate::serve::Model;
use crate::serve::models::MODELS;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng explain                      list the models
  throng explain epoll                idea, diagram, system calls, annotated source, results, exercises
  throng explain fork | less          without colours
  throng explain thread --no-trace    with recorded system calls, without starting a server
  throng explain poll --markdown      as Markdown
  throng explain omission             what a closed loop does not see, measured now in 7 seconds

The server listens on a free port of 127.0.0.1, serves one client for less than a second, and stops.")]
pub(super) struct Arguments {
    /// Model, or `omission` [default: list the models].
    model: Option<String>,
    /// Print the page as Markdown.
    #[arg(long, requires = "model")]
    markdown: bool,
    /// Show recorded system calls, instead of starting and tracing a server.
    #[arg(long)]
    no_trace: bool,
    /// Trace the system calls and print them as JSON.
    #[arg(long, requires = "model", conflicts_with_all = ["markdown", "no_trace"])]
    json: bool,
    /// With `omission`: draw the figure into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// The lesson that is not about a model.
const OMISSION: &str = "omission";

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let Some(name) = &arguments.model else {
        let models = page::contents(MODELS);
        output::text(&format!("{models}\n`throng explain MODEL` explains one."))?;
        return Ok(Exit::Done);
    };
    if name == OMISSION {
        return omission(arguments);
    }
    if arguments.svg.is_some() {
        return Err(Usage("--svg is for `throng explain omission`".to_owned()).into());
    }
    let model = registry::find("model", MODELS, name)?;
    let traced = if arguments.no_trace {
        None
    } else {
        match traced(model) {
            Ok(traced) => Some(traced),
            Err(exit) => return Ok(exit),
        }
    };
    if let (true, Some(traced)) = (arguments.json, &traced) {
        let why = |why| anyhow::anyhow!("cannot trace {name}: {why}");
        output::json(traced.as_ref().map_err(why)?)?;
        return Ok(Exit::Done);
    }
    let width = output::width().clamp(40, 100);
    let page = generated::renewed(model.card.page, |part| match (part.name, &traced) {
        ("calls", Some(Ok(traced))) => calls::markdown(traced, "Traced now", width - 4),
        ("calls", Some(Err(why))) => format!("Not traced here: {why}.\n\n{}", part.text),
        _ => part.text.to_owned(),
    });
    if arguments.markdown {
        output::text(&page)?;
    } else {
        output::text(&page::shown(&page, width))?;
    }
    Ok(Exit::Done)
}

#[cfg(target_os = "linux")]
fn omission(arguments: &Arguments) -> anyhow::Result<Exit> {
    if arguments.markdown || arguments.json || arguments.no_trace {
        let why = "`throng explain omission` has only --svg";
        return Err(Usage(why.to_owned()).into());
    }
    let (stop, _watchdog) = super::runner::prepare()?;
    match omission::run(arguments.svg.as_deref(), stop) {
        Err(_) if stop.requested() => Ok(Exit::Interrupted),
        ended => ended.map(|()| Exit::Done),
    }
}

#[cfg(not(target_os = "linux"))]
fn omission(_: &Arguments) -> anyhow::Result<Exit> {
    Err(Usage("loads need Linux".to_owned()).into())
}

/// The system calls of one request, or why they cannot be traced. An interruption exits the program.
#[cfg(target_os = "linux")]
fn traced(model: &'static Model) -> Result<Result<Traced, String>, Exit> {
    use crate::registry::Entry as _;

    if let Err(unsupported) = model.supported() {
        return Ok(Err(unsupported.to_string()));
    }
    let (stop, _watchdog) = match super::runner::prepare() {
        Ok(prepared) => prepared,
        Err(error) => return Ok(Err(format!("{error:#}"))),
    };
    let options = crate::learn::traced_options(model);
    let subject = crate::measure::trace::Subject {
        model: model.info.name,
        options: &options,
    };
    let echo = crate::protocol::PROTOCOLS[0];
    let settings = crate::protocol::Settings::default();
    let traced = crate::measure::trace::trace(subject, echo, settings, stop);
    if stop.requested() {
        return Err(Exit::Interrupted);
    }
    Ok(traced.map_err(|error| format!("{error:#}")))
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can be interrupted")]
fn traced(_: &'static Model) -> Result<Result<Traced, String>, Exit> {
    Ok(Err("tracing needs Linux".to_owned()))
}
