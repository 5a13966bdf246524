//! A part of a study that searches for the limit of its servers, from its table `limit`.

use super::mistakes::{at_option, wrong_load};
use crate::cli::WrongOption;
use crate::cli::load_flags::LoadFlags;
use crate::cli::search_flags::{SearchFlags, to_search};
use crate::record::{Limit, Resources, Settings};
use crate::study::{Choice, Part, Study};

/// Options of `throng limit` that a part sets with its own keys.
const NOT_OF_A_SEARCH: &[&str] = &[
    "duration",
    "warm-up",
    "connect-timeout",
    "first-reply-timeout",
    "ready-timeout",
    "stop-timeout",
    "setup",
    "cleanup",
    "hook-timeout",
    "probes",
];

/// The search of a part, if the part is one, with `hosts` client hosts. Turns `settings` into those of a search.
///
/// # Errors
/// If the file has an error, with its position, or this machine has no room for a single client.
pub(super) fn limit(
    study: &Study,
    part: &Part,
    hosts: usize,
    resources: &Resources,
    settings: &mut Settings,
) -> anyhow::Result<Option<Limit>> {
    if !part.is_search() {
        return Ok(None);
    }
    let options = &part.limit;
    for choice in options.iter() {
        if let Some(whose) = not_of_a_search(choice) {
            let why = format!("`{}` does not belong in `limit`; {whose}", choice.name);
            return Err(study.file.wrong(&choice.name_at, &why).into());
        }
    }
    let wrong = |about: WrongOption| at_option(study, options, &about, 0..0);
    let flags = SearchFlags::read(&options.words())
        .map_err(|error| wrong(WrongOption::of(&error, "limit")))?;
    let threads = settings.load_threads as usize;
    let result = flags.limit(threads, hosts, resources);
    // A shortage of this machine is no mistake of the file.
    let limit = result.map_err(|error| match error.downcast() {
        Ok(about) => wrong(about).into(),
        Err(other) => other,
    })?;
    to_search(settings, &limit).map_err(|error| wrong_load(study, part, &error))?;
    Ok(Some(limit))
}

/// Where an option belongs that is not part of a search.
fn not_of_a_search(choice: &Choice) -> Option<String> {
    let name = choice.name.as_str();
    if NOT_OF_A_SEARCH.contains(&name) {
        return Some(format!("use the key `{name}` of the part"));
    }
    LoadFlags::has(name).then(|| format!("write `load = {{ {name} = ... }}`"))
}
