//! A fuzzer's bytes read as choices and cut into pieces.

/// Bytes from which choices are taken, one after the other; zeros once there are no more.
#[derive(Debug, Clone)]
pub struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    /// Choices from these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    /// The next two bytes, as a number.
    pub fn short(&mut self) -> usize {
        usize::from(self.byte()) << 8 | usize::from(self.byte())
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    /// The next `count` bytes, or as many as remain.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The remaining bytes.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Whether no bytes remain.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Where bytes are cut into pieces.
#[derive(Debug, Clone)]
pub struct Cuts<'a> {
    /// Lengths of the first pieces.
    lengths: &'a [u8],
    /// Whether the pieces after them have one byte each; otherwise there is one more piece.
    single: bool,
}

/// Maximum number of pieces whose lengths are chosen.
const MOST_CUTS: usize = 15;

impl<'a> Cuts<'a> {
    /// Chooses where to cut.
    pub fn choose(choices: &mut Choices<'a>) -> Self {
        let how = choices.byte();
        Self {
            lengths: choices.take(usize::from(how) % (MOST_CUTS + 1)),
            single: how >= 128,
        }
    }

    /// The pieces of `bytes`; none of them is empty.
    pub fn pieces<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
        let mut left = bytes;
        let mut lengths = self.lengths.iter();
        std::iter::from_fn(move || {
            let length = match lengths.next() {
                Some(&length) => usize::from(length).max(1),
                None if self.single => 1,
                None => left.len(),
            };
            let (piece, rest) = left.split_at(length.min(left.len()));
            left = rest;
            (!piece.is_empty()).then_some(piece)
        })
    }
}

/// Changes a few places in `bytes`.
pub fn edit(bytes: &mut Vec<u8>, choices: &mut Choices<'_>) {
    for _ in 0..choices.below(4) {
        let at = choices.short() % (bytes.len() + 1);
        match (choices.below(4), choices.byte()) {
            (0, byte) if at < bytes.len() => bytes[at] ^= byte,
            (1, byte) => bytes.insert(at, byte),
            (2, _) if at < bytes.len() => {
                bytes.remove(at);
            }
            (3, _) => bytes.truncate(at),
            _ => {}
        }
    }
}
