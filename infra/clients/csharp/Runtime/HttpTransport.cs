using System.Globalization;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Muster
{
    /// <summary>Sends requests by <c>HttpClient</c>: everywhere but in browsers.</summary>
    public sealed class HttpTransport : ITransport
    {
        // A client keeps connections, so that all share one. Attempts have limits of their own. Mono and the .NET
        // Framework allow two connections to a host, which two attempts that hang would block for all others.
        static readonly HttpClient Client = new HttpClient(new HttpClientHandler { MaxConnectionsPerServer = 16 }) { Timeout = Timeout.InfiniteTimeSpan };

        public async Task<HttpReply> Send(HttpCall call, CancellationToken cancellation)
        {
            using (var request = new HttpRequestMessage(new HttpMethod(call.Method), call.Url))
            {
                if (call.Authorization != null) request.Headers.TryAddWithoutValidation("authorization", call.Authorization);
                if (call.IdempotencyKey != null) request.Headers.TryAddWithoutValidation("idempotency-key", call.IdempotencyKey);
                if (call.Body != null)
                {
                    request.Content = new ByteArrayContent(Encoding.UTF8.GetBytes(call.Body));
                    request.Content.Headers.ContentType = new MediaTypeHeaderValue("application/json");
                }
                using (var response = await Client.SendAsync(request, cancellation))
                {
                    var after = response.Headers.RetryAfter?.Delta?.TotalSeconds;
                    return new HttpReply
                    {
                        Status = (int)response.StatusCode,
                        Body = Encoding.UTF8.GetString(await response.Content.ReadAsByteArrayAsync()),
                        RetryAfter = after?.ToString("0", CultureInfo.InvariantCulture),
                    };
                }
            }
        }
    }
}
