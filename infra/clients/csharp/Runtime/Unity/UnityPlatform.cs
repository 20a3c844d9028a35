using System.Threading.Tasks;
using UnityEngine;

namespace Muster.Unity
{
    /// <summary>Unity's main thread: requests, time and pauses need no other, which browsers do not have.</summary>
    public sealed class UnityPlatform : Platform
    {
        public UnityPlatform()
        {
            Transport = new UnityTransport();
            Now = () => Time.realtimeSinceStartupAsDouble * 1000;
            Sleep = async (milliseconds, cancellation) =>
            {
                // Each turn is a frame.
                for (var end = Now() + milliseconds; Now() < end && !cancellation.IsCancellationRequested;) await Task.Yield();
            };
        }
    }
}
