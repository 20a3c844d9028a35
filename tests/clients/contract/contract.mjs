// Drives the operations of the interface with the npm client that existing games ship, unchanged.
//
// Usage: node contract.mjs BASE_URL, against a local stack that nothing else has used yet: lobbies are expected to be
// empty, and the finds in the demo's namespace hold seven seats, one less than the default cap for one client address.
// Sessions of lobby servers are in a namespace of their own.

import assert from "node:assert/strict";
import { subscribe } from "node:diagnostics_channel";
import { readFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { Rivet, RivetClient, RivetError } from "@rivet-gg/api";

const environment = process.argv[2]?.replace(/\/+$/, "");
if (!environment) {
	console.error("usage: node contract.mjs BASE_URL");
	process.exit(2);
}

// The client's HTTP layer obeys proxy variables, and would look for a loopback address behind the proxy.
process.env.no_proxy = "*";

const NIL_UUID = "00000000-0000-0000-0000-000000000000";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const FIND_PATH = "/matchmaker/lobbies/find";

// A well-formed bcrypt hash of nothing: a dot is canonical as the last character of the salt and of the digest.
const BCRYPT_HASH = `$2b$04$${".".repeat(22)}${".".repeat(31)}`;

/** Every response the client receives, in order, with the headers that its own API hides. */
const responses = [];
subscribe("http.client.response.finish", ({ request, response }) => {
	const isMock = request.getHeader("authorization")?.startsWith("Bearer dev_") ?? false;
	responses.push({ operation: `${request.method} ${request.path}`, isMock, status: response.statusCode, headers: response.headers });
});

let passed = 0;
let failed = 0;

async function check(name, body) {
	try {
		await body();
		passed += 1;
		console.log(`ok    ${name}`);
	} catch (error) {
		failed += 1;
		console.log(`FAIL  ${name}`);
		console.log(String(error?.stack ?? error).replace(/^/gm, "        "));
		if (error?.statusCode !== undefined || error?.body !== undefined) {
			console.log(`        answer: ${error.statusCode} ${JSON.stringify(error.body)}`);
		}
	}
}

/** Asserts that the client rejects with exactly this class, status and code, and returns the error body. */
async function refuses(promise, errorClass, status, code) {
	const error = await promise.then(
		() => assert.fail(`answered with success instead of ${status} ${code}`),
		(thrown) => thrown,
	);
	if (!(error instanceof RivetError)) throw error;
	assert.deepEqual([error.statusCode, error.body?.code], [status, code], JSON.stringify(error.body));
	assert.equal(Object.getPrototypeOf(error), errorClass.prototype, `class of the error for ${status}`);
	assertErrorBody(error.body, responses.at(-1).headers["rvt-ray-id"]);
	return error.body;
}

const refusesAsBadRequest = (promise, code) => refuses(promise, Rivet.BadRequestError, 400, code);
const refusesAsForbidden = (promise, code) => refuses(promise, Rivet.ForbiddenError, 403, code);
const refusesAsNotFound = (promise, code) => refuses(promise, Rivet.NotFoundError, 404, code);
// The client has no class for 401 (its UnauthorizedError stands for 408) nor for 413: those stay plain.
const refusesAsUnauthorized = (promise, code) => refuses(promise, RivetError, 401, code);

/** Asserts that the client itself refuses to send the request, so that no answer of ours is involved. */
async function neverSends(promise) {
	const sent = responses.length;
	await assert.rejects(promise, (error) => !(error instanceof RivetError) && Array.isArray(error.errors));
	assert.equal(responses.length, sent);
}

function assertErrorBody(body, rayId) {
	assert.equal(typeof body.message, "string");
	assert.notEqual(body.message, "");
	assert.equal(typeof body.ray_id, "string");
	assert.equal(body.ray_id, rayId, "ray_id repeats the header");
	if (body.documentation !== undefined) assert.equal(typeof body.documentation, "string");
}

function assertRequestId(headers, where) {
	assert.ok(headers["x-request-id"], `${where}: x-request-id`);
	assert.equal(headers["rvt-ray-id"], headers["x-request-id"], `${where}: rvt-ray-id`);
}

/** Asserts an answer of find as the client's types promise it: no wire name is left, nothing is missing. A lobby that the player created has a code beside. */
function assertFound({ lobby: { code, ...lobby }, ...found }, isCreated = false) {
	assert.equal(/^[2-9A-Z]{6}$/.test(code), isCreated, `code ${code}`);
	found = { lobby, ...found };
	assert.deepEqual(Object.keys(found).sort(), ["lobby", "player", "ports"]);
	assert.deepEqual(Object.keys(found.lobby).sort(), ["lobbyId", "player", "ports", "region"]);
	assert.match(found.lobby.lobbyId, UUID);
	assert.deepEqual(Object.keys(found.lobby.region).sort(), ["displayName", "regionId"]);
	assert.notEqual(found.lobby.region.displayName, "");
	assert.deepEqual(Object.keys(found.player), ["token"]);
	assert.notEqual(found.player.token, "");
	assert.ok(found.lobby.player.token === found.player.token, "lobby.player repeats player");
	assert.deepEqual(found.lobby.ports, found.ports, "lobby.ports repeats ports");
	assertPorts(found.ports);
}

function assertPorts(ports) {
	assert.notEqual(Object.keys(ports).length, 0, "at least one port");
	for (const [label, port] of Object.entries(ports)) {
		assert.deepEqual(Object.keys(port).sort(), ["host", "hostname", "isTls", "port", "portRange"], label);
		assert.equal(typeof port.isTls, "boolean");
		assert.notEqual(port.hostname, "");
		if (port.portRange === undefined) {
			assertPortNumber(port.port);
			assert.equal(port.host, `${port.hostname}:${port.port}`);
		} else {
			assert.deepEqual([port.host, port.port], [undefined, undefined], `${label} is a range`);
			assert.deepEqual(Object.keys(port.portRange).sort(), ["max", "min"]);
			assertPortNumber(port.portRange.min);
			assertPortNumber(port.portRange.max);
			assert.ok(port.portRange.min <= port.portRange.max);
		}
	}
}

function assertPortNumber(port) {
	assert.ok(Number.isInteger(port) && port >= 1 && port <= 65535, `port ${port}`);
}

/** Asserts a lobby of the demo game; only these keep TLS and non-TLS ports apart, a development mock shows its token's. */
function assertFoundIn(found, regionIds, isCreated = false) {
	assertFound(found, isCreated);
	assert.ok(regionIds.includes(found.lobby.region.regionId), `region ${found.lobby.region.regionId}`);
	assert.equal(new Set(Object.values(found.ports).map((port) => port.isTls)).size, 1, "TLS and non-TLS ports are not mixed");
}

/** Sends what the client would never send, or looks at what it hides. */
async function send(method, path, { token, headers = {}, body } = {}) {
	const response = await fetch(environment + path, {
		method,
		headers: {
			...(token && { authorization: `Bearer ${token}` }),
			...(body !== undefined && { "content-type": "application/json" }),
			...headers,
		},
		body,
		signal: AbortSignal.timeout(30_000),
	});
	const text = await response.text();
	return { status: response.status, headers: Object.fromEntries(response.headers), body: text === "" ? undefined : JSON.parse(text) };
}

const demoAnswer = await send("GET", "/_local/demo");
assert.equal(demoAnswer.status, 200, "GET /_local/demo");
const demo = demoAnswer.body;
const { game_id: gameId, namespace_id: namespaceId, version_ids: versionIds, region_ids: regionIds, tokens } = demo;

const player = new RivetClient({ environment, token: tokens.public });
// Real programs often hand over a function instead of a string, so that the token can be renewed.
const developer = new RivetClient({ environment, token: async () => tokens.cloud });
const development = new RivetClient({ environment, token: tokens.development });
const tokenless = new RivetClient({ environment });

const clientWith = (token) => new RivetClient({ environment, token });
const find = (request) => player.matchmaker.lobbies.find(request);
const namespaces = developer.cloud.games.namespaces;
const namespacePath = `/cloud/games/${gameId}/namespaces/${namespaceId}`;

// --- matchmaker.lobbies.find: seats ---

let firstDuel;
let thirdDuel;
let tagged;

await check("find with game modes only creates a lobby and gives a seat in it", async () => {
	firstDuel = await find({ gameModes: ["duel"] });
	assertFoundIn(firstDuel, regionIds);
});

await check("a second find lands in the same duel lobby; explicit undefined, sent as null, equals absent", async () => {
	const second = await find({
		gameModes: ["duel", "duel"],
		regions: undefined,
		tags: undefined,
		maxPlayers: undefined,
		preventAutoCreateLobby: undefined,
		captcha: undefined,
		verificationData: undefined,
	});
	assertFoundIn(second, regionIds);
	assert.equal(second.lobby.lobbyId, firstDuel.lobby.lobbyId);
	assert.deepEqual(second.ports, firstDuel.ports);
	assert.ok(second.player.token !== firstDuel.player.token, "each seat has its own token");
});

await check("a third find does not fit the full duel lobby and lands in another", async () => {
	thirdDuel = await find({ gameModes: ["duel"], regions: [] });
	assertFoundIn(thirdDuel, regionIds);
	assert.notEqual(thirdDuel.lobby.lobbyId, firstDuel.lobby.lobbyId);
});

await check("find with regions gives TLS ports in one region and a port range without TLS in the other", async () => {
	assert.equal(regionIds.length, 2);
	const kinds = [];
	for (const regionId of regionIds) {
		const found = await find({ gameModes: ["arena"], regions: [regionId], tags: { map: "harbour", rank: "5" }, maxPlayers: 4 });
		assertFoundIn(found, [regionId]);
		tagged ??= found;
		const ports = Object.values(found.ports);
		if (ports.every((port) => port.isTls && port.portRange === undefined)) kinds.push("tls");
		if (ports.some((port) => !port.isTls && port.portRange !== undefined)) kinds.push("range");
	}
	assert.deepEqual(kinds.sort(), ["range", "tls"]);
});

await check("find with preventAutoCreateLobby joins the lobby whose tags contain the queried ones", async () => {
	const found = await find({
		gameModes: ["arena"],
		regions: [tagged.lobby.region.regionId],
		tags: { map: "harbour" },
		preventAutoCreateLobby: true,
		verificationData: { any: ["thing"] },
	});
	assertFoundIn(found, [tagged.lobby.region.regionId]);
	assert.equal(found.lobby.lobbyId, tagged.lobby.lobbyId);
	assert.deepEqual(found.ports, tagged.ports);
});

await check("find with preventAutoCreateLobby creates nothing", async () => {
	await refusesAsBadRequest(find({ gameModes: ["solo"], preventAutoCreateLobby: true }), "MATCHMAKER_NO_AVAILABLE_LOBBIES");
	await refusesAsBadRequest(
		find({ gameModes: ["arena"], regions: regionIds, tags: { map: "desert" }, preventAutoCreateLobby: true }),
		"MATCHMAKER_NO_AVAILABLE_LOBBIES",
	);
});

// --- matchmaker.lobbies.find: development token ---

await check("find with a development token answers a mock", async () => {
	for (const gameModes of [["duel"], ["no-such-mode"], []]) {
		const mock = await development.matchmaker.lobbies.find({ gameModes });
		assertFound(mock);
		assert.equal(mock.lobby.lobbyId, NIL_UUID);
		assert.deepEqual(mock.lobby.region, { regionId: "dev-lcl", displayName: "Local" });
	}
});

// --- development token: the other operations of the matchmaker ---

await check("join and create with a development token answer mocks, whatever they name", async () => {
	const { lobbies } = development.matchmaker;
	const mocks = [
		await lobbies.join({ lobbyId: NIL_UUID }),
		await lobbies.join({ lobbyId: "no such lobby" }),
		await lobbies.create({ gameMode: "no-such-mode", lobbyConfig: [1] }),
	];
	for (const [at, mock] of mocks.entries()) {
		assertFound(mock, at === 2);
		assert.equal(mock.lobby.lobbyId, NIL_UUID);
		assert.deepEqual(mock.lobby.region, { regionId: "dev-lcl", displayName: "Local" });
	}
});

await check("lists, statistics and the state of a development token are empty", async () => {
	const { lobbies, players, regions } = development.matchmaker;
	const nothing = { gameModes: [], regions: [], lobbies: [] };
	for (const request of [undefined, {}, { includeState: true }]) assert.deepEqual(await lobbies.list(request), nothing);
	assert.deepEqual(await players.getStatistics(), { playerCount: 0, gameModes: {} });
	assert.deepEqual(await regions.list(), { regions: [] });
	assert.deepEqual(await lobbies.getState(NIL_UUID), {});
});

await check("a lobby server in development may say everything that a real one says", async () => {
	const { lobbies, players } = development.matchmaker;
	assert.equal(await lobbies.ready(), undefined);
	assert.equal(await lobbies.setState({ any: ["thing"] }), undefined);
	for (const isClosed of [true, false]) assert.equal(await lobbies.setClosed({ isClosed }), undefined);
	const { player: mocked } = await lobbies.find({ gameModes: ["duel"] });
	for (const call of ["connected", "connected", "disconnected"]) {
		assert.equal(await players[call]({ playerToken: mocked.token }), undefined, call);
	}
	await refusesAsBadRequest(players.connected({ playerToken: firstDuel.player.token }), "TOKEN_INVALID");
	await refusesAsBadRequest(players.disconnected({ playerToken: "player_malformed" }), "TOKEN_INVALID");
});

// --- matchmaker.lobbies.find: refusals ---

await check("find without a token is 401, with an origin that no namespace registered too", async () => {
	await refusesAsUnauthorized(tokenless.matchmaker.lobbies.find({ gameModes: ["duel"] }), "API_UNAUTHORIZED");
	await refusesAsUnauthorized(
		tokenless.matchmaker.lobbies.find({ gameModes: ["duel"], origin: "https://unregistered.example" }),
		"API_UNAUTHORIZED",
	);
});

await check("find refuses a malformed token and tokens of other kinds", async () => {
	const findWith = (token) => new RivetClient({ environment, token }).matchmaker.lobbies.find({ gameModes: ["duel"] });
	await refusesAsUnauthorized(findWith("pub_malformed"), "TOKEN_INVALID");
	await refusesAsForbidden(findWith(tokens.server), "CLAIMS_MISSING_ENTITLEMENT");
	await refusesAsForbidden(findWith(tokens.cloud), "CLAIMS_MISSING_ENTITLEMENT");
});

await check("find refuses unusable game modes and regions", async () => {
	await refusesAsBadRequest(find({ gameModes: [] }), "MATCHMAKER_NO_GAME_MODE_PROVIDED");
	await refusesAsBadRequest(find({ gameModes: ["no-such-mode", "nor-this"] }), "MATCHMAKER_GAME_MODE_NOT_FOUND");
	await refusesAsBadRequest(find({ gameModes: ["duel"], regions: ["no-such-region"] }), "MATCHMAKER_REGION_NOT_FOUND");
});

await check("find refuses unusable tags", async () => {
	const findTagged = (tags, gameModes = ["arena"]) => find({ gameModes, tags });
	const nineTags = Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`tag-${n}`, "x"]));
	await refusesAsBadRequest(findTagged(nineTags), "MATCHMAKER_TOO_MANY_TAGS");
	await refusesAsBadRequest(findTagged({ ["k".repeat(129)]: "x" }), "MATCHMAKER_TAG_NAME_TOO_LONG");
	await refusesAsBadRequest(findTagged({ key: "v".repeat(513) }), "MATCHMAKER_TAG_TOO_LONG");
	const { metadata } = await refusesAsBadRequest(findTagged({ key: "x" }, ["arena", "duel"]), "MATCHMAKER_TAGS_DISABLED");
	assert.deepEqual(metadata, { game_mode: "duel" });
});

