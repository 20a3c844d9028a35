"""Client of Muster, a serverless matchmaker. Here is the part of players; game servers import
`muster_client.server`."""

from .api import CreateLobbyRequest, FindLobbyRequest, JoinLobbyRequest, ListLobbiesResponse, LobbyInfo, Port, RegionInfo
from .error import MusterError
from .muster import Muster
from .seat import Seat

__all__ = [
    "CreateLobbyRequest", "FindLobbyRequest", "JoinLobbyRequest", "ListLobbiesResponse", "LobbyInfo", "Muster",
    "MusterError", "Port", "RegionInfo", "Seat",
]
