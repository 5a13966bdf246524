//! The colour, marker and dash of each server, the same in every figure and table.
//!
//! Eight hues after Okabe & Ito ("Color Universal Design", 2008), darkened or lightened until each has at least 3:1
//! contrast with the page (WCAG 1.4.11). Servers also differ in dash and marker, so colour is never the only cue. The
//! combinations of marker and dash repeat after 16 servers.

/// A colour as red, green, blue.
pub type Rgb = (u8, u8, u8);

/// The look of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Colour on a light page.
    pub light: Rgb,
    /// Colour on a dark page.
    pub dark: Rgb,
    /// Whether its lines are dashed.
    pub dashed: bool,
    pub marker: Marker,
    hue: usize,
}

impl Look {
    /// The CSS class that colours it on a page.
    pub fn class(self) -> String {
        format!("s{}", self.hue)
    }
}

/// Shape of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// ●
    Circle,
    /// ■
    Square,
    /// ◆
    Diamond,
    /// ▲
    TriangleUp,
    /// ▼
    TriangleDown,
    /// ✚
    Cross,
    /// ★
    Star,
    /// ⬟
    Pentagon,
    /// ✖, for a failure of any server.
    Saltire,
}

/// Number of hues. After these, they repeat with the other kind of line.
pub const LAP: usize = LIGHT.len();

const MARKERS: [Marker; 8] = [
    Marker::Circle,
    Marker::Square,
    Marker::Diamond,
    Marker::TriangleUp,
    Marker::TriangleDown,
    Marker::Cross,
    Marker::Star,
    Marker::Pentagon,
];

/// The names of throng's models at their places: each has one look in every picture. Those of a family share a hue.
const MODELS: [&str; 15] = [
    "epoll",
    "fork",
    "select",
    "thread",
    "poll",
    "io-uring",
    "tokio",
    "aio",
    "epoll-et",
    "prefork",
    "iterative",
    "thread-pool",
    "polling",
    "io-uring-reactors",
    "reactors",
];

/// The place of a server in the palette, `among` all servers of a document: that of its model, otherwise one that is
/// free.
pub fn place(server: &str, among: &[String]) -> usize {
    let fixed = |name: &str| MODELS.iter().position(|model| *model == name);
    fixed(server).unwrap_or_else(|| {
        let others = among.iter().filter(|name| fixed(name).is_none());
        let earlier = others.take_while(|name| *name != server).count();
        let is_free = |place: &usize| {
            let model = MODELS.get(*place);
            !model.is_some_and(|model| among.iter().any(|name| name == model))
        };
        (0..).filter(is_free).nth(earlier).unwrap_or(earlier)
    })
}

/// The place with the same look as `place`, for the same server in an earlier run.
pub const fn earlier(place: usize) -> usize {
    place + MARKERS.len() * LAP
}

const LIGHT: [Rgb; 8] = [
    (0, 105, 170),
    (208, 78, 0),
    (0, 131, 94),
    (176, 68, 136),
    (158, 108, 0),
    (27, 141, 200),
    (104, 76, 196),
    (98, 106, 120),
];

const DARK: [Rgb; 8] = [
    (77, 166, 230),
    (255, 127, 64),
    (46, 194, 150),
    (232, 145, 196),
    (240, 186, 68),
    (146, 212, 247),
    (170, 150, 245),
    (168, 176, 189),
];

/// The look of the server at this [`place`].
pub fn look(place: usize) -> Look {
    let (hue, lap) = (place % LAP, place / LAP);
    Look {
        light: LIGHT[hue],
        dark: DARK[hue],
        dashed: lap % 2 == 1,
        marker: MARKERS[(hue + 3 * lap) % MARKERS.len()],
        hue,
    }
}

/// The purpose of a system call, in the order of the parts of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Receives bytes.
    Receive,
    /// Sends bytes.
    Send,
    /// Waits for, or submits, many operations at once.
    Wait,
    /// Opens or closes connections.
    Connect,
    /// Distributes work among threads and processes, or creates them.
    Share,
    /// Deals with signals.
    Signal,
    /// Everything else.
    Rest,
}

/// The purpose of the system call named `call`.
pub fn role(call: &str) -> Role {
    match call {
        "recvfrom" | "read" | "readv" | "recvmsg" | "pread64" => Role::Receive,
        "sendto" | "write" | "writev" | "sendmsg" | "pwrite64" | "sendfile64" => Role::Send,
        "poll" | "ppoll" | "select" | "pselect6" | "io_uring_enter" | "rt_sigtimedwait" => {
            Role::Wait
        }
        "accept" | "accept4" | "socket" | "shutdown" | "close" | "setsockopt" => Role::Connect,
        "futex" | "sched_yield" | "clone" | "clone3" | "exit" | "wait4" => Role::Share,
        "getpid" | "getuid" => Role::Signal,
        name if name.starts_with("epoll_") => Role::Wait,
        name if name.starts_with("rt_sig") => Role::Signal,
        _ => Role::Rest,
    }
}

/// The colour of a part of a stacked bar: a hue for its purpose, and a step to tell apart parts with the same purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shade {
    hue: usize,
    step: usize,
}

impl Shade {
    /// Number of distinct steps.
    const STEPS: usize = 7;

