//! Why two servers differ, in two sentences.

use super::{Difference, Of, Why};
use throng_record::format::{hundredths, list, time};
use throng_record::profile::{Function, Part};

/// Most parts that a sentence names.
const MOST_NAMED: usize = 3;
/// System calls in which a server waits for its clients.
const FOR_CLIENTS: [&str; 15] = [
    "accept",
    "accept4",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "read",
    "recvfrom",
    "recvmsg",
    "io_uring_enter",
    "rt_sigtimedwait",
    "io_getevents",
];
/// Calls that put a thread to sleep for a time.
const PAUSES: [&str; 2] = ["nanosleep", "clock_nanosleep"];

/// The name of what differs.
pub(super) fn name(of: &Of) -> String {
    match of {
        Of::Cpu => "CPU time".to_owned(),
        Of::OwnCode => "its own code".to_owned(),
        Of::Kernel(Part::Call(call)) => format!("{call}()"),
        Of::Kernel(Part::PageFault) => "page faults".to_owned(),
        Of::Kernel(Part::Interrupt) => "interrupts".to_owned(),
        Of::Kernel(Part::Switch) => "switching threads".to_owned(),
        Of::Kernel(Part::Kernel | Part::User(_)) => "entering and leaving the kernel".to_owned(),
        Of::Function(Function { name, .. }) if name.is_empty() => "other functions".to_owned(),
        Of::Function(Function {
            name,
            caller: Some(caller),
        }) => format!("{name}, called by {caller}"),
        Of::Function(Function { name, .. }) => name.clone(),
        Of::Call(call) | Of::Asleep(call) => call.clone(),
        Of::VoluntarySwitches => "voluntary context switches".to_owned(),
        Of::InvoluntarySwitches => "involuntary context switches".to_owned(),
        Of::PageFaults => "page faults".to_owned(),
        Of::WaitingForCpu => "waiting for a CPU".to_owned(),
    }
}

/// What explains the CPU time, and what explains the rest.
pub(super) fn sentences(why: &Why) -> Vec<String> {
    let all = [cpu(why), waits(why)];
    all.into_iter().flatten().collect()
}

fn cpu(why: &Why) -> Option<String> {
    let Why {
        server, reference, ..
    } = why;
    let cpu = why.cpu.as_ref()?;
    let shown: Vec<&Difference> = why.parts.iter().filter(|part| part.is_shown).collect();
    let differs = cpu.is_shown
        && super::LEAST_DIFFERENCE * cpu.reference.max(cpu.server) <= cpu.difference.value.abs();
    if !differs && shown.is_empty() {
        let most = cpu.difference.low.abs().max(cpu.difference.high.abs());
        return Some(format!(
            "{server} and {reference} need the same CPU time per request within {}, and no part of it differs.",
            time(most)
        ));
    }
    let is_more = cpu.difference.value > 0.0;
    let (along, against): (Vec<&Difference>, Vec<&Difference>) = shown
        .into_iter()
        .partition(|part| (part.difference.value > 0.0) == is_more || !differs);
    let clauses = |parts: &[&Difference]| -> Vec<String> {
        let named = parts.iter().take(MOST_NAMED);
        named.map(|part| clause(why, part)).collect()
    };
    let mut text = if differs {
        let Sized { size, word } = sized(cpu);
        format!("{server} needs {size} {word} CPU time per request than {reference}")
    } else {
        format!(
            "{server} and {reference} need about the same CPU time per request, for different things"
        )
    };
    if along.is_empty() {
        text += ", spread over many parts";
    } else {
        text += &format!(": {}", list(&clauses(&along)));
    }
    if !against.is_empty() {
        text += &format!(", but {}", list(&clauses(&against)));
    }
    Some(text + ".")
}

/// A difference without its direction, and the direction.
struct Sized {
    size: String,
    word: &'static str,
}

fn sized(one: &Difference) -> Sized {
    Sized {
        size: time(one.difference.value.abs()),
        word: if one.difference.value > 0.0 {
            "more"
        } else {
            "less"
        },
    }
}

/// "9.8 µs less in select() (2 calls per request become 1)", "7 µs more in its own code (6.8 µs in spin)".
fn clause(why: &Why, part: &Difference) -> String {
    let Sized { size, word } = sized(part);
    let text = format!("{size} {word} in {}", part.name);
    match &part.of {
        Of::Kernel(Part::Call(call)) => text + &why.call(call).map_or_else(String::new, change),
        Of::OwnCode => {
            let is_along = |one: &&Difference| {
                one.is_shown && (one.difference.value > 0.0) == (part.difference.value > 0.0)
            };
            // Of two programs with nothing in common, no single function is the cause.
            let function = why.functions.iter().find(is_along).filter(|function| {
                let Of::Function(of) = &function.of else {
                    return false;
                };
                !of.name.is_empty()
                    && 2.0 * function.difference.value.abs() > part.difference.value.abs()
            });
            let named =
                |function: &Difference| format!(" ({} in {})", sized(function).size, function.name);
            text + &function.map_or_else(String::new, named)
        }
        _ => text,
    }
}

/// How the number of a call changes: " (2 calls per request become 1)", " (1 call per request)".
fn change(call: &Difference) -> String {
    let [then, now] = [call.reference, call.server].map(hundredths);
    if !call.is_shown || then == now {
        let calls = if now == "1.00" { "call" } else { "calls" };
        return format!(" ({now} {calls} per request)");
    }
    format!(" ({then} calls per request become {now})")
}

/// What threads wait for besides their clients.
fn waits(why: &Why) -> Option<String> {
    let Why {
        server, reference, ..
    } = why;
    let is_cause = |wait: &&Difference| match &wait.of {
        Of::WaitingForCpu => wait.is_shown,
        Of::Asleep(call) if FOR_CLIENTS.contains(&call.as_str()) => false,
        // Idle threads of a pool wait for work too, however many there are; only more such calls are a difference.
        Of::Asleep(call) => wait.is_shown && why.call(call).is_some_and(|call| call.is_shown),
        _ => false,
    };
    let causes = why.waits.iter().filter(is_cause).take(MOST_NAMED);
    let mut clauses: Vec<String> = causes
        .map(|wait| {
            let Sized { size, word } = sized(wait);
            match &wait.of {
                Of::WaitingForCpu => format!("wait {size} {word} for a CPU"),
                Of::Asleep(call) if PAUSES.contains(&call.as_str()) => {
                    let times = why.call(call).map_or_else(String::new, change);
                    format!("sleep {size} {word} in {call}(){times}")
                }
                _ => {
                    let times = why.call(&wait.name).map_or_else(String::new, change);
                    format!("wait {size} {word} in {}(){times}", wait.name)
                }
            }
        })
        .collect();
    let switches = why
        .events
        .iter()
        .find(|one| one.of == Of::VoluntarySwitches);
    if let Some(switches) = switches.filter(|one| one.is_shown) {
        let Sized { word, .. } = sized(switches);
        let apart = hundredths(switches.difference.value.abs());
        clauses.push(format!("go to sleep {apart} times {word}"));
    }
    let faults = why.events.iter().find(|one| one.of == Of::PageFaults);
    if let Some(faults) = faults.filter(|one| one.is_shown) {
        let Sized { word, .. } = sized(faults);
        let apart = hundredths(faults.difference.value.abs());
        clauses.push(format!("have {apart} page faults {word}"));
    }
    if clauses.is_empty() {
        return None;
    }
    Some(format!(
        "Per request, the threads of {server} {}, compared with {reference}.",
        list(&clauses)
    ))
}
