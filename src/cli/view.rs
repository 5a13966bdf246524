//! `throng view`: a local page of all runs in a directory.

use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;

use super::serve::cannot_listen;
use super::{Exit, Usage, output};
use crate::record::Study;
use crate::sys::signal::Stop;
use crate::view::Viewer;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng view
  throng view results --listen 127.0.0.1:8080

The line \"listening on URL\" on standard output says where to look. SIGINT or SIGTERM ends it. Nothing is
written, and nobody else can look: whoever may see the page can see every record below the directory, and
there is no password. To look from another machine, forward the port: ssh -L 8080:127.0.0.1:8080 HOST.")]
pub(super) struct Arguments {
    /// Directory that holds records, at any depth up to six.
    #[arg(value_name = "DIR", default_value = "throng-results")]
    directory: PathBuf,
    /// Where to listen, on this machine's loopback; port 0 lets the kernel choose.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let address = arguments.listen;
    if !address.ip().is_loopback() {
        return Err(Usage(format!(
            "{} is not on this machine's loopback, and the page is for this machine alone: it has no password, \
             and shows every record; to look from elsewhere forward the port (ssh -L)",
            address.ip()
        ))
        .into());
    }
    let directory = &arguments.directory;
    let shown = directory.display();
    if directory.join("run.json").exists() || Study::is_in(directory) {
        let why = format!("{shown} is a record itself; name the directory that holds it");
        return Err(Usage(why).into());
    }
    if let Err(error) = std::fs::read_dir(directory) {
        let more = match error.kind() {
            ErrorKind::NotFound => {
                "; name the directory that holds records, `throng run` makes throng-results"
            }
            _ => "",
        };
        return Err(Usage(format!("cannot read {shown}: {error}{more}")).into());
    }
    let viewer =
        Viewer::bind(directory, address).map_err(|error| cannot_listen(&address.into(), &error))?;
    let stop = Stop::install().context("cannot handle signals")?;
    output::text(&format!("listening on http://{}/", viewer.address()))?;
    let _ = std::io::stdout().flush();
    viewer.run(stop)?;
    Ok(Exit::Done)
}
