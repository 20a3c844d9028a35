using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Muster.Api;

namespace Muster.Server
{
    public sealed class GameServerOptions
    {
        /// <summary>The API's address.</summary>
        public string Url { get; set; }

        /// <summary>The namespace's server token. Never ship it with a client.</summary>
        public string Token { get; set; }

        public string Region { get; set; }

        /// <summary>Lobbies that it runs at once; 1 by default.</summary>
        public int? Capacity { get; set; }

        /// <summary>What players connect to, by label.</summary>
        public IDictionary<string, ServerPort> Ports { get; set; }

        /// <summary>Modes that it runs; all by default.</summary>
        public IList<string> GameModes { get; set; }

        /// <summary>
        /// The build that it runs, any JSON, for versions whose <c>servers</c> name it; without it, for versions
        /// without <c>servers</c>.
        /// </summary>
        public object Build { get; set; }

        /// <summary>Names the server over restarts; without it, its address does.</summary>
        public string ServerId { get; set; }

        /// <summary>
        /// Seconds between heartbeats. The lease is three times that, and at least 30.
        /// </summary>
        public int HeartbeatSeconds { get; set; } = 30;

        /// <summary>
        /// Whether lobbies are ready at once; true by default. Without it, <c>HeartbeatSeconds</c> has to be 1
        /// or 2.
        /// </summary>
        public bool? AutoReady { get; set; }
    }

    /// <summary>
    /// A game server: registers, renews its lease, learns of its lobbies and admits their players. Events come
    /// in the context that <c>Start</c> was called in: on Unity's main thread, elsewhere on any thread.
    /// </summary>
    public sealed class GameServer
    {
        const int LeaseLeastSeconds = 30;
        /// <summary>How long the list of a heartbeat may lag behind the creation of a lobby.</summary>
        const double LagMs = 2000;
        /// <summary>Pauses between looks for a lobby whose player arrives before it is listed.</summary>
        static readonly double[] LooksMs = { 0, 250, 500, 1000 };
        /// <summary>The least time between two such looks, however many players arrive.</summary>
        const double LookPauseMs = 250;

        readonly object gate = new object();
        readonly GameServerOptions options;
        readonly Platform platform;
        readonly string startId = Intent.NewKey();
        readonly ConcurrentDictionary<string, Lobby> lobbies = new ConcurrentDictionary<string, Lobby>();
        readonly CancellationTokenSource over = new CancellationTokenSource();
        readonly TaskCompletionSource<bool> stopped =
            new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);
        string serverId;
        volatile bool isStopping;
        Task beating;
        /// <summary>The heartbeat after that, for all who need what it does not know yet.</summary>
        Task next;
        Task looking;
        double began = double.NegativeInfinity;

        public GameServer(GameServerOptions options, Platform platform = null)
        {
            this.options = options;
            this.platform = platform ?? new Platform();
        }

        /// <summary>A lobby to run.</summary>
        public event Action<Lobby> LobbyOpened;

        /// <summary>A lobby that has ended.</summary>
        public event Action<Lobby> LobbyEnded;

        /// <summary>The server is deregistered and has no lobby any more.</summary>
        public event Action Stopped;

        /// <summary>A later start of the server has registered, so this process is to end.</summary>
        public event Action<MusterException> Superseded;

        /// <summary>A call that failed; the next heartbeat repeats one without a response.</summary>
        public event Action<Exception> Failed;

        /// <summary>The lobbies that run.</summary>
        public ICollection<Lobby> Lobbies => lobbies.Values;

        double IntervalMs => options.HeartbeatSeconds * 1000.0;

        /// <summary>Registers, and from then on sends heartbeats. Listen for players before.</summary>
        /// <exception cref="MusterException">
        /// The registration is refused, or gets no response before the deadline.
        /// </exception>
        public async Task Start(CancellationToken cancellation = default(CancellationToken), TimeSpan? deadline = null)
        {
            await Register(cancellation, deadline);
            await Beat();
            _ = Run();
        }

