//! Header blocks (RFC 7541).
//!
//! Decoding depends on a table that earlier blocks of the connection filled. Most connections of a load get the same
//! blocks, so tables are immutable and shared, and a thread caches the meaning of a block after a table, together with
//! the table that follows. A repeated block costs a comparison, and a connection holds no table of its own.
//!
//! Only Huffman codes come from a library. What is sent uses neither them nor the table.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::LocalKey;

use httlib_huffman::DecoderSpeed;

use super::frame::{Code, TABLE, Violation, violation};

/// What an entry of a table counts in addition to its bytes (section 4.1).
const OVERHEAD: usize = 32;
/// Maximum size of all fields of a block, counted like entries of a table.
const MOST_LIST: usize = 64 * 1024;
/// Maximum number of blocks in a thread's cache, and the length of one.
const MOST_BLOCKS: usize = 32;
const MOST_BYTES: usize = 2 * 1024;

/// A field of an earlier block: its name and value.
type Entry = (Arc<[u8]>, Arc<[u8]>);

/// A table with the fields of earlier blocks, newest first.
#[derive(Debug, Clone)]
pub(super) struct Table {
    entries: VecDeque<Entry>,
    bytes: usize,
    most: usize,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            most: TABLE,
        }
    }
}

impl Table {
    fn add(&mut self, name: Arc<[u8]>, value: Arc<[u8]>) {
        let bytes = size(&name, &value);
        self.shrink_to(self.most.saturating_sub(bytes));
        if bytes <= self.most {
            self.bytes += bytes;
            self.entries.push_front((name, value));
        }
    }

    fn shrink_to(&mut self, bytes: usize) {
        while self.bytes > bytes
            && let Some((name, value)) = self.entries.pop_back()
        {
            self.bytes -= size(&name, &value);
        }
    }
}

fn size(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + OVERHEAD
}

/// A connection's table; `None` before its first entry.
pub(super) type SharedTable = Option<Arc<Table>>;

/// What a block means to one half.
pub(super) trait BlockForm: Copy + Default + 'static {
    /// Adds a field.
    fn add(&mut self, name: &[u8], value: &[u8]);

    /// Whether nothing else in its fields matters.
    fn is_cacheable(&self) -> bool;

    /// The cache of this thread.
    fn cache() -> &'static LocalKey<RefCell<BlockCache<Self>>>;
}

/// Blocks with their meaning.
pub(super) struct BlockCache<T> {
    blocks: Vec<KnownBlock<T>>,
    /// The index to replace next when the cache is full.
    oldest: usize,
}

struct KnownBlock<T> {
    bytes: Box<[u8]>,
    before: SharedTable,
    after: SharedTable,
    meaning: T,
}

impl<T> BlockCache<T> {
    pub(super) const fn new() -> Self {
        Self {
            blocks: Vec::new(),
            oldest: 0,
        }
    }
}

fn is_same(one: &SharedTable, other: &SharedTable) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    }
}

/// The decoder of a connection.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    table: SharedTable,
    /// The index of its last block in the cache.
    last: u8,
}

