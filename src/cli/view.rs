//! `throng view`: local pages of all runs in a directory.

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;

use super::serve::cannot_listen;
use super::{Exit, Usage, output};
use crate::record::Study;
use crate::spec::Endpoint;
use crate::sys::signal::Stop;
use crate::view::Viewer;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng view
  throng view results --listen 127.0.0.1:8080

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
    let viewer =
        Viewer::bind(directory, address).map_err(|error| cannot_listen(&address.into(), &error))?;
    let stop = Stop::install().context("cannot handle signals")?;
    output::text(&format!("listening on {}", viewer.url()))?;
    let _ = std::io::stdout().flush();
    viewer.run(stop)?;
    Ok(Exit::Done)
}
