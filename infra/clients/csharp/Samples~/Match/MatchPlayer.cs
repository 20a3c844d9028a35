using System;
using System.Threading;
using Muster;
using Muster.Api;
using Muster.Unity;
using UnityEngine;

/// <summary>Finds a game server, and hands its address and the player token to your netcode.</summary>
public sealed class MatchPlayer : MonoBehaviour
{
    const string KeptToken = "muster.token";

    [SerializeField] string url = "http://127.0.0.1:3000";
    [SerializeField] string publicToken = "pub_…";
    [SerializeField] string gameMode = "duel";

    readonly CancellationTokenSource gone = new CancellationTokenSource();

    async void Start()
    {
        try
        {
            var matchmaker = new Matchmaker(url, publicToken, new UnityPlatform());
            var seat = await Restore(matchmaker) ?? await matchmaker.Find(new FindLobbyRequest { GameModes = new[] { gameMode } }, gone.Token);
            // So that a player whose game crashed comes back to the same match.
            PlayerPrefs.SetString(KeptToken, seat.Token);
            Connect(seat);
        }
        catch (OperationCanceledException)
        {
            // The scene is gone, and the seat is left in the background.
        }
        catch (MusterException error)
        {
            Debug.LogError($"{error.Code}: {error.Message} {error.Documentation}");
        }
    }

    void OnDestroy() => gone.Cancel();

    async System.Threading.Tasks.Task<Seat> Restore(Matchmaker matchmaker)
    {
        var token = PlayerPrefs.GetString(KeptToken);
        if (token == "") return null;
        PlayerPrefs.DeleteKey(KeptToken);
        try
        {
            return await matchmaker.Rejoin(token, gone.Token);
        }
        catch (MusterException error) when (!error.IsTransient)
        {
            return null;
        }
    }

    /// <summary>Your netcode connects here, and sends lobby and token first.</summary>
    void Connect(Seat seat)
    {
        var port = seat.Ports["default"];
        Debug.Log($"connect to {port.Hostname}:{port.Number} and send {seat.LobbyId} and the token");
    }
}
