//! Errors in a reply.

/// The kind of error in a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Fault {
    /// An unexpected reply.
    #[default]
    Reply,
    /// A reply that is not HTTP/1.
    NotHttp,
    /// A head without an end.
    LongHead,
    /// An invalid length, or two different ones.
    Length,
    /// Invalid chunks.
    Chunk,
    /// Bytes after the reply.
    Extra,
    /// The connection ended within the reply.
    Cut,
    /// A reply that is not HTTP/2.
    NotHttp2,
    /// A frame that is wrong, or in the wrong place.
    Frame,
    /// Headers that cannot be decoded or are malformed.
    Headers,
    /// Windows that are too wide, or widened by nothing.
    FlowControl,
    /// The server ended the connection with an error.
    GoAway,
    /// Endless frames without a reply.
    Flood,
    /// A message of gRPC that is incomplete or compressed.
    Message,
}

impl Fault {
    /// Its name in records of errors, if it has one.
    pub(super) fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Reply => return None,
            Self::NotHttp => "not-http",
            Self::LongHead => "long-head",
            Self::Length => "bad-length",
            Self::Chunk => "bad-chunk",
            Self::Extra => "extra-bytes",
            Self::Cut => "cut-reply",
            Self::NotHttp2 => "not-http2",
            Self::Frame => "bad-frame",
            Self::Headers => "bad-headers",
            Self::FlowControl => "bad-window",
            Self::GoAway => "goaway",
            Self::Flood => "frame-flood",
            Self::Message => "bad-message",
        })
    }
}

/// Why a reply is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrongReply {
    pub(super) kind: Fault,
    pub(super) what: String,
}

/// The error for a wrong reply of this kind.
#[cold]
pub(super) fn wrong<T>(kind: Fault, what: String) -> Result<T, WrongReply> {
    Err(WrongReply { kind, what })
}
