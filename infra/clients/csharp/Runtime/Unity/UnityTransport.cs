using System;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using UnityEngine.Networking;

namespace Muster.Unity
{
    /// <summary>
    /// Sends requests by <c>UnityWebRequest</c>, on Unity's main thread: also in browsers. Cancel on that
    /// thread.
    /// </summary>
    public sealed class UnityTransport : ITransport
    {
        public async Task<HttpReply> Send(HttpCall call, CancellationToken cancellation)
        {
            using (var request = new UnityWebRequest(call.Url, call.Method))
            {
                request.downloadHandler = new DownloadHandlerBuffer();
                if (call.Body != null)
                {
                    request.uploadHandler = new UploadHandlerRaw(Encoding.UTF8.GetBytes(call.Body));
                    request.SetRequestHeader("content-type", "application/json");
                }
                if (call.Authorization != null) request.SetRequestHeader("authorization", call.Authorization);
                if (call.IdempotencyKey != null) request.SetRequestHeader("idempotency-key", call.IdempotencyKey);
                var ended = new TaskCompletionSource<bool>();
                request.SendWebRequest().completed += _ => ended.TrySetResult(true);
                using (cancellation.Register(request.Abort)) await ended.Task;
                if (request.result == UnityWebRequest.Result.ConnectionError || request.result == UnityWebRequest.Result.DataProcessingError)
                {
                    throw new InvalidOperationException(request.error);
                }
                return new HttpReply
                {
                    Status = (int)request.responseCode,
                    Body = request.downloadHandler.text,
                    RetryAfter = request.GetResponseHeader("retry-after"),
                };
            }
        }
    }
}
