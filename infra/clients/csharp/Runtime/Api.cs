// Made from infra/openapi.json by `node Tests~/types.mjs`.

using System.Collections.Generic;

namespace Muster.Api
{
    public sealed class FindLobbyRequest : IFields
    {
        /// <summary>Modes of the namespace's current version that the lobby may have; the first decides what
        /// is created. Duplicates count once.</summary>
        public IList<string> GameModes { get; set; }

        /// <summary>Regions that the lobby may be in, by `region_id`; a filter. None, or an empty list, means
        /// the recommended one: the nearest to the player where the deployment knows it, else the first
        /// region of the first mode.</summary>
        public IList<string> Regions { get; set; }

        /// <summary>The client's latencies by `region_id`, in milliseconds, integers or decimals; null for a
        /// region that it cannot reach. Other regions than these are not searched, and regions that the game
        /// lacks are ignored. With `regions`, those limit and latencies order. None, or an empty object,
        /// means that nothing was measured.</summary>
        public IDictionary<string, double?> Latencies { get; set; }

        /// <summary>Tags that the lobby must have; a lobby created gets them. Only for modes that take tags.
        /// Lengths are in bytes of UTF-8.</summary>
        public IDictionary<string, string> Tags { get; set; }

        /// <summary>Seats of a lobby created for this request, at most the mode's own maximum; does not
        /// filter. Only for modes that allow it.</summary>
        public int? MaxPlayers { get; set; }

        /// <summary>Lobbies in which no seat is wanted, such as the one that the player just left.</summary>
        public IList<string> ExcludeLobbyIds { get; set; }

        /// <summary>Whether to refuse rather than create a lobby.</summary>
        public bool? PreventAutoCreateLobby { get; set; }

        /// <summary>The version of the game that the client is made for. Another one than the namespace runs
        /// is refused.</summary>
        public string VersionId { get; set; }

        public Captcha Captcha { get; set; }

        /// <summary>Passed to the studio's own verification exactly as it was sent; any content, at most 16
        /// deep.</summary>
        public object VerificationData { get; set; }

        /// <summary>Players who want seats of one lobby together, all or none: at most the mode's
        /// `party_size_max`.</summary>
        public int? PartySize { get; set; }

        /// <summary>What the client says of its player, such as a name: any JSON of up to 512 bytes, at most
        /// 16 deep. It is in the player token, readable by its holder, and passed to the game server and to
        /// the studio's own verification exactly as it was sent. Of a party, it is the first
        /// player's.</summary>
        public object PlayerData { get; set; }

        /// <summary>The same of each player of a party, in the order of `players` in the response; null for
        /// one of whom nothing is said. Not with `player_data`.</summary>
        public IList<object> PlayersData { get; set; }

        IEnumerable<KeyValuePair<string, object>> IFields.Fields()
        {
            yield return new KeyValuePair<string, object>("game_modes", GameModes);
            yield return new KeyValuePair<string, object>("regions", Regions);
            yield return new KeyValuePair<string, object>("latencies", Latencies);
            yield return new KeyValuePair<string, object>("tags", Tags);
            yield return new KeyValuePair<string, object>("max_players", MaxPlayers);
            yield return new KeyValuePair<string, object>("exclude_lobby_ids", ExcludeLobbyIds);
            yield return new KeyValuePair<string, object>("prevent_auto_create_lobby", PreventAutoCreateLobby);
            yield return new KeyValuePair<string, object>("version_id", VersionId);
            yield return new KeyValuePair<string, object>("captcha", Captcha);
            yield return new KeyValuePair<string, object>("verification_data", VerificationData);
            yield return new KeyValuePair<string, object>("party_size", PartySize);
            yield return new KeyValuePair<string, object>("player_data", PlayerData);
            yield return new KeyValuePair<string, object>("players_data", PlayersData);
        }
    }

    /// <summary>The client's answers to captchas.</summary>
    public sealed class Captcha : IFields
    {
        public CaptchaResponse Hcaptcha { get; set; }

        public CaptchaResponse Turnstile { get; set; }

