//! Right before fast: a server answers a few cases correctly before it is timed.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::protocol::{Dialogue, Requester, Settings};

/// Longest wait for any one reply.
const PATIENCE: Duration = Duration::from_secs(5);

/// Requests sent one after the other without waiting.
const BURST: u32 = 3;

/// How much a server must master before it is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rigour {
    /// Everything that throng's own servers do: several requests at once, answers after half-close.
    All,
    /// What the load asks of it: whole and cut requests one after the other.
    OneByOne,
    /// And several at once.
    Pipelined,
}

/// Asks one connection after the other and checks every byte of the answers.
///
/// # Errors
/// Names the case that went wrong.
pub(super) fn verify(
    target: SocketAddr,
    dialogue: &dyn Dialogue,
    settings: Settings,
    rigour: Rigour,
) -> anyhow::Result<()> {
    let talk = |number| Talk {
        target,
        closes: dialogue.closes(),
        requester: dialogue.requester(&settings, number),
        stream: None,
    };
    let mut first = talk(0);
    first.ask(1, Pace::Whole).context("a single request")?;
    first.hear(1).context("a single request")?;
    first.ask(1, Pace::Pieces).context("a request in pieces")?;
    first.hear(1).context("a request in pieces")?;
    if dialogue.closes() {
        let mut others: Vec<Talk> = (1..=BURST).map(|number| talk(number.into())).collect();
        for other in &mut others {
            other
                .ask(1, Pace::Whole)
                .context("several clients at once")?;
        }
        for other in &mut others {
            other.hear(1).context("several clients at once")?;
        }
    } else if rigour != Rigour::OneByOne {
        first
            .ask(BURST, Pace::Whole)
            .context("several requests at once")?;
        first.hear(BURST).context("several requests at once")?;
    }
    if rigour != Rigour::All {
        return Ok(());
    }
    first
        .ask(1, Pace::Last)
        .context("a request before half-close")?;
    first.hear(1).context("a request before half-close")?;
    first.hear_the_end().context("after half-close")
}

/// How a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Whole,
    Pieces,
    /// Whole, and no other will follow.
    Last,
}

/// One client, over as many connections as the protocol needs.
struct Talk {
    target: SocketAddr,
    closes: bool,
    requester: Box<dyn Requester>,
    stream: Option<TcpStream>,
}

impl Talk {
    fn ask(&mut self, requests: u32, pace: Pace) -> anyhow::Result<()> {
        let mut wire = Vec::new();
        for _ in 0..requests {
            self.requester.request(&mut wire);
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(connect(self.target)?),
        };
        let piece = if pace == Pace::Pieces {
            wire.len().div_ceil(4).max(1)
        } else {
            wire.len()
        };
        for piece in wire.chunks(piece) {
            match stream.write_all(piece) {
                Ok(()) => {}
                // It may have declined and closed already: its reply will tell.
                Err(_) if self.closes => break,
                Err(error) => return Err(error.into()),
            }
            if pace == Pace::Pieces {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        if pace == Pace::Last {
            match stream.shutdown(Shutdown::Write) {
                Err(error) if !self.closes => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Hears so many replies; fewer, if the server says that it closes after one.
    fn hear(&mut self, replies: u32) -> anyhow::Result<()> {
        let stream = self.stream.as_mut().context("it is connected")?;
        let mut input = vec![0; 64 * 1024];
        let mut completed = 0;
        while completed < replies {
            let heard = match stream.read(&mut input) {
                Ok(0) => match self.requester.finish()? {
                    heard if heard.completed > 0 => heard,
                    _ => bail!("the server closed the connection before its reply was whole"),
                },
                Ok(count) => self.requester.receive(&input[..count])?,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    bail!("no whole reply within {} s", PATIENCE.as_secs())
                }
                Err(error) => return Err(error).context("no whole reply"),
            };
            completed += heard.completed;
            if heard.close {
                return self.hear_the_end();
            }
        }
        Ok(())
    }

    /// Hears that nothing more comes; the next request is for a new connection.
    fn hear_the_end(&mut self) -> anyhow::Result<()> {
        let Some(mut stream) = self.stream.take() else {
            return Ok(()); // it was heard already
        };
        match stream.read(&mut [0; 1]) {
            Ok(0) => Ok(()),
            Ok(_) => bail!("more came back than was asked for"),
            Err(error) => Err(error).context("the server did not close in order"),
        }
    }
}

fn connect(target: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&target, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}
