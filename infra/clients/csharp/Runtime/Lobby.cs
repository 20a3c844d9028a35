using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;
using Muster.Api;

namespace Muster.Server
{
    /// <summary>A lobby that the game server runs.</summary>
    public sealed class Lobby
    {
        /// <summary>
        /// How long a player waits to be admitted. Other calls matter to nobody who waits, and are repeated for
        /// longer.
        /// </summary>
        static readonly TimeSpan Admission = TimeSpan.FromSeconds(10);
        const string AlreadyConnected = "MATCHMAKER_PLAYER_ALREADY_CONNECTED";
        /// <summary>What a lobby that has ended responds to its last calls.</summary>
        static readonly string[] Over = { "MATCHMAKER_LOBBY_STOPPED", "MATCHMAKER_LOBBY_NOT_FOUND" };

        readonly GameServer server;
        readonly ConcurrentDictionary<string, Player> players = new ConcurrentDictionary<string, Player>();
        /// <summary>Tokens of players who are connected or about to be.</summary>
        readonly ConcurrentDictionary<string, bool> shown = new ConcurrentDictionary<string, bool>();
        volatile ServerLobby assigned;

        internal Lobby(GameServer server, ServerLobby assigned, double since)
        {
            this.server = server;
            this.assigned = assigned;
            Since = since;
        }

        public string LobbyId => assigned.LobbyId;

        public string GameMode => assigned.GameMode;

        public string Region => assigned.RegionId;

        public IDictionary<string, string> Tags => assigned.Tags;

        /// <summary>Seats that finds fill it up to.</summary>
        public int MaxPlayers => assigned.MaxPlayers;

        /// <summary>What <c>Create</c> was given for it.</summary>
        public object Config => assigned.LobbyConfig;

        /// <summary>Seats that are held, as of the last heartbeat.</summary>
        public ServerLobbySeats Seats => assigned.Seats;

        public bool IsEnded { get; internal set; }

        /// <summary>Connected players.</summary>
        public ICollection<Player> Players => players.Values;

        /// <summary>When this process learned of it.</summary>
        internal double Since { get; }

        /// <summary>Takes over what another heartbeat says.</summary>
        internal void Update(ServerLobby newer) => assigned = newer;

        /// <summary>Reports a player as connected. <c>GameServer.Admit</c> finds the lobby first.</summary>
        /// <exception cref="MusterException">The player is to be refused, by its code.</exception>
        public async Task<Player> Admit(string token)
        {
            // The service distinguishes a token that is shown twice from a retry of this call by nothing.
            if (!shown.TryAdd(token, true)) throw new MusterException("this token is connected") { Status = 400, Code = AlreadyConnected };
            ConnectPlayerResponse details;
            try
            {
                var body = new Dictionary<string, object> { ["player_token"] = token, ["details"] = true };
                details = await server.Send("POST", "players/connected", assigned.LobbyToken, body, ConnectPlayerResponse.Of, Admission);
            }
            catch (MusterException error) when (error.Code == AlreadyConnected)
            {
                // Nobody was admitted by it: the response to an earlier call was lost.
                details = ConnectPlayerResponse.Of(error.Metadata);
            }
            catch
            {
                shown.TryRemove(token, out _);
                throw;
            }
            var player = new Player(this, token, details);
            players[player.PlayerId] = player;
            return player;
        }

        /// <summary>Reports the lobby as ready, where the game server has <c>AutoReady = false</c>.</summary>
        public Task Ready() => Call("POST", "lobbies/ready", new Dictionary<string, object>());

        /// <summary>Hides the lobby from finds, such as when the match begins.</summary>
        public Task Close() => UnlessOver("PUT", "lobbies/closed", new Dictionary<string, object> { ["is_closed"] = true });

        /// <summary>Lets finds see the lobby again.</summary>
        public Task Open() => Call("PUT", "lobbies/closed", new Dictionary<string, object> { ["is_closed"] = false });

        /// <summary>Makes the lobby <c>public</c> or <c>private</c>.</summary>
        public Task Publicity(string publicity) => Call("PUT", "lobbies/publicity", new Dictionary<string, object> { ["publicity"] = publicity });

        /// <summary>Publishes any JSON in lists of lobbies.</summary>
        public Task State(object state) => UnlessOver("PUT", "lobbies/state", state);

        /// <summary>Ends the lobby: the match is over.</summary>
        public Task End() => server.End(this);

        internal async Task Disconnected(Player player, int? keepSeconds)
        {
            shown.TryRemove(player.Token, out _);
            Forget(player);
            var body = new Dictionary<string, object> { ["player_token"] = player.Token };
            if (keepSeconds != null) body["keep_seconds"] = keepSeconds;
            await UnlessOver("POST", "players/disconnected", body);
            if (players.IsEmpty && !IsEnded) server.LookAgain();
        }

        internal Task Remove(Player player, int? excludeSeconds)
        {
            Forget(player);
            var body = new Dictionary<string, object> { ["player_token"] = player.Token };
            if (excludeSeconds != null) body["exclude_seconds"] = excludeSeconds;
            return UnlessOver("POST", "players/remove", body);
        }

        /// <summary>Not another connection of the same player.</summary>
        void Forget(Player player) =>
            ((ICollection<KeyValuePair<string, Player>>)players).Remove(new KeyValuePair<string, Player>(player.PlayerId, player));

        Task Call(string method, string path, object body) => server.Send(method, path, assigned.LobbyToken, body, _ => true, null);

        async Task UnlessOver(string method, string path, object body)
        {
            try
            {
                await Call(method, path, body);
            }
            catch (MusterException error) when (Over.Contains(error.Code))
            {
                // The lobby's end has done it.
            }
        }
    }

    /// <summary>A player whom the game server admitted.</summary>
    public sealed class Player
    {
        readonly ConnectPlayerResponse details;

        internal Player(Lobby lobby, string token, ConnectPlayerResponse details)
        {
            Lobby = lobby;
            Token = token;
            this.details = details;
        }

        public Lobby Lobby { get; }

        public string Token { get; }

        /// <summary>Names the player within the lobby, also after coming back.</summary>
        public string PlayerId => details.PlayerId ?? Token;

        /// <summary>What the client says of its player; nobody has checked it.</summary>
        public object Data => details.PlayerData;

        /// <summary>Whether the player came back, and may have another connection: drop that.</summary>
        public bool Replaced => details.Replaced ?? false;

        /// <summary>Names the player's party; null for a player alone.</summary>
        public string PartyId => details.PartyId;

        /// <summary>How many came together; null for a player alone.</summary>
        public int? PartySize => details.PartySize;

        /// <summary>
        /// Reports that the player's connection ended; the seat is kept for so long, by default as the mode
        /// says.
        /// </summary>
        public Task Disconnected(int? keepSeconds = null) => Lobby.Disconnected(this, keepSeconds);

        /// <summary>Frees the player's seat, and keeps the player out of this lobby; 8 hours by default.</summary>
        public Task Remove(int? excludeSeconds = null) => Lobby.Remove(this, excludeSeconds);
    }
}
