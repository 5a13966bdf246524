//! Lines that servers print when they begin to listen, or fail to.

use throng_spec::Endpoint;

/// Whether a server reported that its port was taken.
pub(crate) fn reports_taken_port(output: &str) -> bool {
    let output = output.to_lowercase();
    output.contains("eaddrinuse") || output.contains("address already in use")
}

/// The address in "listening on ADDRESS ...".
pub(crate) fn listening_address(line: &str) -> Option<Endpoint> {
    let (_, after) = line.split_once("listening on ")?;
    if after.starts_with("unix:") {
        // Its path may have spaces; anything after it is in brackets.
        let path = after.rsplit_once(" (").map_or(after, |(path, _)| path);
        return path.trim_end().parse().ok();
    }
    after
        .split_whitespace()
        .next()?
        .trim_end_matches(',')
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_where_a_server_listens() {
        let address = |line| listening_address(line).map(|address| address.to_string());
        assert_eq!(
            address("listening on 127.0.0.1:80 (epoll)").unwrap(),
            "127.0.0.1:80"
        );
        assert_eq!(
            address("now listening on [::1]:8080, ok").unwrap(),
            "[::1]:8080"
        );
        assert_eq!(
            address("listening on unix:/a (b)/c.sock (epoll, echo)").unwrap(),
            "unix:/a (b)/c.sock"
        );
        assert_eq!(address("listening on unix: (epoll, echo)"), None);
        assert_eq!(address("listening on all ports"), None);
        assert_eq!(address("hello"), None);
    }

    #[test]
    fn messages_about_a_taken_port_are_recognised() {
        assert!(reports_taken_port(
            "Error: listen EADDRINUSE: address already in use :::80"
        ));
        assert!(reports_taken_port(
            "OSError: [Errno 98] Address already in use"
        ));
        assert!(!reports_taken_port("permission denied"));
    }
}
