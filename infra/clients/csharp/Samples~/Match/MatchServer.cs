using System;
using System.Collections.Generic;
using System.Threading.Tasks;
using Muster;
using Muster.Api;
using Muster.Server;
using Muster.Unity;
using UnityEngine;

/// <summary>Registers a dedicated server, and admits the players whom your netcode hears of.</summary>
public sealed class MatchServer : MonoBehaviour
{
    [SerializeField] string url = "http://127.0.0.1:3000";
    [SerializeField] string region = "fra";
    [SerializeField] string hostname = "127.0.0.1";
    [SerializeField] int port = 7777;

    GameServer server;
    bool isStopped;

    async void Start()
    {
        server = new GameServer(new GameServerOptions
        {
            Url = url, Token = Environment.GetEnvironmentVariable("MUSTER_SERVER_TOKEN"), Region = region,
            Ports = new Dictionary<string, ServerPort> { ["default"] = new ServerPort { Hostname = hostname, Port = port, Protocol = "udp" } },
        }, new UnityPlatform());
        server.LobbyOpened += lobby => Debug.Log($"lobby {lobby.LobbyId} of {lobby.GameMode}");
        server.LobbyEnded += lobby => Debug.Log($"lobby {lobby.LobbyId} has ended");
        server.Failed += error => Debug.LogException(error);
        server.Superseded += _ => Quit();
        server.Stopped += Quit;
        Application.wantsToQuit += Drain;
        try
        {
            await server.Start();
        }
        catch (MusterException error)
        {
            Debug.LogException(error);
            Quit();
        }
    }

    /// <summary>Your netcode calls this with the first message of a connection; null: close it.</summary>
    public async Task<Player> Admit(string lobbyId, string token)
    {
        try
        {
            return await server.Admit(lobbyId, token);
        }
        catch (MusterException error)
        {
            Debug.Log($"a player is refused: {error.Code}");
            return null;
        }
    }

    /// <summary>Your netcode calls this when a connection ends; the player may come back for 30 seconds.</summary>
    public Task Left(Player player) => player.Disconnected(keepSeconds: 30);

    bool Drain()
    {
        if (!isStopped) Stop();
        return isStopped;
    }

    async void Stop()
    {
        try
        {
            await server.Stop();
        }
        catch (MusterException error)
        {
            Debug.LogException(error);
            Quit();
        }
    }

    void Quit()
    {
        isStopped = true;
        Application.Quit();
    }
}
