//! Variables whose values come from rows of data, from the user, or from earlier replies.

use super::super::mix::scrambled;

/// The variables of a load, each by its place, and the rows that some take their values from.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Feed {
    /// What each variable is before the first request of a session.
    pub variables: Vec<Initial>,
    /// The rows of data, each with a value per column.
    pub rows: Vec<Vec<Box<[u8]>>>,
    /// Whether a random row is taken instead of the next one.
    pub is_random: bool,
}

/// The value of a variable before the first request of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Initial {
    /// None: a step of a flow captures it.
    Captured,
    /// The same for all clients.
    Given(Box<[u8]>),
    /// That of this column in the row.
    Column(usize),
}

impl Feed {
    /// Its variables without values.
    pub(super) fn no_values(&self) -> Box<[Known]> {
        vec![Known::default(); self.variables.len()].into()
    }

    /// Sets all variables for the request or session `number` of all clients.
    pub(super) fn fill(&'static self, number: u64, seed: u64, known: &mut [Known]) {
        let place = if self.is_random {
            scrambled(seed ^ scrambled(number))
        } else {
            number
        };
        let row = place
            .checked_rem(self.rows.len() as u64)
            .map(|row| &self.rows[row as usize]);
        for (variable, initial) in known.iter_mut().zip(&self.variables) {
            *variable = match (initial, row) {
                (Initial::Given(value), _) => Known::Shared(value),
                (Initial::Column(column), Some(row)) => Known::Shared(&row[*column]),
                (Initial::Captured | Initial::Column(_), _) => Known::default(),
            };
        }
    }
}

/// The value of a variable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Known {
    /// None yet.
    #[default]
    Nothing,
    /// The same for many sessions.
    Shared(&'static [u8]),
    /// Captured by this one.
    Own(Box<[u8]>),
}

impl Known {
    /// The value; empty without one.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::Shared(value) => value,
            Self::Own(value) => value,
        }
    }

    /// Bytes that only this session keeps.
    pub(super) fn kept(&self) -> usize {
        match self {
            Self::Own(value) => value.len(),
            Self::Nothing | Self::Shared(_) => 0,
        }
    }
}
