//! Who waits where: clients, the kernel's queues, and the threads or processes that sleep until something
//! comes. Lessons describe it as data; one renderer draws it in characters, for terminal and book.

use super::words::{BOLD, CALL, DIM, WIDTH, columns, lines, padded, styled};

/// Everybody who waits, one group for each thread or process.
#[derive(Debug, Clone, Copy)]
pub struct Diagram {
    /// From top to bottom.
    pub groups: &'static [Group],
}

/// A thread or process with what it waits for.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The clients, and where in the kernel what they send waits.
    pub from: &'static [(&'static str, Queue)],
    /// What gathers these for the one who waits: "ready list". Empty where nothing does.
    pub through: &'static str,
    /// The thread or process; empty where there is nobody.
    pub waiter: &'static str,
    /// The call in which it sleeps; empty if it never does.
    pub sleeps_in: &'static str,
    /// What it does once it is awake.
    pub then: &'static str,
}

/// Clients of which one thread serves all: one that comes, and some that are there.
pub const ALL_CLIENTS: &[(&str, Queue)] = &[
    ("new client", Queue::Accept),
    ("client 1", Queue::Receive),
    ("client 2", Queue::Receive),
    ("client 3", Queue::Receive),
];

/// Where something waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Connections that nobody has accepted.
    Accept,
    /// Bytes of a connection that nobody has read.
    Receive,
    /// Bytes that the kernel has put into memory of the server already.
    Received,
    /// No queue: what is named is somebody of the server.
    Inside,
}

impl Queue {
    fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept queue",
            Self::Receive => "receive queue",
            Self::Received => "lent buffers",
            Self::Inside => "",
        }
    }
}

/// Widths of the columns: clients, queues, what gathers.
struct Widths {
    client: usize,
    queue: usize,
    through: usize,
}

impl Diagram {
    /// The diagram in lines, with styles.
    pub fn lines(&self) -> Vec<String> {
        let widths = self.widths();
        let mut lines = vec![widths.heading()];
        for group in self.groups {
            lines.extend(group.lines(&widths));
        }
        lines
    }

    fn widths(&self) -> Widths {
        let rows = || self.groups.iter().flat_map(|group| group.from);
        let widest = |texts: &mut dyn Iterator<Item = &str>| texts.map(columns).max().unwrap_or(0);
        Widths {
            client: widest(&mut rows().map(|row| row.0)).max("clients".len()),
            queue: widest(&mut rows().map(|row| row.1.name())).max("kernel".len()),
            through: widest(&mut self.groups.iter().map(|group| group.through)),
        }
    }
}

impl Widths {
    /// Columns before what joins queues.
    fn before(&self) -> usize {
        self.client + self.queue + 5
    }

    /// Columns of what joins queues and leads to the one who waits.
    fn join(&self) -> usize {
        match self.through {
            0 => 5,
            through => through + 9,
        }
    }

    fn heading(&self) -> String {
        let client = padded("clients", self.client + 4);
        let kernel = padded("kernel", self.before() + self.join() - self.client - 4);
        styled(BOLD, &format!("{client}{kernel}server"))
    }
}

impl Group {
    fn lines(&self, widths: &Widths) -> Vec<String> {
        let words = self.words(widths);
        let middle = (self.from.len() - 1) / 2;
        // The first word stands beside the arrow, or above it where there is room.
        let first_word = middle.saturating_sub(usize::from(words.len() > 2));
        let height = self.from.len().max(first_word + words.len());
        let word = |row: usize| row.checked_sub(first_word).and_then(|row| words.get(row));
        (0..height)
            .map(|row| {
                let line = self.queue(row, widths) + &self.join(row, middle, widths);
                let line = line + word(row).map_or("", String::as_str);
                line.trim_end().to_owned()
            })
            .collect()
    }

    /// A client and its queue.
    fn queue(&self, row: usize, widths: &Widths) -> String {
        let Some((client, queue)) = self.from.get(row) else {
            return " ".repeat(widths.before());
        };
        let name = queue.name();
        let rest = "─".repeat(widths.queue - columns(name));
        let lead = match queue {
            Queue::Inside => format!("───{rest}─"),
            _ => format!("─▶ {name} {rest}"),
        };
        format!("{} {lead}", padded(client, widths.client))
    }

    /// What leads from the queue in a row to the one who waits.
    fn join(&self, row: usize, middle: usize, widths: &Widths) -> String {
        let last = self.from.len() - 1;
        let corner = match row {
            row if row > last => return " ".repeat(widths.join()),
            _ if last == 0 => '─',
            0 if middle == 0 => '┬',
            0 => '┐',
            row if row == last => '┘',
            row if row == middle => '┼',
            _ => '┤',
        };
        let end = if self.waiter.is_empty() { '╳' } else { '▶' };
        let rest = widths.join() - 4;
        if row != middle {
            return format!("─{corner}{}", " ".repeat(rest + 2));
        }
        if self.through.is_empty() {
            return format!("─{corner}{}{end} ", "─".repeat(rest));
        }
        let line = "─".repeat(rest - columns(self.through) - 4);
        format!("─{corner}─▶ {} {line}{end} ", self.through)
    }

    /// What is said about the one who waits.
    fn words(&self, widths: &Widths) -> Vec<String> {
        let room = WIDTH - widths.before() - widths.join();
        let then = || {
            let lines = lines(self.then, room).into_iter();
            lines
                .filter(|line| !line.is_empty())
                .map(|line| styled(DIM, &line))
        };
        if self.waiter.is_empty() {
            return then().collect();
        }
        let waiter = styled(BOLD, self.waiter);
        let sleeps = match self.sleeps_in {
            "" => styled(CALL, "never sleeps"),
            call => format!("sleeps in {}", styled(CALL, call)),
        };
        let mut words = if widths.through == 0 {
            vec![format!("{waiter}: {sleeps}")]
        } else {
            vec![waiter, sleeps]
        };
        words.extend(then());
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(diagram: Diagram) -> String {
        let lines = diagram.lines().join("\n");
        anstream::adapter::strip_str(&lines).to_string()
    }

    #[test]
    fn groups_are_joined_to_who_waits() {
        let diagram = Diagram {
            groups: &[
                Group {
                    from: &[
                        ("new client", Queue::Accept),
                        ("client 1", Queue::Receive),
                        ("client 2", Queue::Receive),
                    ],
                    through: "ready list",
                    waiter: "the thread",
                    sleeps_in: "epoll_wait()",
                    then: "recv(), send()",
                },
                Group {
                    from: &[("client 3", Queue::Accept)],
                    through: "",
                    waiter: "",
                    sleeps_in: "",
                    then: "nobody takes it",
                },
            ],
        };
        insta::assert_snapshot!(plain(diagram));
    }

    const ONE: &[(&str, Queue)] = &[("client 1", Queue::Receive)];
    const TWO: &[(&str, Queue)] = &[("client 2", Queue::Receive)];

    #[test]
    fn without_anything_between_arrows_are_short() {
        let group = |from, waiter| Group {
            from,
            through: "",
            waiter,
            sleeps_in: "recv()",
            then: "",
        };
        let groups = [group(ONE, "child 1"), group(TWO, "child 2")];
        let groups: &'static [Group] = Box::leak(Box::new(groups));
        insta::assert_snapshot!(plain(Diagram { groups }));
    }
}
