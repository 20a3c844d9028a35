extends Suite
## What a client repeats, when, and what it leaves behind: the cases of rules.json in passing time.

const FIND := {"game_modes": ["arena"]}
## The greatest number that a world may draw.
const ALMOST_ONE := 1.0 - 1e-12


func test_responses_are_retried_with_the_same_key_and_body_or_are_the_end() -> void:
	for rule: Dictionary in rules()["responses"]:
		for bound: int in 2:
			_play(rule, bound)


func _play(rule: Dictionary, bound: int) -> void:
	var name: String = rule["name"]
	var world := ScriptedWorld.new(
		func(_request: Dictionary, before: int) -> Variant:
			return rule["response"] if before == 0 else _seat()
	)
	world.drawn = [0.0, ALMOST_ONE][bound]
	var client := _client(world)
	var ended := outcome(client.find.bind(FIND))
	world.pass_time(rules()["deadline"]["default"])
	var result: MusterResult = ended.value
	if not rule["is_retried"]:
		var given: Dictionary = rule["response"]
		equal(world.requests.size(), 1, name)
		equal(result.error.status, int(given["status"]), name)
		equal(result.error.code, given.get("code", ""), name)
		equal(result.error.metadata, given.get("metadata", {}), name)
		return
	equal(world.requests.size(), 2, name)
	equal(result.seat.token, "player_first", name)
	var first := world.requests[0]
	var second := world.requests[1]
	var wait: float = second["at"] - first["at"]
	check(absf(wait - rule["wait"][bound]) < 1, "%s: waits %f ms" % [name, wait])
	equal(first["headers"]["authorization"], "Bearer pub_token", name)
	equal(first["headers"]["idempotency-key"].length(), 32, name)
	equal([second["headers"], second["body"]], [first["headers"], first["body"]], name)


func test_delays_double_up_to_their_last_bound() -> void:
	var world := ScriptedWorld.new(_never_responds)
	world.drawn = ALMOST_ONE
	var client := _client(world)
	var ended := outcome(client.find.bind(FIND))
	world.pass_time(rules()["deadline"]["default"])
	var bounds: Array = rules()["backoff"]["bounds"]
	for index in bounds.size():
		var wait: float = world.requests[index + 1]["at"] - world.requests[index]["at"]
		equal(roundf(wait), bounds[index], "wait %d" % index)
	equal(ended.value.error.status, 0, "status")
	var last: float = world.requests[-1]["at"] - world.requests[0]["at"]
	check(last > rules()["deadline"]["default_at_least"], "the last attempt is after %f" % last)


func test_an_attempt_may_take_as_long_as_the_service_takes() -> void:
	var world := ScriptedWorld.new(
		func(_request: Dictionary, before: int) -> Variant:
			return MusterPending.new() if before == 0 else _seat()
	)
	var client := _client(world)
	var ended := outcome(client.find.bind(FIND))
	var attempt: Dictionary = rules()["attempt"]
	world.pass_time(attempt["at_least"])
	equal(world.requests.size(), 1, "requests")
	var rest: float = attempt["seating"] - attempt["at_least"]
	world.pass_time(rest + rules()["backoff"]["bounds"][0])
	equal(ended.value.seat.token, "player_first", "token")


func test_each_intent_has_a_key_and_a_body_that_later_changes_do_not_reach() -> void:
	var world := ScriptedWorld.new(
		func(_request: Dictionary, before: int) -> Variant: return null if before == 0 else _seat()
	)
	var client := _client(world)
	var request := {"game_modes": ["arena"], "player_data": {"name": "Ada"}}
	var ended := outcome(client.find.bind(request))
	request["player_data"]["name"] = "Grace"
	world.pass_time(1_000)
	check(ended.value.seat != null, "no seat")
	await client.find(request)
	equal(world.requests[0]["body"], world.requests[1]["body"], "body of an attempt")
	check(world.requests[1]["body"] != world.requests[2]["body"], "the second intent has the body")
	var keys := world.requests.map(
		func(sent: Dictionary) -> String: return sent["headers"]["idempotency-key"]
	)
	equal(keys[0], keys[1], "key of an attempt")
	check(keys[1] != keys[2], "the second intent has the key")


func test_an_intent_that_is_given_up_leaves_its_seats() -> void:
	for rule: Dictionary in rules()["given_up"]["cases"]:
		for is_cancelled: bool in [true, false]:
			_give_up(rule, is_cancelled)


func _give_up(rule: Dictionary, is_cancelled: bool) -> void:
	var name := "%s, %s" % [rule["name"], "cancelled" if is_cancelled else "by deadline"]
	var given_up: Dictionary = rules()["given_up"]
	var first := MusterPending.new()
	var answers: Array = rule["before"] + rule["then"]
	var world := ScriptedWorld.new(
		func(request: Dictionary, index: int) -> Variant:
			if request["path"] == "players/leave":
				return {}
			return first if rule["during"] == "attempt" and index == 0 else _said(answers[index])
	)
	world.drawn = ALMOST_ONE
	var client := _client(world)
	# Within the last wait, of which the bound is known.
	var moment := -10.0
	for bound: float in rules()["backoff"]["bounds"].slice(0, rule["before"].size()):
		moment += bound
	moment = maxf(moment, 10)
	var call := MusterCall.new()
	if not is_cancelled:
		call.deadline_msec = roundi(moment)
	var ended := outcome(client.find.bind({"game_modes": ["arena"], "party_size": 2}, call))
	world.pass_time(moment)
	if is_cancelled:
		call.cancel()
	check(ended.value != null, "%s: goes on" % name)
	equal(ended.value.error.is_cancelled(), is_cancelled, name)
	if rule["during"] == "attempt":
		first.settle(_said(answers[0]))
	world.pass_time(given_up["within"])
	check(client._background.is_empty(), "%s: goes on in the background" % name)
	var finds := world.sent_to("find")
	equal(finds.size(), int(rule["requests"]), "%s: attempts" % name)
	for find in finds:
		equal([find["headers"], find["body"]], [finds[0]["headers"], finds[0]["body"]], name)
	var left := world.sent_to("leave").map(
		func(sent: Dictionary) -> String: return sent["json"]["player_token"]
	)
	equal(left, ["player_first", "player_1"] if rule["leaves"] else [], "%s: left" % name)


