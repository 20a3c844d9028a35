// A game server's heartbeats and admissions: the cases of rules.json in passing time.

using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;
using Muster;
using Muster.Api;
using Muster.Server;
using static Check;
using static Script;

/// <summary>A game server whose service gives the answers of a test by operation.</summary>
sealed class Served
{
    internal readonly Dictionary<string, Func<Request, object>> Answers = new Dictionary<string, Func<Request, object>>();
    internal readonly List<string> Events = new List<string>();
    internal readonly World World;
    internal readonly GameServer Server;

    internal Served(int heartbeatSeconds = 30, object build = null)
    {
        Answers["servers/register"] = _ => Object("server_id", "s", "lease_expires_at", null);
        Answers["servers/heartbeat"] = _ => Lobbies(Lobby());
        World = new World((request, before) => Response(Answers.TryGetValue(request.Path, out var answer) ? answer(request) : Object()));
        Server = new GameServer(new GameServerOptions
        {
            Url = "http://muster.example/", Token = "server_token", Region = "fra", HeartbeatSeconds = heartbeatSeconds, Build = build,
            Ports = new Dictionary<string, ServerPort> { ["default"] = new ServerPort { Hostname = "fra.example", Port = 443, Protocol = "https" } },
        }, World.Platform);
        Server.LobbyOpened += lobby => Events.Add($"lobby {lobby.LobbyId}");
        Server.LobbyEnded += lobby => Events.Add($"ended {lobby.LobbyId}");
        Server.Stopped += () => Events.Add("stop");
        Server.Superseded += error => Events.Add($"exit {error.Code}");
        Server.Failed += error => Events.Add($"error {((MusterException)error).Code}");
    }

    internal static object Lobby(string id = "one") => Object(
        "lobby_id", id, "lobby_token", $"lobby_{id}", "game_mode", "arena", "region_id", "fra", "tags", Object(), "max_players", 2L,
        "seats", Object("reserved", 1L, "connected", 0L), "created_at", "");

    internal static object Lobbies(params object[] lobbies) => Object("lobbies", lobbies.ToList());

    internal void Start() => World.Clock.Pass(Server.Start(), 0);

    internal List<Request> Beats => World.Sent("servers/heartbeat");
}

