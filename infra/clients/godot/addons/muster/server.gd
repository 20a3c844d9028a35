class_name MusterServer
extends Node
## A game server: registers, renews its lease, learns of its lobbies and admits their players.

## A lobby to run.
signal lobby_opened(lobby: MusterLobby)
## A lobby that has ended.
signal lobby_ended(lobby: MusterLobby)
## The server is deregistered and has no lobby any more.
signal stopped
## A later start of the server has registered, so this process is to end.
signal superseded(error: MusterError)
## A heartbeat failed. One without a response is repeated by the next.
signal failed(error: MusterError)

const LEASE_LEAST_SECONDS := 30
## How long the list of a heartbeat may lag behind the creation of a lobby.
const LAG_MSEC := 2_000
## Pauses between looks for a lobby whose player arrives before it is listed.
const LOOKS_MSEC: Array[int] = [0, 250, 500, 1_000]
## The least time between two such looks, however many players arrive.
const LOOK_PAUSE_MSEC := 250
const UNKNOWN_SERVER := "MATCHMAKER_SERVER_NOT_FOUND"
const UNKNOWN_LOBBY := "MATCHMAKER_LOBBY_NOT_FOUND"
const SUPERSEDED := "MATCHMAKER_LOBBY_STATE_CONFLICT"

## The API's address.
@export var url: String
## The namespace's server token. Never ship it with a client.
@export var token: String
@export var region: String
## Lobbies that it runs at once.
@export var capacity := 1
## What players connect to, by label: `{"default": {"hostname": …, "port": …, "protocol": "udp"}}`.
@export var ports: Dictionary
## Modes that it runs; all when empty.
@export var game_modes: PackedStringArray
## Names the server over restarts; when empty, its address does.
@export var server_id: String
## The lease is three times that, and at least 30.
@export var heartbeat_seconds := 30.0
## Whether lobbies are ready at once. Without it, `heartbeat_seconds` has to be 1 or 2.
@export var auto_ready := true
## The build that it runs, any JSON, for versions whose `servers` name it; when null, for versions
## without `servers`. Its whole numbers have to be `int`, while `JSON.parse_string` makes `float`.
@export var build: Variant

## The lobbies that run, by `lobby_id`.
var lobbies: Dictionary[String, MusterLobby]
var world := MusterWorld.new(self)

var _start_id := MusterIntent.new_key()
## Empty until it has registered.
var _id := ""
var _is_stopping := false
var _is_over := false
var _closed := MusterPending.new()
var _is_beating := false
## The heartbeat after the one that is under way, for all who need what that does not know yet.
var _next: MusterPending
var _looking: MusterPending
var _began_msec := -INF


## Registers, and from then on sends heartbeats. Connect to the signals before.
func start(call: MusterCall = MusterCall.new()) -> MusterResult:
	var result := await _register(call)
	if result.error != null:
		return result
	result = await beat()
	_run()
	return result


## Sends a heartbeat now; during another one, when that is over: there is one at a time.
func beat() -> MusterResult:
	if _next == null:
		_next = MusterPending.new()
	var mine := _next
	if not _is_beating:
		_beat_all()
	return await mine.wait()


## Admits a player who shows lobby and token: looks for a lobby that is too young to be listed, and
## reports the player connected. `MusterAdmission` calls this.
func admit(lobby_id: String, shown: String) -> MusterResult:
	if _id.is_empty():
		return MusterResult.failed(MusterError.new("the game server has not registered yet"))
	for pause in LOOKS_MSEC:
		if lobbies.has(lobby_id) or _is_over:
			break
		await world.sleep(pause)
		var looked := await _look()
		if looked.error != null:
			return looked
	if not lobbies.has(lobby_id):
		var unknown := "the game server does not run this lobby"
		return MusterResult.failed(MusterError.new(unknown, 400, UNKNOWN_LOBBY))
	return await lobbies[lobby_id].admit(shown)


## Deregisters: no new lobbies come. Ends when the last lobby has ended, at once with `end_lobbies`.
func stop(end_lobbies: bool = false) -> MusterResult:
	_is_stopping = true
	var result := await _send_named("deregister", {"end_lobbies": end_lobbies})
	if result.error != null and result.error.code != UNKNOWN_SERVER:
		return result
	if result.error != null or end_lobbies:
		_finish()
	else:
		await beat()
	if not _is_over:
		await _closed.wait()
	return MusterResult.new()


## Ends a lobby: `MusterLobby.end`.
func end_lobby(lobby: MusterLobby) -> MusterResult:
	var body := {"lobby_id": lobby.lobby_id}
	var result := await send(
		HTTPClient.METHOD_POST, "servers/end-lobby", token, body, MusterCall.new()
	)
	if result.error == null:
		_end(lobby)
		if _is_stopping:
			beat()
	return result


