//! compio: a task for each client on one thread with an io_uring. A buffer belongs to the operation
//! while it lasts and comes back with the result.

use std::io;

use compio::buf::BufResult;
use compio::driver::ProactorBuilder;
use compio::io::{AsyncRead as _, AsyncWriteExt as _};
use compio::net::{TcpListener, TcpStream};
use compio::runtime::RuntimeBuilder;
use peers::BUFFER;

/// Room for the operations submitted between two waits.
const ENTRIES: u32 = 4096;

fn main() -> io::Result<()> {
    let mut proactor = ProactorBuilder::new();
    proactor
        .capacity(ENTRIES)
        .single_issuer(true)
        .defer_taskrun(true);
    let runtime = RuntimeBuilder::new().with_proactor(proactor).build()?;
    runtime.block_on(async {
        let listener = peers::listen()?;
        peers::announce(&listener)?;
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            compio::runtime::spawn(serve(stream)).detach();
        }
    })
}

async fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(BUFFER);
    loop {
        let BufResult(result, filled) = stream.read(buffer).await;
        if result? == 0 {
            return Ok(());
        }
        let BufResult(result, written) = stream.write_all(filled).await;
        result?;
        buffer = written;
        buffer.clear();
    }
}