static class ServerTests
{
    internal static void AddAll(object rules)
    {
        var heartbeats = Field(rules, "heartbeats");
        foreach (var one in Cases(heartbeats, "lease"))
        {
            var every = (int)Number(one, "every_seconds");
            Test($"a heartbeat every {every} seconds has its lease", () =>
            {
                var served = new Served(every);
                served.Start();
                served.World.Clock.Pass(3 * every * 1000);
                var registered = served.World.Sent("servers/register").Single();
                Equal(registered.Body["lease_seconds"], Field(one, "lease_seconds"));
                Equal(registered.Body["ports"], Object("default", Object("hostname", "fra.example", "port", 443, "protocol", "https")));
                Equal(served.Beats.Select(beat => beat.At - registered.At), new[] { 0, 1, 2, 3 }.Select(times => times * every * 1000));
                That(served.Beats.All(beat => (string)beat.Body["server_id"] == "s" && beat.Body["start_id"].Equals(registered.Body["start_id"])), "another server");
                That(served.World.Requests.All(request => request.Call.Authorization == "Bearer server_token"), "another token");
            });
        }

        Test("a registration has the build, if there is one", () =>
        {
            foreach (var build in new[] { null, Object("image", "game:7") })
            {
                var served = new Served(build: build);
                served.Start();
                var registration = (IDictionary<string, object>)served.World.Sent("servers/register").Single().Body;
                Equal(registration.ContainsKey("build"), build != null);
                if (build != null) Equal(registration["build"], build);
            }
        });

        foreach (var one in Cases(heartbeats, "responses")) Test($"after a heartbeat, {Field(one, "name")}: {Field(one, "then")}", () => AfterHeartbeat(one));

        Test("heartbeats come one at a time, and those that are wanted meanwhile are one", () =>
        {
            int open = 0, most = 0;
            World world = null;
            Func<Task<HttpReply>> beat = async () =>
            {
                most = Math.Max(most, ++open);
                await world.Clock.Sleep(100, default(System.Threading.CancellationToken));
                open--;
                return Response(Served.Lobbies());
            };
            world = new World((request, _) => request.Path == "servers/register" ? Task.FromResult(Response(Object("server_id", "s"))) : beat());
            var server = new GameServer(new GameServerOptions { Url = "http://muster.example", Token = "t", Region = "fra" }, world.Platform);
            world.Clock.Pass(server.Start(), 200);
            var before = world.Requests.Count;
            Func<Task> twice = async () =>
            {
                await server.Beat();
                // The caller who asks in the moment between the two shares the second.
                await server.Beat();
            };
            world.Clock.Pass(Task.WhenAll(twice(), server.Beat(), server.Beat(), server.Beat()), 1000);
            Equal(new[] { most, world.Requests.Count - before }, new[] { 1, 2 });
        });

        Test("a server whose heartbeats get no response keeps its lobbies and goes on", () =>
        {
            var served = new Served();
            served.Start();
            served.Answers["servers/heartbeat"] = _ => null;
            served.World.Clock.Pass(120000);
            Equal(served.Events.Skip(1).Distinct(), new[] { "error " });
            Equal(served.Server.Lobbies.Count, 1);
            That(served.Beats.Count > 8, "it gave up");
        });

        Test("a lobby that is missing from a list has ended, unless it has players and is less than two seconds old", () =>
        {
            var served = new Served();
            var clock = served.World.Clock;
            served.Answers["servers/heartbeat"] = _ => Served.Lobbies(Served.Lobby("old"));
            served.Answers["players/connected"] = _ => Object("player_id", "ada");
            served.Start();
            clock.Pass(served.Server.Admit("old", "player_a"), 0);
            clock.Pass(29000);
            served.Answers["servers/heartbeat"] = _ => Served.Lobbies(Served.Lobby("old"), Served.Lobby("young"), Served.Lobby("empty"));
            clock.Pass(served.Server.Beat(), 0);
            clock.Pass(served.Server.Admit("young", "player_b"), 0);
            served.Answers["servers/heartbeat"] = _ => Served.Lobbies();
            clock.Pass(1000);
            Equal(served.Events.Take(3), new[] { "lobby old", "lobby young", "lobby empty" });
            Equal(served.Events.Skip(3).OrderBy(text => text), new[] { "ended empty", "ended old" });
            clock.Pass(30000);
            Equal(served.Events.Skip(5), new[] { "ended young" });
        });

        Test("the player of a lobby that is not listed yet waits for it, and an unknown one costs few heartbeats", () =>
        {
            var served = new Served();
            var clock = served.World.Clock;
            served.Answers["servers/heartbeat"] = _ => Served.Lobbies();
            served.Answers["players/connected"] = _ => Object("player_id", "ada");
            served.Start();
            var before = served.Beats.Count;
            var arriving = served.Server.Admit("one", "player_a");
            clock.Pass(100);
            served.Answers["servers/heartbeat"] = _ => Served.Lobbies(Served.Lobby());
            Equal(clock.Pass(arriving, 2000).PlayerId, "ada");
            var connected = served.World.Sent("players/connected").Single();
            Equal(new[] { connected.Call.Authorization, connected.Body["details"] }, new object[] { "Bearer lobby_one", true });
            That(served.Beats.Count - before <= 2, "it looked too often");
            before = served.Beats.Count;
            var unknown = Enumerable.Range(0, 20).Select(_ => served.Server.Admit("none", "player_b")).ToList();
            clock.Pass(2000);
            Equal(unknown.Select(one => Refused(one).Code).Distinct(), new[] { "MATCHMAKER_LOBBY_NOT_FOUND" });
            That(served.Beats.Count - before <= 8, "each looked");
            before = served.Beats.Count;
            var oneByOne = new List<Task<Player>>();
            for (var at = 0; at < 100; at++)
            {
                oneByOne.Add(served.Server.Admit("none", "player_b"));
                clock.Pass(10);
            }
            That(served.Beats.Count - before <= 5, "each looked");
        });

        foreach (var one in Cases(rules, "admission")) Test($"the player of {Field(one, "name")}: {Field(one, "then")}", () => Admission(one));

        Test("a token is admitted once, however many show it at once", () =>
        {
            var served = new Served();
            served.Answers["players/connected"] = _ => Object("player_id", "ada");
            served.Start();
            var shown = Enumerable.Range(0, 3).Select(_ => served.Server.Admit("one", "player_a")).ToList();
            served.World.Clock.Pass(20000);
            Equal(shown.Select(one => one.Status.ToString()).OrderBy(text => text), new[] { "Faulted", "Faulted", "RanToCompletion" });
        });

        Test("a player whom the service did not admit in time shows the token again", () =>
        {
            var served = new Served();
            served.Answers["players/connected"] = _ => null;
            served.Start();
            var shown = served.Server.Admit("one", "player_a");
            served.World.Clock.Pass(15000);
            That(Refused(shown).IsTransient, "it is final");
            var sent = served.World.Sent("players/connected");
            That(sent.Count > 1 && sent.Last().At - sent[0].At < 10000, "the player waited");
            served.Answers["players/connected"] = _ => Object("player_id", "ada");
            Equal(served.World.Clock.Pass(served.Server.Admit("one", "player_a")).PlayerId, "ada");
        });

        Test("a player who comes before the server registered is to come again", () =>
        {
            var served = new Served();
            That(Refused(served.Server.Admit("one", "player_a")).IsTransient, "it is final");
            Equal(served.World.Requests.Count, 0);
        });

        Test("a lobby's calls bear its token, and those that its end has done succeed", () =>
        {
            var served = new Served();
            served.Start();
            var lobby = served.Server.Lobbies.Single();
            foreach (var call in new Func<Task>[] { lobby.Ready, lobby.Close, lobby.Open, () => lobby.Publicity("private"), () => lobby.State(new[] { 1, 2 }) })
            {
                served.World.Clock.Pass(call(), 0);
            }
            Equal(served.World.Requests.Skip(2).Select(request => $"{request.Call.Method} {request.Path} {request.Call.Authorization} {request.Call.Body}"), new[]
            {
                "POST lobbies/ready Bearer lobby_one {}", "PUT lobbies/closed Bearer lobby_one {\"is_closed\":true}",
                "PUT lobbies/closed Bearer lobby_one {\"is_closed\":false}", "PUT lobbies/publicity Bearer lobby_one {\"publicity\":\"private\"}",
                "PUT lobbies/state Bearer lobby_one [1,2]",
            });
            served.Answers["lobbies/closed"] = _ => Object("status", 400L, "code", "MATCHMAKER_LOBBY_STOPPED");
            served.World.Clock.Pass(lobby.Close(), 0);
            Equal(Refused(lobby.Open()).Code, "MATCHMAKER_LOBBY_STOPPED");
            served.World.Clock.Pass(lobby.End(), 0);
            Equal(served.Events, new[] { "lobby one", "ended one" });
        });

        Test("a server that the operator deregistered stops with its last lobby", () =>
        {
            var served = new Served();
            served.Start();
            served.Answers["servers/heartbeat"] = _ => Object("lobbies", new[] { Served.Lobby() }, "draining", true);
            served.World.Clock.Pass(30000);
            served.Answers["servers/heartbeat"] = _ => Object("status", 400L, "code", "MATCHMAKER_SERVER_NOT_FOUND");
            served.World.Clock.Pass(30000);
            Equal(served.Events, new[] { "lobby one", "ended one", "stop" });
            Equal(served.World.Sent("servers/register").Count, 1);
        });

        Test("a stop that ends the lobbies is over at once", () =>
        {
            var served = new Served();
            served.Start();
            served.World.Clock.Pass(served.Server.Stop(endLobbies: true), 0);
            Equal(served.Events, new[] { "lobby one", "ended one", "stop" });
            Equal(served.World.Sent("servers/deregister").Single().Body["end_lobbies"], true);
        });
    }

