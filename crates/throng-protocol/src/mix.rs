//! A single request, or several with weights.
//!
//! A mix is laid out once for all clients, as an order of shuffled rounds. In each round, every part occurs exactly as
//! often as its weight. Each client cycles through this order from its own round. So a request needs no random number,
//! a client stores only its position, and its requests are reproducible. The seed decides order and positions.

use std::fmt::Display;

/// Maximum sum of the weights of a mix, after dividing them by their common divisor.
pub const MOST_WEIGHT: u64 = 1000;
/// Minimum length of an order, so that it does not repeat too soon.
const ORDER_LENGTH: u64 = 1024;
/// Fewest rounds of an order. With fewer, most clients would begin with the same part. A single round needs no start: any
/// part of it may be a client's first.
const FEWEST_ROUNDS: u64 = 8;

/// A single value, or a mix of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix<T: 'static> {
    /// A single value.
    One(T),
    /// Several values, each with a frequency proportional to its weight.
    Several(&'static [(T, u32)]),
}

impl<T: Copy + PartialEq> Mix<T> {
    /// Builds a mix, which lives as long as the program.
    ///
    /// # Errors
    /// The error, with the part that is wrong.
    pub fn new(parts: &[(T, u32)]) -> Result<Self, String> {
        check_parts(parts)?;
        Ok(match parts {
            [(only, _)] => Self::One(*only),
            several => Self::Several(several.to_vec().leak()),
        })
    }

    /// Its parts and their weights.
    pub fn parts(&self) -> impl Iterator<Item = (T, u32)> {
        let (one, several) = match *self {
            Self::One(value) => (Some((value, 1)), &[][..]),
            Self::Several(parts) => (None, parts),
        };
        one.into_iter().chain(several.iter().copied())
    }

    /// The values in the order that clients repeat.
    pub(super) fn order(&self, seed: u64) -> Vec<T> {
        let (values, weights): (Vec<T>, Vec<u32>) = self.parts().unzip();
        let order = order_of(&weights, u64::MAX, seed).into_iter();
        order.map(|place| values[place as usize]).collect()
    }

    /// The index of a client's first value in an order of this length: the start of a round, or anywhere in the only
    /// one. Adjacent clients start far apart.
    pub(super) fn first(&self, client: u64, seed: u64, length: usize) -> usize {
        let weights: Vec<u32> = self.parts().map(|(_, weight)| weight).collect();
        let round = reduced(&weights).sum::<u64>() as usize;
        let number = scrambled(seed) ^ client;
        match length / round.max(1) {
            0 | 1 => scatter(number, length),
            rounds => round * scatter(number, rounds),
        }
    }

    /// A description, with `word` for each part: "100 kB (3), 1 MB (1)".
    pub(super) fn in_words<W: Display>(&self, word: impl Fn(T) -> W) -> String {
        match self {
            Self::One(value) => word(*value).to_string(),
            Self::Several(parts) => {
                let words: Vec<String> = parts
                    .iter()
                    .map(|(value, weight)| format!("{} ({weight})", word(*value)))
                    .collect();
                words.join(", ")
            }
        }
    }
}

impl Mix<usize> {
    /// A description: "1000 bytes", or "100 kB (3), 1 MB (1)".
    pub(super) fn sizes_in_words(&self) -> String {
        match self {
            Self::One(size) => format!("{size} bytes"),
            Self::Several(_) => self.in_words(bytes_in_words),
        }
    }

    /// The largest size in it.
    pub fn largest(&self) -> usize {
        self.parts().map(|(size, _)| size).max().unwrap_or(0)
    }
}

