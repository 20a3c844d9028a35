// What the package and its sample use of Unity, as its reference declares it: their code compiles against this, which says
// nothing of how they run.

using System;

namespace UnityEngine
{
    public class MonoBehaviour { }

    [AttributeUsage(AttributeTargets.Field)]
    public sealed class SerializeField : Attribute { }

    public static class Time { public static double realtimeSinceStartupAsDouble => throw new NotSupportedException(); }

    public static class Application
    {
        public static event Func<bool> wantsToQuit { add { } remove { } }

        public static void Quit() { }
    }

    public static class Debug
    {
        public static void Log(object message) { }

        public static void LogError(object message) { }

        public static void LogException(Exception exception) { }
    }

    public static class PlayerPrefs
    {
        public static string GetString(string key) => throw new NotSupportedException();

        public static void SetString(string key, string value) { }

        public static void DeleteKey(string key) { }
    }

    public class AsyncOperation { public event Action<AsyncOperation> completed { add { } remove { } } }
}

namespace UnityEngine.Networking
{
    public class UnityWebRequestAsyncOperation : AsyncOperation { }

    public class DownloadHandler { public string text => throw new NotSupportedException(); }

    public sealed class DownloadHandlerBuffer : DownloadHandler { }

    public class UploadHandler { }

    public sealed class UploadHandlerRaw : UploadHandler { public UploadHandlerRaw(byte[] data) { } }

    public class UnityWebRequest : IDisposable
    {
        public enum Result { InProgress, Success, ConnectionError, ProtocolError, DataProcessingError }

        public UnityWebRequest(string url, string method) { }

        public DownloadHandler downloadHandler { get; set; }

        public UploadHandler uploadHandler { get; set; }

        public Result result => throw new NotSupportedException();

        public string error => throw new NotSupportedException();

        public long responseCode => throw new NotSupportedException();

        public void SetRequestHeader(string name, string value) { }

        public string GetResponseHeader(string name) => throw new NotSupportedException();

        public UnityWebRequestAsyncOperation SendWebRequest() => throw new NotSupportedException();

        public void Abort() { }

        public void Dispose() { }
    }
}