## Sends a call of a game server, under the token given.
func send(
	method: HTTPClient.Method, path: String, by: String, body: Variant, call: MusterCall
) -> MusterResult:
	var headers := ["authorization: Bearer " + by, "content-type: application/json"]
	var address := "%s/matchmaker/%s" % [url.rstrip("/"), path]
	var request := MusterRequest.new(method, address, headers, body)
	return await MusterHttp.send(world, request, call, MusterHttp.LONG_ATTEMPT_MSEC)


## Emits a failure of a call for which nobody waits.
func report(result: MusterResult) -> void:
	if result.error != null:
		failed.emit(result.error)


func _run() -> void:
	while not _is_over:
		await world.sleep(_interval_msec())
		if not _is_over:
			report(await beat())


func _interval_msec() -> int:
	return roundi(heartbeat_seconds * 1_000)


func _register(call: MusterCall) -> MusterResult:
	var lease := maxi(LEASE_LEAST_SECONDS, ceili(3 * heartbeat_seconds))
	var body := {
		"start_id": _start_id,
		"region_id": region,
		"capacity": capacity,
		"ports": ports,
		"auto_ready": auto_ready,
		"lease_seconds": lease,
	}
	if not server_id.is_empty():
		body["server_id"] = server_id
	if not game_modes.is_empty():
		body["game_modes"] = game_modes
	if build != null:
		body["build"] = build
	var result := await send(HTTPClient.METHOD_POST, "servers/register", token, body, call)
	if result.error == null:
		_id = result.data["server_id"]
	return result


func _beat_all() -> void:
	_is_beating = true
	while _next != null:
		var current := _next
		_next = null
		current.settle(await _heartbeat())
	_is_beating = false


# Renews the leases of server and lobbies, page by page, and notes which lobbies there are.
func _heartbeat() -> MusterResult:
	_began_msec = world.now_msec()
	var began_msec := _began_msec
	var listed := {}
	var body := {}
	while true:
		var result := await _send_named("heartbeat", body)
		if result.error != null and result.error.code == UNKNOWN_SERVER:
			result = await _return_unknown()
		if result.error != null:
			return result
		for assigned: Dictionary in result.data.get("lobbies", []):
			listed[assigned["lobby_id"]] = true
			_note(assigned)
		# The operator may have deregistered it, too.
		_is_stopping = _is_stopping or result.data.get("draining", false)
		if result.data.get("stop", false):
			_finish()
			return MusterResult.new()
		if result.data.get("cursor") == null:
			break
		body = {"cursor": result.data["cursor"]}
	for lobby: MusterLobby in lobbies.values():
		# A young one with players may only be missing. Without players nothing is lost by a mistake.
		var may_live := not lobby.players.is_empty() and lobby.since_msec + LAG_MSEC >= began_msec
		if not listed.has(lobby.lobby_id) and not may_live:
			_end(lobby)
	return MusterResult.new()


func _note(assigned: Dictionary) -> void:
	var lobby_id: String = assigned["lobby_id"]
	if lobbies.has(lobby_id):
		lobbies[lobby_id].update(assigned)
		return
	lobbies[lobby_id] = MusterLobby.new(self, assigned, world.now_msec())
	lobby_opened.emit(lobbies[lobby_id])


# A server that the service does not know has drained, or registers again. Its lobbies are gone.
func _return_unknown() -> MusterResult:
	if _is_stopping:
		_finish()
		return MusterResult.new()
	var result := await _register(MusterCall.new(_interval_msec()))
	if result.error != null and result.error.code == SUPERSEDED:
		_close()
		superseded.emit(result.error)
	elif result.error != null:
		return result
	return MusterResult.new()


# A heartbeat for all who arrive meanwhile, not too soon after the last one.
func _look() -> MusterResult:
	if _looking != null:
		var under_way := _looking
		return await under_way.wait()
	_looking = MusterPending.new()
	await world.sleep(maxf(0, _began_msec + LOOK_PAUSE_MSEC - world.now_msec()))
	var result := await beat()
	var looked := _looking
	_looking = null
	looked.settle(result)
	return result


func _end(lobby: MusterLobby) -> void:
	if lobbies.erase(lobby.lobby_id):
		lobby.is_ended = true
		lobby_ended.emit(lobby)


func _close() -> void:
	_is_over = true
	for lobby: MusterLobby in lobbies.values():
		_end(lobby)
	_closed.settle(null)


func _finish() -> void:
	if not _is_over:
		_close()
		stopped.emit()


func _send_named(operation: String, body: Dictionary) -> MusterResult:
	var named := {"server_id": _id, "start_id": _start_id}
	named.merge(body)
	var call := MusterCall.new(_interval_msec())
	return await send(HTTPClient.METHOD_POST, "servers/" + operation, token, named, call)
