//! The README says what the code says.

use std::fmt::Write as _;

use throng::serve::models::MODELS;

const BEGIN: &str = "<!-- models:";
const END: &str = "<!-- end of models -->";

fn table() -> String {
    let mut table = String::from(
        "| model | how it works | system calls a request | processes and threads | breaks when |\n\
         |---|---|---|---|---|\n",
    );
    for model in MODELS {
        let (info, card) = (model.info(), model.card());
        writeln!(
            table,
            "| `{}` | {} | {} | {} | {} |",
            info.name, info.summary, card.system_calls, card.processes, card.breaks_when
        )
        .expect("writing to a string does not fail");
    }
    table
}

#[test]
fn the_table_of_models_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let text = std::fs::read_to_string(path).unwrap();
    let begin = text.find(BEGIN).expect("the README has the begin mark");
    let begin = begin + text[begin..].find('\n').unwrap() + 1;
    let end = text.find(END).expect("the README has the end mark");
    let current = format!("{}{}{}", &text[..begin], table(), &text[end..]);
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    assert_eq!(
        text, current,
        "run UPDATE_README=1 cargo test --test readme, and read the change"
    );
}
