// Players and game servers on the running stack, over HTTP.

using System;
using System.Collections.Generic;
using System.Linq;
using System.Net.Http;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Muster;
using Muster.Api;
using Muster.Server;
using static Check;
using static Script;

/// <summary>A namespace of the demo game, and a game server in it.</summary>
sealed class Namespace
{
    static readonly HttpClient Client = new HttpClient();
    readonly string url;
    internal readonly string PublicToken;
    internal readonly string ServerToken;

    Namespace(string url, string publicToken, string serverToken)
    {
        this.url = url;
        PublicToken = publicToken;
        ServerToken = serverToken;
    }

    internal Matchmaker Players => new Matchmaker(url, PublicToken);

    internal static async Task<Namespace> Create(string url, string gameMode = "arena")
    {
        var demo = Json.Parse(await Client.GetStringAsync($"{url}/_local/demo"));
        var cloud = (string)Field(Field(demo, "tokens"), "cloud");
        var name = Guid.NewGuid().ToString("N").Substring(0, 8);
        Func<string, object, Task<object>> post = (path, body) => Post($"{url}/cloud/games/{Field(demo, "game_id")}/{path}", cloud, body);
        var mode = Object("regions", new[] { "fra" }, "max_players", 4, "party_size_max", 2, "keep_seconds", 60, "actions", Object("create", Object("enabled", true)));
        var version = await post("versions", Object("display_name", name, "config", Object("game_modes", Object(gameMode, mode))));
        var made = await post("namespaces", Object("display_name", name, "name_id", name, "version_id", Field(version, "version_id")));
        var tokens = $"namespaces/{Field(made, "namespace_id")}/tokens";
        var publicToken = await post($"{tokens}/public", Object());
        var serverToken = await post($"{tokens}/server", Object());
        return new Namespace(url, (string)Field(publicToken, "token"), (string)Field(serverToken, "token"));
    }

    internal GameServer Server(string serverId = null, ITransport transport = null) => new GameServer(new GameServerOptions
    {
        Url = url, Token = ServerToken, Region = "fra", Capacity = 20, ServerId = serverId,
        Ports = new Dictionary<string, ServerPort> { ["default"] = new ServerPort { Hostname = "127.0.0.1", Port = 7777, Protocol = "http" } },
    }, new Platform { Transport = transport ?? new HttpTransport() });

    /// <summary>A find without retries, which would wait for another game server: the code of its refusal.</summary>
    internal async Task<object> FindOnce() =>
        Field(await Post($"{url}/matchmaker/lobbies/find", PublicToken, Object("game_modes", new[] { "arena" })), "code");

    static async Task<object> Post(string url, string token, object body)
    {
        var request = new HttpRequestMessage(HttpMethod.Post, url) { Content = new StringContent(Json.Write(body), Encoding.UTF8, "application/json") };
        request.Headers.TryAddWithoutValidation("authorization", $"Bearer {token}");
        return Json.Parse(await (await Client.SendAsync(request)).Content.ReadAsStringAsync());
    }
}

/// <summary>Tells when the game server is deregistered.</summary>
sealed class Watched : ITransport
{
    readonly HttpTransport transport = new HttpTransport();
    readonly TaskCompletionSource<bool> deregistered = new TaskCompletionSource<bool>();

    internal Task Deregistered => deregistered.Task;

    public async Task<HttpReply> Send(HttpCall call, CancellationToken cancellation)
    {
        var reply = await transport.Send(call, cancellation);
        if (call.Url.EndsWith("/deregister") && reply.Status == 200) deregistered.TrySetResult(true);
        return reply;
    }
}

static class ServiceTests
{
    internal static void AddAll(string url)
    {
        Test("players meet, one comes back, a lobby is closed, opened and ends", () => Meet(url).GetAwaiter().GetResult());
        Test("friends join by a code, a party has a seat for each, and lists are those of the namespace", () => Friends(url).GetAwaiter().GetResult());
        Test("the player and the game server of the README meet", () => ReadmeAsItStands(url).GetAwaiter().GetResult());
        Test("a later start makes the older process exit, and a server drains with its last player", () => Drain(url).GetAwaiter().GetResult());
    }

    static FindLobbyRequest Arena(string name = null, bool isExisting = false) => new FindLobbyRequest
    {
        GameModes = new[] { "arena" }, PlayerData = name == null ? null : Object("name", name), PreventAutoCreateLobby = isExisting,
    };