await check("find refuses an unusable maxPlayers", async () => {
	const findSized = (maxPlayers, gameModes = ["arena"]) => find({ gameModes, maxPlayers });
	await refusesAsBadRequest(findSized(0), "MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID");
	const tooMany = await refusesAsBadRequest(findSized(11), "MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID");
	assert.deepEqual(tooMany.metadata, { max: 10 });
	const disabled = await refusesAsBadRequest(findSized(2, ["duel"]), "MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED");
	assert.deepEqual(disabled.metadata, { game_mode: "duel" });
	await refusesAsBadRequest(findSized(-1), "API_BAD_BODY");
	await refusesAsBadRequest(findSized(1.5), "API_BAD_BODY");
});

await check("find refuses a body above 64 KiB", async () => {
	const request = { gameModes: ["duel"], verificationData: "x".repeat(64 * 1024) };
	await refuses(find(request), RivetError, 413, "API_BODY_TOO_LARGE");
});

await check("find refuses bodies that the client would not send", async () => {
	for (const body of ["{", "[]", '{"game_modes":"duel"}', '{"regions":[]}', ""]) {
		const answer = await send("POST", FIND_PATH, { token: tokens.public, body });
		assert.deepEqual([answer.status, answer.body.code], [400, "API_BAD_BODY"], `body ${body}`);
		assertErrorBody(answer.body, answer.headers["rvt-ray-id"]);
	}
});

