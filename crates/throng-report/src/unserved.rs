//! Why a server did not serve all its clients: its design, or connection errors.

use throng_record::{ServerInfo, Trial, keeps_waiting};

/// Why a server turns clients away that its design has no room for, as it counts them itself.
const BY_DESIGN: [&str; 2] = ["set-size", "pool-size"];

/// The limit of a server by design, if it kept clients unserved in any of these trials.
pub(super) fn by_design<'a>(
    server: &ServerInfo,
    trials: impl IntoIterator<Item = &'a Trial>,
) -> Option<String> {
    let limit = server.structural_limit.as_ref()?;
    let was_the_cause = |trial: &Trial| {
        let counts = trial.server_counts.as_ref();
        let turned_away = counts.is_some_and(|counts| {
            let mut counts = BY_DESIGN.iter().filter_map(|why| counts.refused.get(*why));
            counts.any(|count| *count > 0)
        });
        turned_away || (keeps_waiting(limit) && waited(trial))
    };
    let mut trials = trials.into_iter();
    trials.any(was_the_cause).then(|| limit.clone())
}

/// Whether clients waited without being served.
fn waited(trial: &Trial) -> bool {
    trial.load.as_ref().is_some_and(|load| {
        let jobs = load.completion.as_ref();
        let unfinished = jobs.is_some_and(|jobs| jobs.unfinished > 0);
        // While clients wait to be accepted, others cannot even reach the queue.
        let connecting = load.errors.get("connect-timeout").is_some_and(|n| *n > 0);
        load.never_served > 0 || unfinished || connecting
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_record::{Load, ServerCounts};

    fn server(limit: &str) -> ServerInfo {
        ServerInfo {
            structural_limit: Some(limit.to_owned()),
            ..ServerInfo::default()
        }
    }

    fn failing(kind: &str, refused: &str) -> Trial {
        Trial {
            load: Some(Load {
                errors: [(kind.to_owned(), 5)].into(),
                ..Load::default()
            }),
            server_counts: Some(ServerCounts {
                refused: [(refused.to_owned(), 5)].into(),
                ..ServerCounts::default()
            }),
            ..Trial::default()
        }
    }

    #[test]
    fn a_limit_by_design_is_reported_only_where_it_was_the_cause() {
        let select = server("its sets hold descriptors below 1024");
        let by = |server: &ServerInfo, trial: Trial| by_design(server, [&trial]).is_some();
        assert!(by(&select, failing("reset", "set-size")));
        assert!(!by(&select, failing("connect-timeout", "descriptors")));
        assert!(!by(&select, Trial::default()));
        let iterative = server("it serves one client at a time");
        assert!(by(&iterative, failing("connect-timeout", "")));
        assert!(!by(&iterative, failing("reset", "")));
        assert!(!by(
            &ServerInfo::default(),
            failing("connect-timeout", "set-size")
        ));
    }
}
