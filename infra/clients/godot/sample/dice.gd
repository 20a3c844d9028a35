extends Node
## A game of dice for two: `-- server` runs the game server, `-- player NAME` a player.
##
## The variables are those of infra/docs/quickstart.md, `API_URL`, `SERVER_TOKEN`, `PUBLIC_TOKEN`;
## `PORT`, 7777 by default; and `TRANSPORT`, `enet` by default, or `websocket`.

const HOST := "127.0.0.1"

var _admission := MusterAdmission.new()


func _ready() -> void:
	var arguments := OS.get_cmdline_user_args()
	if arguments.is_empty() or arguments[0] == "server":
		await _serve()
	else:
		await _play(arguments[arguments.size() - 1])


func _serve() -> void:
	var port := int(_variable("PORT", "7777"))
	var server := MusterServer.new()
	server.url = _variable("API_URL")
	server.token = _variable("SERVER_TOKEN")
	server.region = "local"
	server.capacity = 10
	var protocol := "http" if _is_websocket() else "udp"
	server.ports = {"default": {"hostname": HOST, "port": port, "protocol": protocol}}
	server.failed.connect(func(error: MusterError) -> void: push_warning(error))
	add_child(server)

	_admission.server = server
	add_child(_admission)
	_admission.admitted.connect(_roll)
	_admission.guard(multiplayer)
	# Players of one lobby are no peers of those of another.
	(multiplayer as SceneMultiplayer).server_relay = false
	var peer := _listen(port)
	if peer == null:
		return _give_up("port %d is taken" % port)
	multiplayer.multiplayer_peer = peer

	var started := await server.start()
	if started.error != null:
		return _give_up(str(started.error))
	print("the game server is registered")


func _listen(port: int) -> MultiplayerPeer:
	if _is_websocket():
		var sockets := WebSocketMultiplayerPeer.new()
		return sockets if sockets.create_server(port, HOST) == OK else null
	var peer := ENetMultiplayerPeer.new()
	peer.set_bind_ip(HOST)
	return peer if peer.create_server(port) == OK else null


func _roll(_peer_id: int, player: MusterPlayer) -> void:
	var there := _admission.players.keys().filter(
		func(id: int) -> bool: return _admission.players[id].lobby_id == player.lobby_id
	)
	if there.size() < 2:
		return
	var rolls := there.map(
		func(id: int) -> String:
			return "%s rolled %d" % [_admission.players[id].data, randi_range(1, 6)]
	)
	rolls.sort()
	for id: int in there:
		_show.rpc_id(id, ", ".join(rolls))
	await _admission.server.lobbies[player.lobby_id].end()


func _play(player_name: String) -> void:
	Muster.url = _variable("API_URL")
	Muster.token = _variable("PUBLIC_TOKEN")
	var found := await Muster.find({"game_modes": ["dice"], "player_data": player_name})
	if found.error != null:
		return _give_up(str(found.error))
	var seat := found.seat
	print("a seat in lobby ", seat.lobby_id)
	var connected := await seat.connect_peer(multiplayer, _connect(seat))
	if connected.error != null:
		return _give_up(str(connected.error))
	multiplayer.server_disconnected.connect(_give_up.bind("the game server is gone"))


func _connect(seat: MusterSeat) -> MultiplayerPeer:
	if _is_websocket():
		var socket := WebSocketMultiplayerPeer.new()
		socket.create_client(seat.url())
		return socket
	var peer := ENetMultiplayerPeer.new()
	peer.create_client(seat.hostname(), seat.port())
	return peer


@rpc("authority")
func _show(rolls: String) -> void:
	print(rolls)
	get_tree().quit()


func _give_up(reason: String) -> void:
	printerr(reason)
	get_tree().quit(1)


func _is_websocket() -> bool:
	return _variable("TRANSPORT", "enet") == "websocket"


static func _variable(variable: String, otherwise: String = "") -> String:
	return OS.get_environment(variable) if OS.has_environment(variable) else otherwise