impl Decoder {
    /// The meaning of a complete block. Fields of blocks that are not cacheable are also passed to `note`.
    #[inline]
    pub(super) fn decode<T: BlockForm>(
        &mut self,
        block: &[u8],
        note: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<T, Violation> {
        let known = T::cache().with_borrow(|cache| {
            let known = cache.blocks.get(usize::from(self.last))?;
            let is_it = *known.bytes == *block && is_same(&known.before, &self.table);
            is_it.then(|| {
                if !is_same(&known.after, &self.table) {
                    self.table.clone_from(&known.after);
                }
                known.meaning
            })
        });
        match known {
            Some(meaning) => Ok(meaning),
            None => self.decode_anew(block, note),
        }
    }

    #[cold]
    fn decode_anew<T: BlockForm>(
        &mut self,
        block: &[u8],
        note: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<T, Violation> {
        T::cache().with_borrow_mut(|cache| {
            let mut blocks = cache.blocks.iter();
            let place = blocks
                .position(|known| *known.bytes == *block && is_same(&known.before, &self.table));
            if let Some(place) = place {
                self.last = place as u8;
                self.table.clone_from(&cache.blocks[place].after);
                return Ok(cache.blocks[place].meaning);
            }
            let before = self.table.clone();
            let mut meaning = T::default();
            decode(&mut self.table, block, &mut |name, value| {
                meaning.add(name, value);
            })?;
            if !meaning.is_cacheable() || block.len() > MOST_BYTES {
                let mut again = before;
                decode(&mut again, block, note)?;
                return Ok(meaning);
            }
            let known = KnownBlock {
                bytes: block.into(),
                before,
                after: self.table.clone(),
                meaning,
            };
            if cache.blocks.len() < MOST_BLOCKS {
                self.last = cache.blocks.len() as u8;
                cache.blocks.push(known);
            } else {
                self.last = cache.oldest as u8;
                cache.blocks[cache.oldest] = known;
                cache.oldest = (cache.oldest + 1) % MOST_BLOCKS;
            }
            Ok(meaning)
        })
    }
}

/// Decodes a block, passes its fields to `visit`, and updates the table.
pub(super) fn decode(
    table: &mut SharedTable,
    mut block: &[u8],
    visit: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<(), Violation> {
    let mut left = MOST_LIST;
    let mut is_first = true;
    while let Some(first) = block.first() {
        let first = *first;
        if first & 0xe0 == 0x20 {
            let most = integer(&mut block, 5)?;
            if !is_first || most > TABLE {
                return broken("a header block changes the size of its table wrongly");
            }
            let table = Arc::make_mut(table.get_or_insert_default());
            table.most = most;
            table.shrink_to(most);
            continue;
        }
        is_first = false;
        let has_value = first & 0x80 == 0;
        let is_added = first & 0xc0 == 0x40;
        let bits = match (has_value, is_added) {
            (false, _) => 7,
            (true, true) => 6,
            (true, false) => 4,
        };
        let index = integer(&mut block, bits)?;
        let known = match index.checked_sub(STATIC.len() + 1) {
            _ if index == 0 && has_value => None,
            None => STATIC.get(index.wrapping_sub(1)).map(|(name, value)| {
                (
                    Cow::Borrowed(name.as_bytes()),
                    Cow::Borrowed(value.as_bytes()),
                )
            }),
            Some(at) => table
                .as_ref()
                .and_then(|table| table.entries.get(at))
                .map(|(name, value)| (Cow::Owned(name.to_vec()), Cow::Owned(value.to_vec()))),
        };
        let (name, value) = match known {
            Some((name, _)) if has_value => (name, string(&mut block)?),
            Some(field) => field,
            None if index == 0 && has_value => (string(&mut block)?, string(&mut block)?),
            None => return broken("a header block names a field that is not in a table"),
        };
        left = match left.checked_sub(size(&name, &value)) {
            Some(left) => left,
            None => return violation(Code::CALM, "the headers have more than 64 KiB"),
        };
        visit(&name, &value);
        if is_added {
            let table = Arc::make_mut(table.get_or_insert_default());
            table.add((&*name).into(), (&*value).into());
        }
    }
    Ok(())
}

#[cold]
fn broken<T>(what: &'static str) -> Result<T, Violation> {
    violation(Code::COMPRESSION, what)
}

/// An integer in the lower `bits` of the first byte and, if these are all set, in further ones.
fn integer(input: &mut &[u8], bits: u32) -> Result<usize, Violation> {
    let cut = || Violation {
        code: Code::COMPRESSION,
        what: "a header block is cut off",
    };
    let (first, mut rest) = input.split_first().ok_or_else(cut)?;
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(*first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (byte, after) = rest.split_first().ok_or_else(cut)?;
            rest = after;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
            if shift > 21 {
                return broken("a number in a header block is too large");
            }
        }
    }
    *input = rest;
    Ok(value)
}

fn string<'a>(input: &mut &'a [u8]) -> Result<Cow<'a, [u8]>, Violation> {
    let is_coded = input.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer(input, 7)?;
    let Some((bytes, rest)) = input.split_at_checked(length) else {
        return broken("a header block is cut off");
    };
    *input = rest;
    if !is_coded {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut text = Vec::with_capacity(length * 8 / 5);
    let mut again = Vec::with_capacity(length);
    // The library accepts some wrong padding, so the code is compared with the only right one.
    let is_right = httlib_huffman::decode(bytes, &mut text, DecoderSpeed::FourBits).is_ok()
        && httlib_huffman::encode(&text, &mut again).is_ok()
        && again == bytes;
    if !is_right {
        return broken("a Huffman code in a header block is invalid");
    }
    Ok(Cow::Owned(text))
}

/// Appends an integer whose first byte has these flags above its lower `bits`.
fn push_integer(flags: u8, bits: u32, value: usize, out: &mut Vec<u8>) {
    let most = (1_usize << bits) - 1;
    if value < most {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | most as u8);
    let mut value = value - most;
    while value > 0x7f {
        out.push(0x80 | value as u8);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the name of a field that is followed by a value, which no table keeps.
pub(super) fn push_name(name: &str, out: &mut Vec<u8>) {
    if let Some(at) = STATIC.iter().position(|(known, _)| *known == name) {
        push_integer(0, 4, at + 1, out);
    } else {
        out.push(0);
        push_text(name.as_bytes(), out);
    }
}

/// Appends a name or a value.
pub(super) fn push_text(text: &[u8], out: &mut Vec<u8>) {
    push_integer(0, 7, text.len(), out);
    out.extend_from_slice(text);
}

/// Appends a field.
pub(super) fn push_field(name: &str, value: &str, out: &mut Vec<u8>) {
    if let Some(at) = STATIC.iter().position(|known| *known == (name, value)) {
        push_integer(0x80, 7, at + 1, out);
    } else {
        push_name(name, out);
        push_text(value.as_bytes(), out);
    }
}

/// The acknowledgement of a smaller table: this encoder uses none.
pub(super) const NO_TABLE: u8 = 0x20;

/// Whether a name may be in a field: of HTTP/2's characters, in lower case, and not about the connection (RFC 9113,
/// section 8.2).
pub(super) fn is_name(name: &[u8]) -> bool {
    let is_part = |byte: &u8| {
        byte.is_ascii_digit() || byte.is_ascii_lowercase() || b"!#$%&'*+-.^_`|~".contains(byte)
    };
    !name.is_empty() && name.iter().all(is_part) && !OF_CONNECTIONS.contains(&name)
}

/// Headers that are not allowed in HTTP/2.
pub(super) const OF_CONNECTIONS: [&[u8]; 5] = [
    b"connection",
    b"proxy-connection",
    b"keep-alive",
    b"transfer-encoding",
    b"upgrade",
];

/// Whether a value may be in a field.
pub(super) fn is_value(value: &[u8]) -> bool {
    !value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'))
}

/// The table that every connection has (RFC 7541, appendix A).
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text
            .bytes()
            .filter_map(|byte| char::from(byte).to_digit(16))
            .map(|digit| digit as u8)
            .collect();
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    }

    fn fields(table: &mut SharedTable, block: &[u8]) -> Result<String, Violation> {
        let mut fields = String::new();
        decode(table, block, &mut |name, value| {
            fields += &format!("{}={};", name.escape_ascii(), value.escape_ascii());
        })?;
        Ok(fields)
    }

    /// The examples of RFC 7541, appendix C.3, C.4 and C.6.
    #[test]
    fn the_standards_examples_are_decoded() {
        let asked = [
            ":method=GET;:scheme=http;:path=/;:authority=www.example.com;",
            ":method=GET;:scheme=http;:path=/;:authority=www.example.com;cache-control=no-cache;",
            ":method=GET;:scheme=https;:path=/index.html;:authority=www.example.com;custom-key=custom-value;",
        ];
        for blocks in [
            [
                "828684410f7777772e6578616d706c652e636f6d",
                "828684be58086e6f2d6361636865",
                "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
            ],
            [
                "828684418cf1e3c2e5f23a6ba0ab90f4ff",
                "828684be5886a8eb10649cbf",
                "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
            ],
        ] {
            let mut table = None;
            for (block, expected) in blocks.iter().zip(asked) {
                assert_eq!(fields(&mut table, &hex(block)).unwrap(), expected);
            }
            assert_eq!(table.unwrap().bytes, 164);
        }
        // With a table of 256 bytes, entries are evicted.
        let mut table = Some(Arc::new(Table {
            most: 256,
            ..Table::default()
        }));
        for (block, status, bytes) in [
            (
                "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
                "302",
                222,
            ),
            ("4883640effc1c0bf", "307", 222),
        ] {
            let read = fields(&mut table, &hex(block)).unwrap();
            let expected = format!(
                ":status={status};cache-control=private;date=Mon, 21 Oct 2013 20:13:21 GMT;location=https://www.example.com;"
            );
            assert_eq!(read, expected);
            assert_eq!(table.as_ref().unwrap().bytes, bytes);
        }
    }

    #[test]
    fn wrong_blocks_are_refused() {
        for wrong in [
            "80",                         // index 0
            "be",                         // not in the table
            "ff",                         // cut off
            "ffffffffff7f",               // too large
            "0001",                       // a name without an end
            "828f",                       // fine until here ...
            "3fe21f",                     // a table above the limit
            "8220",                       // a change of the table after a field
            "418cf1e3c2e5f23a6ba0ab90f4", // cut off within a code
            "0084ffffffff00",             // the code for the end of a text
            "0082f8ff00",                 // more than 7 bits of padding
            "00811800",                   // padding that is not set
        ] {
            let read = fields(&mut None, &hex(wrong));
            if wrong == "828f" {
                assert!(read.is_ok());
            } else {
                assert_eq!(read.unwrap_err().code, Code::COMPRESSION, "{wrong}");
            }
        }
        // A short block that repeats a long field.
        let mut bomb = Vec::new();
        bomb.push(0x40);
        push_text(b"x", &mut bomb);
        push_text(&[b'y'; 4000], &mut bomb);
        bomb.extend([0xbe; 100]);
        assert_eq!(fields(&mut None, &bomb).unwrap_err().code, Code::CALM);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut block = vec![NO_TABLE];
        let long = "x".repeat(300);
        let written = [
            (":method", "GET"),
            (":path", "/a"),
            ("x-own", &*long),
            ("user-agent", "throng"),
        ];
        let mut expected = String::new();
        for (name, value) in written {
            push_field(name, value, &mut block);
            expected += &format!("{name}={value};");
        }
        assert_eq!(fields(&mut None, &block).unwrap(), expected);
    }

    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    struct Lengths(usize, usize);

    impl BlockForm for Lengths {
        fn add(&mut self, name: &[u8], value: &[u8]) {
            self.0 += name.len();
            self.1 += value.len();
        }

        fn is_cacheable(&self) -> bool {
            !self.0.is_multiple_of(7)
        }

        fn cache() -> &'static LocalKey<RefCell<BlockCache<Self>>> {
            thread_local! {
                static CACHE: RefCell<BlockCache<Lengths>> = const { RefCell::new(BlockCache::new()) };
            }
            &CACHE
        }
    }