        IEnumerable<KeyValuePair<string, object>> IFields.Fields()
        {
            yield return new KeyValuePair<string, object>("hcaptcha", Hcaptcha);
            yield return new KeyValuePair<string, object>("turnstile", Turnstile);
        }
    }

    public sealed class CaptchaResponse : IFields
    {
        /// <summary>What the captcha's provider gave the client.</summary>
        public string ClientResponse { get; set; }

        IEnumerable<KeyValuePair<string, object>> IFields.Fields()
        {
            yield return new KeyValuePair<string, object>("client_response", ClientResponse);
        }
    }

    public sealed class JoinLobbyRequest : IFields
    {
        /// <summary>The lobby: its identifier, or the code of one that a player created. Any case and blanks
        /// around it are accepted.</summary>
        public string LobbyId { get; set; }

        /// <summary>The version of the game that the client is made for. Another one than the namespace runs
        /// is refused.</summary>
        public string VersionId { get; set; }

        public Captcha Captcha { get; set; }

        /// <summary>Passed to the studio's own verification exactly as it was sent; any content, at most 16
        /// deep.</summary>
        public object VerificationData { get; set; }

        /// <summary>Players who want seats of one lobby together, all or none: at most the mode's
        /// `party_size_max`.</summary>
        public int? PartySize { get; set; }

        /// <summary>What the client says of its player, such as a name: any JSON of up to 512 bytes, at most
        /// 16 deep. It is in the player token, readable by its holder, and passed to the game server and to
        /// the studio's own verification exactly as it was sent. Of a party, it is the first
        /// player's.</summary>
        public object PlayerData { get; set; }

        /// <summary>The same of each player of a party, in the order of `players` in the response; null for
        /// one of whom nothing is said. Not with `player_data`.</summary>
        public IList<object> PlayersData { get; set; }

        IEnumerable<KeyValuePair<string, object>> IFields.Fields()
        {
            yield return new KeyValuePair<string, object>("lobby_id", LobbyId);
            yield return new KeyValuePair<string, object>("version_id", VersionId);
            yield return new KeyValuePair<string, object>("captcha", Captcha);
            yield return new KeyValuePair<string, object>("verification_data", VerificationData);
            yield return new KeyValuePair<string, object>("party_size", PartySize);
            yield return new KeyValuePair<string, object>("player_data", PlayerData);
            yield return new KeyValuePair<string, object>("players_data", PlayersData);
        }
    }

    public sealed class CreateLobbyRequest : IFields
    {
        /// <summary>A mode of the namespace's current version.</summary>
        public string GameMode { get; set; }

        /// <summary>Where the lobby is to run, by `region_id`. Without it the recommended region is taken:
        /// the nearest to the player where the deployment knows it, else the first region of the
        /// mode.</summary>
        public string Region { get; set; }

        /// <summary>Whether the lobby may be found and listed, or only joined by its identifier or
        /// code.</summary>
        public string Publicity { get; set; }

        /// <summary>Tags of the lobby. Only for modes that take tags. Lengths are in bytes of
        /// UTF-8.</summary>
        public IDictionary<string, string> Tags { get; set; }

        /// <summary>Seats of the lobby, at most the mode's own maximum. Only for modes that allow
        /// it.</summary>
        public int? MaxPlayers { get; set; }

        /// <summary>Passed to the game server with the lobby, exactly as it was sent: any JSON of up to 16
        /// KiB, at most 16 deep. Numbers must be finite as doubles, and surrogates come in pairs.</summary>
        public object LobbyConfig { get; set; }

        /// <summary>The version of the game that the client is made for. Another one than the namespace runs
        /// is refused.</summary>
        public string VersionId { get; set; }

        public Captcha Captcha { get; set; }

        /// <summary>Passed to the studio's own verification exactly as it was sent; any content, at most 16
        /// deep.</summary>
        public object VerificationData { get; set; }

        /// <summary>Players who want seats of one lobby together, all or none: at most the mode's
        /// `party_size_max`.</summary>
        public int? PartySize { get; set; }

