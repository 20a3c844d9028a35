extends Suite
## A game server's heartbeats and admissions: the cases of rules.json in passing time.

const DETAILS := {
	"player_id": "ada",
	"replaced": true,
	"player_data": {"name": "Ada"},
	"party_id": "p",
	"party_size": 2
}

var _world: ScriptedWorld
var _server: MusterServer
## What the service responds by operation, each an object or a function of the request's body.
var _answers: Dictionary
var _events: Array[String]


func test_a_heartbeat_has_a_lease_of_three_times_its_interval() -> void:
	for rule: Dictionary in rules()["heartbeats"]["lease"]:
		var every: float = rule["every_seconds"]
		_serve({"heartbeat": {"lobbies": []}})
		_server.heartbeat_seconds = every
		await _server.start()
		_world.pass_time(3 * every * 1_000)
		var registration: Dictionary = _world.sent_to("register")[0]["json"]
		equal(registration["lease_seconds"], rule["lease_seconds"], "lease")
		var beats := _world.sent_to("heartbeat")
		var times := beats.map(func(beat: Dictionary) -> float: return beat["at"] - beats[0]["at"])
		equal(times, [0.0, every * 1_000, 2 * every * 1_000, 3 * every * 1_000], "times")
		for beat in beats:
			var named := {"server_id": "s", "start_id": registration["start_id"]}
			equal(beat["json"], named, "heartbeat")


func test_a_registration_has_the_build_if_there_is_one() -> void:
	for build: Variant in [null, {"image": "game:7"}]:
		_serve({"heartbeat": {"lobbies": []}})
		_server.build = build
		await _server.start()
		var registration: Dictionary = _world.sent_to("register")[0]["json"]
		equal(registration.has("build"), build != null, "has a build")
		equal(registration.get("build"), build, "build")


func test_responses_to_heartbeats() -> void:
	for rule: Dictionary in rules()["heartbeats"]["responses"]:
		_play(rule)


func _play(rule: Dictionary) -> void:
	var name: String = rule["name"]
	var answer := {"lobbies": [_lobby("one")]}
	var page := func(body: Dictionary) -> Variant:
		return {"lobbies": [_lobby("two")]} if body.has("cursor") else answer
	_serve({"heartbeat": page})
	_server.start()
	if rule.get("is_draining", false):
		_server.stop()
	_world.pass_time(25_000)
	var before := _world.sent_to("heartbeat").size()
	answer.merge(rule["response"])
	if rule.has("registration"):
		_answers["register"] = rule["registration"]
	_world.pass_time(5_000)
	var then: String = rule["then"]
	var expected: Dictionary[String, Array] = {
		"beat": ["opened two"],
		"register": ["ended one"],
		"exit": ["ended one", "superseded MATCHMAKER_LOBBY_STATE_CONFLICT"],
		"stop": ["ended one", "stopped"],
		"error": ["failed %s" % rule["response"].get("code")],
	}
	equal(_events, ["opened one"] + expected[then], name)
	var since := _world.sent_to("heartbeat").size() - before
	equal(since, 2 if then == "beat" else 1, "%s: heartbeats" % name)
	var registrations := _world.sent_to("register")
	equal(registrations.size(), 2 if then in ["register", "exit"] else 1, name)
	var start_id: String = registrations[0]["json"]["start_id"]
	equal(registrations[-1]["json"]["start_id"], start_id, name)
	# What has ended sends no more.
	_world.pass_time(300_000)
	if then in ["exit", "stop"]:
		equal(_world.sent_to("heartbeat").size() - before, 1, "%s: later" % name)


func test_heartbeats_come_one_at_a_time_and_those_wanted_meanwhile_are_one() -> void:
	var gate := MusterPending.new()
	_serve({"heartbeat": {"lobbies": []}})
	await _server.start()
	var before := _world.sent_to("heartbeat").size()
	_answers["heartbeat"] = gate
	var beats := range(5).map(func(_index: int) -> MusterPending: return outcome(_server.beat))
	equal(_world.sent_to("heartbeat").size() - before, 1, "at once")
	gate.settle({"lobbies": []})
	equal(_world.sent_to("heartbeat").size() - before, 2, "in all")
	for beat: MusterPending in beats:
		equal(beat.value.error, null, "error")


