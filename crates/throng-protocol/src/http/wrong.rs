//! What can be wrong with a reply.

/// What kind of wrong a reply is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is not what was expected.
    #[default]
    Reply,
    /// It is not HTTP/1.
    NotHttp,
    /// Its head has no end.
    LongHead,
    /// It has a length that is none, or two.
    Length,
    /// Its chunks are none.
    Chunk,
    /// Something follows it that belongs to nothing.
    Extra,
    /// The connection ended in the middle of it.
    Cut,
}

impl Fault {
    /// Its name among errors, if any.
    pub(super) fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Reply => return None,
            Self::NotHttp => "not-http",
            Self::LongHead => "long-head",
            Self::Length => "bad-length",
            Self::Chunk => "bad-chunk",
            Self::Extra => "extra-bytes",
            Self::Cut => "cut-reply",
        })
    }
}

/// Why a reply is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) kind: Fault,
    pub(super) what: String,
}

/// A reply that is wrong in this way.
#[cold]
pub(super) fn wrong<T>(kind: Fault, what: String) -> Result<T, Wrong> {
    Err(Wrong { kind, what })
}