        /// <summary>What the client says of its player, such as a name: any JSON of up to 512 bytes, at most
        /// 16 deep. It is in the player token, readable by its holder, and passed to the game server and to
        /// the studio's own verification exactly as it was sent. Of a party, it is the first
        /// player's.</summary>
        public object PlayerData { get; set; }

        /// <summary>The same of each player of a party, in the order of `players` in the response; null for
        /// one of whom nothing is said. Not with `player_data`.</summary>
        public IList<object> PlayersData { get; set; }

        IEnumerable<KeyValuePair<string, object>> IFields.Fields()
        {
            yield return new KeyValuePair<string, object>("game_mode", GameMode);
            yield return new KeyValuePair<string, object>("region", Region);
            yield return new KeyValuePair<string, object>("publicity", Publicity);
            yield return new KeyValuePair<string, object>("tags", Tags);
            yield return new KeyValuePair<string, object>("max_players", MaxPlayers);
            yield return new KeyValuePair<string, object>("lobby_config", LobbyConfig);
            yield return new KeyValuePair<string, object>("version_id", VersionId);
            yield return new KeyValuePair<string, object>("captcha", Captcha);
            yield return new KeyValuePair<string, object>("verification_data", VerificationData);
            yield return new KeyValuePair<string, object>("party_size", PartySize);
            yield return new KeyValuePair<string, object>("player_data", PlayerData);
            yield return new KeyValuePair<string, object>("players_data", PlayersData);
        }
    }

    internal sealed class RegisterServerRequest : IFields
    {
        /// <summary>Identifies the game server in its namespace; made by Muster when absent: the same for the
        /// same token, region and single ports, with a port range for the same `start_id`.</summary>
        public string ServerId { get; set; }

        /// <summary>Names this start of the process: made up once when it begins, sent with every call. It
        /// distinguishes a repeated registration from a new start. Without it a registration is a new start,
        /// unless its body equals that of one less than 10 seconds ago.</summary>
        public string StartId { get; set; }

        /// <summary>Its region, one of the game's.</summary>
        public string RegionId { get; set; }

        /// <summary>Modes that it can run; all when absent.</summary>
        public IList<string> GameModes { get; set; }

        /// <summary>Lobbies that it can run at once.</summary>
        public int? Capacity { get; set; }

        public IDictionary<string, ServerPort> Ports { get; set; }

        /// <summary>How long the lease lasts after a heartbeat. With 0 there is no lease: the game server
        /// counts as alive until it deregisters.</summary>
        public int? LeaseSeconds { get; set; }

        /// <summary>Whether its lobbies are ready at once; else each waits for setLobbyReady.</summary>
        public bool? AutoReady { get; set; }

        /// <summary>The build that it runs, as a version's `servers` names it: any JSON. It then gets lobbies
        /// of versions with that build alone; without it, of versions without `servers`.</summary>
        public object Build { get; set; }

        IEnumerable<KeyValuePair<string, object>> IFields.Fields()
        {
            yield return new KeyValuePair<string, object>("server_id", ServerId);
            yield return new KeyValuePair<string, object>("start_id", StartId);
            yield return new KeyValuePair<string, object>("region_id", RegionId);
            yield return new KeyValuePair<string, object>("game_modes", GameModes);
            yield return new KeyValuePair<string, object>("capacity", Capacity);
            yield return new KeyValuePair<string, object>("ports", Ports);
            yield return new KeyValuePair<string, object>("lease_seconds", LeaseSeconds);
            yield return new KeyValuePair<string, object>("auto_ready", AutoReady);
            yield return new KeyValuePair<string, object>("build", Build);
        }
    }

    /// <summary>Where players connect: at a single port or at any of a range.</summary>
    public sealed class ServerPort : IFields
    {
        /// <summary>The host that players connect to: a name, an IPv4 address, or an IPv6 address, with or
        /// without brackets. Not an address on which programs only listen, such as `0.0.0.0`. Clients get it
        /// in brackets, and an international name in its ASCII form.</summary>
        public string Hostname { get; set; }

        /// <summary>The port.</summary>
        public int? Port { get; set; }

        public PortRange PortRange { get; set; }

