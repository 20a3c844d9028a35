using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Muster
{
    /// <summary>
    /// Attempts and retries. No `await` of this package leaves the caller's context: in Unity, all of it
    /// runs on the main thread.
    /// </summary>
    internal static class Http
    {
        /// <summary>Milliseconds after which an attempt without a response counts as lost.</summary>
        const double AttemptMs = 11000;
        /// <summary>
        /// The same of a call that seats players or changes game servers, which may take 29 seconds.
        /// </summary>
        internal const double LongAttemptMs = 31000;
        internal const double DeadlineMs = 60000;
        /// <summary>The bound of the first random delay, which doubles up to the last.</summary>
        const double BackoffMs = 500;
        const double BackoffMaxMs = 8000;

        /// <summary>Milliseconds before the next attempt: what the service asks for, and a full jitter.</summary>
        internal static double Delay(Platform platform, int failures, TimeSpan? retryAfter) =>
            (retryAfter ?? TimeSpan.Zero).TotalMilliseconds + platform.Random() * Math.Min(BackoffMaxMs, BackoffMs * Math.Pow(2, failures));

        /// <summary>Sends a request once.</summary>
        /// <exception cref="MusterException">It is refused or gets no whole response.</exception>
        /// <exception cref="OperationCanceledException">It is cancelled.</exception>
        internal static async Task<T> Attempt<T>(
            Platform platform, HttpCall call, Func<IDictionary<string, object>, T> read, double milliseconds, CancellationToken cancellation)
        {
            using (var over = CancellationTokenSource.CreateLinkedTokenSource(cancellation))
            {
                _ = CancelAfter(platform, milliseconds, over);
                try
                {
                    var reply = await platform.Transport.Send(call, over.Token);
                    if (reply.Status < 200 || reply.Status > 299) throw Refusal(reply);
                    return Json.Object(read)(Json.Parse(reply.Body));
                }
                catch (Exception cause)
                {
                    cancellation.ThrowIfCancellationRequested();
                    if (cause is MusterException) throw;
                    // A body that was cut off is no response either.
                    throw new MusterException("no response of the matchmaker", cause);
                }
                finally
                {
                    over.Cancel();
                }
            }
        }

        /// <summary>
        /// Sends a request that changes nothing when it is repeated, until it gets a response that stays.
        /// </summary>
        internal static async Task<T> Send<T>(
            Platform platform, HttpCall call, Func<IDictionary<string, object>, T> read, CancellationToken cancellation, TimeSpan? deadline, double attemptMs = AttemptMs)
        {
            var end = platform.Now() + (deadline?.TotalMilliseconds ?? DeadlineMs);
            for (var failures = 0; ; failures++)
            {
                cancellation.ThrowIfCancellationRequested();
                double wait;
                try
                {
                    return await Attempt(platform, call, read, Math.Min(attemptMs, Math.Max(0, end - platform.Now())), cancellation);
                }
                catch (MusterException error) when (error.IsTransient)
                {
                    wait = Delay(platform, failures, error.RetryAfter);
                    if (platform.Now() + wait >= end) throw;
                }
                await platform.Sleep(wait, cancellation);
            }
        }

        static async Task CancelAfter(Platform platform, double milliseconds, CancellationTokenSource over)
        {
            await platform.Sleep(milliseconds, over.Token);
            if (!over.IsCancellationRequested) over.Cancel();
        }

        static MusterException Refusal(HttpReply reply)
        {
            IDictionary<string, object> body = null;
            try
            {
                body = Json.Parse(reply.Body) as IDictionary<string, object>;
            }
            catch (FormatException)
            {
                // The gateway's own responses may have no body.
            }
            body = body ?? new Dictionary<string, object>();
            Func<string, string> text = name => body.TryGetValue(name, out var value) ? value as string : null;
            body.TryGetValue("metadata", out var metadata);
            // A date would compare two clocks.
            var isSeconds = !string.IsNullOrEmpty(reply.RetryAfter) && reply.RetryAfter.All(sign => sign >= '0' && sign <= '9');
            return new MusterException(text("message") ?? $"status {reply.Status}")
            {
                Status = reply.Status,
                Code = text("code"),
                RetryAfter = isSeconds ? TimeSpan.FromSeconds(double.Parse(reply.RetryAfter, CultureInfo.InvariantCulture)) : (TimeSpan?)null,
                RayId = text("ray_id"),
                Documentation = text("documentation"),
                Metadata = metadata as IDictionary<string, object> ?? new Dictionary<string, object>(),
            };
        }
    }
}
