// What a client repeats, when, and what it leaves behind: the cases of rules.json in passing time.

using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Muster;
using Muster.Api;
using static Check;
using static Script;

static class RetryTests
{
    const double AlmostOne = 1 - 1e-15;

    static FindLobbyRequest Arena(int? partySize = null) => new FindLobbyRequest { GameModes = new[] { "arena" }, PartySize = partySize };

    static Matchmaker Matchmaker(World world) => new Matchmaker("http://muster.example/", "pub_token", world.Platform);

    internal static void AddAll(object rules)
    {
        var deadline = Number(Field(rules, "deadline"), "default");
        var bounds = Cases(Field(rules, "backoff"), "bounds").Select(Convert.ToDouble).ToList();

        foreach (var one in Cases(rules, "responses"))
        {
            var given = Field(one, "response");
            var isRetried = (bool)Field(one, "is_retried");
            Test($"{Field(one, "name")} {(isRetried ? "is retried with the same key and body" : "is the end")}", () =>
            {
                foreach (var bound in new[] { 0, 1 })
                {
                    var world = new World((_, before) => Response(before == 0 ? given : Seat()), bound * AlmostOne);
                    var found = Matchmaker(world).Find(Arena());
                    world.Clock.Pass(deadline);
                    if (!isRetried)
                    {
                        Equal(world.Requests.Count, 1);
                        var error = Refused(found);
                        Equal(new object[] { error.Status, error.Code, error.Metadata }, new[] { Field(given, "status"), Field(given, "code"), Field(given, "metadata") ?? Object() });
                        continue;
                    }
                    Equal(world.Clock.Pass(found, 0).Token, "player_first");
                    Equal(world.Requests.Count, 2);
                    var calls = world.Requests.Select(request => request.Call).ToList();
                    var wait = Convert.ToDouble(Cases(one, "wait").ElementAt(bound));
                    var waited = world.Requests[1].At - world.Requests[0].At;
                    That(Math.Abs(waited - wait) < 1, $"{waited} ms are not {wait}");
                    That(calls[0].IdempotencyKey.Length > 0 && calls[0].IdempotencyKey.Length <= 64 && calls[0].IdempotencyKey.All(sign => sign > ' ' && sign <= '~'), calls[0].IdempotencyKey);
                    Equal(calls[0].Authorization, "Bearer pub_token");
                    Equal(new[] { calls[1].IdempotencyKey, calls[1].Authorization, calls[1].Body }, new[] { calls[0].IdempotencyKey, calls[0].Authorization, calls[0].Body });
                }
            });
        }

        Test("delays double up to their last bound, for at least 35 seconds", () =>
        {
            var world = new World((_, before) => Response(null), AlmostOne);
            var found = Matchmaker(world).Find(Arena());
            world.Clock.Pass(deadline);
            var waits = world.Requests.Skip(1).Select((request, index) => Math.Round(request.At - world.Requests[index].At));
            Equal(waits.Take(bounds.Count), bounds);
            Equal(Refused(found).Status, 0);
            That(world.Requests.Any(request => request.At > world.Requests[0].At + Number(Field(rules, "deadline"), "default_at_least")), "it ended early");
        });

        Test("an attempt may take as long as the service takes", () =>
        {
            var world = new World((request, before) => before > 0 ? Task.FromResult(Response(Seat())) : Never(request.Cancellation));
            var found = Matchmaker(world).Find(Arena());
            var attempt = Field(rules, "attempt");
            world.Clock.Pass(Number(attempt, "at_least"));
            Equal(world.Requests.Count, 1);
            Equal(world.Clock.Pass(found, Number(attempt, "seating") + bounds[0] - Number(attempt, "at_least")).Token, "player_first");
        });

        Test("each intent has a key of its own, and a body that later changes do not reach", () =>
        {
            var world = new World((_, before) => Response(before == 0 ? null : Seat()));
            var matchmaker = Matchmaker(world);
            var data = new Dictionary<string, object> { ["name"] = "Ada" };
            var request = Arena();
            request.PlayerData = data;
            var found = matchmaker.Find(request);
            data["name"] = "Grace";
            world.Clock.Pass(found, 1000);
            world.Clock.Pass(matchmaker.Find(request), 0);
            var calls = world.Requests.Select(sent => sent.Call).ToList();
            Equal(calls[1].Body, calls[0].Body);
            That(calls[2].Body != calls[1].Body && calls[2].IdempotencyKey != calls[1].IdempotencyKey, "two intents are one");
        });

        var within = Number(Field(rules, "given_up"), "within");
        foreach (var one in Cases(Field(rules, "given_up"), "cases"))
        {
            foreach (var way in new[] { "cancellation", "deadline" })
            {
                Test($"a find that is given up by {way} {Field(one, "name")}", () => GivenUp(one, way, bounds, within));
            }
        }

        Test("what is given up is looked for no longer than its limit", () =>
        {
            var world = new World((_, before) => Response(null));
            var matchmaker = Matchmaker(world);
            var cancel = new CancellationTokenSource();
            var found = matchmaker.Find(Arena(), cancel.Token);
            world.Clock.Pass(1000);
            cancel.Cancel();
            world.Clock.Pass(matchmaker.Settled(), 10 * within);
            That(found.IsCanceled, "it was not cancelled");
            That(world.Requests.Last().At - 2000 <= within, "it went on");
        });

        Test("a pause that the service asks for holds nothing back longer than that", () =>
        {
            var world = new World((_, before) => Response(Object("status", 503L, "retry_after", "3600", "body", "")));
            var matchmaker = Matchmaker(world);
            var found = matchmaker.Find(Arena());
            world.Clock.Pass(matchmaker.Settled(), within);
            Equal(Refused(found).RetryAfter.Value.TotalSeconds, 3600);
        });

        Test("what is cancelled sends nothing, and other calls end at once", () =>
        {
            var world = new World((request, before) => Never(request.Cancellation));
            That(Matchmaker(world).Find(Arena(), new CancellationToken(true)).IsCanceled, "it was not cancelled");
            Equal(world.Requests.Count, 0);
            var cancel = new CancellationTokenSource();
            var regions = Matchmaker(world).Regions(cancel.Token);
            cancel.Cancel();
            world.Clock.Pass(0);
            That(regions.IsCanceled, "it goes on");
        });

        Test("a seat expires by the client's own clock", () =>
        {
            var world = new World((_, before) => Response(Seat()));
            var seat = world.Clock.Pass(Matchmaker(world).Find(Arena()), 0);
            Equal(seat.ExpiresIn.TotalMilliseconds, Number(rules, "token_life"));
            world.Clock.Pass(1000);
            Equal(seat.ExpiresIn.TotalMilliseconds, Number(rules, "token_life") - 1000);
        });

        Test("a seat's URLs follow the port", () =>
        {
            var world = new World((_, before) => Response(Seat()));
            var seat = world.Clock.Pass(Matchmaker(world).Find(Arena()), 0);
            Equal(new[] { seat.Url(), seat.Url("default", "http") }, new[] { "wss://fra.example:443", "https://fra.example:443" });
            foreach (var label in new[] { "voice", "none" })
            {
                try
                {
                    seat.Url(label);
                }
                catch (ArgumentException)
                {
                    continue;
                }
                throw new Exception($"{label} has a URL");
            }
            Equal(new[] { seat.Ports["voice"].PortRange.Min, seat.Ports["voice"].PortRange.Max, seat.Ports["default"].Number }, new[] { 1, 2, 443 });
        });

        Test("a seat is come back to by its token, and its newest token leaves it", () =>
        {
            var world = new World((request, before) => Response(request.Path == "players/leave" ? Object() : Seat(1, $"player_{before}")));
            var seat = world.Clock.Pass(Matchmaker(world).Rejoin("player_kept"), 0);
            world.Clock.Pass(seat.Rejoin(), 0);
            world.Clock.Pass(seat.Leave(), 0);
            Equal(world.Requests.Select(request => $"{request.Path} {request.Body["player_token"]}"), new[] { "players/rejoin player_kept", "players/rejoin player_0", "players/leave player_1" });
            That(world.Requests.All(request => request.Call.Authorization == null), "the token is the right");
        });

        Test("JSON is read and written as it is", () =>
        {
            const string Text = "{\"a\":[1,-2.5,1E+20,true,false,null,\"\\u0001\\\"\\\\/é\"],\"b\":{},\"c\":[],\"d\":9007199254740993}";
            Equal(Json.Parse(Text.Replace(":", " : ").Replace("é", "\\u00e9")), Json.Parse(Text));
            That(Json.Write(Json.Parse(Text)) == Text, Json.Write(Json.Parse(Text)));
            foreach (var wrong in new[] { "", "{", "[1", "{\"a\"", "{\"a\":1,}", "[1,]", "\"a", "\"\\", "\"\\u12", "tru", "1 2", "-", "\"\u0001\"", "{} x", "[}" })
            {
                try
                {
                    Json.Parse(wrong);
                }
                catch (FormatException)
                {
                    continue;
                }
                throw new Exception($"{wrong} was read");
            }
        });
    }

