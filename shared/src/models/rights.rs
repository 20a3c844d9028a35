//! Rights on games and namespaces, which the store requires.

use crate::models::{
    ids::{GameId, NamespaceId},
    namespace::Namespace,
};

/// The right to every cloud operation of one game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameRight {
    game_id: GameId,
}

impl GameRight {
    /// The game.
    #[must_use]
    pub const fn game_id(&self) -> &GameId {
        &self.game_id
    }

    /// The right that a cloud token of the game gives.
    pub(crate) const fn of_token(game_id: GameId) -> Self {
        Self { game_id }
    }

    /// The right of the operator, who holds the AWS credentials of the deployment.
    #[must_use]
    pub const fn of_operator(game_id: GameId) -> Self {
        Self { game_id }
    }
}

/// The right to every cloud operation on one existing namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceRight {
    namespace: Namespace,
}

impl NamespaceRight {
    /// The right to `namespace`, which the store has just read.
    pub(crate) const fn of(namespace: Namespace) -> Self {
        Self { namespace }
    }

    /// The game.
    #[must_use]
    pub const fn game_id(&self) -> &GameId {
        &self.namespace.game_id
    }

    /// The namespace.
    #[must_use]
    pub const fn namespace_id(&self) -> &NamespaceId {
        &self.namespace.namespace_id
    }

    /// The namespace as it was when the right was given.
    #[must_use]
    pub const fn namespace(&self) -> &Namespace {
        &self.namespace
    }
}
