//! JSON with changed values: it is still JSON, and mostly still of the right form, so it gets past its parser.

use serde_json::{Value, json};

use super::bytes::Choices;

/// A value to put where another one is expected.
fn hostile(which: u8) -> Value {
    match which % 24 {
        0 => json!(0),
        1 => json!(1),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(u32::MAX),
        5 => json!(i64::MIN),
        6 => json!(f64::MAX),
        7 => json!(-1e300),
        8 => json!(5e-324),
        9 => json!(0.1),
        10 => json!(1e18),
        11 => json!(""),
        12 => json!("<script>alert(1)</script>"),
        13 => json!("| a\n\u{1b}[31m`b` \u{202e}"),
        14 => json!("../../x"),
        15 => json!("NaN"),
        16 => json!("epoll"),
        17 => json!("2026-13-01T99:00:00Z"),
        18 => json!([]),
        19 => json!({}),
        20 => json!(true),
        21 => Value::Null,
        22 => json!([1, 2, 3]),
        _ => json!("x".repeat(300)),
    }
}

/// Number of values in `value`, itself included.
fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(members) => members.iter().map(size).sum(),
        Value::Object(members) => members.values().map(size).sum(),
        _ => 0,
    }
}

/// The value with this number, in the order in which values are written.
fn numbered<'a>(value: &'a mut Value, number: &mut usize) -> Option<&'a mut Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    match value {
        Value::Array(members) => members.iter_mut().find_map(|one| numbered(one, number)),
        Value::Object(members) => members.values_mut().find_map(|one| numbered(one, number)),
        _ => None,
    }
}

/// Changes a few values: replaces them with hostile ones or others from the same JSON, repeats or removes members, or
/// alters numbers.
pub fn change(value: &mut Value, choices: &mut Choices<'_>) {
    for _ in 0..=choices.below(6) {
        let count = size(value);
        let mut number = choices.short() % count;
        let (how, which) = (choices.byte(), choices.byte());
        let other = {
            let mut other = usize::from(which) * count / 256;
            numbered(value, &mut other).cloned().unwrap_or_default()
        };
        let Some(found) = numbered(value, &mut number) else {
            return;
        };
        match (how % 8, &mut *found) {
            (0, _) => *found = other,
            (1, Value::Array(members)) => {
                members.extend(members.clone());
                members.truncate(64);
            }
            (2, Value::Array(members)) => members.truncate(usize::from(which)),
            (3, Value::Object(members)) => {
                let place = usize::from(which) % members.len().max(1);
                if let Some(name) = members.keys().nth(place).cloned() {
                    members.remove(&name);
                }
            }
            (4, Value::Number(number)) => {
                let factor = f64::from(which) / 16.0;
                *found = number
                    .as_f64()
                    .map_or(Value::Null, |old| json!(old * factor));
            }
            (5, Value::Number(number)) => {
                *found = number
                    .as_u64()
                    .map_or(Value::Null, |old| json!(old.rotate_right(u32::from(which))));
            }
            _ => *found = hostile(which),
        }
    }
}