        /// <summary>The protocol there; `https` and `tcp_tls` use TLS.</summary>
        public string Protocol { get; set; }

        IEnumerable<KeyValuePair<string, object>> IFields.Fields()
        {
            yield return new KeyValuePair<string, object>("hostname", Hostname);
            yield return new KeyValuePair<string, object>("port", Port);
            yield return new KeyValuePair<string, object>("port_range", PortRange);
            yield return new KeyValuePair<string, object>("protocol", Protocol);
        }
    }

    /// <summary>Any port from `min` to `max`, both included.</summary>
    public sealed class PortRange : IFields
    {
        public int Min { get; set; }

        public int Max { get; set; }

        internal static PortRange Of(IDictionary<string, object> json) => new PortRange
        {
            Min = Json.Required(json, "min", Json.Integer),
            Max = Json.Required(json, "max", Json.Integer),
        };

        IEnumerable<KeyValuePair<string, object>> IFields.Fields()
        {
            yield return new KeyValuePair<string, object>("min", Min);
            yield return new KeyValuePair<string, object>("max", Max);
        }
    }

    internal sealed class FindLobbyResponse
    {
        public Lobby Lobby { get; set; }

        public IDictionary<string, Port> Ports { get; set; }

        /// <summary>The player; of a party the first.</summary>
        public Player Player { get; set; }

        /// <summary>All players of a party; absent for a player alone.</summary>
        public IList<Player> Players { get; set; }

        internal static FindLobbyResponse Of(IDictionary<string, object> json) => new FindLobbyResponse
        {
            Lobby = Json.Field(json, "lobby", Json.Object(Lobby.Of)),
            Ports = Json.Field(json, "ports", Json.Map(Json.Object(Port.Of))),
            Player = Json.Field(json, "player", Json.Object(Player.Of)),
            Players = Json.Field(json, "players", Json.List(Json.Object(Player.Of))),
        };
    }

    internal sealed class Lobby
    {
        /// <summary>Identifies the lobby; the nil UUID in mocks.</summary>
        public string LobbyId { get; set; }

        /// <summary>What friends type in place of the identifier, as long as the lobby lives; only in the
        /// response of createLobby, to the lobby's maker.</summary>
        public string Code { get; set; }

        public Region Region { get; set; }

        /// <summary>Repeats the ports beside the lobby.</summary>
        public IDictionary<string, Port> Ports { get; set; }

        /// <summary>Repeats the player beside the lobby.</summary>
        public Player Player { get; set; }

        internal static Lobby Of(IDictionary<string, object> json) => new Lobby
        {
            LobbyId = Json.Field(json, "lobby_id", Json.Text),
            Code = Json.Field(json, "code", Json.Text),
            Region = Json.Field(json, "region", Json.Object(Region.Of)),
            Ports = Json.Field(json, "ports", Json.Map(Json.Object(Port.Of))),
            Player = Json.Field(json, "player", Json.Object(Player.Of)),
        };
    }

    public sealed class Region
    {
        /// <summary>Short name that requests use; not a UUID.</summary>
        public string RegionId { get; set; }

        /// <summary>Name that players read.</summary>
        public string DisplayName { get; set; }

        internal static Region Of(IDictionary<string, object> json) => new Region
        {
            RegionId = Json.Field(json, "region_id", Json.Text),
            DisplayName = Json.Field(json, "display_name", Json.Text),
        };
    }

    /// <summary>A single port, with `port_range` null, or a range, with `host` and `port` null.</summary>
    public sealed class Port
    {
        /// <summary>Hostname and port: `hostname:port`.</summary>
        public string Host { get; set; }

        /// <summary>The host alone; an IPv6 address in brackets, as in URLs.</summary>
        public string Hostname { get; set; }

        /// <summary>The port.</summary>
        public int? Number { get; set; }

        public PortRange PortRange { get; set; }

        /// <summary>Whether to connect with TLS.</summary>
        public bool IsTls { get; set; }

