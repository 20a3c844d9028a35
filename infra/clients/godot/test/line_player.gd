extends SceneTree
## A player of the Python game server in infra/docs/quickstart.md, which takes lines over TCP.


func _initialize() -> void:
	# From the first frame on, nodes are in the tree.
	await process_frame
	var client := MusterClient.new()
	client.url = OS.get_environment("API_URL")
	client.token = OS.get_environment("PUBLIC_TOKEN")
	root.add_child(client)
	var found := await client.find({"game_modes": ["dice"], "player_data": "Godot"})
	if found.error != null:
		printerr(found.error)
		quit(1)
		return
	var seat := found.seat
	print("a seat in lobby ", seat.lobby_id)
	var stream := StreamPeerTCP.new()
	stream.connect_to_host(seat.hostname(), seat.port())
	while stream.get_status() == StreamPeerTCP.STATUS_CONNECTING:
		await process_frame
		stream.poll()
	stream.put_data(("%s %s\n" % [seat.lobby_id, seat.token]).to_utf8_buffer())
	var line := ""
	while stream.get_status() == StreamPeerTCP.STATUS_CONNECTED and not line.ends_with("\n"):
		line += stream.get_utf8_string(stream.get_available_bytes())
		await process_frame
		stream.poll()
	print(line.strip_edges())
	quit()
