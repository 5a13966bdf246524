//! The client halves of many clients, adjacent in memory.
//!
//! With thousands of clients, a load generator touches a different one at each request, and that one is mostly not in
//! a cache. So a dialogue keeps the state that a request needs in one cache line per client, and shared state only
//! once.

use super::{ProtocolError, Replies, ReplyCounts, Requester, StepDone};

/// The client halves of several clients. Each method does what the method of the same name of [`Requester`] does, for
/// one client.
pub trait Requesters: Send {
    fn begin(&mut self, client: usize) -> &'static [u8];

    fn pending(&self, client: usize) -> &'static [u8];

    fn generated(&self, _client: usize) -> &[u8] {
        &[]
    }

    fn advance(&mut self, client: usize, count: usize) -> &'static [u8];

    fn drop_requests(&mut self, client: usize);

    fn receive(&mut self, client: usize, input: &[u8]) -> Result<Replies, ProtocolError>;

    /// Handles the usual case: `input` is the complete reply to the client's only open request, all of which was sent.
    /// Begins the next request and returns it, already counted as sent. Otherwise it does nothing.
    ///
    /// This combines [`receive`](Self::receive), [`begin`](Self::begin) and [`advance`](Self::advance), for nearly all
    /// requests of a load.
    fn exchange(&mut self, _client: usize, _input: &[u8]) -> Option<&'static [u8]> {
        None
    }

    /// Undoes part of [`exchange`](Self::exchange): the last bytes of the returned request were not sent after all,
    /// and are pending.
    fn take_back(&mut self, _client: usize, _bytes: usize) {}

    fn answered(&mut self, _client: usize) -> u16 {
        0
    }

    fn room(&self, _client: usize) -> u32 {
        u32::MAX
    }

    fn closing_message(&mut self, _client: usize) -> &'static [u8] {
        &[]
    }

    fn step_done(&self, _client: usize) -> StepDone {
        StepDone::default()
    }

    fn step_in_words(&self, _client: usize) -> Vec<String> {
        Vec::new()
    }

    fn fault(&self, _client: usize) -> Option<&'static str> {
        None
    }

    fn awaits_close(&self, _client: usize) -> bool {
        false
    }

    fn finish(&mut self, _client: usize) -> Result<Replies, ProtocolError> {
        Ok(Replies::default())
    }

    /// The address of the state that a request of this client touches, for prefetching; null if that is scattered.
    fn state_address(&self, _client: usize) -> *const u8 {
        std::ptr::null()
    }

    /// Adds the counts of all clients' replies to `counts`.
    fn counts(&self, _counts: &mut ReplyCounts) {}

    /// Passes the sizes of the bodies of this client's replies, and possibly of other clients' too.
    fn sizes(&mut self, _client: usize, _record: &mut dyn FnMut(u64, u64)) {}
}

/// Clients that share no state.
impl Requesters for Vec<Box<dyn Requester>> {
    fn begin(&mut self, client: usize) -> &'static [u8] {
        self[client].begin()
    }

    fn pending(&self, client: usize) -> &'static [u8] {
        self[client].pending()
    }

    fn generated(&self, client: usize) -> &[u8] {
        self[client].generated()
    }

    fn advance(&mut self, client: usize, count: usize) -> &'static [u8] {
        self[client].advance(count)
    }

    fn drop_requests(&mut self, client: usize) {
        self[client].drop_requests();
    }

    fn receive(&mut self, client: usize, input: &[u8]) -> Result<Replies, ProtocolError> {
        self[client].receive(input)
    }

    fn answered(&mut self, client: usize) -> u16 {
        self[client].answered()
    }

    fn room(&self, client: usize) -> u32 {
        self[client].room()
    }

    fn closing_message(&mut self, client: usize) -> &'static [u8] {
        self[client].closing_message()
    }

    fn step_done(&self, client: usize) -> StepDone {
        self[client].step_done()
    }

    fn fault(&self, client: usize) -> Option<&'static str> {
        self[client].fault()
    }

    fn awaits_close(&self, client: usize) -> bool {
        self[client].awaits_close()
    }

    fn finish(&mut self, client: usize) -> Result<Replies, ProtocolError> {
        self[client].finish()
    }

    fn counts(&self, counts: &mut ReplyCounts) {
        for client in self {
            client.counts(counts);
        }
    }

    fn sizes(&mut self, client: usize, record: &mut dyn FnMut(u64, u64)) {
        self[client].sizes(record);
    }
}