    /// Every shade.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..LAP).flat_map(|hue| (0..Self::STEPS).map(move |step| Self { hue, step }))
    }

    /// The CSS class that colours it on a page.
    pub fn class(self) -> String {
        format!("k{}{}", self.hue, self.step)
    }

    /// Its colours on a light page and on a dark one.
    pub fn colours(self) -> (Rgb, Rgb) {
        // Alternately darker and lighter.
        let share = 1.0 - 0.7_f64.powi((self.step as i32 + 1) / 2);
        let goal = if self.step % 2 == 1 { 0.0 } else { 255.0 };
        let towards = |(red, green, blue): Rgb| {
            let mix = |channel: u8| {
                let value = f64::from(channel);
                (value + (goal - value) * share).round() as u8
            };
            (mix(red), mix(green), mix(blue))
        };
        (towards(LIGHT[self.hue]), towards(DARK[self.hue]))
    }
}

/// The shades of the parts of a stacked bar.
pub fn shades(parts: &[String]) -> Vec<Shade> {
    let shade = |(place, part): (usize, &String)| {
        let alike = parts[..place].iter();
        let earlier = alike.filter(|other| role(other) == role(part)).count();
        let hue = match role(part) {
            Role::Receive => 0,
            Role::Send => 2,
            Role::Wait => 1,
            Role::Connect => 5,
            Role::Share => 6,
            Role::Signal => 3,
            Role::Rest => 7,
        };
        Shade {
            hue,
            step: earlier.min(Shade::STEPS - 1),
        }
    };
    parts.iter().enumerate().map(shade).collect()
}

/// "#0069aa".
pub fn hex((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

impl Marker {
    /// Every marker of a server.
    pub const ALL: [Self; 8] = MARKERS;

    /// Its name on a page.
    pub fn id(self) -> String {
        format!(
            "m{}",
            MARKERS.iter().position(|one| *one == self).unwrap_or(0)
        )
    }

    /// Its corners in a circle of radius 1, y downwards.
    pub fn corners(self) -> Vec<(f64, f64)> {
        match self {
            Self::Circle => around(20, 0.0, 0.95),
            Self::Square => around(4, 45.0, 1.2),
            Self::Diamond => around(4, 0.0, 1.25),
            Self::TriangleUp => around(3, 0.0, 1.3),
            Self::TriangleDown => around(3, 180.0, 1.3),
            Self::Pentagon => around(5, 0.0, 1.15),
            Self::Cross => cross(0.0),
            Self::Saltire => cross(45.0),
            Self::Star => star(),
        }
    }
}

/// The corners of a regular polygon, the first `degrees` clockwise from the top.
fn around(corners: u32, degrees: f64, radius: f64) -> Vec<(f64, f64)> {
    (0..corners)
        .map(|corner| {
            let angle = degrees.to_radians()
                + std::f64::consts::TAU * f64::from(corner) / f64::from(corners);
            (radius * angle.sin(), -radius * angle.cos())
        })
        .collect()
}

/// The corners of a star with five points.
fn star() -> Vec<(f64, f64)> {
    let (outer, inner) = (around(5, 0.0, 1.35), around(5, 36.0, 0.58));
    let pairs = outer.into_iter().zip(inner);
    pairs.flat_map(|(corner, notch)| [corner, notch]).collect()
}

/// The twelve corners of a thick cross, turned by `degrees`.
fn cross(degrees: f64) -> Vec<(f64, f64)> {
    let (arm, half) = (1.25, 0.42);
    let quarter = [(-half, -arm), (half, -arm), (half, -half)];
    let turn = |(x, y): (f64, f64), angle: f64| {
        let (sine, cosine) = angle.to_radians().sin_cos();
        (x * cosine - y * sine, x * sine + y * cosine)
    };
    (0..4)
        .flat_map(|side| quarter.map(|corner| turn(corner, f64::from(side) * 90.0 + degrees)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_servers_look_different_without_their_colour() {
        for one in 0..16 {
            for other in 0..one {
                let (a, b) = (look(one), look(other));
                assert!(
                    (a.dashed, a.marker) != (b.dashed, b.marker),
                    "{one} and {other}"
                );
            }
        }
    }

    #[test]
    fn a_model_has_one_look_whatever_runs_beside_it() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let small = names(&["nginx", "select", "old", "epoll"]);
        let large = names(&["epoll", "fork", "select"]);
        assert_eq!(place("select", &small), place("select", &large));
        // Servers that are no models never take the look of a model beside them.
        let mut seen: Vec<usize> = small.iter().map(|name| place(name, &small)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), small.len());
        let look_of = |place| {
            let Look { light, marker, .. } = look(place);
            (light, marker)
        };
        assert_eq!(look_of(earlier(3)), look_of(3));
    }

    #[test]
    fn parts_for_the_same_have_one_hue_in_several_shades() {
        let parts = [
            "recvfrom",
            "read",
            "sendto",
            "epoll_pwait",
            "futex",
            "other calls",
        ];
        let shades = shades(&parts.map(str::to_owned));
        assert_eq!(shades[0].colours().0, LIGHT[0]);
        assert_eq!(shades[2].colours(), (LIGHT[2], DARK[2]));
        for (place, shade) in shades.iter().enumerate() {
            assert!(!shades[..place].contains(shade), "{}", parts[place]);
        }
    }
}
