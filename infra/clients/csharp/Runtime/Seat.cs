using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Muster.Api;

namespace Muster
{
    /// <summary>A player's place in a lobby.</summary>
    public sealed class Seat
    {
        /// <summary>How many milliseconds a player token is valid.</summary>
        const double TokenLifeMs = 9 * 3600000;

        readonly Platform platform;
        readonly string url;
        double expiresAt;

        internal Seat(Platform platform, string url, FindLobbyResponse answer, double sentAt)
            : this(platform, url, answer, answer.Player.Token, sentAt)
        {
            var others = (answer.Players ?? new List<Api.Player>()).Skip(1);
            Party = new[] { this }.Concat(others.Select(other => new Seat(platform, url, answer, other.Token, sentAt))).ToList();
        }

        Seat(Platform platform, string url, FindLobbyResponse answer, string token, double sentAt)
        {
            this.platform = platform;
            this.url = url;
            LobbyId = answer.Lobby.LobbyId;
            Region = answer.Lobby.Region;
            Code = answer.Lobby.Code;
            Ports = answer.Ports;
            Token = token;
            expiresAt = sentAt + TokenLifeMs;
            Party = new List<Seat> { this };
        }

        public string LobbyId { get; }

        public Region Region { get; }

        /// <summary>
        /// What friends type in place of the lobby's identifier, in a lobby that this player created.
        /// </summary>
        public string Code { get; }

        /// <summary>By label, what the game server registered.</summary>
        public IDictionary<string, Port> Ports { get; private set; }

        /// <summary>What the player shows the game server: the seat's newest player token.</summary>
        public string Token { get; private set; }

        /// <summary>
        /// For how long the token is valid. Connect at once: before that, the seat is held only for the game
        /// mode's <c>reservation_seconds</c>.
        /// </summary>
        public TimeSpan ExpiresIn => TimeSpan.FromMilliseconds(expiresAt - platform.Now());

        /// <summary>
        /// The seats of a party in the order of <c>PlayersData</c>, this one first; this one alone without a
        /// party.
        /// </summary>
        public IReadOnlyList<Seat> Party { get; }

        /// <summary>The URL of a port, such as <c>wss://host:443</c>, with the scheme for ports without TLS.</summary>
        /// <exception cref="ArgumentException">There is no single port of that label.</exception>
        public string Url(string label = "default", string scheme = "ws")
        {
            Port port;
            if (!Ports.TryGetValue(label, out port) || port.Host == null)
                throw new ArgumentException($"no single port \"{label}\" among {string.Join(", ", Ports.Keys)}");
            return $"{scheme}{(port.IsTls ? "s" : "")}://{port.Host}";
        }

        /// <summary>
        /// Gives the seat up. Once the player is connected, it is the game server that frees it when the
        /// connection ends, and keeps it for nobody.
        /// </summary>
        public Task Leave(CancellationToken cancellation = default(CancellationToken), TimeSpan? deadline = null) =>
            Http.Send(platform, Call(url, "leave", Token), _ => true, cancellation, deadline);

        /// <summary>Comes back to the seat: gets its newest token, a fresh one where that has connected.</summary>
        public async Task Rejoin(CancellationToken cancellation = default(CancellationToken), TimeSpan? deadline = null)
        {
            var sentAt = platform.Now();
            var answer = await Http.Send(platform, Call(url, "rejoin", Token), FindLobbyResponse.Of, cancellation, deadline);
            Token = answer.Player.Token;
            Ports = answer.Ports;
            expiresAt = sentAt + TokenLifeMs;
        }

        /// <summary>A call about a seat: its token is the right.</summary>
        internal static HttpCall Call(string url, string operation, string token) => new HttpCall
        {
            Method = "POST", Url = $"{url}/players/{operation}",
            Body = Json.Write(new Dictionary<string, object> { ["player_token"] = token }),
        };
    }
}
