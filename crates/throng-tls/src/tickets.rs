//! Session tickets: each client has its own, as users do.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// The tickets of clients of one thread.
pub(crate) struct Tickets {
    /// The client whose bytes are being read.
    current: AtomicUsize,
    /// The group of a successful key exchange, shared by all clients: it saves a round trip.
    group: Mutex<Option<NamedGroup>>,
    /// Per client; empty without resumption.
    clients: Mutex<Vec<LastSession>>,
}

/// The last session of a client.
#[derive(Default)]
struct LastSession {
    tls12: Option<Tls12ClientSessionValue>,
    tls13: Option<Tls13ClientSessionValue>,
}

impl Tickets {
    /// For `clients` clients; 0 disables resumption.
    pub(crate) fn new(clients: usize) -> Self {
        let remembered = std::iter::repeat_with(LastSession::default).take(clients);
        Self {
            current: AtomicUsize::new(0),
            group: Mutex::new(None),
            clients: Mutex::new(remembered.collect()),
        }
    }

    pub(crate) fn turn_to(&self, slot: usize) {
        self.current.store(slot, Relaxed);
    }

    fn with_current<T>(&self, use_it: impl FnOnce(&mut LastSession) -> Option<T>) -> Option<T> {
        let mut clients = lock(&self.clients);
        use_it(clients.get_mut(self.current.load(Relaxed))?)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").finish_non_exhaustive()
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        *lock(&self.group) = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        *lock(&self.group)
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.with_current(|client| client.tls12.replace(value));
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.with_current(|client| client.tls12.clone())
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.with_current(|client| client.tls12.take());
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.with_current(|client| client.tls13.replace(value));
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.with_current(|client| client.tls13.take())
    }
}
