//! TLS checks, before the clients of a load connect and after all of them failed.

use std::sync::Arc;
use std::time::Duration;

use super::super::Usage;
use crate::load::Plan;
use crate::measure::connect;
use crate::record::Load;
use crate::spec::{Endpoint, LoadSpec, Target};
use crate::tls::{Client, Stream, speaks_tls};

/// Time limit of a handshake, regardless of the clients' timeout.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for finding out whether a server speaks TLS.
const QUICKLY: Duration = Duration::from_secs(1);

/// The TLS configuration for these servers, if connections are encrypted.
///
/// # Errors
/// If a file cannot be read (the error names it), or the machine lacks something.
pub(super) fn client(load: &LoadSpec, servers: &[Target]) -> anyhow::Result<Option<Arc<Client>>> {
    let names: Vec<String> = servers.iter().map(Target::authority).collect();
    let client = load.tls.as_ref().map(|tls| {
        let client = Client::new(tls, load.alpn(), &names);
        client.map_err(|error| Usage(format!("{error:#}")))
    });
    Ok(client.transpose()?.map(Arc::new))
}

/// Rejects servers with which no handshake can succeed, before many clients try. A server that does not reply is
/// accepted, since it may reply later.
pub(super) fn check(plan: &Plan) -> anyhow::Result<()> {
    let Some(client) = &plan.tls else {
        return Ok(());
    };
    let timeout = plan.connect_timeout.min(TIMEOUT);
    for (number, target) in plan.routes.targets().enumerate() {
        let Ok(socket) = connect(target, timeout) else {
            continue;
        };
        match Stream::handshake(client, number as u64, socket, timeout) {
            Err(fault) if fault.kind.is_lasting() => anyhow::bail!("{target}: {fault}"),
            // Sends close_notify, so that the server sees an orderly end.
            Ok(stream) => drop(stream.shutdown(std::net::Shutdown::Both)),
            Err(_) => {}
        }
    }
    Ok(())
}

/// A hint that a server without correct replies speaks TLS while the clients did not.
pub(super) fn spoken_instead(plan: &Plan, load: &Load) -> &'static str {
    // How TLS servers answer plaintext.
    let may_be = ["closed-early", "reset"]
        .iter()
        .any(|kind| load.errors.contains_key(*kind))
        || load.unexpected.contains_key("400");
    let speaks = |target| speaks_tls(target, QUICKLY);
    let mut addresses = plan.routes.targets().take(1).filter_map(Endpoint::tcp);
    if plan.tls.is_none() && may_be && addresses.any(speaks) {
        "; the server speaks TLS: use https:// or --tls"
    } else {
        ""
    }
}
