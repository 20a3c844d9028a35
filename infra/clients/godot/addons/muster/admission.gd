class_name MusterAdmission
extends Node
## Lets peers of a game server in by their player tokens, as authentication of `SceneMultiplayer`.
##
## A peer connects after Muster accepted it, and is reported disconnected when it goes.

## A player is there, in place of an earlier peer with the same `player_id` if there was one.
signal admitted(peer_id: int, player: MusterPlayer)
signal left(peer_id: int, player: MusterPlayer)

const BAD_GREETING := "BAD_GREETING"
const GREETING_BYTES_MAX := 4_096
## Longer than the looks for a young lobby and the call that reports the player connected.
const AUTH_SECONDS := 20.0
## For how long a refused peer may read why.
const REFUSAL_SECONDS := 1.0

@export var server: MusterServer
## For how long seats of players are kept whose connection ended; by default, -1, as the mode says.
@export var keep_seconds := -1

## By connected peer.
var players: Dictionary[int, MusterPlayer]

## By peer that Muster accepted, and that has not connected yet.
var _accepted: Dictionary[int, MusterPlayer]
var _guarded: SceneMultiplayer
## Peers that have shown something.
var _shown: Dictionary[int, bool]


## Guards the peers of `guarded`. Call it before its `multiplayer_peer` is set.
func guard(guarded: SceneMultiplayer) -> void:
	_guarded = guarded
	guarded.auth_callback = _on_shown
	guarded.auth_timeout = AUTH_SECONDS
	guarded.peer_connected.connect(_on_connected)
	guarded.peer_disconnected.connect(_on_gone)
	guarded.peer_authentication_failed.connect(_on_gone)
	server.lobby_ended.connect(_on_lobby_ended)


func _on_shown(id: int, data: PackedByteArray) -> void:
	if _shown.has(id):
		return
	_shown[id] = true
	# No peer may be disconnected in a poll.
	_examine.call_deferred(id, data)


func _examine(id: int, data: PackedByteArray) -> void:
	var greeting := {}
	var parser := JSON.new()
	if data.size() <= GREETING_BYTES_MAX and parser.parse(data.get_string_from_utf8()) == OK:
		greeting = parser.data if parser.data is Dictionary else {}
	var lobby_id: Variant = greeting.get("lobby_id")
	var token: Variant = greeting.get("player_token")
	if not (lobby_id is String and token is String):
		_refuse(id, BAD_GREETING)
		return
	var result := await server.admit(lobby_id, token)
	if result.error != null:
		_refuse(id, result.error.code)
	elif not server.lobbies.has(lobby_id):
		# It ended meanwhile.
		_refuse(id, MusterServer.UNKNOWN_LOBBY)
	elif not id in _guarded.get_authenticating_peers():
		_report_gone(result.player)
	else:
		_admit(id, result.player)


func _admit(id: int, player: MusterPlayer) -> void:
	for older: int in _of_lobby(player.lobby_id):
		if _of_peer(older).player_id == player.player_id:
			_drop(older)
	_accepted[id] = player
	_send(id, {"player_id": player.player_id})
	_guarded.complete_auth(id)


func _refuse(id: int, code: String) -> void:
	if id in _guarded.get_authenticating_peers():
		_send(id, {"code": code})
		await get_tree().create_timer(REFUSAL_SECONDS, true, false, true).timeout
	if id in _guarded.get_authenticating_peers():
		_drop(id)


func _send(id: int, answer: Dictionary) -> void:
	_guarded.send_auth(id, JSON.stringify(answer).to_utf8_buffer())


func _on_connected(id: int) -> void:
	players[id] = _accepted[id]
	_accepted.erase(id)
	admitted.emit(id, players[id])


func _on_gone(id: int) -> void:
	_shown.erase(id)
	var player := _of_peer(id)
	if player == null:
		return
	_accepted.erase(id)
	if players.erase(id):
		left.emit(id, player)
	_report_gone(player)


func _report_gone(player: MusterPlayer) -> void:
	if server.lobbies.has(player.lobby_id):
		server.report(await server.lobbies[player.lobby_id].disconnected(player, keep_seconds))


func _drop(id: int) -> void:
	_guarded.disconnect_peer(id)
	_on_gone(id)


func _on_lobby_ended(lobby: MusterLobby) -> void:
	for id in _of_lobby(lobby.lobby_id):
		_drop(id)


func _of_peer(id: int) -> MusterPlayer:
	return players.get(id, _accepted.get(id))


func _of_lobby(lobby_id: String) -> Array:
	return (players.keys() + _accepted.keys()).filter(
		func(id: int) -> bool: return _of_peer(id).lobby_id == lobby_id
	)