        internal static Port Of(IDictionary<string, object> json) => new Port
        {
            Host = Json.Field(json, "host", Json.Text),
            Hostname = Json.Field(json, "hostname", Json.Text),
            Number = Json.Value(json, "port", Json.Integer),
            PortRange = Json.Field(json, "port_range", Json.Object(PortRange.Of)),
            IsTls = Json.Required(json, "is_tls", Json.Flag),
        };
    }

    internal sealed class Player
    {
        /// <summary>Opaque text that the client shows the lobby server, which validates it.</summary>
        public string Token { get; set; }

        internal static Player Of(IDictionary<string, object> json) => new Player
        {
            Token = Json.Field(json, "token", Json.Text),
        };
    }

    public sealed class ListLobbiesResponse
    {
        /// <summary>The listable modes of the namespace's current version.</summary>
        public IList<GameModeInfo> GameModes { get; set; }

        /// <summary>The game's regions, the nearest to the player first.</summary>
        public IList<RegionInfo> Regions { get; set; }

        /// <summary>Public lobbies of these modes, those with a free seat first.</summary>
        public IList<LobbyInfo> Lobbies { get; set; }

        /// <summary>Present, and true, when there are more lobbies than all pages may have.</summary>
        public bool? IsTruncated { get; set; }

        /// <summary>Present when there is another page: the query parameter `cursor` that requests
        /// it.</summary>
        public string NextCursor { get; set; }

        internal static ListLobbiesResponse Of(IDictionary<string, object> json) => new ListLobbiesResponse
        {
            GameModes = Json.Field(json, "game_modes", Json.List(Json.Object(GameModeInfo.Of))),
            Regions = Json.Field(json, "regions", Json.List(Json.Object(RegionInfo.Of))),
            Lobbies = Json.Field(json, "lobbies", Json.List(Json.Object(LobbyInfo.Of))),
            IsTruncated = Json.Value(json, "is_truncated", Json.Flag),
            NextCursor = Json.Field(json, "next_cursor", Json.Text),
        };
    }

    public sealed class GameModeInfo
    {
        /// <summary>The mode's name.</summary>
        public string GameModeId { get; set; }

        internal static GameModeInfo Of(IDictionary<string, object> json) => new GameModeInfo
        {
            GameModeId = Json.Field(json, "game_mode_id", Json.Text),
        };
    }

    public sealed class RegionInfo
    {
        /// <summary>Short name that requests use; not a UUID.</summary>
        public string RegionId { get; set; }

        /// <summary>Name of the provider that runs the machines there.</summary>
        public string ProviderDisplayName { get; set; }

        /// <summary>Name that players read.</summary>
        public string RegionDisplayName { get; set; }

        public Coord DatacenterCoord { get; set; }

        public Distance DatacenterDistanceFromClient { get; set; }

        /// <summary>URL that a client calls to measure its latency, by https or wss, or by http or ws at
        /// localhost; absent without one.</summary>
        public string Probe { get; set; }

        internal static RegionInfo Of(IDictionary<string, object> json) => new RegionInfo
        {
            RegionId = Json.Field(json, "region_id", Json.Text),
            ProviderDisplayName = Json.Field(json, "provider_display_name", Json.Text),
            RegionDisplayName = Json.Field(json, "region_display_name", Json.Text),
            DatacenterCoord = Json.Field(json, "datacenter_coord", Json.Object(Coord.Of)),
            DatacenterDistanceFromClient = Json.Field(json, "datacenter_distance_from_client", Json.Object(Distance.Of)),
            Probe = Json.Field(json, "probe", Json.Text),
        };
    }

    public sealed class Coord
    {
        /// <summary>Degrees north.</summary>
        public double Latitude { get; set; }

        /// <summary>Degrees east.</summary>
        public double Longitude { get; set; }

        internal static Coord Of(IDictionary<string, object> json) => new Coord
        {
            Latitude = Json.Required(json, "latitude", Json.Number),
            Longitude = Json.Required(json, "longitude", Json.Number),
        };
    }

    /// <summary>In a straight line over the globe; 0 where the player's place is unknown.</summary>
    public sealed class Distance
    {
        public double Kilometers { get; set; }

