extends SceneTree
## A player of the README's game server: comes back to the seat of `SEAT_TOKEN`, or finds one.


func _initialize() -> void:
	# From the first frame on, nodes are in the tree.
	await process_frame
	var client := MusterClient.new()
	client.url = OS.get_environment("API_URL")
	client.token = OS.get_environment("PUBLIC_TOKEN")
	root.add_child(client)
	var result: MusterResult
	if OS.has_environment("SEAT_TOKEN"):
		result = await client.seat(OS.get_environment("SEAT_TOKEN"))
	else:
		result = await client.find({"game_modes": ["duel"], "player_data": "Bob"})
	var seat := result.seat
	print(seat.token)
	var peer := ENetMultiplayerPeer.new()
	peer.create_client(seat.hostname(), seat.port())
	var connected := await seat.connect_peer(get_multiplayer(), peer)
	print("admitted" if connected.error == null else str(connected.error))
