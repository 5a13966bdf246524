//! What a server says at its end about clients that it had to turn away: why, and what would let
//! them in.

use std::collections::BTreeMap;

use rustix::process::{Resource, getrlimit};

/// A sentence for each reason, from counts by reason.
pub(super) fn sentences(refused: &BTreeMap<String, u64>) -> Vec<String> {
    let sentence = |(why, count): (&String, &u64)| {
        let clients = if *count == 1 { "client" } else { "clients" };
        format!("{count} {clients} turned away: {}", reason(why))
    };
    refused.iter().map(sentence).collect()
}

fn reason(why: &str) -> String {
    match why {
        "descriptors" => format!(
            "too many open files, {} may be open at a time; raise the limit with `ulimit -n`",
            descriptors()
        ),
        "set-size" => "the sets that select() takes were full; see --fd-setsize".to_owned(),
        "pool-size" => {
            "all threads that carry out asynchronous reads were in use; see --aio-threads"
                .to_owned()
        }
        "threads" => "no further thread could be started; look at `ulimit -u`, \
                      vm.max_map_count and the pids limit of the control group"
            .to_owned(),
        "processes" => "no further process could be started; look at `ulimit -u`, \
                        kernel.pid_max and the pids limit of the control group"
            .to_owned(),
        "watches" => {
            "the kernel waits for no further socket; look at fs.epoll.max_user_watches".to_owned()
        }
        "max-clients" => "as many were being served as --max-clients allows".to_owned(),
        other => other.to_owned(),
    }
}

fn descriptors() -> String {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or_else(|| "no more".to_owned(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_count_and_a_remedy() {
        assert!(sentences(&BTreeMap::new()).is_empty());
        let counts = [("descriptors", 236), ("max-clients", 1), ("set-size", 76)];
        let refused = counts.map(|(why, count)| (why.to_owned(), count));
        let said = sentences(&BTreeMap::from(refused));
        let begins = "236 clients turned away: too many open files, ";
        assert!(
            said[0].starts_with(begins) && said[0].ends_with("`ulimit -n`"),
            "{said:?}"
        );
        assert!(said[1].starts_with("1 client turned away: "), "{said:?}");
        assert!(said[2].contains("--fd-setsize"), "{said:?}");
    }
}
