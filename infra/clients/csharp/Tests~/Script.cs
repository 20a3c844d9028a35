// A service that responds by a script, under a clock that goes only where a test leads it.

using System;
using System.Collections;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Muster;

/// <summary>What runs the tests, and what they claim.</summary>
static class Check
{
    static readonly List<KeyValuePair<string, Action>> All = new List<KeyValuePair<string, Action>>();

    internal static void Test(string name, Action test) => All.Add(new KeyValuePair<string, Action>(name, test));

    /// <summary>Runs all tests; the exit status.</summary>
    internal static int Run()
    {
        var failed = 0;
        foreach (var test in All)
        {
            try
            {
                test.Value();
            }
            catch (Exception error)
            {
                failed++;
                Console.WriteLine($"FAILED: {test.Key}\n{error}\n");
            }
            SynchronizationContext.SetSynchronizationContext(null);
        }
        Console.WriteLine($"{All.Count} tests, {failed} failed");
        return failed == 0 && All.Count > 0 ? 0 : 1;
    }

    internal static void That(bool claim, string about)
    {
        if (!claim) throw new Exception(about);
    }

    /// <summary>Compares values as JSON.</summary>
    internal static void Equal(object actual, object expected) =>
        That(Json.Write(actual) == Json.Write(expected), $"{Json.Write(actual)} is not {Json.Write(expected)}");

    /// <summary>The refusal that a task ended with.</summary>
    internal static MusterException Refused(Task task)
    {
        That(task.IsCompleted, "it has not ended");
        try
        {
            task.GetAwaiter().GetResult();
        }
        catch (MusterException error)
        {
            return error;
        }
        throw new Exception("it was not refused");
    }
}

/// <summary>A clock whose time passes when everything waits for it, and the context of all that waits.</summary>
sealed class Clock : SynchronizationContext
{
    readonly Queue<Action> ready = new Queue<Action>();
    readonly List<KeyValuePair<double, TaskCompletionSource<bool>>> sleepers = new List<KeyValuePair<double, TaskCompletionSource<bool>>>();

    internal double Now { get; private set; } = 1000;

    public override void Post(SendOrPostCallback callback, object state) => ready.Enqueue(() => callback(state));

    internal Task Sleep(double milliseconds, CancellationToken cancellation)
    {
        var sleeper = new KeyValuePair<double, TaskCompletionSource<bool>>(Now + milliseconds, new TaskCompletionSource<bool>());
        sleepers.Add(sleeper);
        cancellation.Register(() =>
        {
            sleepers.Remove(sleeper);
            sleeper.Value.TrySetResult(true);
        });
        return sleeper.Value.Task;
    }

    /// <summary>Lets everything that is due until then happen, in its order.</summary>
    internal void Pass(double milliseconds)
    {
        var end = Now + milliseconds;
        for (;;)
        {
            while (ready.Count > 0) ready.Dequeue()();
            var due = sleepers.Where(sleeper => sleeper.Key <= end).OrderBy(sleeper => sleeper.Key).Take(1).ToList();
            if (due.Count == 0) break;
            sleepers.Remove(due[0]);
            Now = Math.Max(Now, due[0].Key);
            due[0].Value.TrySetResult(true);
        }
        Now = end;
    }

    /// <summary>What a task ends with while time passes.</summary>
    internal T Pass<T>(Task<T> task, double milliseconds = 20000)
    {
        Pass(milliseconds);
        Check.That(task.IsCompleted, "it has not ended");
        return task.GetAwaiter().GetResult();
    }

    internal void Pass(Task task, double milliseconds) => Pass(Done(task), milliseconds);

    static async Task<bool> Done(Task task)
    {
        await task;
        return true;
    }
}

sealed class Request
{
    internal double At;
    internal HttpCall Call;
    internal CancellationToken Cancellation;

    /// <summary>The path below <c>/matchmaker/</c>.</summary>
    internal string Path => new Uri(Call.Url).AbsolutePath.Replace("/matchmaker/", "");

    internal IDictionary<string, object> Body => (IDictionary<string, object>)Json.Parse(Call.Body);
}

/// <summary>The surroundings of a client under test: notes each request, and responds what a test makes of it.</summary>
sealed class World : ITransport
{
    readonly Func<Request, int, Task<HttpReply>> answer;
    internal readonly Clock Clock = new Clock();
    internal readonly List<Request> Requests = new List<Request>();
    internal readonly Platform Platform;

    /// <param name="answer">Gets the request and the number of those before.</param>
    internal World(Func<Request, int, Task<HttpReply>> answer, double random = 0.5)
    {
        this.answer = answer;
        Platform = new Platform { Transport = this, Now = () => Clock.Now, Sleep = Clock.Sleep, Random = () => random };
        SynchronizationContext.SetSynchronizationContext(Clock);
    }

    internal World(Func<Request, int, HttpReply> answer, double random = 0.5)
        : this((request, before) => Task.FromResult(answer(request, before)), random)
    {
    }

    public Task<HttpReply> Send(HttpCall call, CancellationToken cancellation)
    {
        var request = new Request { At = Clock.Now, Call = call, Cancellation = cancellation };
        Requests.Add(request);
        return answer(request, Requests.Count - 1);
    }

    internal List<Request> Sent(string path) => Requests.Where(request => request.Path == path).ToList();
}

static class Script
{
    internal static IDictionary<string, object> Map(object json) => (IDictionary<string, object>)json;

    internal static object Field(object json, string name) => Map(json).TryGetValue(name, out var value) ? value : null;

    internal static IEnumerable<object> Cases(object json, string name) => (IList<object>)Field(json, name);

    internal static double Number(object json, string name) => Convert.ToDouble(Field(json, name));

    internal static IDictionary<string, object> Object(params object[] namesAndValues)
    {
        var made = new Dictionary<string, object>();
        for (var at = 0; at < namesAndValues.Length; at += 2) made[(string)namesAndValues[at]] = namesAndValues[at + 1];
        return made;
    }

    /// <summary>What a case of rules.json responds; null for a connection that breaks.</summary>
    internal static HttpReply Response(object given)
    {
        if (given == null) throw new InvalidOperationException("the connection broke");
        var code = Field(given, "code");
        var body = code == null ? given : Object("code", code, "message", "in words", "ray_id", "ray", "metadata", Field(given, "metadata"));
        return new HttpReply
        {
            Status = (int)((long?)Field(given, "status") ?? 200),
            Body = (string)Field(given, "body") ?? Json.Write(body),
            RetryAfter = (string)Field(given, "retry_after"),
        };
    }

    /// <summary>The response of a find, with as many players.</summary>
    internal static IDictionary<string, object> Seat(int players = 1, string token = "player_first")
    {
        var tokens = Enumerable.Range(0, players).Select(index => Object("token", index == 0 ? token : $"player_{index}")).ToList();
        var port = Object("host", "fra.example:443", "hostname", "fra.example", "port", 443L, "port_range", null, "is_tls", true);
        var range = Object("host", null, "hostname", "fra.example", "port", null, "port_range", Object("min", 1L, "max", 2L), "is_tls", true);
        var lobby = Object("lobby_id", "6b0ff0c5-6d3c-4a0b-9a3d-000000000001", "region", Object("region_id", "fra", "display_name", "Frankfurt"));
        var seat = Object("lobby", lobby, "ports", Object("default", port, "voice", range), "player", tokens[0]);
        if (players > 1) seat["players"] = tokens.Cast<object>().ToList();
        return seat;
    }
}