// --- cloud.bootstrap ---

await check("bootstrap answers without a token and does not look at a broken one", async () => {
	for (const client of [tokenless, developer, new RivetClient({ environment, token: "broken" })]) {
		const bootstrap = await client.cloud.bootstrap();
		assert.equal(bootstrap.cluster, Rivet.cloud.BootstrapCluster.Oss);
		if (bootstrap.captcha.turnstile !== undefined) assert.notEqual(bootstrap.captcha.turnstile.siteKey, "");
		// Younger than this client's types: it hands these on under their wire names.
		assert.ok(["private", "public"].includes(bootstrap.access));
		assert.deepEqual(bootstrap.login_methods, { access_token: true, email: false });
		assert.equal(typeof bootstrap.origins.hub, "string");
		if (bootstrap.domains !== undefined) {
			for (const name of ["main", "cdn", "job"]) assert.equal(typeof bootstrap.domains[name], "string");
		}
	}
});

// --- cloud.games.namespaces: rights ---

const namespaceCalls = [
	["validateGameNamespaceMatchmakerConfig", { lobbyCountMax: 1, maxPlayers: 1 }],
	["setNamespaceCdnAuthType", { authType: "none" }],
	["updateNamespaceCdnAuthUser", { user: "contract", password: BCRYPT_HASH }],
	["updateGameNamespaceVersion", { versionId: versionIds[0] }],
	["updateGameNamespaceMatchmakerConfig", { lobbyCountMax: 1, maxPlayers: 1 }],
	["createGameNamespaceTokenPublic"],
	["createGameNamespaceTokenDevelopment", { hostname: "127.0.0.1", ports: { web: { port: 80, protocol: "http" } } }],
];

for (const [operation, request] of namespaceCalls) {
	await check(`${operation} needs the cloud token of the game, and a namespace of it`, async () => {
		const call = (client, game = gameId, namespace = namespaceId) => client.cloud.games.namespaces[operation](game, namespace, request);
		await refusesAsUnauthorized(call(tokenless), "API_UNAUTHORIZED");
		await refusesAsUnauthorized(call(new RivetClient({ environment, token: "cloud_malformed" })), "TOKEN_INVALID");
		await refusesAsForbidden(call(player), "CLAIMS_MISSING_ENTITLEMENT");
		await refusesAsForbidden(call(developer, NIL_UUID), "API_FORBIDDEN");
		await refusesAsNotFound(call(developer, gameId, NIL_UUID), "CLOUD_NAMESPACE_NOT_FOUND");
		await refusesAsNotFound(call(developer, gameId, "not.an.id"), "API_NOT_FOUND");
	});
}

// --- validateGameNamespaceMatchmakerConfig ---

const validate = async (lobbyCountMax, maxPlayers) => {
	const answer = await namespaces.validateGameNamespaceMatchmakerConfig(gameId, namespaceId, { lobbyCountMax, maxPlayers });
	assert.deepEqual(Object.keys(answer), ["errors"]);
	return answer.errors.map((error) => error.path);
};

await check("a valid matchmaker configuration has no errors", async () => {
	assert.deepEqual(await validate(128, 8), []);
	assert.deepEqual(await validate(1, 1), []);
	assert.deepEqual(await validate(32_767, 4_294_967_295), []);
});

await check("a matchmaker configuration of zeros is too low", async () => {
	assert.deepEqual(await validate(0, 0), [
		["lobby-count", "too-low"],
		["max-players", "too-low"],
		["max-players", "client", "too-low"],
		["max-players", "vpn", "too-low"],
		["max-players", "proxy", "too-low"],
		["max-players", "tor", "too-low"],
		["max-players", "hosting", "too-low"],
	]);
});

await check("a lobby count above 32767 is too high", async () => {
	assert.deepEqual(await validate(32_768, 8), [["lobby-count", "too-high"]]);
	assert.deepEqual(await validate(4_294_967_295, 8), [["lobby-count", "too-high"]]);
});

await check("a number outside unsigned 32 bits is a bad body", async () => {
	for (const unusable of [4_294_967_296, -1, 1.5]) {
		await refusesAsBadRequest(validate(unusable, 8), "API_BAD_BODY");
		await refusesAsBadRequest(validate(128, unusable), "API_BAD_BODY");
	}
	const body = '{"lobby_count_max":"128","max_players":8}';
	const answer = await send("POST", `${namespacePath}/mm-config/validate`, { token: tokens.cloud, body });
	assert.deepEqual([answer.status, answer.body.code], [400, "API_BAD_BODY"]);
});

// --- setNamespaceCdnAuthType ---

await check("the CDN authentication type is none or basic, set any number of times", async () => {
	for (const authType of [Rivet.cloud.CdnAuthType.Basic, "basic", Rivet.cloud.CdnAuthType.None, "none"]) {
		assert.equal(await namespaces.setNamespaceCdnAuthType(gameId, namespaceId, { authType }), undefined);
	}
});

