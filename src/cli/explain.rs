//! `throng explain MODEL`: how a model works, with the system calls of one request traced on the spot.

use super::{Exit, Usage, output};
use crate::learn::page::{self, Seen};
use crate::learn::traced::Traced;
use crate::learn::{Lesson, book};
use crate::registry;
use crate::serve::Model;
use crate::serve::models::MODELS;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng explain                      what there is
  throng explain epoll                idea, picture, system calls, source with notes, figures, exercises
  throng explain fork | less          the same without colours
  throng explain thread --no-trace    without starting a server: calls as they were traced elsewhere
  throng explain poll --markdown      the page of the book

The server is started on a port of 127.0.0.1, serves a single client for less than a second, and is ended.")]
pub(super) struct Arguments {
    /// The model [default: say which there are].
    model: Option<String>,
    /// Print the page of the book, whose calls were traced elsewhere.
    #[arg(long)]
    markdown: bool,
    /// Start no server: show calls as they were traced elsewhere.
    #[arg(long)]
    no_trace: bool,
    /// Print the calls as JSON, traced now.
    #[arg(long, requires = "model", conflicts_with_all = ["markdown", "no_trace"])]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let Some(name) = &arguments.model else {
        if arguments.markdown {
            output::text(&book::contents(MODELS))?;
        } else {
            let models = page::contents(MODELS);
            output::text(&format!("{models}\nthrong explain NAME says how it works."))?;
        }
        return Ok(Exit::Done);
    };
    let model = registry::find("model", MODELS, name)?;
    let lesson = Lesson::about(model);
    let lesson = lesson.ok_or_else(|| Usage(format!("there is no lesson about {name} yet")))?;
    if arguments.markdown {
        output::text(&book::page(model, lesson))?;
        return Ok(Exit::Done);
    }
    let traced = if arguments.no_trace {
        Ok(Err("as asked for by --no-trace".to_owned()))
    } else {
        traced(model)
    };
    let traced = match traced {
        Ok(traced) => traced,
        Err(exit) => return Ok(exit),
    };
    if arguments.json {
        let traced = traced.map_err(|why| anyhow::anyhow!("{name} cannot be traced: {why}"))?;
        output::json(&traced)?;
        return Ok(Exit::Done);
    }
    let seen = match &traced {
        Ok(traced) => Seen::Now(traced),
        Err(why) => Seen::Not(why),
    };
    output::text(&page::page(model, lesson, seen, output::width()))?;
    Ok(Exit::Done)
}

/// The calls of one request, or why they cannot be traced; how to end where somebody interrupted it.
#[cfg(target_os = "linux")]
fn traced(model: &'static dyn Model) -> Result<Result<Traced, String>, Exit> {
    if let Err(unsupported) = model.supported() {
        return Ok(Err(unsupported.to_string()));
    }
    let (stop, _keeper) = match super::conduct::prepare() {
        Ok(prepared) => prepared,
        Err(error) => return Ok(Err(format!("{error:#}"))),
    };
    let options = crate::learn::traced_options(model);
    let subject = crate::measure::trace::Subject {
        model: model.info().name,
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
fn traced(_: &'static dyn Model) -> Result<Result<Traced, String>, Exit> {
    Ok(Err("only Linux's way to trace is known here".to_owned()))
}
