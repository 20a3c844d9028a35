extends Suite
## Peers of a real ENet host, whose tokens a scripted service accepts or refuses.

var _world: ScriptedWorld
var _server: MusterServer
var _admission: MusterAdmission
var _guarded: SceneMultiplayer
## What the service responds to `connected`.
var _connected: Variant
var _lobbies: Array[Dictionary]
var _port := 0
var _count := 0


func test_a_peer_connects_after_its_token_was_accepted_and_is_reported_when_it_goes() -> void:
	await _serve()
	_connected = MusterPending.new()
	var player := SceneMultiplayer.new()
	var ended := outcome(_come.bind(player, "one"))
	await _until(func() -> bool: return _world.sent_to("connected").size() > 0)
	check(_guarded.get_peers().is_empty(), "connected before Muster accepted the token")
	equal(player.auth_timeout, _guarded.auth_timeout, "how long the two sides wait")
	check(not ended.is_settled, "admitted before Muster accepted the token")
	_connected.settle({"player_id": "ada", "player_data": "Ada"})
	await _until(func() -> bool: return ended.is_settled and not _admission.players.is_empty())
	equal(ended.value.error, null, "error")
	equal(_admission.players.values()[0].data, "Ada", "data")
	equal(Array(_guarded.get_peers()), _admission.players.keys(), "peers")
	player.multiplayer_peer.close()
	await _until(func() -> bool: return _world.sent_to("disconnected").size() > 0)
	equal(_world.sent_to("disconnected")[0]["json"], {"player_token": "player_one"}, "report")
	check(_admission.players.is_empty(), "the player is still there")


func test_a_refused_peer_learns_the_code_and_never_connects() -> void:
	await _serve()
	_connected = {"status": 400, "code": "MATCHMAKER_PLAYER_REMOVED"}
	var result := await _come(SceneMultiplayer.new(), "one")
	equal(result.error.code, "MATCHMAKER_PLAYER_REMOVED", "code")
	check(not result.error.is_transient(), "the refusal is transient")
	equal(_admission.players.size() + _guarded.get_peers().size(), 0, "peers")
	equal(_world.sent_to("disconnected").size(), 0, "reports")


func test_a_peer_that_shows_no_token_is_refused() -> void:
	await _serve()
	for shown: String in ["", "hello", "[]", '{"lobby_id": 1}', "x".repeat(5_000)]:
		var greeting := MusterGreeting.new("one", "player")
		greeting._shown = {"player_token": shown}
		var result := await greeting.show(_new_peer(SceneMultiplayer.new()), _dial())
		equal(result.error.code, "BAD_GREETING", shown.left(20))
	equal(_world.sent_to("connected").size(), 0, "requests")


func test_a_peer_that_goes_while_muster_accepts_it_is_reported() -> void:
	await _serve()
	_connected = MusterPending.new()
	var player := SceneMultiplayer.new()
	outcome(_come.bind(player, "one"))
	await _until(func() -> bool: return _world.sent_to("connected").size() > 0)
	player.multiplayer_peer.close()
	await _until(func() -> bool: return _guarded.get_authenticating_peers().is_empty())
	_connected.settle({"player_id": "ada"})
	equal(_world.sent_to("disconnected").size(), 1, "reports")


func test_a_player_who_comes_back_replaces_the_earlier_peer() -> void:
	await _serve()
	_connected = {"player_id": "ada"}
	var first := SceneMultiplayer.new()
	var is_gone := MusterPending.new()
	first.server_disconnected.connect(is_gone.settle.bind(true))
	await _come(first, "one")
	_connected = {"player_id": "ada", "replaced": true}
	await _come(SceneMultiplayer.new(), "two")
	await is_gone.wait()
	await _until(func() -> bool: return _admission.players.size() == 1)
	equal(_admission.players.values()[0].token, "player_two", "token")


func test_the_peers_of_a_lobby_that_has_ended_are_disconnected() -> void:
	await _serve()
	_connected = {"player_id": "ada"}
	var player := SceneMultiplayer.new()
	var is_gone := MusterPending.new()
	player.server_disconnected.connect(is_gone.settle.bind(true))
	await _come(player, "one")
	await _until(func() -> bool: return not _admission.players.is_empty())
	await _server.lobbies["arena"].end()
	await is_gone.wait()
	check(_admission.players.is_empty(), "the player is still there")


func test_a_peer_whose_lobby_ends_while_muster_accepts_it_is_refused() -> void:
	await _serve()
	_connected = MusterPending.new()
	var ended := outcome(_come.bind(SceneMultiplayer.new(), "one"))
	await _until(func() -> bool: return _world.sent_to("connected").size() > 0)
	await _server.lobbies["arena"].end()
	_connected.settle({"player_id": "ada"})
	equal((await ended.wait()).error.code, "MATCHMAKER_LOBBY_NOT_FOUND", "code")


func test_a_peer_that_reaches_no_game_server_may_try_again() -> void:
	await _serve()
	_guarded.multiplayer_peer.close()
	# Nobody listens for TCP.
	var peer := WebSocketMultiplayerPeer.new()
	peer.create_client("ws://127.0.0.1:%d" % _port)
	var greeting := MusterGreeting.new("arena", "player_one")
	var result := await greeting.show(_new_peer(SceneMultiplayer.new()), peer)
	equal(result.error.code, MusterGreeting.NO_CONNECTION, "code")
	check(result.error.is_transient(), "the error is not transient")


func _serve() -> void:
	if _guarded != null:
		_guarded.multiplayer_peer.close()
	_world = ScriptedWorld.new(_answer)
	_server = MusterServer.new()
	_server.url = "http://muster.example"
	_server.world = _world
	root.add_child(_server)
	_admission = MusterAdmission.new()
	_admission.server = _server
	root.add_child(_admission)
	_guarded = _new_peer(SceneMultiplayer.new())
	_admission.guard(_guarded)
	var host := ENetMultiplayerPeer.new()
	host.set_bind_ip("127.0.0.1")
	equal(host.create_server(0), OK, "port")
	_port = host.host.get_local_port()
	_guarded.multiplayer_peer = host
	await _server.start()


func _answer(request: Dictionary, _before: int) -> Variant:
	match request["path"].get_slice("/", 1):
		"register":
			return {"server_id": "s"}
		"heartbeat":
			return {"lobbies": [_arena()]}
		"connected":
			return _connected
	return {}


# A node of its own, for which the tree polls the peer.
func _new_peer(its: SceneMultiplayer) -> SceneMultiplayer:
	var node := Node.new()
	node.name = "peer%d" % _count
	_count += 1
	root.add_child(node)
	set_multiplayer(its, node.get_path())
	return its


func _come(player: SceneMultiplayer, token: String) -> MusterResult:
	var greeting := MusterGreeting.new("arena", "player_" + token)
	return await greeting.show(_new_peer(player), _dial())


func _dial() -> ENetMultiplayerPeer:
	var peer := ENetMultiplayerPeer.new()
	peer.create_client("127.0.0.1", _port)
	return peer


func _until(is_so: Callable) -> void:
	while not is_so.call():
		await process_frame


static func _arena() -> Dictionary:
	return {
		"lobby_id": "arena",
		"lobby_token": "lobby_arena",
		"game_mode": "arena",
		"region_id": "fra",
		"tags": {},
		"max_players": 2,
		"seats": {"reserved": 1, "connected": 0},
	}
