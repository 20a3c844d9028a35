// Writes dist/Readme.cs: the programs of the README as methods that the tests call, with their values in place of the page's.

import { readFile, writeFile } from "node:fs/promises";

const page = await readFile(new URL("../README.md", import.meta.url), "utf8");
const [player, server, admission] = [...page.matchAll(/```csharp\n(.*?)```/gs)].map(([, code]) => code);

function method(head, code, result, values = {}) {
  for (const [from, to] of Object.entries(values)) {
    if (!code.includes(from)) throw new Error(`README.md has no ${from}`);
    code = code.replaceAll(from, to);
  }
  return `    internal static async ${head}\n    {\n${code.replaceAll(/^using .*\n/gm, "")}\n        return ${result};\n    }\n`;
}

const usings = new Set([...page.matchAll(/^using .*$/gm)].map(([line]) => line));
await writeFile(new URL("dist/Readme.cs", import.meta.url), `using System;
using System.Collections.Generic;
using System.Threading.Tasks;
${[...usings].join("\n")}

static class Readme
{
    /// <summary>What is the game's own.</summary>
    static void Connect(string address, string lobbyId, string token)
    {
    }

${method("Task<Seat> Play(string url, string token)", player, "seat", { '"http://127.0.0.1:3000"': "url", '"pub_…"': "token" })}
${method("Task<GameServer> Serve(string url)", server, "server", { '"http://127.0.0.1:3000"': "url" })}
${method("Task<Player> Admit(GameServer server, string lobbyId, string token)", admission, "player")}}
`);
