// The package as npm packs it: its size, and an import in an empty folder.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { buildSync } from "esbuild";

/** What players download at most, in bytes. */
const PLAYERS_MAX = 6_144;

const { outputFiles: [bundle] } = buildSync({ entryPoints: ["dist/index.js"], bundle: true, minify: true, format: "esm", platform: "browser", write: false });
const bytes = gzipSync(bundle.contents, { level: 9 }).length;
console.log(`players: ${bundle.contents.length} bytes, ${bytes} gzipped`);
assert.ok(bytes <= PLAYERS_MAX, `${bytes} bytes exceed ${PLAYERS_MAX}`);
assert.doesNotMatch(bundle.text, /node:/);

const folder = mkdtempSync(join(tmpdir(), "muster-client-"));
const run = (program, ...given) => execFileSync(program, given, { cwd: folder, encoding: "utf8" });
const [{ filename, files }] = JSON.parse(execFileSync("npm", ["pack", "--json", "--foreground-scripts=false", "--pack-destination", folder], { encoding: "utf8" }));
console.log(`${files.length} files`);
assert.ok(files.every(({ path }) => /^(dist\/.*|package\.json|README\.md|LICENSE)$/.test(path)), JSON.stringify(files));
writeFileSync(join(folder, "package.json"), "{}");
run("npm", "install", "--no-audit", "--no-fund", "--offline", `./${filename}`);
assert.equal(run("ls", "node_modules").trim(), "muster-client");
const program = 'import { Muster, MusterError, Seat } from "muster-client"; import { GameServer } from "muster-client/server"; console.log(Muster.name, MusterError.name, Seat.name, GameServer.name)';
assert.equal(run("node", "--input-type=module", "--eval", program).trim(), "Muster MusterError Seat GameServer");

// Its types need no others for players, and take the sockets of `ws` for game servers.
const tsc = (where, ...given) => execFileSync(join(process.cwd(), "node_modules/.bin/tsc"), ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", ...given], { cwd: where, stdio: "inherit" });
writeFileSync(join(folder, "player.mts"), `import { Muster, type Seat } from "muster-client";
const seat: Seat = await new Muster({ url: "", token: "" }).find({ game_modes: ["duel"] });
// @ts-expect-error A find names its modes.
void new Muster({ url: "" }).find({}).then(() => seat.party[0]?.leave({ deadline: 1 }));
`);
tsc(folder, "--lib", "es2022,dom", "player.mts");
tsc(process.cwd(), "--types", "node", "test/server.mts");
console.log("types fit");