    static void AfterHeartbeat(object one)
    {
        var given = Field(one, "response");
        var then = (string)Field(one, "then");
        var isMore = false;
        var served = new Served();
        served.Answers["servers/heartbeat"] = request =>
        {
            if (request.Body.ContainsKey("cursor")) return Served.Lobbies(Served.Lobby("two"));
            var page = Map(Served.Lobbies(Served.Lobby()));
            if (isMore) foreach (var field in Map(given)) page[field.Key] = field.Value;
            return page;
        };
        var clock = served.World.Clock;
        served.Start();
        if (Field(one, "is_draining") != null) _ = served.Server.Stop();
        clock.Pass(25000);
        var before = served.Beats.Count;
        isMore = true;
        if (Field(one, "registration") != null) served.Answers["servers/register"] = _ => Field(one, "registration");
        clock.Pass(5000);
        var expected = new Dictionary<string, string[]>
        {
            ["beat"] = new[] { "lobby two" }, ["register"] = new[] { "ended one" }, ["stop"] = new[] { "ended one", "stop" },
            ["exit"] = new[] { "ended one", "exit MATCHMAKER_LOBBY_STATE_CONFLICT" }, ["error"] = new[] { $"error {Field(given, "code")}" },
        };
        Equal(served.Events, new[] { "lobby one" }.Concat(expected[then]));
        Equal(served.Beats.Count - before, then == "beat" ? 2 : 1);
        var registered = served.World.Sent("servers/register");
        Equal(registered.Count, then == "register" || then == "exit" ? 2 : 1);
        Equal(registered.Select(request => request.Body["start_id"]).Distinct().Count(), 1);
        // A server that has ended sends no more.
        clock.Pass(300000);
        if (then == "exit" || then == "stop") Equal(served.Beats.Count - before, 1);
    }