await check("another CDN authentication type is refused, by the client and by the service", async () => {
	await neverSends(namespaces.setNamespaceCdnAuthType(gameId, namespaceId, { authType: "digest" }));
	for (const body of ['{"auth_type":"digest"}', '{"auth_type":"Basic"}', '{"auth_type":null}', "{}"]) {
		const answer = await send("PUT", `${namespacePath}/cdn-auth`, { token: tokens.cloud, body });
		assert.deepEqual([answer.status, answer.body.code], [400, "API_BAD_BODY"], `body ${body}`);
		assertErrorBody(answer.body, answer.headers["rvt-ray-id"]);
	}
});

// --- updateNamespaceCdnAuthUser ---

const setUser = (user, password) => namespaces.updateNamespaceCdnAuthUser(gameId, namespaceId, { user, password });

await check("a CDN user is added, and replaced, with a bcrypt hash", async () => {
	for (const password of [BCRYPT_HASH, BCRYPT_HASH.replace("$2b$", "$2a$"), BCRYPT_HASH.replace("$2b$", "$2y$")]) {
		assert.equal(await setUser("contract", password), undefined);
	}
});

await check("a password that is no proper bcrypt hash is refused", async () => {
	const improper = {
		"plain text": "not a bcrypt hash",
		empty: "",
		"one character short": BCRYPT_HASH.slice(0, -1),
		"one character long": `${BCRYPT_HASH}.`,
		"unknown variant": BCRYPT_HASH.replace("$2b$", "$2x$"),
		"cost below 04": BCRYPT_HASH.replace("$04$", "$03$"),
		"cost above 31": BCRYPT_HASH.replace("$04$", "$32$"),
		"signed cost": BCRYPT_HASH.replace("$04$", "$+4$"),
		"foreign character": BCRYPT_HASH.replace("$04$.", "$04$+"),
		"salt not canonical": `$2b$04$${".".repeat(21)}a${".".repeat(31)}`,
		"digest not canonical": `${BCRYPT_HASH.slice(0, -1)}b`,
	};
	for (const [kind, password] of Object.entries(improper)) {
		await refusesAsBadRequest(setUser("contract", password), "CDN_INVALID_AUTH_USER_PASSWORD").catch((error) => {
			error.message = `${kind}: ${error.message}`;
			throw error;
		});
	}
});

await check("a user name that HTTP Basic cannot carry is refused", async () => {
	for (const user of ["", "a:b", "line\nbreak", "x".repeat(129)]) {
		await refusesAsBadRequest(setUser(user, BCRYPT_HASH), "CDN_INVALID_AUTH_USER");
	}
});

// --- updateGameNamespaceVersion ---

const setVersion = (versionId) => namespaces.updateGameNamespaceVersion(gameId, namespaceId, { versionId });

await check("a version that the game does not have is not found", async () => {
	await refusesAsNotFound(setVersion(NIL_UUID), "CLOUD_VERSION_NOT_FOUND");
});

await check("the current version can be set again", async () => {
	assert.equal(await setVersion(versionIds[0]), undefined);
});

await check("lobbies match only while the namespace runs their version", async () => {
	// The third duel's lobby has one seat free.
	const request = { gameModes: ["duel"], preventAutoCreateLobby: true };
	try {
		assert.equal(await setVersion(versionIds[1]), undefined);
		const refusal = await find(request).then(
			() => assert.fail("a lobby of the former version was found"),
			(error) => error,
		);
		// The other version need not have the mode.
		const refusals = ["MATCHMAKER_NO_AVAILABLE_LOBBIES", "MATCHMAKER_GAME_MODE_NOT_FOUND"];
		assert.ok(refusals.includes(refusal.body?.code), refusal.body?.code ?? String(refusal));
	} finally {
		await setVersion(versionIds[0]);
	}
	const found = await find(request);
	assertFoundIn(found, regionIds);
	assert.equal(found.lobby.lobbyId, thirdDuel.lobby.lobbyId);
});

// --- the demo's lobbies, seen from outside ---

/** Seats of the finds above by mode and region, as statistics count them. */
function heldSeats() {
	const held = { playerCount: 0, gameModes: {} };
	const other = regionIds.find((regionId) => regionId !== tagged.lobby.region.regionId);
	const seats = [
		["duel", firstDuel.lobby.region.regionId, 2],
		["duel", thirdDuel.lobby.region.regionId, 2],
		["arena", tagged.lobby.region.regionId, 2],
		["arena", other, 1],
	];
	for (const [mode, region, count] of seats) {
		const ofMode = (held.gameModes[mode] ??= { playerCount: 0, regions: {} });
		const ofRegion = (ofMode.regions[region] ??= { playerCount: 0 });
		for (const level of [held, ofMode, ofRegion]) level.playerCount += count;
	}
	return held;
}

function assertRegionInfos(regions) {
	assert.deepEqual(regions.map((region) => region.regionId).sort(), [...regionIds].sort());
	for (const region of regions) {
		const { datacenterCoord: place, datacenterDistanceFromClient: distance } = region;
		assert.deepEqual(Object.keys(region).sort(), [
			"datacenterCoord",
			"datacenterDistanceFromClient",
			"providerDisplayName",
			"regionDisplayName",
			"regionId",
		]);
		assert.notEqual(region.providerDisplayName, "");
		assert.ok(Math.abs(place.latitude) <= 90 && Math.abs(place.longitude) <= 180, JSON.stringify(place));
		assert.deepEqual(distance, { kilometers: 0, miles: 0 }, "nobody knows where a loopback address is");
	}
}

await check("regions are listed with their names, places and distances", async () => {
	const answer = await player.matchmaker.regions.list();
	assert.deepEqual(Object.keys(answer), ["regions"]);
	assertRegionInfos(answer.regions);
	const { regionId, displayName } = tagged.lobby.region;
	assert.equal(answer.regions.find((region) => region.regionId === regionId).regionDisplayName, displayName);
});

await check("statistics count the seats held, by mode and region", async () => {
	assert.deepEqual(await player.matchmaker.players.getStatistics(), heldSeats());
});

await check("lobbies are listed with their sizes and players, without states unless asked for", async () => {
	const lobbies = player.matchmaker.lobbies;
	for (const request of [undefined, { includeState: true }]) {
		const list = await lobbies.list(request);
		assert.deepEqual(Object.keys(list).sort(), ["gameModes", "lobbies", "regions"]);
		assert.deepEqual(list.gameModes.map((mode) => mode.gameModeId).sort(), ["arena", "duel", "solo"]);
		assertRegionInfos(list.regions);
		const inList = ({ lobby }, gameModeId, size, count) => {
			const info = list.lobbies.find((info) => info.lobbyId === lobby.lobbyId);
			const { state, ...shown } = info;
			assert.equal(state, undefined, "none of them has a state");
			assert.deepEqual(shown, {
				regionId: lobby.region.regionId,
				gameModeId,
				lobbyId: lobby.lobbyId,
				maxPlayersNormal: size,
				maxPlayersDirect: size,
				maxPlayersParty: size,
				totalPlayerCount: count,
				// The client does not know it, and hands it on.
				connected_player_count: 0,
			});
		};
		inList(firstDuel, "duel", 2, 2);
		inList(thirdDuel, "duel", 2, 2);
		inList(tagged, "arena", 4, 2);
		assert.equal(list.lobbies.length, 4);
	}
});

