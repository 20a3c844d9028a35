using System;
using System.Linq;
using System.Security.Cryptography;
using System.Threading;
using System.Threading.Tasks;
using Muster.Api;

namespace Muster
{
    /// <summary>
    /// Takes a seat by a call that has an <c>Idempotency-Key</c>: each attempt repeats key and body, so that
    /// all of them together take one.
    /// </summary>
    internal sealed class Intent
    {
        /// <summary>
        /// For how many milliseconds the seat of an intent that was given up is looked for, to leave it.
        /// </summary>
        const double GiveBackMs = 35000;

        /// <summary>Codes of a 503 after which the intent has no seat.</summary>
        static readonly string[] WithoutSeat = { "MATCHMAKER_NO_SERVER_AVAILABLE", "MATCHMAKER_LOBBY_START_TIMEOUT", "CAPTCHA_UNAVAILABLE" };

        readonly object gate = new object();
        readonly Platform platform;
        readonly HttpCall call;
        readonly TaskCompletionSource<FindLobbyResponse> outcome =
            new TaskCompletionSource<FindLobbyResponse>(TaskCreationOptions.RunContinuationsAsynchronously);
        double end;
        /// <summary>Whether an attempt may have taken the seat.</summary>
        bool isUncertain;
        MusterException last = new MusterException("no response of the matchmaker before the deadline");

        internal Intent(Platform platform, HttpCall call)
        {
            this.platform = platform;
            this.call = call;
        }

        /// <summary>A key that no other intent has.</summary>
        internal static string NewKey()
        {
            var bytes = new byte[16];
            using (var numbers = RandomNumberGenerator.Create()) numbers.GetBytes(bytes);
            return string.Concat(bytes.Select(one => one.ToString("x2")));
        }

        /// <summary>
        /// Sends the call until it gets a response that stays. When it is cancelled or its deadline passes, an
        /// attempt may have taken the seat without a response. Then the call goes on in the background, for at
        /// most 35 seconds, until it knows, and <paramref name="giveBack"/> gets the answer.
        /// <paramref name="keep"/> gets the task of that.
        /// </summary>
        internal async Task<FindLobbyResponse> Take(
            Func<FindLobbyResponse, Task> giveBack, Action<Task> keep, CancellationToken cancellation, TimeSpan? deadline)
        {
            cancellation.ThrowIfCancellationRequested();
            var milliseconds = deadline?.TotalMilliseconds ?? Http.DeadlineMs;
            end = platform.Now() + milliseconds;
            using (var settled = new CancellationTokenSource())
            using (cancellation.Register(() => GiveUp(() => outcome.TrySetCanceled(cancellation))))
            {
                _ = GiveUpAfter(milliseconds, settled.Token);
                keep(Run(giveBack));
                try
                {
                    return await outcome.Task;
                }
                finally
                {
                    settled.Cancel();
                }
            }
        }

        async Task Run(Func<FindLobbyResponse, Task> giveBack)
        {
            for (var failures = 0; GoesOn(); failures++)
            {
                FindLobbyResponse answer = null;
                MusterException error = null;
                try
                {
                    answer = await Http.Attempt(platform, call, FindLobbyResponse.Of, Http.LongAttemptMs, CancellationToken.None);
                }
                catch (MusterException caught)
                {
                    error = caught;
                }
                if (error == null)
                {
                    if (!outcome.TrySetResult(answer)) await giveBack(answer);
                    return;
                }
                // A refusal says that no attempt took a seat.
                if (!error.IsTransient) outcome.TrySetException(error);
                var wait = Http.Delay(platform, failures, error.RetryAfter);
                if (!error.IsTransient || !HasTimeFor(wait, error)) return;
                await platform.Sleep(wait, CancellationToken.None);
            }
        }

        bool GoesOn()
        {
            lock (gate) return !outcome.Task.IsCompleted || isUncertain;
        }

        bool HasTimeFor(double wait, MusterException error)
        {
            lock (gate)
            {
                last = error;
                if (WithoutSeat.Contains(error.Code)) isUncertain = false;
                else if (error.Status != 429) isUncertain = true;
                if (platform.Now() + wait < end) return true;
                GiveUp(() => outcome.TrySetException(error));
                return platform.Now() + wait < end;
            }
        }

        async Task GiveUpAfter(double milliseconds, CancellationToken settled)
        {
            await platform.Sleep(milliseconds, settled);
            if (!settled.IsCancellationRequested) GiveUp(() => outcome.TrySetException(last));
        }

        void GiveUp(Func<bool> isFirst)
        {
            lock (gate)
            {
                if (isFirst()) end = platform.Now() + GiveBackMs;
            }
        }
    }
}
