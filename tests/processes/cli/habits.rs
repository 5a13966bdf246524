//! Habits of users of other tools: completions, manual pages, a build that fails, a notebook.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::throng;
use crate::support::interpreter::program;
use crate::support::program::THRONG;

/// A file of the repository.
fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether a program exists; prints a note if not.
fn has(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", "command -v \"$1\" > /dev/null", "sh", program])
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        println!("not tried: there is no {program}");
    }
    found
}

/// The search path with the directories of the program and of Python itself in front.
fn path() -> String {
    let directory = |program: &str| {
        let directory = Path::new(program).parent();
        format!("{}:", directory.unwrap_or(Path::new("")).display())
    };
    let python = program("python3").filter(|python| python.starts_with('/'));
    let python = python.map_or_else(String::new, |python| directory(&python));
    let usual = std::env::var("PATH").unwrap_or_default();
    format!("{}{python}{usual}", directory(THRONG))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn demand_success(output: &Output) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{:?}\n{out}{err}", output.status);
}

#[test]
fn bash_completes_commands_options_and_names() {
    if !has("bash") {
        return;
    }
    // What bash does on TAB: the words, and the one with the cursor.
    let script = r#"
        eval "$(throng completions bash)"
        complete_line() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9; COMPREPLY=()
            _clap_complete_throng throng "${COMP_WORDS[COMP_CWORD]}" "" 2> /dev/null
            echo "${*:2}: ${COMPREPLY[*]}"
        }
        complete_line throng comp
        complete_line throng serve io-u
        complete_line throng run --models epoll,thread-
        complete_line throng run --protocol fact
        complete_line throng run --probes cpu,mem
        complete_line throng run over
        complete_line throng compare io-uring-
        complete_line throng list models tok
        complete_line throng list models epoll-
        complete_line throng explain prefo
    "#;
    let output = Command::new("bash")
        .args(["--norc", "-c", script])
        .env("PATH", path())
        .output()
        .unwrap();
    demand_success(&output);
    let finished = text(&output.stdout);
    for line in [
        "comp: compare completions",
        "serve io-u: io-uring io-uring-reactors",
        "run --models epoll,thread-: epoll,thread-pool",
        "run --protocol fact: factorial",
        "run --probes cpu,mem: cpu,memory",
        "run over: overview",
        "compare io-uring-: io-uring-reactors",
        "list models tok: tokio",
        "list models epoll-: epoll-et",
        "explain prefo: prefork",
    ] {
        let found = finished
            .lines()
            .any(|finished| finished.trim_end() == line.trim_end());
        assert!(
            found,
            "`{line}` is not in:\n{finished}{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let finished = throng(&["completions", shell]);
        assert_eq!(finished.code, 0, "{finished:?}");
        assert!(finished.out.contains("THRONG_COMPLETE"), "{finished:?}");
    }
    let finished = throng(&["completions", "csh"]);
    assert_eq!(finished.code, 2, "{finished:?}");
    assert!(finished.err.contains("possible values"), "{finished:?}");
}

#[test]
fn manual_pages_are_right() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man/man1");
    let finished = throng(&["man", pages.to_str().unwrap()]);
    assert_eq!(finished.code, 0, "{finished:?}");
    let pages: Vec<PathBuf> = finished.out.lines().map(PathBuf::from).collect();
    assert!(pages.len() > 10, "{finished:?}");
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    throng(&["man", file.to_str().unwrap()]).is_usage_error(&["cannot write", "file"]);
    if !has("groff") {
        return;
    }
    for page in pages {
        let output = Command::new("groff")
            .args(["-man", "-ww", "-Tutf8", "-rLL=78n"])
            .arg(&page)
            .output()
            .unwrap();
        demand_success(&output);
        assert_eq!(text(&output.stderr), "", "{}", page.display());
        if page.ends_with("throng-run.1") {
            let shown = text(&output.stdout);
            assert!(
                shown.contains("throng run fairness --scale quick"),
                "{shown}"
            );
        }
    }
}