/// The indexes of parts with these weights: each occurs as often as its weight per round, for up to `most_rounds`
/// rounds. Each round is shuffled by itself, so that none misses a part.
pub(super) fn order_of(weights: &[u32], most_rounds: u64, seed: u64) -> Vec<u32> {
    if weights.len() < 2 {
        return vec![0; weights.len()];
    }
    let reduced: Vec<u64> = reduced(weights).collect();
    let wanted = ORDER_LENGTH.div_ceil(reduced.iter().sum());
    let rounds = match wanted.min(most_rounds) {
        0..FEWEST_ROUNDS => 1,
        rounds => rounds,
    };
    let each = (0..).zip(&reduced);
    let round: Vec<u32> = each
        .flat_map(|(place, weight)| std::iter::repeat_n(place, *weight as usize))
        .collect();
    let mut order = round.repeat(rounds as usize);
    for (number, part) in order.chunks_mut(round.len()).enumerate() {
        // Fisher-Yates.
        for last in (1..part.len()).rev() {
            let drawn = scrambled(seed) ^ ((number as u64) << 32) ^ last as u64;
            part.swap(last, scatter(drawn, last + 1));
        }
    }
    order
}

/// Checks that these parts are a valid mix.
///
/// # Errors
/// The error, with the part that is wrong.
pub fn check_parts<T: PartialEq>(parts: &[(T, u32)]) -> Result<(), String> {
    for (place, (value, weight)) in parts.iter().enumerate() {
        if *weight == 0 {
            return Err(format!("part {} has a weight of 0", place + 1));
        }
        if let Some(first) = parts[..place].iter().position(|(other, _)| other == value) {
            return Err(format!(
                "parts {} and {} are equal; add up their weights",
                first + 1,
                place + 1
            ));
        }
    }
    let weights: Vec<u32> = parts.iter().map(|(_, weight)| *weight).collect();
    let sum = reduced(&weights).sum::<u64>();
    match parts {
        [] => Err("it is empty".to_owned()),
        [_, _, ..] if sum > MOST_WEIGHT => Err(format!(
            "the sum of its weights is {sum}; use smaller ones, at most {MOST_WEIGHT} in total"
        )),
        _ => Ok(()),
    }
}

/// Parses the parts of a mix, `PART[:WEIGHT],PART[:WEIGHT],...`, each with `read`.
///
/// # Errors
/// The error, with the part that is wrong.
pub fn parse_parts<T>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<(T, u32)>, String> {
    let several = text.contains(',');
    let parts = text.split(',').enumerate().map(|(place, part)| {
        let weighted = match part.rsplit_once(':') {
            None => read(part).map(|value| (value, 1)),
            Some((value, weight)) => {
                read(value).and_then(|value| Ok((value, parse_weight(weight)?)))
            }
        };
        weighted.map_err(|why| {
            if several {
                format!("part {} of the mix: {why}", place + 1)
            } else {
                why
            }
        })
    });
    parts.collect()
}

/// Parses the weight of a part.
///
/// # Errors
/// If it is invalid.
pub fn parse_weight(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("a weight must be at least 1".to_owned()),
        Ok(weight) => Ok(weight),
        Err(_) => Err(format!(
            "`{text}` is not a weight; write a whole number from 1 to {MOST_WEIGHT}"
        )),
    }
}

/// The weights, divided by their common divisor.
fn reduced(weights: &[u32]) -> impl Iterator<Item = u64> {
    let common = weights
        .iter()
        .fold(0, |common, weight| greatest_common_divisor(common, *weight));
    weights
        .iter()
        .map(move |weight| u64::from(weight / common.max(1)))
}

/// The greatest number that divides both; if one is 0, the other.
pub fn greatest_common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A pseudo-random index below `length`.
fn scatter(number: u64, length: usize) -> usize {
    (scrambled(number) % length as u64) as usize
}