        /// <summary>
        /// Sends a heartbeat now; during another one, when that is over: there is one at a time.
        /// </summary>
        public Task Beat()
        {
            lock (gate)
            {
                if (next != null) return next;
                return beating == null ? beating = BeatOnce() : next = BeatAfter(beating);
            }
        }

        /// <summary>
        /// Admits a player who shows lobby and token: looks for a lobby that is too young to be listed, and
        /// reports the player connected.
        /// </summary>
        /// <exception cref="MusterException">
        /// The player is to be refused, by its code; <c>IsTransient</c> where Muster cannot say.
        /// </exception>
        public async Task<Player> Admit(string lobbyId, string token) => await (await LookFor(lobbyId)).Admit(token);

        /// <summary>
        /// Deregisters: no new lobbies come. Completes when the last lobby has ended, at once with
        /// <paramref name="endLobbies"/>.
        /// </summary>
        public async Task Stop(bool endLobbies = false)
        {
            isStopping = true;
            try
            {
                await Call("deregister", new Dictionary<string, object> { ["end_lobbies"] = endLobbies }, _ => true);
                if (!endLobbies) await Beat();
            }
            catch (MusterException error) when (IsUnknown(error))
            {
                Finish();
            }
            if (endLobbies) Finish();
            await stopped.Task;
        }

        internal async Task End(Lobby lobby)
        {
            await Send("POST", "servers/end-lobby", options.Token, new Dictionary<string, object> { ["lobby_id"] = lobby.LobbyId }, _ => true, null);
            Ended(lobby);
            if (isStopping) await Beat();
        }

        /// <summary>Looks whether a lobby ended, because nobody is in it.</summary>
        internal void LookAgain() => _ = Report(Beat());

        internal Task<T> Send<T>(string method, string path, string token, object body, Func<IDictionary<string, object>, T> read, TimeSpan? deadline, CancellationToken cancellation = default(CancellationToken))
        {
            var call = new HttpCall { Method = method, Url = $"{options.Url.TrimEnd('/')}/matchmaker/{path}", Authorization = $"Bearer {token}", Body = Json.Write(body) };
            return Http.Send(platform, call, read, cancellation, deadline, Http.LongAttemptMs);
        }

        async Task Run()
        {
            while (!over.IsCancellationRequested)
            {
                await platform.Sleep(IntervalMs, over.Token);
                if (!over.IsCancellationRequested) await Report(Beat());
            }
        }

        async Task BeatOnce()
        {
            // Outside of the lock.
            await Task.Yield();
            try
            {
                await Heartbeat();
            }
            finally
            {
                lock (gate) beating = null;
            }
        }

        async Task BeatAfter(Task earlier)
        {
            await Task.WhenAny(earlier);
            Task mine;
            lock (gate)
            {
                next = null;
                mine = beating = BeatOnce();
            }
            await mine;
        }

        async Task Register(CancellationToken cancellation, TimeSpan? deadline)
        {
            var request = new RegisterServerRequest
            {
                ServerId = options.ServerId, StartId = startId, RegionId = options.Region, Capacity = options.Capacity, Ports = options.Ports,
                GameModes = options.GameModes, Build = options.Build, AutoReady = options.AutoReady,
                LeaseSeconds = Math.Max(LeaseLeastSeconds, 3 * options.HeartbeatSeconds),
            };
            var response = await Send("POST", "servers/register", options.Token, request, RegisterServerResponse.Of, deadline, cancellation);
            serverId = response.ServerId;
        }

        /// <summary>
        /// Renews the leases of server and lobbies, page by page, and notes which lobbies there are.
        /// </summary>
        async Task Heartbeat()
        {
            var start = began = platform.Now();
            var listed = new HashSet<string>();
            string cursor = null;
            do
            {
                var page = await Page(cursor);
                foreach (var assigned in page.Lobbies)
                {
                    listed.Add(assigned.LobbyId);
                    Note(assigned);
                }
                // The operator may have deregistered it, too.
                isStopping |= page.Draining ?? false;
                if (page.Stop ?? false)
                {
                    Finish();
                    return;
                }
                cursor = page.Cursor;
            }
            while (cursor != null);
            foreach (var lobby in lobbies.Values)
            {
                // A young one with players may only be missing. Without players nothing is lost by a mistake.
                var mayLive = lobby.Players.Count > 0 && lobby.Since + LagMs >= start;
                if (!listed.Contains(lobby.LobbyId) && !mayLive) Ended(lobby);
            }
        }

