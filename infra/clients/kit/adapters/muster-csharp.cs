// The C# client; ../../csharp/Tests~/build compiles both.

using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Muster;
using Muster.Api;

static class Adapter
{
    static readonly ConcurrentDictionary<string, Seat> Seats = new ConcurrentDictionary<string, Seat>();
    static readonly ConcurrentDictionary<string, CancellationTokenSource> Aborts = new ConcurrentDictionary<string, CancellationTokenSource>();
    static readonly Matchmaker Matchmaker =
        new Matchmaker(Environment.GetEnvironmentVariable("MUSTER_URL"), Environment.GetEnvironmentVariable("MUSTER_TOKEN"));

    static void Main()
    {
        for (var line = Console.ReadLine(); line != null; line = Console.ReadLine())
        {
            var intent = (IDictionary<string, object>)Json.Parse(line);
            if ((string)intent["do"] != "abort")
            {
                var abort = Aborts[(string)intent["id"]] = new CancellationTokenSource();
                Task.Run(() => Perform(intent, abort.Token));
            }
            else if (Aborts.TryGetValue((string)intent["of"], out var aborted))
            {
                aborted.Cancel();
            }
        }
    }

    static async Task Perform(IDictionary<string, object> intent, CancellationToken abort)
    {
        var id = (string)intent["id"];
        var outcome = new Dictionary<string, object> { ["id"] = id };
        try
        {
            var seat = await Seat(intent, abort);
            if (seat != null)
            {
                Seats[id] = seat;
                outcome["lobby_id"] = seat.LobbyId;
                outcome["tokens"] = seat.Party.Select(member => member.Token).ToList();
            }
        }
        catch (Exception error)
        {
            if (abort.IsCancellationRequested) outcome["aborted"] = true;
            else outcome["error"] = (error as MusterException)?.Code ?? error.ToString();
            await Matchmaker.Settled();
        }
        Aborts.TryRemove(id, out _);
        lock (Seats) Console.WriteLine(Json.Write(outcome));
    }

    static async Task<Seat> Seat(IDictionary<string, object> intent, CancellationToken abort)
    {
        var request = Field(intent, "request") as IDictionary<string, object>;
        var size = (int?)(Field(request, "party_size") as long?);
        switch ((string)intent["do"])
        {
            case "find":
                return await Matchmaker.Find(new FindLobbyRequest { GameModes = ((IList<object>)request["game_modes"]).Cast<string>().ToList(), PartySize = size }, abort);
            case "join":
                return await Matchmaker.Join(new JoinLobbyRequest { LobbyId = (string)request["lobby_id"], PartySize = size }, abort);
            case "create":
                return await Matchmaker.Create(new CreateLobbyRequest { GameMode = (string)request["game_mode"], PartySize = size }, abort);
            case "leave":
                await Seats[(string)intent["of"]].Leave();
                return null;
            default:
                await Seats[(string)intent["of"]].Rejoin();
                return Seats[(string)intent["of"]];
        }
    }

    static object Field(IDictionary<string, object> json, string name) =>
        json != null && json.TryGetValue(name, out var value) ? value : null;
}
