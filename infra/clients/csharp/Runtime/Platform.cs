using System;
using System.Diagnostics;
using System.Threading;
using System.Threading.Tasks;

namespace Muster
{
    /// <summary>Sends requests over HTTP.</summary>
    public interface ITransport
    {
        /// <summary>Sends a request once. Any exception means that no whole response came.</summary>
        Task<HttpReply> Send(HttpCall call, CancellationToken cancellation);
    }

    /// <summary>A request as it is sent, the same in each attempt.</summary>
    public sealed class HttpCall
    {
        public string Method { get; internal set; }

        public string Url { get; internal set; }

        /// <summary>The header of that name; null for none.</summary>
        public string Authorization { get; internal set; }

        /// <summary>The header <c>Idempotency-Key</c>; null for none.</summary>
        public string IdempotencyKey { get; internal set; }

        /// <summary>JSON; null for none.</summary>
        public string Body { get; internal set; }
    }

    /// <summary>A whole response, of any status.</summary>
    public sealed class HttpReply
    {
        public int Status { get; set; }

        public string Body { get; set; }

        /// <summary>The header <c>retry-after</c>; null for none.</summary>
        public string RetryAfter { get; set; }
    }

    /// <summary>What the client takes from its surroundings.</summary>
    public class Platform
    {
        static readonly Random Numbers = new Random();

        public ITransport Transport { get; set; } = new HttpTransport();

        /// <summary>Milliseconds, which never go backwards while the program runs.</summary>
        public Func<double> Now { get; set; } = () => Stopwatch.GetTimestamp() * 1000.0 / Stopwatch.Frequency;

        /// <summary>Completes after so many milliseconds, or at once when it is cancelled.</summary>
        public Func<double, CancellationToken, Task> Sleep { get; set; } = (milliseconds, cancellation) =>
            Task.WhenAny(Task.Delay(TimeSpan.FromMilliseconds(milliseconds), cancellation));

        /// <summary>From 0 to below 1, on any thread.</summary>
        public Func<double> Random { get; set; } = () =>
        {
            lock (Numbers) return Numbers.NextDouble();
        };
    }
}
