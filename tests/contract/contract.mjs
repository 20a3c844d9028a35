// Drives the six operations of the interface with the npm client that existing games ship, unchanged.
//
// Usage: node contract.mjs BASE_URL, against a local stack that nothing else has used yet: lobbies are expected to be
// empty, and the finds below hold seven seats, one less than the default cap for one client address.

import assert from "node:assert/strict";
import { subscribe } from "node:diagnostics_channel";
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
	responses.push({ operation: `${request.method} ${request.path}`, status: response.statusCode, headers: response.headers });
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

/** Asserts an answer of find as the client's types promise it: no wire name is left, nothing is missing. */
function assertFound(found) {
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
function assertFoundIn(found, regionIds) {
	assertFound(found);
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
	await refusesAsBadRequest(find({ gameModes: ["duel", "no-such-mode"] }), "MATCHMAKER_GAME_MODE_NOT_FOUND");
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
	for (const header of ["x-request-id", "rvt-ray-id", "retry-after"]) {
		assert.ok(listed(answer.headers["access-control-expose-headers"]).includes(header), `${header} is exposed`);
	}
	assert.equal(answer.headers["access-control-allow-credentials"], undefined);
});

console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