    static async Task Meet(string url)
    {
        var space = await Namespace.Create(url);
        var server = space.Server();
        await server.Start();
        var ada = await space.Players.Find(Arena("Ada"));
        var grace = await space.Players.Find(Arena("Grace"));
        Equal(grace.LobbyId, ada.LobbyId);
        Equal(ada.Url(), "ws://127.0.0.1:7777");

        var admitted = await server.Admit(ada.LobbyId, ada.Token);
        Equal(admitted.Data, Object("name", "Ada"));
        var back = await space.Players.Rejoin(ada.Token);
        Equal(back.LobbyId, ada.LobbyId);
        That(back.Token != ada.Token, "the token is the same");
        var again = await server.Admit(back.LobbyId, back.Token);
        Equal(new object[] { again.PlayerId, again.Replaced }, new object[] { admitted.PlayerId, true });
        var lobby = again.Lobby;
        await server.Admit(grace.LobbyId, grace.Token);
        await server.Beat();
        Equal(new[] { lobby.Seats.Connected, lobby.Seats.Reserved, lobby.MaxPlayers }, new[] { 2, 0, 4 });

        await lobby.Close();
        Equal((await RefusedBy(space.Players.Find(Arena(null, true)))).Code, "MATCHMAKER_NO_AVAILABLE_LOBBIES");
        await lobby.Open();
        await lobby.Publicity("private");
        var refusal = await RefusedBy(space.Players.Find(Arena(null, true)));
        Equal(refusal.Status, 400);
        That(refusal.RayId != null && refusal.Documentation != null, "it is not explained");
        await lobby.Publicity("public");
        await lobby.State(Object("map", "harbour"));
        var listed = (await space.Players.List(includeState: true, limit: 10)).Lobbies.Single();
        Equal(listed.State, Object("map", "harbour"));

        await again.Remove();
        Equal((await RefusedBy(back.Rejoin())).Code, "MATCHMAKER_PLAYER_REMOVED");
        await lobby.End();
        Equal((await RefusedBy(grace.Rejoin())).Code, "MATCHMAKER_LOBBY_STOPPED");
        Equal(lobby.IsEnded, true);
        await server.Stop(endLobbies: true);
    }

    static async Task Friends(string url)
    {
        var space = await Namespace.Create(url);
        var server = space.Server();
        await server.Start();
        var host = await space.Players.Create(new CreateLobbyRequest { GameMode = "arena", LobbyConfig = Object("map", new[] { 1.5 }) });
        var friend = await space.Players.Join(new JoinLobbyRequest { LobbyId = $" {host.Code.ToLowerInvariant()} " });
        Equal(friend.LobbyId, host.LobbyId);
        await server.Beat();
        Equal(server.Lobbies.Single().Config, Object("map", new[] { 1.5 }));
        await host.Leave();
        await friend.Leave();

        var leader = await space.Players.Find(new FindLobbyRequest { GameModes = new[] { "arena" }, PartySize = 2, PlayersData = new object[] { Object("name", "Ada"), null } });
        Equal(leader.Party.Count, 2);
        That(leader.Party[0] == leader, "the first is the leader");
        var member = await space.Players.Rejoin(leader.Party[1].Token);
        var player = await server.Admit(member.LobbyId, member.Token);
        Equal(new object[] { player.Data, player.PartySize }, new object[] { null, 2 });
        That(player.PartyId != null && player.PartyId != player.PlayerId, "the leader names the party");
        Equal((await space.Players.Regions()).Any(region => region.RegionId == "fra"), true);
        Equal((await space.Players.List()).Lobbies.Single().LobbyId, leader.LobbyId);
        await server.Stop(endLobbies: true);
    }

    static async Task Drain(string url)
    {
        var space = await Namespace.Create(url);
        var watched = new Watched();
        GameServer older = space.Server("one"), later = space.Server("one", watched);
        MusterException superseded = null;
        older.Superseded += error => superseded = error;
        await older.Start();
        await later.Start();
        await older.Beat();
        Equal(superseded?.Code, "MATCHMAKER_LOBBY_STATE_CONFLICT");

        var seat = await space.Players.Find(Arena());
        var player = await later.Admit(seat.LobbyId, seat.Token);
        var stopped = later.Stop();
        await watched.Deregistered;
        // It gets no lobby any more, and goes on with those it has.
        await later.Beat();
        Equal(await space.FindOnce(), "MATCHMAKER_NO_SERVER_AVAILABLE");
        await player.Disconnected(0);
        await stopped;
        Equal(player.Lobby.IsEnded, true);
    }

    static async Task ReadmeAsItStands(string url)
    {
        var space = await Namespace.Create(url, "duel");
        Environment.SetEnvironmentVariable("MUSTER_SERVER_TOKEN", space.ServerToken);
        var server = await Readme.Serve(url);
        var seat = await Readme.Play(url, space.PublicToken);
        var player = await Readme.Admit(server, seat.LobbyId, seat.Token);
        Equal(player.Lobby.LobbyId, seat.LobbyId);
        await server.Stop(endLobbies: true);
    }

    static async Task<MusterException> RefusedBy(Task task)
    {
        await Task.WhenAny(task);
        return Refused(task);
    }
}
