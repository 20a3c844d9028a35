// Usage: mono tests.exe RULES [URL], with the file rules.json, and the address of a local stack for tests on it.

using System;
using System.IO;
using Muster;

static class Program
{
    static int Main(string[] arguments)
    {
        var rules = Json.Parse(File.ReadAllText(arguments[0]));
        RetryTests.AddAll(rules);
        ServerTests.AddAll(rules);
        if (arguments.Length > 1) ServiceTests.AddAll(arguments[1]);
        return Check.Run();
    }
}