func test_a_server_whose_heartbeats_get_no_response_keeps_its_lobbies_and_goes_on() -> void:
	_serve({"heartbeat": {"lobbies": [_lobby("one")]}})
	await _server.start()
	_answers["heartbeat"] = null
	_world.pass_time(120_000)
	check(_server.lobbies.has("one"), "the lobby is gone")
	check(_world.sent_to("heartbeat").size() > 8, "few heartbeats")
	equal(_events.count("failed "), _events.size() - 1, "events")


func test_a_missing_lobby_has_ended_unless_it_has_players_and_is_young() -> void:
	_serve({"heartbeat": {"lobbies": [_lobby("old")]}, "connected": {"player_id": "ada"}})
	await _server.start()
	await _server.admit("old", "player_a")
	_world.pass_time(29_000)
	_answers["heartbeat"] = {"lobbies": [_lobby("old"), _lobby("young"), _lobby("empty")]}
	await _server.beat()
	await _server.admit("young", "player_b")
	_answers["heartbeat"] = {"lobbies": []}
	_world.pass_time(1_000)
	var before := ["opened old", "opened young", "opened empty", "ended old", "ended empty"]
	equal(_events, before, "at first")
	_world.pass_time(30_000)
	equal(_events, before + ["ended young"], "later")


func test_the_player_of_a_lobby_that_is_not_listed_yet_waits_for_it() -> void:
	_serve({"heartbeat": {"lobbies": []}, "connected": {"player_id": "ada"}})
	await _server.start()
	var before := _world.sent_to("heartbeat").size()
	var arriving := outcome(_server.admit.bind("one", "player_a"))
	_world.pass_time(100)
	check(not arriving.is_settled, "ended before")
	_answers["heartbeat"] = {"lobbies": [_lobby("one")]}
	_world.pass_time(2_000)
	equal(arriving.value.player.player_id, "ada", "player")
	var connected := _world.sent_to("connected")[0]
	equal(connected["headers"]["authorization"], "Bearer lobby_one", "token")
	equal(connected["json"], {"player_token": "player_a", "details": true}, "body")
	var since := _world.sent_to("heartbeat").size()
	check(since - before <= 2, "%d heartbeats" % (since - before))
	var unknown := range(20).map(
		func(_index: int) -> MusterPending: return outcome(_server.admit.bind("none", "player_b"))
	)
	_world.pass_time(3_000)
	for ended: MusterPending in unknown:
		equal(ended.value.error.code, "MATCHMAKER_LOBBY_NOT_FOUND", "unknown")
	since = _world.sent_to("heartbeat").size() - since
	check(since <= 8, "%d heartbeats for an unknown lobby" % since)


func test_admissions() -> void:
	for rule: Dictionary in rules()["admission"]:
		await _admit(rule)


func _admit(rule: Dictionary) -> void:
	var name: String = rule["name"]
	_serve({"heartbeat": {"lobbies": [_lobby("one")]}, "connected": DETAILS})
	await _server.start()
	var given: Dictionary = rule.get("response", {})
	if rule.get("is_shown", false):
		await _server.admit("one", "player_a")
	elif given.has("status"):
		_answers["connected"] = given.merged({"metadata": DETAILS})
	var result := await _server.admit("one", "player_a")
	if rule["then"] == "refuse":
		var twice := "MATCHMAKER_PLAYER_ALREADY_CONNECTED"
		equal(result.error.code, given.get("code", twice), name)
		check(not result.error.is_transient(), name)
		return
	var player := result.player
	equal([player.player_id, player.is_replacing], ["ada", true], name)
	equal([player.data, player.party_id, player.party_size], [{"name": "Ada"}, "p", 2], name)
	await _server.lobbies["one"].disconnected(player, 20)
	var sent: Dictionary = _world.sent_to("disconnected")[0]["json"]
	equal(sent, {"player_token": "player_a", "keep_seconds": 20.0}, name)


