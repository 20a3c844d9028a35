class_name MusterClient
extends Node
## The matchmaker of one namespace, for players. The plugin's autoload is one.

## The API's address, such as `http://127.0.0.1:3000`.
@export var url: String = ProjectSettings.get_setting("muster/url", "")
## The namespace's public token. A page of a registered domain needs none.
@export var token: String = ProjectSettings.get_setting("muster/public_token", "")

var world := MusterWorld.new(self)

var _background: Array[MusterIntent]


## Finds a seat, in a lobby that fits or a new one.
func find(request: Dictionary, call: MusterCall = MusterCall.new()) -> MusterResult:
	return await _take("find", request, call)


## Takes a seat in a lobby, by its identifier or its code.
func join(request: Dictionary, call: MusterCall = MusterCall.new()) -> MusterResult:
	return await _take("join", request, call)


## Creates a lobby, private by default, and takes its first seat.
func create(request: Dictionary, call: MusterCall = MusterCall.new()) -> MusterResult:
	return await _take("create", request, call)


## Public lobbies that are open, a page of them, as `data`.
func list(query: Dictionary = {}, call: MusterCall = MusterCall.new()) -> MusterResult:
	return await _get_json("lobbies/list?%s" % HTTPClient.new().query_string_from_dict(query), call)


## The game's regions, the nearest first, as `data`.
func regions(call: MusterCall = MusterCall.new()) -> MusterResult:
	return await _get_json("regions", call)


## The seat of a token that somebody handed over, such as the leader of a party, or that was kept.
func seat(of_token: String, call: MusterCall = MusterCall.new()) -> MusterResult:
	var sent_at_msec := world.now_msec()
	var request := MusterSeat.request_of(_address(), "rejoin", of_token)
	var result := await MusterHttp.send(world, request, call)
	if result.error == null:
		result.seat = MusterSeat.new(world, _address(), result.data, sent_at_msec)
	return result


## Ends when nothing goes on in the background: seats of intents that were given up are left.
func settled() -> void:
	while not _background.is_empty():
		var first: MusterIntent = _background.front()
		await first.over


func _take(operation: String, request: Dictionary, call: MusterCall) -> MusterResult:
	if call.is_cancelled:
		return MusterResult.cancelled()
	var headers := _headers()
	headers.append("content-type: application/json")
	headers.append("idempotency-key: " + MusterIntent.new_key())
	var address := "%s/matchmaker/lobbies/%s" % [_address(), operation]
	var sent := MusterRequest.new(HTTPClient.METHOD_POST, address, headers, request)
	var sent_at_msec := world.now_msec()
	var intent := MusterIntent.new(world)
	_background.append(intent)
	intent.over.connect(func() -> void: _background.erase(intent), CONNECT_ONE_SHOT)
	var result := await intent.take(sent, call, _give_back)
	if result.error == null:
		result.seat = MusterSeat.new(world, _address(), result.data, sent_at_msec)
	return result


func _give_back(answer: Dictionary) -> void:
	for member in MusterSeat.new(world, _address(), answer, 0).party:
		await member.leave()


func _get_json(path: String, call: MusterCall) -> MusterResult:
	var address := "%s/matchmaker/%s" % [_address(), path]
	var request := MusterRequest.new(HTTPClient.METHOD_GET, address, _headers())
	return await MusterHttp.send(world, request, call)


func _headers() -> PackedStringArray:
	return [] if token.is_empty() else ["authorization: Bearer " + token]


func _address() -> String:
	return url.rstrip("/")
