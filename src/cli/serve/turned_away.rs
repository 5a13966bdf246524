//! A server's final warnings about rejected clients, each with the reason and the remedy.

use std::collections::BTreeMap;

use rustix::process::{Resource, getrlimit};

/// One sentence per reason, from the counts.
pub(super) fn sentences(refused: &BTreeMap<String, u64>) -> Vec<String> {
    let sentence = |(why, count): (&String, &u64)| {
        let clients = if *count == 1 { "client" } else { "clients" };
        format!("{count} {clients} rejected: {}", reason(why))
    };
    refused.iter().map(sentence).collect()
}

fn reason(why: &str) -> String {
    match why {
        "descriptors" => format!(
            "out of file descriptors (limit {}); raise the limit with `ulimit -n`",
            descriptors()
        ),
        "set-size" => "the descriptor sets of select() were full; raise --fd-setsize".to_owned(),
        "pool-size" => {
            "all threads for asynchronous I/O were in use; raise --aio-threads".to_owned()
        }
        "threads" => "no more threads could be started; raise `ulimit -u`, \
                      vm.max_map_count or pids.max of the control group"
            .to_owned(),
        "processes" => "no more processes could be started; raise `ulimit -u`, \
                        kernel.pid_max or pids.max of the control group"
            .to_owned(),
        "watches" => "the epoll sets were full; raise fs.epoll.max_user_watches".to_owned(),
        "max-clients" => "--max-clients was reached; raise it".to_owned(),
        other => other.to_owned(),
    }
}

fn descriptors() -> String {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or_else(|| "unknown".to_owned(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_count_and_a_remedy() {
        assert!(sentences(&BTreeMap::new()).is_empty());
        let counts = [("descriptors", 236), ("max-clients", 1), ("set-size", 76)];
        let refused = counts.map(|(why, count)| (why.to_owned(), count));
        let sentences = sentences(&BTreeMap::from(refused));
        let begins = "236 clients rejected: out of file descriptors (limit ";
        assert!(
            sentences[0].starts_with(begins) && sentences[0].ends_with("`ulimit -n`"),
            "{sentences:?}"
        );
        assert!(
            sentences[1].starts_with("1 client rejected: "),
            "{sentences:?}"
        );
        assert!(sentences[2].contains("--fd-setsize"), "{sentences:?}");
    }
}