func test_a_token_is_admitted_once_however_many_show_it_at_once() -> void:
	var gate := MusterPending.new()
	_serve({"heartbeat": {"lobbies": [_lobby("one")]}, "connected": gate})
	await _server.start()
	var shown := range(3).map(
		func(_index: int) -> MusterPending: return outcome(_server.admit.bind("one", "player_a"))
	)
	gate.settle({"player_id": "ada"})
	var admitted := shown.filter(
		func(ended: MusterPending) -> bool: return ended.value.error == null
	)
	equal(admitted.size(), 1, "admitted")


func test_a_player_who_was_not_admitted_in_time_shows_the_token_again() -> void:
	_serve({"heartbeat": {"lobbies": [_lobby("one")]}, "connected": null})
	await _server.start()
	var ended := outcome(_server.admit.bind("one", "player_a"))
	_world.pass_time(15_000)
	check(ended.value.error.is_transient(), "is not transient")
	var sent := _world.sent_to("connected")
	check(sent[-1]["at"] - sent[0]["at"] < 10_000, "waits for too long")
	_answers["connected"] = {"player_id": "ada"}
	equal((await _server.admit("one", "player_a")).player.player_id, "ada", "again")


func test_a_player_who_comes_before_the_server_registered_is_to_come_again() -> void:
	_serve({})
	var result := await _server.admit("one", "player_a")
	check(result.error.is_transient(), "is not transient")
	equal(_world.requests.size(), 0, "requests")


func test_a_lobby_is_ended_and_the_server_stops() -> void:
	_serve({"heartbeat": {"lobbies": [_lobby("one"), _lobby("two")]}})
	await _server.start()
	await _server.lobbies["one"].end()
	equal(_world.sent_to("end-lobby")[0]["json"], {"lobby_id": "one"}, "body")
	var result := await _server.stop(true)
	equal(result.error, null, "error")
	equal(_world.sent_to("deregister")[0]["json"]["end_lobbies"], true, "deregister")
	equal(_events, ["opened one", "opened two", "ended one", "ended two", "stopped"], "events")


func _serve(answers: Dictionary) -> void:
	_answers = {"register": {"server_id": "s"}}
	_answers.merge(answers)
	_world = ScriptedWorld.new(_answer)
	_server = MusterServer.new()
	_server.url = "http://muster.example/"
	_server.token = "server_token"
	_server.region = "fra"
	_server.ports = {"default": {"hostname": "fra.example", "port": 7777, "protocol": "udp"}}
	_server.world = _world
	root.add_child(_server)
	_events = []
	_server.lobby_opened.connect(_note_lobby.bind("opened"))
	_server.lobby_ended.connect(_note_lobby.bind("ended"))
	_server.stopped.connect(func() -> void: _events.append("stopped"))
	_server.superseded.connect(_note_error.bind("superseded"))
	_server.failed.connect(_note_error.bind("failed"))


func _answer(request: Dictionary, _before: int) -> Variant:
	var answer: Variant = _answers.get(request["path"].get_slice("/", 1), {})
	return answer.call(JSON.parse_string(request["body"])) if answer is Callable else answer


func _note_lobby(lobby: MusterLobby, event: String) -> void:
	_events.append("%s %s" % [event, lobby.lobby_id])


func _note_error(error: MusterError, event: String) -> void:
	_events.append("%s %s" % [event, error.code])


static func _lobby(lobby_id: String) -> Dictionary:
	return {
		"lobby_id": lobby_id,
		"lobby_token": "lobby_" + lobby_id,
		"game_mode": "arena",
		"region_id": "fra",
		"tags": {},
		"max_players": 2,
		"seats": {"reserved": 1, "connected": 0},
	}
