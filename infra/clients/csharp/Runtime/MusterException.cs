using System;
using System.Collections.Generic;

namespace Muster
{
    /// <summary>A request that was refused, or that got no response in time.</summary>
    public sealed class MusterException : Exception
    {
        internal MusterException(string message, Exception cause = null) : base(message, cause)
        {
        }

        /// <summary>The HTTP status; 0 where no response came.</summary>
        public int Status { get; internal set; }

        /// <summary>The stable code of the error; null where the gateway responded, or nobody.</summary>
        public string Code { get; internal set; }

        /// <summary>After which a retry makes sense.</summary>
        public TimeSpan? RetryAfter { get; internal set; }

        /// <summary>Identifies the request in the service's log.</summary>
        public string RayId { get; internal set; }

        /// <summary>A page that explains the code.</summary>
        public string Documentation { get; internal set; }

        /// <summary>What the code promises, such as <c>max</c>.</summary>
        public IDictionary<string, object> Metadata { get; internal set; } = new Dictionary<string, object>();

        /// <summary>
        /// Whether the same request may succeed later: there was no response, or it was 408, 429 or 5xx.
        /// </summary>
        public bool IsTransient => Status == 0 || Status == 408 || Status == 429 || Status >= 500;
    }
}
