class_name MusterPlayer
extends RefCounted
## A player whom the game server admitted.

var lobby_id: String
var token: String
## Names the player within the lobby, also after coming back.
var player_id: String
## What the client says of its player; nobody has checked it. Numbers are floats.
var data: Variant
## Whether the player came back, and may have another connection: `MusterAdmission` drops that.
var is_replacing: bool
## Names the player's party, and says how many came together; empty and 0 for a player alone.
var party_id: String
var party_size: int


func _init(of_lobby: String, with_token: String, details: Dictionary) -> void:
	lobby_id = of_lobby
	token = with_token
	player_id = _or(details.get("player_id"), with_token)
	data = details.get("player_data")
	is_replacing = _or(details.get("replaced"), false)
	party_id = _or(details.get("party_id"), "")
	party_size = _or(details.get("party_size"), 0)


static func _or(value: Variant, otherwise: Variant) -> Variant:
	return otherwise if value == null else value