/// A single client: the first of several.
pub(super) struct First<T>(pub(super) T);

impl<T: Requesters> Requester for First<T> {
    fn begin(&mut self) -> &'static [u8] {
        self.0.begin(0)
    }

    fn pending(&self) -> &'static [u8] {
        self.0.pending(0)
    }

    fn generated(&self) -> &[u8] {
        self.0.generated(0)
    }

    fn advance(&mut self, count: usize) -> &'static [u8] {
        self.0.advance(0, count)
    }

    fn drop_requests(&mut self) {
        self.0.drop_requests(0);
    }

    fn receive(&mut self, input: &[u8]) -> Result<Replies, ProtocolError> {
        self.0.receive(0, input)
    }

    fn answered(&mut self) -> u16 {
        self.0.answered(0)
    }

    fn room(&self) -> u32 {
        self.0.room(0)
    }

    fn closing_message(&mut self) -> &'static [u8] {
        self.0.closing_message(0)
    }

    fn step_done(&self) -> StepDone {
        self.0.step_done(0)
    }

    fn step_in_words(&self) -> Vec<String> {
        self.0.step_in_words(0)
    }

    fn fault(&self) -> Option<&'static str> {
        self.0.fault(0)
    }

    fn awaits_close(&self) -> bool {
        self.0.awaits_close(0)
    }

    fn finish(&mut self) -> Result<Replies, ProtocolError> {
        self.0.finish(0)
    }

    fn counts(&self, counts: &mut ReplyCounts) {
        self.0.counts(counts);
    }

    fn sizes(&mut self, record: &mut dyn FnMut(u64, u64)) {
        self.0.sizes(0, record);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Offer, PROTOCOLS, Settings};

    #[test]
    fn an_exchange_is_a_reply_and_the_next_request() {
        for name in ["echo", "http"] {
            let mut protocols = PROTOCOLS.iter();
            let protocol = protocols.find(|one| one.name() == name).unwrap();
            let clients = || protocol.requesters(&Settings::default(), &mut [5, 6].into_iter());
            let (mut one_call, mut three_calls) = (clients(), clients());
            for client in [0, 1] {
                let mut session = protocol.session(&Offer::default());
                let mut request = three_calls.begin(client);
                three_calls.advance(client, request.len());
                assert_eq!(one_call.begin(client), request);
                one_call.advance(client, request.len());
                let mut exchanged = 0;
                for round in 0..500 {
                    let mut reply = Vec::new();
                    let step = session.receive(request, &mut reply).unwrap();
                    reply.extend_from_slice(&request[..step.reflected]);
                    assert_eq!(three_calls.receive(client, &reply).unwrap().completed, 1);
                    request = three_calls.begin(client);
                    three_calls.advance(client, request.len());
                    assert_eq!(one_call.exchange(client, &reply[1..]), None);
                    let Some(next) = one_call.exchange(client, &reply) else {
                        assert_eq!(one_call.receive(client, &reply).unwrap().completed, 1);
                        assert_eq!(one_call.begin(client), request);
                        one_call.advance(client, request.len());
                        continue;
                    };
                    assert_eq!(next, request);
                    exchanged += 1;
                    let left = round % (request.len() + 1);
                    one_call.take_back(client, left);
                    assert_eq!(
                        one_call.pending(client),
                        &request[request.len() - left..],
                        "{name}"
                    );
                    if left > 0 {
                        assert_eq!(one_call.exchange(client, &reply), None);
                        one_call.advance(client, left);
                    }
                    assert_eq!(one_call.pending(client), b"");
                }
                assert!(exchanged >= 499, "{name}: {exchanged}");
            }
        }
    }
}