        async Task<HeartbeatResponse> Page(string cursor)
        {
            try
            {
                var body = new Dictionary<string, object>();
                if (cursor != null) body["cursor"] = cursor;
                return await Call("heartbeat", body, HeartbeatResponse.Of);
            }
            catch (MusterException error) when (IsUnknown(error))
            {
                // It has drained, or registers again. Either way its lobbies are gone.
                if (isStopping) Finish();
                else await RegisterAgain();
                return new HeartbeatResponse { Lobbies = new List<ServerLobby>() };
            }
        }

        async Task RegisterAgain()
        {
            try
            {
                await Register(CancellationToken.None, TimeSpan.FromMilliseconds(IntervalMs));
            }
            catch (MusterException error) when (error.Code == "MATCHMAKER_LOBBY_STATE_CONFLICT")
            {
                Close();
                Superseded?.Invoke(error);
            }
        }

        void Note(ServerLobby assigned)
        {
            if (lobbies.TryGetValue(assigned.LobbyId, out var known))
            {
                known.Update(assigned);
                return;
            }
            var lobby = new Lobby(this, assigned, platform.Now());
            lobbies[assigned.LobbyId] = lobby;
            LobbyOpened?.Invoke(lobby);
        }

        async Task<Lobby> LookFor(string lobbyId)
        {
            if (serverId == null) throw new MusterException("the game server has not registered yet");
            foreach (var pause in LooksMs)
            {
                if (lobbies.ContainsKey(lobbyId) || over.IsCancellationRequested) break;
                await platform.Sleep(pause, CancellationToken.None);
                Task look;
                lock (gate) look = looking ?? (looking = Look());
                await look;
            }
            Lobby lobby;
            if (lobbies.TryGetValue(lobbyId, out lobby)) return lobby;
            throw new MusterException("the game server does not run this lobby") { Status = 400, Code = "MATCHMAKER_LOBBY_NOT_FOUND" };
        }

        /// <summary>A heartbeat for all who arrive meanwhile, not too soon after the last one.</summary>
        async Task Look()
        {
            // Outside of the lock.
            await Task.Yield();
            try
            {
                await platform.Sleep(Math.Max(0, began + LookPauseMs - platform.Now()), CancellationToken.None);
                await Beat();
            }
            finally
            {
                lock (gate) looking = null;
            }
        }

        void Ended(Lobby lobby)
        {
            if (!lobbies.TryRemove(lobby.LobbyId, out _)) return;
            lobby.IsEnded = true;
            LobbyEnded?.Invoke(lobby);
        }

        void Close()
        {
            over.Cancel();
            foreach (var lobby in lobbies.Values) Ended(lobby);
            stopped.TrySetResult(true);
        }

        void Finish()
        {
            lock (gate)
            {
                if (over.IsCancellationRequested) return;
                over.Cancel();
            }
            Close();
            Stopped?.Invoke();
        }

        async Task Report(Task task)
        {
            try
            {
                await task;
            }
            catch (Exception error)
            {
                Failed?.Invoke(error);
            }
        }

        Task<T> Call<T>(string operation, Dictionary<string, object> body, Func<IDictionary<string, object>, T> read)
        {
            body["server_id"] = serverId;
            body["start_id"] = startId;
            return Send("POST", $"servers/{operation}", options.Token, body, read, TimeSpan.FromMilliseconds(IntervalMs));
        }

        static bool IsUnknown(MusterException error) => error.Code == "MATCHMAKER_SERVER_NOT_FOUND";
    }
}
