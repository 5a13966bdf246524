//! A terminal for tests that rewraps its lines when its width changes, as most terminals do. It implements only what a
//! view uses, and keeps the lines that scroll away.

/// The terminal's rows and the position of its cursor.
pub(super) struct Reflow {
    columns: usize,
    rows: Vec<Row>,
    at: (usize, usize),
    wraps: bool,
}

/// The text of a row, including blanks, and whether its line continues in the next row.
#[derive(Clone, Default)]
struct Row {
    text: Vec<char>,
    goes_on: bool,
}

impl Reflow {
    pub(super) fn new(columns: usize) -> Self {
        Self {
            columns,
            rows: vec![Row::default()],
            at: (0, 0),
            wraps: true,
        }
    }

    /// The terminal's lines, regardless of wrapping.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![String::new()];
        for row in &self.rows {
            let line = lines.last_mut().expect("there is one");
            line.extend(&row.text);
            if !row.goes_on {
                lines.push(String::new());
            }
        }
        while lines.last().is_some_and(|line| line.trim().is_empty()) {
            lines.pop();
        }
        lines
            .iter()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    /// Changes the width. The cursor must be at the beginning of a line, as it is between two draws.
    pub(super) fn resize(&mut self, columns: usize) {
        assert_eq!(
            self.at.1, 0,
            "the cursor is left at the beginning of a line"
        );
        let (mut rows, mut line, mut cursor) = (Vec::new(), Vec::new(), 0);
        for (place, row) in self.rows.iter().enumerate() {
            if place == self.at.0 {
                cursor = rows.len();
            }
            line.extend(&row.text);
            if row.goes_on {
                continue;
            }
            let mut parts: Vec<Row> = line
                .chunks(columns)
                .map(|part| Row {
                    text: part.to_vec(),
                    goes_on: true,
                })
                .collect();
            if parts.is_empty() {
                parts.push(Row::default());
            }
            parts.last_mut().expect("there is one").goes_on = false;
            rows.append(&mut parts);
            line.clear();
        }
        (self.columns, self.rows, self.at) = (columns, rows, (cursor, 0));
    }

    pub(super) fn write(&mut self, text: &str) {
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '\r' => self.at.1 = 0,
                '\n' => self.down(),
                '\x1b' => {
                    assert_eq!(rest.next(), Some('['));
                    let mut number = String::new();
                    let ends = rest.by_ref().find(|c| {
                        number.push(*c);
                        c.is_ascii_alphabetic()
                    });
                    number.pop();
                    self.obey(&number, ends.expect("a sequence ends"));
                }
                c => self.put(c),
            }
        }
    }

    fn obey(&mut self, number: &str, what: char) {
        let count = number.parse().unwrap_or(1);
        match (number, what) {
            (_, 'A') => self.at.0 = self.at.0.saturating_sub(count),
            (_, 'B') => self.at.0 = (self.at.0 + count).min(self.rows.len() - 1),
            (_, 'G') => self.at.1 = count.min(self.columns) - 1,
            (_, 'J') => {
                self.rows.truncate(self.at.0 + 1);
                self.rows[self.at.0].text.truncate(self.at.1);
                self.rows[self.at.0].goes_on = false;
            }
            ("2", 'K') => self.rows[self.at.0] = Row::default(),
            ("?7", what) => self.wraps = what == 'h',
            (_, 'm') => {}
            other => panic!("{other:?}"),
        }
    }

    fn put(&mut self, c: char) {
        if self.at.1 == self.columns && self.wraps {
            self.rows[self.at.0].goes_on = true;
            self.down();
            self.at.1 = 0;
        }
        let column = self.at.1.min(self.columns - 1);
        let text = &mut self.rows[self.at.0].text;
        if text.len() <= column {
            text.resize(column + 1, ' ');
        }
        text[column] = c;
        self.at.1 = column + 1;
    }

    fn down(&mut self) {
        self.at.0 += 1;
        if self.at.0 == self.rows.len() {
            self.rows.push(Row::default());
        }
    }
}