/// A pseudo-random number: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
pub(super) fn scrambled(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The next index in a cycle.
pub(super) fn following(place: usize, length: usize) -> usize {
    if place + 1 < length { place + 1 } else { 0 }
}

/// A number of bytes, in the largest unit that needs no fraction.
fn bytes_in_words(bytes: usize) -> String {
    for (unit, name) in [
        (1_000_000, "MB"),
        (1 << 20, "MiB"),
        (1000, "kB"),
        (1 << 10, "KiB"),
    ] {
        if bytes > 0 && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> Result<usize, String> {
        text.parse().map_err(|_| format!("`{text}` is no number"))
    }

    fn parse(text: &str) -> Result<Mix<usize>, String> {
        Mix::new(&parse_parts(text, number)?)
    }

    #[test]
    fn one_or_several_are_read() {
        assert_eq!(parse("5"), Ok(Mix::One(5)));
        assert_eq!(parse("5:7"), Ok(Mix::One(5)));
        assert_eq!(
            parse("5:3,6,7:1"),
            Ok(Mix::Several(&[(5, 3), (6, 1), (7, 1)]))
        );
        assert_eq!(parse("5:3,6").unwrap().largest(), 6);
    }

    #[test]
    fn wrong_weights_are_named_with_their_place() {
        for (text, why) in [
            ("", "`` is no number"),
            ("5,", "part 2 of the mix: `` is no number"),
            ("5,x:2", "part 2 of the mix: `x` is no number"),
            ("5:0,6", "part 1 of the mix: a weight must be at least 1"),
            ("5:0", "a weight must be at least 1"),
            ("5:-1,6", "part 1 of the mix: `-1` is not a weight"),
            ("5,6:", "part 2 of the mix: `` is not a weight"),
            ("5,6:4294967296", "part 2 of the mix: `4294967296` is not"),
            ("5:1,6:1000", "the sum of its weights is 1001"),
            ("5:4294967295,6:4294967294", "is 8589934589"),
            ("5,6,5", "parts 1 and 3 are equal"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(Mix::<usize>::new(&[]).is_err());
        assert!(Mix::new(&[(1, 1), (2, 0)]).is_err());
    }

    #[test]
    fn shares_are_exact_and_scattered() {
        let mix = parse("1:6,2:2").unwrap();
        let order = mix.order(1);
        assert_eq!(order.len(), 1024);
        assert_eq!(order.iter().filter(|&&value| value == 1).count(), 768);
        assert_ne!(order, mix.order(2), "the seed decides");
        let starts = |mix: &Mix<usize>, seed| -> std::collections::BTreeSet<usize> {
            let length = mix.order(seed).len();
            let clients = 0..1000;
            clients
                .map(|client| mix.first(client, seed, length))
                .collect()
        };
        assert!(starts(&mix, 1).len() > 200);
        assert_ne!(mix.first(0, 1, 1024), mix.first(0, 2, 1024));
        let rare = parse("1:999,2:1").unwrap();
        assert_eq!(rare.order(1).len(), 1000);
        assert!(starts(&rare, 1).len() > 500, "anywhere in a single round");
        assert_eq!(Mix::One(3).order(1), [3]);
    }

    #[test]
    fn mixes_are_described() {
        let mix = Mix::Several(&[(100_000, 3), (1 << 20, 1), (1_000_000, 1), (999, 2)]);
        assert_eq!(
            mix.sizes_in_words(),
            "100 kB (3), 1 MiB (1), 1 MB (1), 999 B (2)"
        );
        assert_eq!(Mix::One(100_000).sizes_in_words(), "100000 bytes");
        assert_eq!(Mix::One("/").in_words(|path| path), "/");
        assert_eq!(bytes_in_words(0), "0 B");
        assert_eq!(bytes_in_words(4096), "4 KiB");
    }

    proptest! {
        #[test]
        fn every_order_has_the_shares_asked_for(
            weights in prop::collection::vec(1_u32..60, 2..16), seed in any::<u64>(), client in any::<u64>(),
        ) {
            let parts: Vec<(usize, u32)> = weights.iter().copied().enumerate().collect();
            let mix = Mix::new(&parts).unwrap();
            let order = mix.order(seed);
            let sum: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
            prop_assert!(order.len() < 2048);
            let round = reduced(&weights).sum::<u64>();
            for (value, weight) in parts {
                let count = order.iter().filter(|&&other| other == value).count() as u64;
                prop_assert_eq!(count * sum, order.len() as u64 * u64::from(weight));
                // Each client has all of them in its first round, and in each further one.
                let (first, round) = (mix.first(client, seed, order.len()), round as usize);
                let own: Vec<usize> = order.iter().cycle().skip(first).take(3 * round).copied().collect();
                for part in own.chunks(round) {
                    let count = part.iter().filter(|&&other| other == value).count();
                    prop_assert_eq!(count as u64 * sum, round as u64 * u64::from(weight));
                }
            }
        }
    }
}
