//! monoio: a task for each client on one thread with an io_uring. A buffer belongs to the operation
//! while it lasts and comes back with the result.

use std::io;

use monoio::io::{AsyncReadRent as _, AsyncWriteRentExt as _};
use monoio::net::{TcpListener, TcpStream};
use monoio::{IoUringDriver, RuntimeBuilder};
use peers::BUFFER;

/// Room for the operations submitted between two waits.
const ENTRIES: u32 = 4096;

fn main() -> io::Result<()> {
    let mut runtime = RuntimeBuilder::<IoUringDriver>::new()
        .with_entries(ENTRIES)
        .build()?;
    runtime.block_on(async {
        let listener = peers::listen()?;
        peers::announce(&listener)?;
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            monoio::spawn(serve(stream));
        }
    })
}

async fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(BUFFER);
    loop {
        let result;
        (result, buffer) = stream.read(buffer).await;
        if result? == 0 {
            return Ok(());
        }
        let result;
        (result, buffer) = stream.write_all(buffer).await;
        result?;
        buffer.clear();
    }
}