func test_what_is_given_up_is_looked_for_no_longer_than_its_limit() -> void:
	var world := ScriptedWorld.new(_never_responds)
	var client := _client(world)
	var call := MusterCall.new()
	var ended := outcome(client.find.bind(FIND, call))
	world.pass_time(1_000)
	call.cancel()
	var within: float = rules()["given_up"]["within"]
	world.pass_time(10 * within)
	check(client._background.is_empty(), "goes on")
	check(ended.value.error.is_cancelled(), "is not cancelled")
	check(world.requests[-1]["at"] - 2_000 <= within, "%f" % world.requests[-1]["at"])


func test_a_cancelled_call_sends_nothing_and_others_end_at_once() -> void:
	var world := ScriptedWorld.new(
		func(_request: Dictionary, _before: int) -> Variant: return MusterPending.new()
	)
	var client := _client(world)
	var call := MusterCall.new()
	call.cancel()
	var result := await client.find(FIND, call)
	check(result.error.is_cancelled(), "find")
	equal(world.requests.size(), 0, "requests")
	call = MusterCall.new()
	var ended := outcome(client.regions.bind(call))
	check(not ended.is_settled, "ended before")
	call.cancel()
	check(ended.value.error.is_cancelled(), "regions")


func test_a_seat_has_addresses_and_expires_by_the_clients_own_clock() -> void:
	var world := ScriptedWorld.new(
		func(_request: Dictionary, _before: int) -> Variant: return _seat()
	)
	var client := _client(world)
	var seat := (await client.find(FIND)).seat
	equal(seat.expires_at_msec, world.now_msec() + rules()["token_life"], "life")
	equal(seat.url(), "wss://fra.example:443", "WebSocket")
	equal(seat.url("default", "http"), "https://fra.example:443", "HTTP")
	equal([seat.hostname(), seat.port()], ["fra.example", 443], "host")
	equal([seat.url("voice"), seat.url("none"), seat.port("none")], ["", "", 0], "no single port")


func test_a_seat_is_left_and_comes_back_by_its_token_alone() -> void:
	var world := ScriptedWorld.new(
		func(request: Dictionary, _before: int) -> Variant:
			match request["path"]:
				"players/rejoin":
					return _seat(1, "player_second")
				"players/leave":
					return {}
			return _seat(3)
	)
	var client := _client(world)
	var seat := (await client.find(FIND)).seat
	equal(seat.party.map(_token), ["player_first", "player_1", "player_2"], "party")
	equal((await seat.rejoin()).seat.token, "player_second", "rejoin")
	equal((await client.seat("player_1")).seat.token, "player_second", "seat of a token")
	equal((await seat.leave()).error, null, "leave")
	for sent: Dictionary in world.requests.slice(1):
		equal(sent["headers"], {}, "headers")
	var shown := world.sent_to("rejoin").map(
		func(sent: Dictionary) -> String: return sent["json"]["player_token"]
	)
	equal(shown, ["player_first", "player_1"], "shown")
	equal(world.sent_to("leave")[0]["json"], {"player_token": "player_second"}, "left")


func _client(world: ScriptedWorld) -> MusterClient:
	var client := MusterClient.new()
	client.url = "http://muster.example/"
	client.token = "pub_token"
	client.world = world
	root.add_child(client)
	return client


static func _token(seat: MusterSeat) -> String:
	return seat.token


static func _never_responds(_request: Dictionary, _before: int) -> Variant:
	return null


static func _hangs(_request: Dictionary, _before: int) -> Variant:
	return MusterPending.new()


static func _said(what: Variant) -> Variant:
	if what is float:
		return {"status": int(what), "code": "API_BAD_BODY"}
	if what == "none":
		return null
	return _seat(2) if what == "seat" else {"status": 503, "code": what}


static func _seat(players: int = 1, token: String = "player_first") -> Dictionary:
	var tokens := [{"token": token}]
	for index in range(1, players):
		tokens.append({"token": "player_%d" % index})
	var one := {"host": "fra.example:443", "hostname": "fra.example", "port": 443, "is_tls": true}
	var many := {"host": null, "hostname": "fra.example", "port": null, "is_tls": true}
	var region := {"region_id": "fra", "display_name": "Frankfurt"}
	var answer := {
		"lobby": {"lobby_id": "one", "region": region},
		"ports": {"default": one, "voice": many},
		"player": tokens[0],
	}
	if players > 1:
		answer["players"] = tokens
	return answer