        public double Miles { get; set; }

        internal static Distance Of(IDictionary<string, object> json) => new Distance
        {
            Kilometers = Json.Required(json, "kilometers", Json.Number),
            Miles = Json.Required(json, "miles", Json.Number),
        };
    }

    public sealed class LobbyInfo
    {
        /// <summary>Where it runs.</summary>
        public string RegionId { get; set; }

        /// <summary>Its mode.</summary>
        public string GameModeId { get; set; }

        /// <summary>Identifies the lobby.</summary>
        public string LobbyId { get; set; }

        /// <summary>Seats that finds fill it up to.</summary>
        public int MaxPlayersNormal { get; set; }

        /// <summary>Seats that joins fill it up to.</summary>
        public int MaxPlayersDirect { get; set; }

        /// <summary>Seats that parties fill it up to, where that is more.</summary>
        public int MaxPlayersParty { get; set; }

        /// <summary>Seats held: players who connected, or are expected to.</summary>
        public int TotalPlayerCount { get; set; }

        /// <summary>Those of them whose players have connected.</summary>
        public int ConnectedPlayerCount { get; set; }

        /// <summary>Its state, null when none was ever set; only when the request asks for states, and while
        /// those of the page so far fit into 256 KB. getLobbyState returns it, too.</summary>
        public object State { get; set; }

        internal static LobbyInfo Of(IDictionary<string, object> json) => new LobbyInfo
        {
            RegionId = Json.Field(json, "region_id", Json.Text),
            GameModeId = Json.Field(json, "game_mode_id", Json.Text),
            LobbyId = Json.Field(json, "lobby_id", Json.Text),
            MaxPlayersNormal = Json.Required(json, "max_players_normal", Json.Integer),
            MaxPlayersDirect = Json.Required(json, "max_players_direct", Json.Integer),
            MaxPlayersParty = Json.Required(json, "max_players_party", Json.Integer),
            TotalPlayerCount = Json.Required(json, "total_player_count", Json.Integer),
            ConnectedPlayerCount = Json.Required(json, "connected_player_count", Json.Integer),
            State = Json.Field(json, "state", Json.Any),
        };
    }

    internal sealed class ListRegionsResponse
    {
        /// <summary>The nearest to the player first.</summary>
        public IList<RegionInfo> Regions { get; set; }

        internal static ListRegionsResponse Of(IDictionary<string, object> json) => new ListRegionsResponse
        {
            Regions = Json.Field(json, "regions", Json.List(Json.Object(RegionInfo.Of))),
        };
    }

    /// <summary>Empty, unless the request asks for `details`.</summary>
    internal sealed class ConnectPlayerResponse
    {
        /// <summary>The player's name within the lobby, the same for as long as the player has the seat, also
        /// for a player who came back.</summary>
        public string PlayerId { get; set; }

        /// <summary>How many tokens of the seat there were before the one that was shown: 0 unless the player
        /// came back.</summary>
        public int? Generation { get; set; }

        /// <summary>True if another connection of the player may still be open: drop it. Absent
        /// otherwise.</summary>
        public bool? Replaced { get; set; }

        /// <summary>The name of the player's party within the lobby: the `player_id` of its first player.
        /// Absent for a player alone.</summary>
        public string PartyId { get; set; }

        /// <summary>How many players took their seats with the player; present with `party_id`.</summary>
        public int? PartySize { get; set; }

        /// <summary>The `player_data` of the request that took the seat, exactly as it was sent; absent when
        /// it had none. Players claim it of themselves.</summary>
        public object PlayerData { get; set; }

        internal static ConnectPlayerResponse Of(IDictionary<string, object> json) => new ConnectPlayerResponse
        {
            PlayerId = Json.Field(json, "player_id", Json.Text),
            Generation = Json.Value(json, "generation", Json.Integer),
            Replaced = Json.Value(json, "replaced", Json.Flag),
            PartyId = Json.Field(json, "party_id", Json.Text),
            PartySize = Json.Value(json, "party_size", Json.Integer),
            PlayerData = Json.Field(json, "player_data", Json.Any),
        };
    }