// --- matchmaker: rights ---

const playerCalls = {
	"lobbies.join": ({ lobbies }) => lobbies.join({ lobbyId: firstDuel.lobby.lobbyId }),
	"lobbies.create": ({ lobbies }) => lobbies.create({ gameMode: "arena" }),
	"lobbies.list": ({ lobbies }) => lobbies.list(),
	"lobbies.getState": ({ lobbies }) => lobbies.getState(firstDuel.lobby.lobbyId),
	"players.getStatistics": ({ players }) => players.getStatistics(),
	"regions.list": ({ regions }) => regions.list(),
};

for (const [operation, call] of Object.entries(playerCalls)) {
	await check(`${operation} needs a public token`, async () => {
		await refusesAsUnauthorized(call(tokenless.matchmaker), "API_UNAUTHORIZED");
		await refusesAsUnauthorized(call(clientWith("pub_malformed").matchmaker), "TOKEN_INVALID");
		await refusesAsForbidden(call(clientWith(tokens.server).matchmaker), "CLAIMS_MISSING_ENTITLEMENT");
		await refusesAsForbidden(call(developer.matchmaker), "CLAIMS_MISSING_ENTITLEMENT");
	});
}

const lobbyServerCalls = {
	"lobbies.ready": ({ lobbies }) => lobbies.ready(),
	"lobbies.setState": ({ lobbies }) => lobbies.setState({}),
	"lobbies.setClosed": ({ lobbies }) => lobbies.setClosed({ isClosed: true }),
	"players.connected": ({ players }) => players.connected({ playerToken: firstDuel.player.token }),
	"players.disconnected": ({ players }) => players.disconnected({ playerToken: firstDuel.player.token }),
};

for (const [operation, call] of Object.entries(lobbyServerCalls)) {
	await check(`${operation} needs a lobby token`, async () => {
		await refusesAsUnauthorized(call(tokenless.matchmaker), "API_UNAUTHORIZED");
		await refusesAsUnauthorized(call(clientWith("lobby_malformed").matchmaker), "TOKEN_INVALID");
		await refusesAsForbidden(call(player.matchmaker), "CLAIMS_MISSING_ENTITLEMENT");
		await refusesAsForbidden(call(clientWith(tokens.server).matchmaker), "CLAIMS_MISSING_ENTITLEMENT");
		await refusesAsForbidden(call(developer.matchmaker), "CLAIMS_MISSING_ENTITLEMENT");
	});
}

// --- a namespace of its own ---

const OWN_LOBBIES = 2;
let ownId;
let guest;

await check("createGameNamespace makes a namespace, and its name cannot be taken twice", async () => {
	const request = { displayName: "Contract", versionId: versionIds[0], nameId: "contract" };
	const created = await namespaces.createGameNamespace(gameId, request);
	assert.deepEqual(Object.keys(created), ["namespaceId"]);
	assert.match(created.namespaceId, UUID);
	ownId = created.namespaceId;
	await refuses(namespaces.createGameNamespace(gameId, request), RivetError, 409, "CLOUD_NAME_TAKEN");
});

await check("createGameNamespace needs the cloud token of the game, a version of it and usable names", async () => {
	const request = { displayName: "Refused", versionId: versionIds[0], nameId: "refused" };
	const make = (client, changes = {}, game = gameId) => client.cloud.games.namespaces.createGameNamespace(game, { ...request, ...changes });
	await refusesAsUnauthorized(make(tokenless), "API_UNAUTHORIZED");
	await refusesAsUnauthorized(make(clientWith("cloud_malformed")), "TOKEN_INVALID");
	await refusesAsForbidden(make(player), "CLAIMS_MISSING_ENTITLEMENT");
	await refusesAsForbidden(make(developer, {}, NIL_UUID), "API_FORBIDDEN");
	await refusesAsNotFound(make(developer, {}, "not.an.id"), "API_NOT_FOUND");
	await refusesAsNotFound(make(developer, { versionId: NIL_UUID }), "CLOUD_VERSION_NOT_FOUND");
	const { metadata } = await refusesAsBadRequest(make(developer, { displayName: "", nameId: "No Such Name" }), "VALIDATION_ERROR");
	assert.deepEqual(metadata.errors.map((error) => error.path[0]).sort(), ["display-name", "name-id"]);
});

await check("updateGameNamespaceMatchmakerConfig refuses what validate refuses, and sets the rest", async () => {
	const set = (lobbyCountMax, maxPlayers) =>
		namespaces.updateGameNamespaceMatchmakerConfig(gameId, ownId, { lobbyCountMax, maxPlayers });
	for (const unusable of [[0, 0], [32_768, 8], [1, 0]]) {
		const { metadata } = await refusesAsBadRequest(set(...unusable), "VALIDATION_ERROR");
		assert.deepEqual(metadata.errors.map((error) => error.path), await validate(...unusable));
	}
	await refusesAsBadRequest(set(-1, 8), "API_BAD_BODY");
	for (let times = 0; times < 2; times += 1) assert.equal(await set(OWN_LOBBIES, 1_001), undefined);
});

await check("a public token of the namespace opens it, and no other", async () => {
	const created = await namespaces.createGameNamespaceTokenPublic(gameId, ownId);
	assert.deepEqual(Object.keys(created), ["token"]);
	assert.ok(created.token.startsWith("pub_"));
	guest = clientWith(created.token).matchmaker;
	assertRegionInfos((await guest.regions.list()).regions);
	await refusesAsBadRequest(guest.lobbies.join({ lobbyId: firstDuel.lobby.lobbyId }), "MATCHMAKER_LOBBY_NOT_FOUND");
	await refusesAsBadRequest(guest.lobbies.getState(firstDuel.lobby.lobbyId), "MATCHMAKER_LOBBY_NOT_FOUND");
});

await check("a development token answers with its own host and ports", async () => {
	const request = {
		hostname: "dev.example",
		ports: { web: { port: 8_443, protocol: "https" }, game: { portRange: { min: 20_000, max: 20_010 }, protocol: "tcp_tls" } },
	};
	const created = await namespaces.createGameNamespaceTokenDevelopment(gameId, ownId, request);
	assert.deepEqual(Object.keys(created), ["token"]);
	assert.ok(created.token.startsWith("dev_"));
	const mock = await clientWith(created.token).matchmaker.lobbies.find({ gameModes: ["duel"] });
	assertFound(mock);
	assert.deepEqual(mock.ports, {
		web: { host: "dev.example:8443", hostname: "dev.example", port: 8_443, portRange: undefined, isTls: true },
		game: { host: undefined, hostname: "dev.example", port: undefined, portRange: { min: 20_000, max: 20_010 }, isTls: true },
	});
});

await check("a development token with unusable ports is refused", async () => {
	const issue = (ports) => namespaces.createGameNamespaceTokenDevelopment(gameId, ownId, { hostname: "dev.example", ports });
	const port = { port: 80, protocol: "http" };
	for (const ports of [
		{},
		{ web: { protocol: "http" } },
		{ web: { ...port, port: 0 } },
		{ "No label": port },
		{ web: { portRange: { min: 9, max: 8 }, protocol: "udp" } },
		{ web: port, secure: { port: 443, protocol: "https" } },
	]) {
		const { metadata } = await refusesAsBadRequest(issue(ports), "VALIDATION_ERROR");
		assert.notEqual(metadata.errors.length, 0, JSON.stringify(ports));
		for (const { path } of metadata.errors) assert.equal(path[0], "ports");
	}
	await neverSends(issue({ web: { port: 80, protocol: "quic" } }));
});

