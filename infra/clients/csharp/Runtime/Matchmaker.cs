using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Muster.Api;

namespace Muster
{
    /// <summary>
    /// The matchmaker of one namespace, for players. A call that is cancelled ends at once. One that takes a
    /// seat leaves it in the background where it gets one all the same. A deadline includes retries; it is 60
    /// seconds by default.
    /// </summary>
    public sealed class Matchmaker
    {
        readonly Platform platform;
        readonly string url;
        readonly string authorization;
        readonly List<Task> background = new List<Task>();

        /// <param name="url">The API's address, such as <c>http://127.0.0.1:3000</c>.</param>
        /// <param name="token">The namespace's public token.</param>
        /// <param name="platform">In a browser, that of <c>Muster.Unity</c>.</param>
        public Matchmaker(string url, string token, Platform platform = null)
        {
            this.url = url.TrimEnd('/') + "/matchmaker";
            this.platform = platform ?? new Platform();
            authorization = $"Bearer {token}";
        }

        /// <summary>Finds a seat, in a lobby that fits or a new one.</summary>
        public Task<Seat> Find(FindLobbyRequest request, CancellationToken cancellation = default(CancellationToken), TimeSpan? deadline = null) =>
            Take("find", request, cancellation, deadline);

        /// <summary>Takes a seat in a lobby, by its identifier or its code.</summary>
        public Task<Seat> Join(JoinLobbyRequest request, CancellationToken cancellation = default(CancellationToken), TimeSpan? deadline = null) =>
            Take("join", request, cancellation, deadline);

        /// <summary>Creates a lobby, private by default, and takes its first seat.</summary>
        public Task<Seat> Create(CreateLobbyRequest request, CancellationToken cancellation = default(CancellationToken), TimeSpan? deadline = null) =>
            Take("create", request, cancellation, deadline);

        /// <summary>Public lobbies that are open, a page of them.</summary>
        public Task<ListLobbiesResponse> List(
            bool includeState = false, int? limit = null, string cursor = null, CancellationToken cancellation = default(CancellationToken), TimeSpan? deadline = null)
        {
            var query = $"lobbies/list?include_state={(includeState ? "true" : "false")}";
            if (limit != null) query += $"&limit={limit.Value.ToString(CultureInfo.InvariantCulture)}";
            if (cursor != null) query += $"&cursor={Uri.EscapeDataString(cursor)}";
            return Get(query, ListLobbiesResponse.Of, cancellation, deadline);
        }

        /// <summary>The game's regions, the nearest first.</summary>
        public async Task<IList<Api.RegionInfo>> Regions(CancellationToken cancellation = default(CancellationToken), TimeSpan? deadline = null) =>
            (await Get("regions", ListRegionsResponse.Of, cancellation, deadline)).Regions;

        /// <summary>
        /// The seat of a token: one that the game kept over a restart, or that the leader of a party handed
        /// over.
        /// </summary>
        public async Task<Seat> Rejoin(string token, CancellationToken cancellation = default(CancellationToken), TimeSpan? deadline = null)
        {
            var sentAt = platform.Now();
            var call = Seat.Call(url, "rejoin", token);
            return new Seat(platform, url, await Http.Send(platform, call, FindLobbyResponse.Of, cancellation, deadline), sentAt);
        }

        /// <summary>
        /// Completes when nothing goes on in the background: seats of intents that were given up are left.
        /// </summary>
        public async Task Settled()
        {
            for (;;)
            {
                Task[] open;
                lock (background) open = background.Where(task => !task.IsCompleted).ToArray();
                if (open.Length == 0) return;
                await Task.WhenAll(open);
            }
        }

        async Task<Seat> Take(string operation, IFields request, CancellationToken cancellation, TimeSpan? deadline)
        {
            var call = new HttpCall
            {
                Method = "POST", Url = $"{url}/lobbies/{operation}", Authorization = authorization,
                IdempotencyKey = Intent.NewKey(), Body = Json.Write(request),
            };
            var sentAt = platform.Now();
            Func<FindLobbyResponse, Task> giveBack = answer =>
                Task.WhenAll(new Seat(platform, url, answer, sentAt).Party.Select(member => member.Leave()));
            return new Seat(platform, url, await new Intent(platform, call).Take(giveBack, Keep, cancellation, deadline), sentAt);
        }

        Task<T> Get<T>(string path, Func<IDictionary<string, object>, T> read, CancellationToken cancellation, TimeSpan? deadline) =>
            Http.Send(platform, new HttpCall { Method = "GET", Url = $"{url}/{path}", Authorization = authorization }, read, cancellation, deadline);

        void Keep(Task task)
        {
            lock (background)
            {
                background.RemoveAll(one => one.IsCompleted);
                background.Add(Quietly(task));
            }
        }

        static async Task Quietly(Task task)
        {
            try
            {
                await task;
            }
            catch (MusterException)
            {
                // The seat that could not be left expires.
            }
        }
    }
}