    static async Task<HttpReply> Never(CancellationToken cancellation)
    {
        var over = new TaskCompletionSource<HttpReply>();
        using (cancellation.Register(() => over.TrySetCanceled())) return await over.Task;
    }

    /// <summary>What a case of `given_up` says of an attempt.</summary>
    static HttpReply Attempt(object said)
    {
        if (said is long) return Response(Object("status", said, "code", "API_BAD_BODY"));
        if ((string)said == "seat") return Response(Seat(2));
        return Response((string)said == "none" ? null : Object("status", 503L, "code", said));
    }

    static void GivenUp(object one, string way, List<double> bounds, double within)
    {
        var before = Cases(one, "before").ToList();
        var answers = before.Concat(Cases(one, "then")).ToList();
        var isDuring = (string)Field(one, "during") == "attempt";
        var pending = new TaskCompletionSource<bool>();
        Func<object, Task<HttpReply>> later = async said =>
        {
            await pending.Task;
            return Attempt(said);
        };
        var world = new World((request, index) =>
        {
            if (request.Path == "players/leave") return Task.FromResult(Response(Object()));
            return isDuring && index == 0 ? later(answers[index]) : Task.FromResult(Attempt(answers[index]));
        }, AlmostOne);
        var matchmaker = Matchmaker(world);
        var cancel = new CancellationTokenSource();
        // Within the last wait, of which the bound is known.
        var moment = before.Count == 0 ? 10 : bounds.Take(before.Count).Sum() - 10;
        var found = matchmaker.Find(Arena(2), cancel.Token, way == "deadline" ? TimeSpan.FromMilliseconds(moment) : (TimeSpan?)null);
        world.Clock.Pass(moment);
        if (way == "cancellation") cancel.Cancel();
        world.Clock.Pass(0);
        if (way == "cancellation") That(found.IsCanceled, "it was not cancelled");
        else Refused(found);
        pending.SetResult(true);
        world.Clock.Pass(matchmaker.Settled(), within);
        var finds = world.Sent("lobbies/find");
        Equal(finds.Select(request => request.Call.IdempotencyKey + request.Call.Body).Distinct().Count(), 1);
        var left = world.Sent("players/leave").Select(request => (string)request.Body["player_token"]).OrderBy(token => token);
        Equal(left, (bool)Field(one, "leaves") ? new[] { "player_1", "player_first" } : new string[0]);
        Equal(finds.Count, Field(one, "requests"));
    }
}
