class_name MusterSeat
extends RefCounted
## A player's place in a lobby.

## How long a player token is valid.
const TOKEN_LIFE_MSEC := 9 * 3_600_000

var lobby_id: String
## `region_id` and `display_name`.
var region: Dictionary
## What friends type in place of `lobby_id`, in a lobby that this player created.
var code: String
## By label, what the game server registered.
var ports: Dictionary
## What the player shows the game server: the seat's newest player token.
var token: String
## When the token expires, in milliseconds of the client's own clock. Connect at once: before that,
## the seat is held only for the game mode's `reservation_seconds`.
var expires_at_msec: float
## The seats of a party in the order of `players_data`, this one first; without a party, this one.
var party: Array[MusterSeat]:
	get:
		var all: Array[MusterSeat] = [self]
		return all + _others

var _others: Array[MusterSeat]
var _world: MusterWorld
var _url: String


func _init(world: MusterWorld, url: String, answer: Dictionary, sent_at_msec: float) -> void:
	_world = world
	_url = url
	var lobby: Dictionary = answer["lobby"]
	lobby_id = lobby["lobby_id"]
	region = lobby["region"]
	code = lobby.get("code", "")
	_hold(answer, sent_at_msec)
	var players: Array = answer.get("players", [])
	for player: Dictionary in players.slice(1):
		var its := {"lobby": lobby, "ports": ports, "player": player}
		_others.append(MusterSeat.new(world, url, its, sent_at_msec))


## Gives the seat up. Once the player is connected, it is the game server that frees it when the
## connection ends.
func leave(call: MusterCall = MusterCall.new()) -> MusterResult:
	return await MusterHttp.send(_world, request_of(_url, "leave", token), call)


## Comes back to the seat: gets its newest token, a fresh one where that has connected.
func rejoin(call: MusterCall = MusterCall.new()) -> MusterResult:
	var sent_at_msec := _world.now_msec()
	var result := await MusterHttp.send(_world, request_of(_url, "rejoin", token), call)
	if result.error == null:
		_hold(result.data, sent_at_msec)
		result.seat = self
	return result


## The URL of a port, such as `wss://fra.example:443`; empty where no single port has the label.
func url(label: String = "", scheme: String = "ws") -> String:
	var found := _port(label)
	if found.is_empty():
		return ""
	return "%s%s://%s" % [scheme, "s" if found["is_tls"] else "", found["host"]]


## The name of the host of a port, for ENet; empty where no single port has the label.
func hostname(label: String = "") -> String:
	return _port(label).get("hostname", "")


## The number of a port; 0 where no single port has the label.
func port(label: String = "") -> int:
	return _port(label).get("port", 0)


## Connects `multiplayer` by `peer`, which is about to connect to a port of the seat, and shows the
## player token. Ends when the game server admitted the player; its error has the code of a refusal.
func connect_peer(multiplayer: SceneMultiplayer, peer: MultiplayerPeer) -> MusterResult:
	var greeting := MusterGreeting.new(lobby_id, token)
	return await greeting.show(multiplayer, peer)


## A call about a seat: its token is the right. It needs no header.
static func request_of(to_url: String, operation: String, of_token: String) -> MusterRequest:
	var address := "%s/matchmaker/players/%s" % [to_url, operation]
	var body := {"player_token": of_token}
	return MusterRequest.new(HTTPClient.METHOD_POST, address, [], body)


func _hold(answer: Dictionary, sent_at_msec: float) -> void:
	ports = answer["ports"]
	token = answer["player"]["token"]
	expires_at_msec = sent_at_msec + TOKEN_LIFE_MSEC


func _port(label: String) -> Dictionary:
	var found: Variant = ports.get(ports.keys().front() if label.is_empty() else label)
	return found if found is Dictionary and found.get("host") != null else {}