await check("validateGameNamespace names what would be refused", async () => {
	const validate = async (displayName, nameId) => {
		const { errors } = await namespaces.validateGameNamespace(gameId, { displayName, nameId });
		return errors.map((error) => error.path);
	};
	assert.deepEqual(await validate("New", "new-one"), []);
	assert.deepEqual(await validate("", "No Such Name"), [["display-name", "too-short"], ["name-id", "invalid"]]);
	const { namespace } = await namespaces.getGameNamespaceById(gameId, ownId);
	assert.deepEqual(await validate("New", namespace.nameId), [["name-id", "not-unique"]]);
});

await check("getGameNamespaceById tells the namespace with its settings, and no hash", async () => {
	await namespaces.updateNamespaceCdnAuthUser(gameId, ownId, { user: "tester", password: BCRYPT_HASH });
	const { namespace } = await namespaces.getGameNamespaceById(gameId, ownId);
	assert.equal(namespace.namespaceId, ownId);
	assert.ok(namespace.createTs instanceof Date && Math.abs(Date.now() - namespace.createTs) < 3_600_000);
	assert.ok(versionIds.includes(namespace.versionId));
	assert.deepEqual(namespace.config.cdn, {
		enableDomainPublicAuth: true,
		domains: [],
		authType: "none",
		authUserList: [{ user: "tester" }],
	});
	const { lobbyCountMax, ...caps } = namespace.config.matchmaker;
	assert.equal(lobbyCountMax, OWN_LOBBIES);
	assert.deepEqual([...new Set(Object.values(caps))], [1_001]);
	assert.ok(!JSON.stringify(namespace).includes("$2b$"));

	for (let times = 0; times < 2; times += 1) {
		assert.equal(await namespaces.removeNamespaceCdnAuthUser(gameId, ownId, "tester"), undefined);
	}
	const after = await namespaces.getGameNamespaceById(gameId, ownId);
	assert.deepEqual(after.namespace.config.cdn.authUserList, []);
	await refusesAsNotFound(namespaces.getGameNamespaceById(gameId, NIL_UUID), "CLOUD_NAMESPACE_NOT_FOUND");
});

await check("pages of a namespace's domain need no token, unless that is switched off", async () => {
	const page = (domain) => send("GET", "/matchmaker/regions", { headers: { origin: `https://${domain}` } });
	for (let times = 0; times < 2; times += 1) {
		assert.equal(await namespaces.addNamespaceDomain(gameId, ownId, { domain: "Pages.example" }), undefined);
	}
	assert.equal((await page("pages.example:8080")).status, 200);
	assert.equal((await page("other.example")).status, 401);
	const { namespace } = await namespaces.getGameNamespaceById(gameId, ownId);
	assert.deepEqual(
		namespace.config.cdn.domains.map(({ domain, verificationStatus }) => [domain, verificationStatus]),
		[["pages.example", "active"]],
	);
	await refuses(namespaces.addNamespaceDomain(gameId, namespaceId, { domain: "pages.example" }), RivetError, 409, "CDN_DOMAIN_TAKEN");
	await refusesAsBadRequest(namespaces.addNamespaceDomain(gameId, ownId, { domain: "127.0.0.1" }), "CDN_INVALID_DOMAIN");

	assert.equal(await namespaces.toggleNamespaceDomainPublicAuth(gameId, ownId, { enabled: false }), undefined);
	assert.equal((await page("pages.example")).status, 401);
	assert.equal(await namespaces.toggleNamespaceDomainPublicAuth(gameId, ownId, { enabled: true }), undefined);
	assert.equal((await page("pages.example")).status, 200);
	for (let times = 0; times < 2; times += 1) {
		assert.equal(await namespaces.removeNamespaceDomain(gameId, ownId, "pages.example"), undefined);
	}
	assert.equal((await page("pages.example")).status, 401);
});

await check("getGameNamespaceVersionHistoryList tells the versions, newest first, by pages", async () => {
	const history = async (request) => (await namespaces.getGameNamespaceVersionHistoryList(gameId, ownId, request)).versions;
	const { namespace } = await namespaces.getGameNamespaceById(gameId, ownId);
	const others = versionIds.filter((versionId) => versionId !== namespace.versionId);
	for (const versionId of [others[0], namespace.versionId]) {
		await namespaces.updateGameNamespaceVersion(gameId, ownId, { versionId });
	}
	const all = await history({ limit: 32 });
	assert.deepEqual(all.slice(0, 2).map((entry) => entry.versionId), [namespace.versionId, others[0]]);
	assert.ok(all.every((entry) => entry.namespaceId === ownId && entry.deployTs instanceof Date));
	const paged = [];
	for (let anchor; ; anchor = paged.at(-1).deployTs.toISOString()) {
		const page = await history({ anchor, limit: 1 });
		if (page.length === 0) break;
		paged.push(...page);
	}
	assert.deepEqual(paged, all);
	await refusesAsBadRequest(history({ limit: 33 }), "API_BAD_BODY");
	await refusesAsBadRequest(history({ anchor: "yesterday" }), "API_BAD_BODY");
});

await check("createCloudToken gives another token for the game", async () => {
	const created = await developer.cloud.games.tokens.createCloudToken(gameId);
	assert.deepEqual(Object.keys(created), ["token"]);
	const other = clientWith(created.token).cloud.games.namespaces;
	assert.equal((await other.getGameNamespaceById(gameId, ownId)).namespace.namespaceId, ownId);
});

await check("a version in the client's form, which describes containers, is refused", async () => {
	const gameModes = { duel: { regions: { [regionIds[0]]: {} }, maxPlayers: 2 } };
	const config = { matchmaker: { gameModes } };
	const create = (client) => client.cloud.games.versions.createGameVersion(gameId, { displayName: "2.0", config });
	await refusesAsForbidden(create(player), "CLAIMS_MISSING_ENTITLEMENT");
	await refusesAsBadRequest(create(developer), "API_BAD_BODY");
});

// --- a session: players, and the server of their lobby ---

const SERVER = {
	server_id: "contract",
	region_id: regionIds[0],
	capacity: 4,
	auto_ready: false,
	ports: { default: { hostname: "contract.example", port: 443, protocol: "https" } },
};

let ownServerToken;

/** What a game server says of itself; the client never was one. */
async function serve(operation, body) {
	const answer = await send("POST", `/matchmaker/servers/${operation}`, { token: ownServerToken, body: JSON.stringify(body) });
	assert.equal(answer.status, 200, JSON.stringify(answer.body));
	return answer.body;
}

/** Waits until a heartbeat names a lobby that `wanted` accepts. */
async function heartbeatUntil(wanted) {
	for (let times = 0; times < 200; times += 1) {
		const { lobbies } = await serve("heartbeat", { server_id: SERVER.server_id });
		const found = lobbies.find(wanted);
		if (found !== undefined) return found;
		await pause(25);
	}
	assert.fail("the lobby is not told to its game server");
}

let room;
let host;
let stranger;
let state;

