//! `websocket`: messages in both directions over one connection, after an opening handshake over HTTP.
//!
//! The server half (`session`) echoes every message frame by frame, so that it never keeps one. The client half
//! (`requester`) sends a message and checks that the same one comes back, in any number of frames. Both answer pings
//! and closing handshakes. Extensions are never offered.
//!
//! RFC 6455 is the reference. `tungstenite` parses and writes the heads of frames.

mod frame;
mod opening;
mod request_set;
mod requester;
mod session;
mod utf8;

use super::{
    Dialogue, HttpRequest, Offer, Protocol, ProtocolError, Requester, Session, Settings,
    WireProtocol,
};

/// The protocol `websocket`.
pub(super) struct Websocket;

impl Protocol for Websocket {
    fn name(&self) -> &'static str {
        "websocket"
    }

    fn summary(&self) -> &'static str {
        "every message comes back; the client also works against other echo servers"
    }

    fn session(&self, _: &Offer) -> Box<dyn Session> {
        Box::<session::WebsocketSession>::default()
    }
}

impl Dialogue for Websocket {
    fn describe(&self, settings: &Settings) -> String {
        let kind = if settings.text { "text" } else { "binary" };
        let paths = settings.requests.in_words(HttpRequest::path);
        let sizes = settings.size.sizes_in_words();
        format!("websocket {paths}, echo of {kind} messages of {sizes}")
    }

    fn has_handshake(&self) -> bool {
        true
    }

    fn wire_protocol(&self) -> Option<WireProtocol> {
        Some(WireProtocol::Http) // until the handshake is complete
    }

    fn requester(&self, settings: &Settings, client: u64) -> Box<dyn Requester> {
        Box::new(requester::WebsocketRequester::new(settings, client))
    }
}

/// A violation of RFC 6455 by a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    ReservedBits,
    ReservedOpcode,
    /// The length of a frame takes more bytes than necessary, or has its first bit set.
    BadLength,
    Unmasked,
    Masked,
    LongControl,
    FragmentedControl,
    /// A continuation frame outside a message.
    NothingToContinue,
    /// A message that begins within another one.
    Interleaved,
    TooLong,
    InvalidUtf8,
    BadClose,
}

impl Fault {
    fn what(self) -> &'static str {
        match self {
            Self::ReservedBits => "a frame has reserved bits set, and no extension was agreed on",
            Self::ReservedOpcode => "a frame has a reserved opcode",
            Self::BadLength => "a frame's length is not in its shortest form",
            Self::Unmasked => "a frame of the client is not masked",
            Self::Masked => "a frame of the server is masked",
            Self::LongControl => "a control frame has more than 125 bytes",
            Self::FragmentedControl => "a control frame is fragmented",
            Self::NothingToContinue => "a continuation frame is outside a message",
            Self::Interleaved => "a message begins within another one",
            Self::TooLong => "a message is longer than 64 MiB",
            Self::InvalidUtf8 => "a text message is not UTF-8",
            Self::BadClose => "a close frame has a wrong code or reason",
        }
    }

    /// The kind of this error in a client's records.
    fn kind(self) -> &'static str {
        match self {
            Self::InvalidUtf8 => "invalid-utf8",
            _ => "bad-frame",
        }
    }

    /// The close status for this fault (section 7.4.1).
    fn status(self) -> u16 {
        match self {
            Self::InvalidUtf8 => 1007,
            Self::TooLong => 1009,
            _ => 1002,
        }
    }
}

impl From<Fault> for ProtocolError {
    fn from(fault: Fault) -> Self {
        Self {
            what: fault.what().to_owned(),
        }
    }
}