    static void Admission(object one)
    {
        var details = Object("player_id", "ada", "replaced", true, "player_data", Object("name", "Ada"), "party_id", "p", "party_size", 2L);
        var given = Field(one, "response");
        var served = new Served();
        served.Answers["players/connected"] = _ => details;
        served.Start();
        if (Field(one, "is_shown") != null)
        {
            served.World.Clock.Pass(served.Server.Admit("one", "player_a"));
        }
        else if (Field(given, "status") != null)
        {
            served.Answers["players/connected"] = _ => Object("status", Field(given, "status"), "code", Field(given, "code"), "metadata", details);
        }
        var admitted = served.Server.Admit("one", "player_a");
        served.World.Clock.Pass(20000);
        if ((string)Field(one, "then") != "admit")
        {
            var error = Refused(admitted);
            Equal(new object[] { error.Code, error.IsTransient }, new[] { given == null ? "MATCHMAKER_PLAYER_ALREADY_CONNECTED" : Field(given, "code"), false });
            return;
        }
        var player = served.World.Clock.Pass(admitted, 0);
        Equal(new object[] { player.PlayerId, player.Replaced, player.Data, player.PartyId, player.PartySize }, new object[] { "ada", true, Object("name", "Ada"), "p", 2 });
        served.World.Clock.Pass(player.Disconnected(20), 0);
        Equal(served.World.Sent("players/disconnected").Single().Body, Object("player_token", "player_a", "keep_seconds", 20));
    }
}
