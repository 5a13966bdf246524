//! Behaviour without a launcher.

use std::process::Command;

use super::job::THRONG_MPI;

/// Runs it without a launcher.
fn alone(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(THRONG_MPI);
    for (name, _) in std::env::vars_os() {
        let known = name.to_string_lossy();
        if ["OMPI_", "PMIX_", "PMI_"]
            .iter()
            .any(|prefix| known.starts_with(prefix))
        {
            command.env_remove(&name);
        }
    }
    let output = command.args(arguments).output().expect("it can be started");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn without_a_launcher_usage_is_printed() {
    for command in ["run", "compare", "limit"] {
        let (code, out, err) = alone(&[command]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert!(err.contains("mpirun -n 4 throng-mpi"), "{err}");
    }
}

#[test]
fn commands_without_client_hosts_need_no_launcher() {
    let (code, out, err) = alone(&["list", "models"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("epoll"), "{out}");
    let (code, out, _) = alone(&["run", "--help"]);
    assert!(code == Some(0) && out.contains("--clients"), "{out}");
}
