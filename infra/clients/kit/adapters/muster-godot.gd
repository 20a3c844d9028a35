extends SceneTree
## The addon of Godot: `godot --headless --no-header --path ../../godot --script` this file.

var _client := MusterClient.new()
var _seats: Dictionary[String, MusterSeat]
var _calls: Dictionary[String, MusterCall]
var _reader := Thread.new()


func _initialize() -> void:
	_client.url = OS.get_environment("MUSTER_URL")
	_client.token = OS.get_environment("MUSTER_TOKEN")
	root.add_child(_client)
	_reader.start(_read)


func _finalize() -> void:
	_reader.wait_to_finish()


# Standard input blocks.
func _read() -> void:
	while true:
		var line := OS.read_string_from_stdin(65_536)
		if line.is_empty():
			quit.call_deferred()
			return
		_perform.call_deferred(JSON.parse_string(line))


func _perform(intent: Dictionary) -> void:
	if intent["do"] == "abort":
		if _calls.has(intent["of"]):
			_calls[intent["of"]].cancel()
		return
	var id: String = intent["id"]
	var call := MusterCall.new()
	_calls[id] = call
	var result := await _carry_out(intent, call)
	if result.error != null:
		await _client.settled()
	_calls.erase(id)
	var outcome := {"id": id}
	if result.error != null and result.error.is_cancelled():
		outcome["aborted"] = true
	elif result.error != null:
		outcome["error"] = str(result.error)
	elif result.seat != null:
		_seats[id] = result.seat
		outcome["lobby_id"] = result.seat.lobby_id
		outcome["tokens"] = result.seat.party.map(
			func(seat: MusterSeat) -> String: return seat.token
		)
	print(JSON.stringify(outcome))


func _carry_out(intent: Dictionary, call: MusterCall) -> MusterResult:
	match intent["do"]:
		"leave":
			return await _seats[intent["of"]].leave(call)
		"rejoin":
			return await _seats[intent["of"]].rejoin(call)
		"find":
			return await _client.find(_request(intent), call)
		"join":
			return await _client.join(_request(intent), call)
	return await _client.create(_request(intent), call)


# JSON has made floats of numbers.
func _request(intent: Dictionary) -> Dictionary:
	var request: Dictionary = intent["request"]
	if request.has("party_size"):
		request["party_size"] = int(request["party_size"])
	return request