await check("create waits for its lobby's server to say ready", async () => {
	const created = await send("POST", `/cloud/games/${gameId}/namespaces/${ownId}/tokens/server`, { token: tokens.cloud });
	ownServerToken = created.body.token;
	await serve("register", SERVER);
	let isReady = false;
	const request = {
		gameMode: "arena",
		region: regionIds[0],
		publicity: Rivet.matchmaker.CustomLobbyPublicity.Public,
		tags: { map: "harbour" },
		maxPlayers: 3,
		lobbyConfig: { rounds: [1, 2], name: null },
		verificationData: { any: ["thing"] },
	};
	const answered = guest.lobbies.create(request).then((answer) => {
		assert.ok(isReady, "nobody is sent to a lobby that is not ready");
		return answer;
	});
	const readied = heartbeatUntil(() => true).then(async (told) => {
		host = clientWith(told.lobby_token).matchmaker;
		isReady = true;
		for (let times = 0; times < 2; times += 1) assert.equal(await host.lobbies.ready(), undefined);
		return told;
	});
	const [answer, told] = await Promise.all([answered, readied]);
	room = answer;
	assertFoundIn(room, [regionIds[0]], true);
	assert.deepEqual(Object.keys(room.ports), ["default"]);
	assert.equal(room.ports.default.host, "contract.example:443");
	assert.deepEqual(
		[told.lobby_id, told.game_mode, told.region_id, told.tags, told.max_players, told.lobby_config],
		[room.lobby.lobbyId, "arena", regionIds[0], { map: "harbour" }, 3, request.lobbyConfig],
	);
});

await check("find and join lead into the lobby until it is full", async () => {
	stranger = await guest.lobbies.find({ gameModes: ["arena"], tags: { map: "harbour" }, maxPlayers: 3, preventAutoCreateLobby: true });
	const friend = await guest.lobbies.join({ lobbyId: ` ${room.lobby.code.toLowerCase()}`, captcha: undefined, verificationData: undefined });
	for (const seat of [stranger, friend]) {
		assertFoundIn(seat, [regionIds[0]]);
		assert.deepEqual([seat.lobby.lobbyId, seat.ports], [room.lobby.lobbyId, room.ports]);
	}
	assert.equal(new Set([room, stranger, friend].map((seat) => seat.player.token)).size, 3);
	await refusesAsBadRequest(guest.lobbies.join({ lobbyId: room.lobby.lobbyId }), "MATCHMAKER_LOBBY_FULL");
	assert.equal(await host.players.disconnected({ playerToken: friend.player.token }), undefined);
	await refusesAsBadRequest(host.players.connected({ playerToken: friend.player.token }), "MATCHMAKER_PLAYER_REMOVED");
});

await check("a lobby that nobody knows cannot be joined", async () => {
	for (const lobbyId of [NIL_UUID, "no such lobby", ""]) {
		await refusesAsBadRequest(guest.lobbies.join({ lobbyId }), "MATCHMAKER_LOBBY_NOT_FOUND");
	}
});

await check("a player connects once", async () => {
	const connect = (seat) => host.players.connected({ playerToken: seat.player.token });
	for (const seat of [room, stranger]) assert.equal(await connect(seat), undefined);
	await refusesAsBadRequest(connect(room), "MATCHMAKER_PLAYER_ALREADY_CONNECTED");
});

await check("a player token that is none, or another namespace's, does not connect", async () => {
	for (const call of ["connected", "disconnected"]) {
		await refusesAsBadRequest(host.players[call]({ playerToken: "player_malformed" }), "TOKEN_INVALID");
		await refusesAsBadRequest(host.players[call]({ playerToken: tokens.public }), "TOKEN_INVALID");
		await refusesAsForbidden(host.players[call]({ playerToken: firstDuel.player.token }), "API_FORBIDDEN");
	}
});

await check("a lobby's state is any JSON, undefined as long as there is none", async () => {
	assert.equal(await guest.lobbies.getState(room.lobby.lobbyId), undefined);
	// Text that is JSON itself is missing here: the client would send it unquoted.
	for (const value of [true, 4.5, "a text", [], [null, { a: [] }], { snake_case: 1, camelCase: { deep: "é\u0000" } }, {}]) {
		assert.equal(await host.lobbies.setState(value), undefined);
		for (const reader of [guest, host]) assert.deepEqual(await reader.lobbies.getState(room.lobby.lobbyId), value);
	}
	state = { phase: "lobby", round: 3, scores: { red: [1, 2], blue: null } };
	await host.lobbies.setState(state);
	await refuses(host.lobbies.setState("x".repeat(64 * 1024)), RivetError, 413, "API_BODY_TOO_LARGE");
	assert.deepEqual(await guest.lobbies.getState(room.lobby.lobbyId), state);
});

await check("a state is read in its namespace, by its own lobby server or by players", async () => {
	await refusesAsBadRequest(guest.lobbies.getState(NIL_UUID), "MATCHMAKER_LOBBY_NOT_FOUND");
	await refusesAsForbidden(host.lobbies.getState(NIL_UUID), "API_FORBIDDEN");
	await refusesAsBadRequest(player.matchmaker.lobbies.getState(room.lobby.lobbyId), "MATCHMAKER_LOBBY_NOT_FOUND");
	await refusesAsNotFound(guest.lobbies.getState("not.an.id"), "API_NOT_FOUND");
});

await check("the list shows states where asked for, as they were set", async () => {
	const info = { regionId: regionIds[0], gameModeId: "arena", lobbyId: room.lobby.lobbyId };
	const seats = { maxPlayersNormal: 3, maxPlayersDirect: 3, maxPlayersParty: 3, totalPlayerCount: 2, connected_player_count: 2 };
	const stateless = await guest.lobbies.list({ includeState: false });
	assert.deepEqual(stateless.lobbies, [{ ...info, ...seats }]);
	const { lobbies } = await guest.lobbies.list({ includeState: true });
	assert.deepEqual(lobbies, [{ ...info, ...seats, state }]);
});

await check("statistics count connected players, of this namespace alone", async () => {
	const regions = { [regionIds[0]]: { playerCount: 2 } };
	const counted = { playerCount: 2, gameModes: { arena: { playerCount: 2, regions } } };
	assert.deepEqual(await guest.players.getStatistics(), counted);
});

await check("a closed lobby is not found but joined, and found again when it reopens", async () => {
	const look = () => guest.lobbies.find({ gameModes: ["arena"], preventAutoCreateLobby: true });
	for (let times = 0; times < 2; times += 1) assert.equal(await host.lobbies.setClosed({ isClosed: true }), undefined);
	await refusesAsBadRequest(look(), "MATCHMAKER_NO_AVAILABLE_LOBBIES");
	const joined = await guest.lobbies.join({ lobbyId: room.lobby.lobbyId });
	await host.players.disconnected({ playerToken: joined.player.token });
	for (let times = 0; times < 2; times += 1) assert.equal(await host.lobbies.setClosed({ isClosed: false }), undefined);
	const found = await look();
	assert.equal(found.lobby.lobbyId, room.lobby.lobbyId);
	await host.players.disconnected({ playerToken: found.player.token });
});

