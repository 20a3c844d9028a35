//! The generations of a seat's player tokens: a player who comes back gets a token of the next one.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::models::ids::{InvalidIdentifier, SeatId};

/// A seat, by one of its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownSeat {
    /// The seat.
    pub seat_id: SeatId,
    /// The generation of the token.
    pub generation: u32,
}

/// What a lobby knows of a seat's tokens once its player has connected and left the connection or asked for
/// another token. No later change brings an earlier value back, so a write on condition of a value is made
/// once, however late its copies arrive.
///
/// As text, the newest and the connected generation, joined by `/`, with `/leaving` behind them if the player
/// will not return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Generations {
    /// The generation of the newest token. The first token's is 0.
    pub newest: u32,
    /// The generation of the token that connected last.
    pub connected: u32,
    /// Whether the player left while connected.
    pub is_leaving: bool,
}

impl Generations {
    /// Of a seat whose first token has connected.
    pub const FIRST: Self = Self { newest: 0, connected: 0, is_leaving: false };

    /// Whether the newest token has not connected yet, and still may.
    #[must_use]
    pub const fn is_awaited(self) -> bool {
        self.connected < self.newest && !self.is_leaving
    }

    /// After a token of the next generation was issued.
    #[must_use]
    pub const fn renewed(self) -> Self {
        Self { newest: self.newest.saturating_add(1), is_leaving: false, ..self }
    }

    /// After the newest token connected.
    #[must_use]
    pub const fn joined(self) -> Self {
        Self { connected: self.newest, ..self }
    }

    /// After the player left while connected.
    #[must_use]
    pub const fn left(self) -> Self {
        Self { is_leaving: true, ..self }
    }
}

impl fmt::Display for Generations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}{}", self.newest, self.connected, if self.is_leaving { LEAVING } else { "" })
    }
}

const LEAVING: &str = "/leaving";

impl From<Generations> for String {
    fn from(generations: Generations) -> Self {
        generations.to_string()
    }
}

impl FromStr for Generations {
    type Err = InvalidIdentifier;

    fn from_str(text: &str) -> Result<Self, InvalidIdentifier> {
        let (numbers, is_leaving) = match text.strip_suffix(LEAVING) {
            Some(numbers) => (numbers, true),
            None => (text, false),
        };
        let (newest, connected) = numbers.split_once('/').ok_or(InvalidIdentifier)?;
        let number = |text: &str| text.parse().map_err(|_| InvalidIdentifier);
        Ok(Self { newest: number(newest)?, connected: number(connected)?, is_leaving })
    }
}

impl TryFrom<String> for Generations {
    type Error = InvalidIdentifier;

    fn try_from(text: String) -> Result<Self, InvalidIdentifier> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_change_brings_an_earlier_value_back() {
        let mut seen = vec![Generations::FIRST];
        let changes = [Generations::renewed, Generations::left, Generations::renewed, Generations::joined];
        for change in changes.into_iter().cycle().take(40) {
            let next = change(seen[seen.len() - 1]);
            assert!(!seen.contains(&next), "{next} again");
            assert_eq!(next.to_string().parse(), Ok(next));
            seen.push(next);
        }
        assert_eq!("".parse::<Generations>(), Err(InvalidIdentifier));
        assert_eq!("1/leaving".parse::<Generations>(), Err(InvalidIdentifier));
    }
}