/// The commands of a step of the action that workflows use.
fn step(name: &str) -> String {
    let action = read("action.yml");
    let step = action.split_once(&format!("- name: {name}\n"));
    let commands = step.and_then(|(_, step)| step.split_once("run: |\n"));
    let (_, commands) = commands.expect("there is such a step, with commands");
    let indented = |line: &&str| line.starts_with("        ");
    commands
        .lines()
        .take_while(indented)
        .map(|line| format!("{}\n", &line[8..]))
        .collect()
}

/// The defaults of the action's inputs, as its steps get them, for servers in two directories.
fn inputs() -> Vec<(&'static str, &'static str)> {
    vec![
        ("BASE", "python3 base/server.py {port}"),
        ("HEAD", "python3 head/server.py {port}"),
        // The slower one answers 25 times per second; a threshold that no busy machine misses by chance.
        ("CLIENTS", "3"),
        ("SLOWER", "50%"),
        ("LIMITS", "head:errors > 0\n"),
        (
            "ARGUMENTS",
            "--runs 7 --duration 200ms --warm-up 20ms --warm-up-limit 20ms --probes cpu --control none --why off --allow-rough",
        ),
        ("REPORT", "throng-report"),
        ("GITHUB_REPOSITORY", "owner/server"),
        ("PULL", "7"),
    ]
}

/// Stands for GitHub's own program: notes its arguments, and knows the earlier comment in the file `earlier`.
const GH: &str = "#!/bin/sh\necho \"$@\" >> \"$RUNNER_TEMP/calls\"\ncat \"$RUNNER_TEMP/earlier\" 2> /dev/null || true\n";

#[test]
fn the_action_fails_when_a_server_got_slower_and_comments_once() {
    if !has("bash") || !has("python3") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let server = read("tests/processes/compare/server.py");
    for side in ["base", "head"] {
        std::fs::create_dir(here.join(side)).unwrap();
        std::fs::write(here.join(side).join("server.py"), &server).unwrap();
    }
    let (workflow, page) = (read("examples/github-actions.yml"), read("docs/ci.md"));
    for (input, command) in [
        ("base", "python3 base/server.py {port}"),
        ("fail-if-slower", "10%"),
    ] {
        assert!(
            workflow.contains(&format!("          {input}: {command}\n")),
            "{workflow}"
        );
        assert!(page.contains(command), "{page}");
    }
    let gh = here.join("gh");
    std::fs::write(&gh, GH).unwrap();
    std::fs::set_permissions(&gh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = |commands: &str| {
        let mut command = Command::new("bash");
        command
            .args(["-e", "-o", "pipefail", "-c", commands])
            .current_dir(here);
        let programs = format!("{}:{}", here.display(), path());
        command
            .env("PATH", programs)
            .env("RUNNER_TEMP", here)
            .envs(inputs());
        for file in ["GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"] {
            command.env(file, here.join(file));
        }
        demand_success(&command.output().unwrap());
        let output = std::fs::read_to_string(here.join("GITHUB_OUTPUT")).unwrap();
        output.lines().last().unwrap().to_owned()
    };
    // What installs throng is part of the gate, which runs it with this tree as the checkout.
    assert!(step("Install").contains("cargo install --locked --path \"$SOURCE\""));
    assert!(read(".ci/run").contains("cargo install --locked --path ."));
    assert_eq!(run(&step("Compare")), "code=0");
    assert!(here.join("throng-report/card.svg").exists());
    run(&step("Comment"));
    let slower = server.replace(
        "        self.send_response(status)",
        "        one.acquire(); time.sleep(0.04); one.release()\n        self.send_response(status)",
    ).replace(
        "import time\n",
        "import time\nimport threading\n\none = threading.Lock()\n",
    );
    assert!(slower.contains("one.acquire()") && slower.contains("one = threading"));
    std::fs::write(here.join("head/server.py"), slower).unwrap();
    // A busy machine may leave too few valid trials for a verdict.
    let mut codes = (0..4).map(|_| {
        std::fs::remove_dir_all(here.join("throng-report")).unwrap();
        run(&step("Compare"))
    });
    assert!(codes.any(|code| code == "code=3"));
    std::fs::write(here.join("earlier"), "42\n").unwrap();
    run(&step("Comment"));
    let summary = std::fs::read_to_string(here.join("GITHUB_STEP_SUMMARY")).unwrap();
    assert!(summary.contains("head"), "{summary}");
    assert!(
        !summary.contains("!["),
        "a summary shows no files of the runner: {summary}"
    );
    let comment = std::fs::read_to_string(here.join("comment.md")).unwrap();
    assert!(comment.starts_with("<!-- throng compare -->\n") && summary.ends_with(&comment[24..]));
    let calls = std::fs::read_to_string(here.join("calls")).unwrap();
    let methods: Vec<&str> = calls
        .lines()
        .filter(|call| call.contains("--method"))
        .collect();
    assert!(methods[0].starts_with("api --method POST repos/owner/server/issues/7/comments"));
    assert!(methods[1].starts_with("api --method PATCH repos/owner/server/issues/comments/42"));
}

/// The answers of the course's cases for a server.
fn checked(server: &str) -> Vec<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(root.join("examples/course/check"))
        .arg(server)
        .env("THRONG", THRONG)
        .current_dir(root.join("examples/course"))
        .output()
        .expect("the check starts");
    let shown = text(&output.stdout);
    let answers: Vec<bool> = shown
        .lines()
        .filter(|line| line.starts_with("ok ") || line.starts_with("FAILED "))
        .map(|line| line.starts_with("ok "))
        .collect();
    let all_right = answers.iter().all(|is_right| *is_right);
    assert_eq!(output.status.success(), all_right, "{shown}");
    answers
}

