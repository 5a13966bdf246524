//! `throng view`: local pages of all runs in a directory.

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::serve::cannot_listen;
use super::{Exit, Usage, browser, output};
use crate::record::Study;
use crate::spec::Endpoint;
use crate::sys::signal::Stop;
use crate::view::Viewer;

/// The longest wait for the record of a run.
const LONGEST_START: Duration = Duration::from_mins(1);

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng view
  throng view results --listen 127.0.0.1:8080
  throng view --open

Open the URL that it prints in a browser. SIGINT or SIGTERM stops it. It writes nothing. The pages show every \
record below the directory, and only that URL gives access. Only this machine can connect. To browse from \
another machine, forward the port: ssh -L 8080:127.0.0.1:8080 HOST.")]
pub(super) struct Arguments {
    /// Directory with records, at most six levels deep.
    #[arg(value_name = "DIR", default_value = "throng-results")]
    directory: PathBuf,
    /// Loopback address to listen on: HOST:PORT or :PORT. With port 0, the kernel chooses a port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", value_parser = Endpoint::to_listen_on)]
    listen: Endpoint,
    /// Open the pages in a browser.
    #[arg(long)]
    open: bool,
    /// Open the page of this record once it exists, and end with the run that writes it.
    #[arg(long, value_name = "RECORD", hide = true)]
    open_run: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let Some(address) = arguments.listen.tcp() else {
        let why = "--listen: browsers need a port; write HOST:PORT";
        return Err(Usage(why.to_owned()).into());
    };
    if !address.ip().is_loopback() {
        return Err(Usage(format!(
            "{} is not on this machine's loopback, and the pages are not encrypted; to browse from another machine, \
             forward the port (ssh -L)",
            address.ip()
        ))
        .into());
    }
    let directory = &arguments.directory;
    let shown = directory.display();
    if directory.join("run.json").exists() || Study::is_in(directory) {
        let why = format!("{shown} is a record; write the directory that contains it");
        return Err(Usage(why).into());
    }
    if let Err(error) = std::fs::read_dir(directory) {
        let more = match error.kind() {
            ErrorKind::NotFound => {
                "; write a directory with records (`throng run` creates throng-results)"
            }
            _ => "",
        };
        return Err(Usage(format!("cannot read {shown}: {error}{more}")).into());
    }
    if arguments.open_run.is_some() {
        let ends = Some(rustix::process::Signal::TERM);
        rustix::process::set_parent_process_death_signal(ends).context("cannot follow a run")?;
    }
    let viewer =
        Viewer::bind(directory, address).map_err(|error| cannot_listen(&address.into(), &error))?;
    let stop = Stop::install().context("cannot handle signals")?;
    output::text(&format!("listening on {}", viewer.url()))?;
    let _ = std::io::stdout().flush();
    if arguments.open {
        browser::open(&viewer.url());
    } else if let Some(run) = &arguments.open_run {
        let (record, url) = (directory.join(run), viewer.url_of(run));
        std::thread::spawn(move || {
            let deadline = Instant::now() + LONGEST_START;
            while !Study::is_in(&record) && !record.join("run.json").exists() {
                if Instant::now() > deadline {
                    return;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            // Without a browser, the run has said so.
            browser::open(&url);
        });
    }
    viewer.run(stop)?;
    Ok(Exit::Done)
}