    internal sealed class RegisterServerResponse
    {
        /// <summary>Identifies the game server in its namespace.</summary>
        public string ServerId { get; set; }

        /// <summary>When the lease lapses unless a heartbeat extends it; null without lease.</summary>
        public string LeaseExpiresAt { get; set; }

        internal static RegisterServerResponse Of(IDictionary<string, object> json) => new RegisterServerResponse
        {
            ServerId = Json.Field(json, "server_id", Json.Text),
            LeaseExpiresAt = Json.Field(json, "lease_expires_at", Json.Text),
        };
    }

    internal sealed class HeartbeatResponse
    {
        /// <summary>When the lease lapses unless another heartbeat extends it; absent without
        /// lease.</summary>
        public string LeaseExpiresAt { get; set; }

        /// <summary>Present and true when the game server deregistered: it gets no lobby any more, and is
        /// unknown once these have ended.</summary>
        public bool? Draining { get; set; }

        /// <summary>True when Muster had it started and it had no lobbies for its idle time: it is to end.
        /// Absent otherwise.</summary>
        public bool? Stop { get; set; }

        /// <summary>Present when there are more lobbies.</summary>
        public string Cursor { get; set; }

        /// <summary>The lobbies that the game server runs, oldest first.</summary>
        public IList<ServerLobby> Lobbies { get; set; }

        internal static HeartbeatResponse Of(IDictionary<string, object> json) => new HeartbeatResponse
        {
            LeaseExpiresAt = Json.Field(json, "lease_expires_at", Json.Text),
            Draining = Json.Value(json, "draining", Json.Flag),
            Stop = Json.Value(json, "stop", Json.Flag),
            Cursor = Json.Field(json, "cursor", Json.Text),
            Lobbies = Json.Field(json, "lobbies", Json.List(Json.Object(ServerLobby.Of))),
        };
    }

    internal sealed class ServerLobby
    {
        /// <summary>Identifies the lobby.</summary>
        public string LobbyId { get; set; }

        /// <summary>The lobby's own token, for its state, readiness and players.</summary>
        public string LobbyToken { get; set; }

        /// <summary>Its mode.</summary>
        public string GameMode { get; set; }

        /// <summary>Where it runs.</summary>
        public string RegionId { get; set; }

        /// <summary>Its tags.</summary>
        public IDictionary<string, string> Tags { get; set; }

        /// <summary>Seats that finds fill it up to.</summary>
        public int MaxPlayers { get; set; }

        /// <summary>Its seats that are held.</summary>
        public ServerLobbySeats Seats { get; set; }

        /// <summary>What createLobby was given for it; absent when nothing was.</summary>
        public object LobbyConfig { get; set; }

        /// <summary>When it was created.</summary>
        public string CreatedAt { get; set; }

        internal static ServerLobby Of(IDictionary<string, object> json) => new ServerLobby
        {
            LobbyId = Json.Field(json, "lobby_id", Json.Text),
            LobbyToken = Json.Field(json, "lobby_token", Json.Text),
            GameMode = Json.Field(json, "game_mode", Json.Text),
            RegionId = Json.Field(json, "region_id", Json.Text),
            Tags = Json.Field(json, "tags", Json.Map(Json.Text)),
            MaxPlayers = Json.Required(json, "max_players", Json.Integer),
            Seats = Json.Field(json, "seats", Json.Object(ServerLobbySeats.Of)),
            LobbyConfig = Json.Field(json, "lobby_config", Json.Any),
            CreatedAt = Json.Field(json, "created_at", Json.Text),
        };
    }

    /// <summary>Its seats that are held.</summary>
    public sealed class ServerLobbySeats
    {
        /// <summary>Players on their way.</summary>
        public int Reserved { get; set; }

        /// <summary>Players who connected.</summary>
        public int Connected { get; set; }

        internal static ServerLobbySeats Of(IDictionary<string, object> json) => new ServerLobbySeats
        {
            Reserved = Json.Required(json, "reserved", Json.Integer),
            Connected = Json.Required(json, "connected", Json.Integer),
        };
    }
}