await check("a second lobby is private, with players and a state of its own, and the last that fits", async () => {
	const [other, told] = await Promise.all([
		guest.lobbies.create({ gameMode: "arena" }),
		heartbeatUntil((lobby) => lobby.lobby_id !== room.lobby.lobbyId).then(async (told) => {
			await clientWith(told.lobby_token).matchmaker.lobbies.ready();
			return told;
		}),
	]);
	assert.equal(told.lobby_id, other.lobby.lobbyId);
	assert.equal(told.lobby_config, undefined);
	const otherHost = clientWith(told.lobby_token).matchmaker;
	await refusesAsBadRequest(otherHost.players.connected({ playerToken: room.player.token }), "MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY");
	await refusesAsForbidden(otherHost.lobbies.getState(room.lobby.lobbyId), "API_FORBIDDEN");
	assert.equal(await otherHost.lobbies.getState(other.lobby.lobbyId), undefined);
	await refusesAsBadRequest(guest.lobbies.create({ gameMode: "arena" }), "MATCHMAKER_TOO_MANY_LOBBIES");
	const found = await guest.lobbies.find({ gameModes: ["arena"] });
	assert.equal(found.lobby.lobbyId, room.lobby.lobbyId, "private lobbies are not found");
	await host.players.disconnected({ playerToken: found.player.token });
	const joined = await guest.lobbies.join({ lobbyId: other.lobby.lobbyId });
	assert.equal(joined.lobby.lobbyId, other.lobby.lobbyId);
});

await check("create refuses what the mode or the region does not allow", async () => {
	const create = (request) => guest.lobbies.create({ gameMode: "arena", ...request });
	const { metadata } = await refusesAsBadRequest(create({ gameMode: "duel" }), "MATCHMAKER_CUSTOM_LOBBIES_DISABLED");
	assert.deepEqual(metadata, { game_mode: "duel" });
	await refusesAsBadRequest(create({ gameMode: "no-such-mode" }), "MATCHMAKER_GAME_MODE_NOT_FOUND");
	await refusesAsBadRequest(create({ region: "no-such-region" }), "MATCHMAKER_REGION_NOT_FOUND");
	await refusesAsBadRequest(create({ maxPlayers: 11 }), "MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID");
	await refusesAsBadRequest(create({ tags: { key: "v".repeat(513) } }), "MATCHMAKER_TAG_TOO_LONG");
	await neverSends(create({ publicity: "secret" }));
});

await check("an empty lobby ends, and whatever is said to it is refused as such", async () => {
	for (const seat of [room, stranger]) {
		for (let times = 0; times < 2; times += 1) {
			assert.equal(await host.players.disconnected({ playerToken: seat.player.token }), undefined);
		}
	}
	const { lobbies } = await serve("heartbeat", { server_id: SERVER.server_id });
	assert.ok(lobbies.every((lobby) => lobby.lobby_id !== room.lobby.lobbyId));
	const { lobbyId } = room.lobby;
	await refusesAsBadRequest(guest.lobbies.join({ lobbyId }), "MATCHMAKER_LOBBY_STOPPED");
	for (const reader of [guest, host]) await refusesAsBadRequest(reader.lobbies.getState(lobbyId), "MATCHMAKER_LOBBY_STOPPED");
	await refusesAsBadRequest(host.lobbies.setState({}), "MATCHMAKER_LOBBY_STOPPED");
	await refusesAsBadRequest(host.lobbies.ready(), "MATCHMAKER_LOBBY_STOPPED");
	await refusesAsBadRequest(host.lobbies.setClosed({ isClosed: true }), "MATCHMAKER_LOBBY_STOPPED");
	await refusesAsBadRequest(host.players.connected({ playerToken: room.player.token }), "MATCHMAKER_LOBBY_STOPPED");
});

// --- headers ---

await check("every response carries x-request-id, and the same value as rvt-ray-id", async () => {
	assert.notEqual(responses.length, 0);
	for (const { operation, status, headers } of responses) assertRequestId(headers, `${operation}: ${status}`);
	const ids = responses.map((response) => response.headers["x-request-id"]);
	assert.equal(new Set(ids).size, ids.length, "each request has an id of its own");

	const success = await send("GET", "/cloud/bootstrap");
	assert.equal(success.status, 200);
	assertRequestId(success.headers, "plain success");
	const refusal = await send("POST", FIND_PATH, { body: '{"game_modes":["duel"]}' });
	assert.equal(refusal.status, 401);
	assertRequestId(refusal.headers, "plain refusal");
});

await check("operations whose response is empty answer an empty object as JSON", async () => {
	const { status, headers, body } = await send("PUT", `${namespacePath}/cdn-auth`, { token: tokens.cloud, body: '{"auth_type":"none"}' });
	assert.deepEqual([status, body], [200, {}]);
	assert.match(headers["content-type"], /^application\/json\b/);
});

await check("a browser game may call from any origin and read the request's id", async () => {
	const origin = "https://game.example";
	const preflight = await send("OPTIONS", FIND_PATH, {
		headers: {
			origin,
			"access-control-request-method": "POST",
			"access-control-request-headers": "authorization,content-type",
		},
	});
	assert.ok(preflight.status >= 200 && preflight.status < 300, `preflight ${preflight.status}`);
	const listed = (value = "") => value.toLowerCase().split(/\s*,\s*/);
	const allowsAny = (value, wanted) => listed(value).includes(wanted) || listed(value).includes("*");
	assert.ok(["*", origin].includes(preflight.headers["access-control-allow-origin"]));
	assert.ok(allowsAny(preflight.headers["access-control-allow-methods"], "post"));
	assert.ok(allowsAny(preflight.headers["access-control-allow-headers"], "content-type"));
	assert.ok(listed(preflight.headers["access-control-allow-headers"]).includes("authorization"), "a star never covers authorization");

	const answer = await send("GET", "/cloud/bootstrap", { headers: { origin } });
	assert.ok(["*", origin].includes(answer.headers["access-control-allow-origin"]));
	for (const header of ["x-request-id", "rvt-ray-id", "retry-after", "muster-warning"]) {
		assert.ok(listed(answer.headers["access-control-expose-headers"]).includes(header), `${header} is exposed`);
	}
	assert.equal(answer.headers["access-control-allow-credentials"], undefined);
});

// --- the whole interface ---

// The client never had operations for game servers and for seats, and describes versions otherwise, and games by their studio's group.
const NOT_THE_CLIENTS = [
	"GET /cloud/games/{game_id}",
	"GET /cloud/games/{game_id}/versions/{version_id}",
	"POST /cloud/games/{game_id}/versions/validate",
	"POST /cloud/games/{game_id}/versions",
	"POST /cloud/games/{game_id}/namespaces/{namespace_id}/tokens/server",
	"PUT /matchmaker/lobbies/publicity",
	"POST /matchmaker/players/leave",
	"POST /matchmaker/players/rejoin",
	"POST /matchmaker/players/remove",
	"POST /matchmaker/servers/register",
	"POST /matchmaker/servers/heartbeat",
	"POST /matchmaker/servers/end-lobby",
	"POST /matchmaker/servers/deregister",
];

await check("every other operation of the interface answered the client with success", async () => {
	const { paths } = JSON.parse(await readFile(new URL("../../../infra/openapi.json", import.meta.url), "utf8"));
	const methods = ["get", "put", "post", "delete", "patch"];
	const operations = Object.entries(paths).flatMap(([path, item]) =>
		methods.filter((method) => method in item).map((method) => `${method.toUpperCase()} ${path}`),
	);
	const isAnswered = (operation) => {
		const form = new RegExp(`^${operation.replace(/\{\w+\}/g, "[^/?]+")}(\\?.*)?$`);
		return responses.some((response) => !response.isMock && response.status === 200 && form.test(response.operation));
	};
	assert.deepEqual(operations.filter((operation) => !isAnswered(operation)).sort(), [...NOT_THE_CLIENTS].sort());
});

console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