    proptest! {
        /// Blocks of several connections, of which some are the same.
        #[test]
        fn a_cached_block_means_the_same(
            blocks in prop::collection::vec((0..3_usize, 0..5_u8, 0..6_usize), 1..200),
        ) {
            let mut cached: [Decoder; 3] = Default::default();
            let mut plain: [SharedTable; 3] = Default::default();
            for (connection, kind, length) in blocks {
                let block = match kind {
                    0 => hex("82be"),
                    1 => hex("20"),
                    2 => hex("3fe11f"),
                    _ => {
                        let mut block = vec![0x40];
                        push_text(&[b'n'; 6][..length.max(1)], &mut block);
                        push_text(&vec![b'v'; 400 * usize::from(kind)], &mut block);
                        block
                    }
                };
                let mut expected = Lengths::default();
                let read = decode(&mut plain[connection], &block, &mut |name, value| expected.add(name, value));
                let table = plain[connection].clone();
                let decoded = cached[connection].decode::<Lengths>(&block, &mut |_, _| {});
                match read {
                    Ok(()) => prop_assert_eq!(decoded, Ok(expected)),
                    Err(wrong) => prop_assert_eq!(decoded, Err(wrong)),
                }
                let bytes = |table: &SharedTable| table.as_ref().map_or((0, TABLE), |table| (table.bytes, table.most));
                prop_assert_eq!(bytes(&cached[connection].table), bytes(&table));
            }
        }
    }
}