#[test]
fn the_course_tells_a_server_for_many_clients_from_one_for_a_single_client() {
    let epoll = format!("{THRONG} serve epoll --listen 127.0.0.1:{{port}}");
    assert_eq!(checked(&epoll), [true; 5]);
    let for_one = [true, true, true, false, false];
    if has("cc") {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("student");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/course/server.c");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-O2", "-Wall", "-Werror", "-o"])
            .arg(&program)
            .arg(source);
        demand_success(&compiler.output().unwrap());
        assert_eq!(checked(&format!("{} {{port}}", program.display())), for_one);
    }
    if has("python3") {
        assert_eq!(checked("python3 server.py {port}"), for_one);
    }
}

#[test]
fn the_notebook_reads_a_record() {
    if !has("python3") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let options = "run --allow-rough --models epoll --clients 3 --warm-up 10ms --duration 100ms --runs 1 --control none \
                   --no-ceiling --latency-at none --probes cpu,established --output";
    let mut arguments: Vec<&str> = options.split_whitespace().collect();
    arguments.push(record.to_str().unwrap());
    assert_eq!(throng(&arguments).code, 0);
    // Its cells of code, one after the other, as a kernel runs them.
    let script = "import json, sys\n\
                  for cell in json.load(open(sys.argv[1]))['cells']:\n    \
                      if cell['cell_type'] == 'code':\n        \
                          exec(''.join(cell['source']), globals())\n";
    let notebook = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/reading-a-record.ipynb");
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(&notebook)
        .env("RECORD", directory.path())
        .env("PYTHONIOENCODING", "utf-8")
        .output()
        .unwrap();
    demand_success(&output);
    let finished = text(&output.stdout);
    for what in [
        "overview, 1 trials",
        "requests/s",
        "epoll                  3",
        "With 3 clients, epoll serves",
    ] {
        assert!(finished.contains(what), "`{what}` is not in:\n{finished}");
    }
}
