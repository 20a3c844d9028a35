class_name MusterGreeting
extends RefCounted
## A player's side of the authentication by `MusterAdmission`.

const NO_CONNECTION := "NO_CONNECTION"

var _shown: Dictionary
var _multiplayer: SceneMultiplayer
var _pending := MusterPending.new()


func _init(lobby_id: String, token: String) -> void:
	_shown = {"lobby_id": lobby_id, "player_token": token}


func show(multiplayer: SceneMultiplayer, peer: MultiplayerPeer) -> MusterResult:
	_multiplayer = multiplayer
	var lost := _refuse.bind(NO_CONNECTION)
	var lost_peer := func(_id: int) -> void: _refuse(NO_CONNECTION)
	multiplayer.auth_callback = _answered
	multiplayer.auth_timeout = MusterAdmission.AUTH_SECONDS
	multiplayer.peer_authenticating.connect(_greet)
	multiplayer.peer_authentication_failed.connect(lost_peer)
	multiplayer.connected_to_server.connect(_admit)
	multiplayer.connection_failed.connect(lost)
	multiplayer.multiplayer_peer = peer
	var result: MusterResult = await _pending.wait()
	multiplayer.peer_authenticating.disconnect(_greet)
	multiplayer.peer_authentication_failed.disconnect(lost_peer)
	multiplayer.connected_to_server.disconnect(_admit)
	multiplayer.connection_failed.disconnect(lost)
	if result.error != null:
		peer.close()
	return result


func _greet(id: int) -> void:
	_multiplayer.send_auth(id, JSON.stringify(_shown).to_utf8_buffer())


func _answered(id: int, data: PackedByteArray) -> void:
	var answer: Variant = JSON.parse_string(data.get_string_from_utf8())
	if answer is Dictionary and answer.has("player_id"):
		_multiplayer.complete_auth(id)
	else:
		_refuse(str(answer.get("code", "")) if answer is Dictionary else NO_CONNECTION)


# Deferred, since the caller may set another peer, which must not happen in a poll of this one.
func _admit() -> void:
	_pending.settle.call_deferred(MusterResult.new())


func _refuse(code: String) -> void:
	var status := 0 if code in ["", NO_CONNECTION] else 400
	var refused := MusterError.new("the game server did not admit the player", status, code)
	_pending.settle.call_deferred(MusterResult.failed(refused))
