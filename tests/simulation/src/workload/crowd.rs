//! A hostile crowd: addresses that take lobbies and seats, give some up, and never connect. It has what every
//! player has, the public token and the lobbies listed, and no secret.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use super::{super::requests::Request, Player, Workload};
use crate::chance::Chance;

/// The first of its addresses, beside those of the players and of the run's end.
const FIRST_ADDRESS: u8 = 10;
/// Requests between two deeds of the others.
const REQUESTS_MAX: u64 = 4;

/// The crowd of a run.
pub(crate) struct Crowd {
    /// Addresses that it has; without any, there is none.
    addresses: u8,
    chance: Chance,
    /// Seats that it was given.
    seats: Arc<Mutex<Vec<Player>>>,
}

impl Crowd {
    pub(crate) fn new(addresses: u8, chance: Chance) -> Self {
        Self { addresses, chance, seats: Arc::default() }
    }

    /// Where the seats go that a request from the address `client` is given, if it is one of the crowd's.
    pub(super) fn seats_of(&self, client: u8) -> Option<&Arc<Mutex<Vec<Player>>>> {
        (FIRST_ADDRESS..FIRST_ADDRESS + self.addresses).contains(&client).then_some(&self.seats)
    }
}

impl Workload {
    /// What the crowd does between two deeds of the others.
    pub(super) fn storm(&mut self) {
        if self.crowd.addresses == 0 {
            return;
        }
        for _ in 0..self.crowd.chance.range(0..=REQUESTS_MAX) {
            let client = FIRST_ADDRESS + self.crowd.chance.below(self.crowd.addresses.into()) as u8;
            if let Some(request) = self.hostile() {
                self.send(request.from(client));
            }
        }
    }

    fn hostile(&mut self) -> Option<Request> {
        let (world, listed) = (Arc::clone(&self.world), self.lobbies(|lobby| lobby.lives()));
        let chance = &mut self.crowd.chance;
        let namespace = chance.below(world.namespaces.len());
        let mode = chance.pick(&world.plan.modes)?;
        let region = chance.pick(&mode.regions)?;
        Some(match chance.below(8) {
            0..=2 => Request::find(&world, namespace, &[mode.name], &[region], BTreeMap::new(), true),
            // A lobby of its own for each.
            3..=4 => {
                let tag = ("team".to_owned(), chance.range(0..=u64::MAX).to_string());
                Request::find(&world, namespace, &[mode.name], &[region], BTreeMap::from([tag]), true)
            }
            5 => Request::create(&world, namespace, mode.name, region, chance.one_in(2)),
            6 => {
                let (namespace, lobby) = chance.pick(&listed)?;
                Request::join(&world, *namespace, lobby)
            }
            _ => {
                let seats = self.crowd.seats.lock().expect("no panic");
                let Player { namespace, lobby, token } = self.crowd.chance.pick(&seats)?;
                Request::give_up(&world, *namespace, lobby, token)
            }
        })
    }
}
