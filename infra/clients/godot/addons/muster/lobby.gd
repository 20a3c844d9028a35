class_name MusterLobby
extends RefCounted
## A lobby that the game server runs.

## How long a player waits to be admitted. Other calls are repeated for longer.
const ADMISSION_MSEC := 10_000
const ALREADY_CONNECTED := "MATCHMAKER_PLAYER_ALREADY_CONNECTED"
## What a lobby that has ended responds to its last calls.
const OVER: Array[String] = ["MATCHMAKER_LOBBY_STOPPED", "MATCHMAKER_LOBBY_NOT_FOUND"]

var lobby_id: String
var game_mode: String
var region_id: String
var tags: Dictionary
## Seats that finds fill it up to.
var max_players: int
## What `create` was given for it. Numbers are floats.
var config: Variant
## Seats that are held, as of the last heartbeat: `reserved` and `connected`.
var seats: Dictionary
var is_ended := false
## Connected players by `player_id`.
var players: Dictionary[String, MusterPlayer]
## When this process learned of it, in milliseconds of its own clock.
var since_msec: float

var _token: String
## A node, which outlives its lobbies.
var _server: MusterServer
## Tokens of players who are connected or about to be.
var _shown: Dictionary[String, bool]


func _init(server: MusterServer, assigned: Dictionary, now_msec: float) -> void:
	_server = server
	lobby_id = assigned["lobby_id"]
	game_mode = assigned["game_mode"]
	region_id = assigned["region_id"]
	tags = assigned.get("tags", {})
	max_players = assigned["max_players"]
	config = assigned.get("lobby_config")
	since_msec = now_msec
	update(assigned)


## Takes over what another heartbeat says.
func update(assigned: Dictionary) -> void:
	seats = assigned["seats"]
	_token = assigned["lobby_token"]


## Reports a player as connected. `MusterServer.admit` finds the lobby first.
func admit(token: String) -> MusterResult:
	# The service distinguishes a token that is shown twice from a retry of this call by nothing.
	if _shown.has(token):
		var twice := MusterError.new("this token is connected", 400, ALREADY_CONNECTED)
		return MusterResult.failed(twice)
	_shown[token] = true
	var body := {"player_token": token, "details": true}
	var call := MusterCall.new(ADMISSION_MSEC)
	var result := await _post("players/connected", body, call)
	var details := result.data
	if result.error != null:
		if result.error.code != ALREADY_CONNECTED:
			_shown.erase(token)
			return result
		# Nobody was admitted by it: the response to an earlier call was lost.
		details = result.error.metadata
	result = MusterResult.of(details)
	result.player = MusterPlayer.new(lobby_id, token, details)
	players[result.player.player_id] = result.player
	return result


## Reports the end of a player's connection. The seat is kept for so many seconds; by default, -1,
## as the mode says.
func disconnected(player: MusterPlayer, keep_seconds: int = -1) -> MusterResult:
	_shown.erase(player.token)
	_forget(player)
	var body := {"player_token": player.token}
	if keep_seconds >= 0:
		body["keep_seconds"] = keep_seconds
	var result := _unless_over(await _post("players/disconnected", body))
	if result.error == null and players.is_empty() and not is_ended:
		_server.beat()
	return result


## Frees a player's seat, and keeps the player out for so many seconds; by default, -1, 8 hours.
func remove(player: MusterPlayer, exclude_seconds: int = -1) -> MusterResult:
	_forget(player)
	var body := {"player_token": player.token}
	if exclude_seconds >= 0:
		body["exclude_seconds"] = exclude_seconds
	return _unless_over(await _post("players/remove", body))


## Reports the lobby as ready, where the game server has `auto_ready` off.
func ready() -> MusterResult:
	return await _post("lobbies/ready", {})


## Hides the lobby from finds, such as when the match begins.
func close() -> MusterResult:
	return _unless_over(await _put("lobbies/closed", {"is_closed": true}))


## Lets finds see the lobby again.
func open() -> MusterResult:
	return await _put("lobbies/closed", {"is_closed": false})


## Makes the lobby `public` or `private`.
func set_publicity(publicity: String) -> MusterResult:
	return await _put("lobbies/publicity", {"publicity": publicity})


## Publishes any JSON in lists of lobbies.
func publish(state: Variant) -> MusterResult:
	return _unless_over(await _put("lobbies/state", state))


## Ends the lobby: the match is over.
func end() -> MusterResult:
	return await _server.end_lobby(self)


func _forget(player: MusterPlayer) -> void:
	if players.get(player.player_id) == player:
		players.erase(player.player_id)


func _post(path: String, body: Dictionary, call: MusterCall = MusterCall.new()) -> MusterResult:
	return await _server.send(HTTPClient.METHOD_POST, path, _token, body, call)


func _put(path: String, body: Variant) -> MusterResult:
	return await _server.send(HTTPClient.METHOD_PUT, path, _token, body, MusterCall.new())


static func _unless_over(result: MusterResult) -> MusterResult:
	if result.error != null and result.error.code in OVER:
		return MusterResult.new()
	return result
