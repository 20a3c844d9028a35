class_name MusterWorld
extends RefCounted
## What the client takes from its surroundings; tests pass their own.

var _host: Node


## Requests are made by children of `host`, which has to be in the tree.
func _init(host: Node) -> void:
	_host = host


## Sends a request once. Null when no response comes before `timeout_msec`.
func request(sent: MusterRequest, timeout_msec: float) -> MusterResponse:
	if not is_instance_valid(_host) or not _host.is_inside_tree():
		return null
	var http := HTTPRequest.new()
	http.process_mode = Node.PROCESS_MODE_ALWAYS
	_host.add_child(http)
	var pending := MusterPending.new()
	http.request_completed.connect(
		func(result: int, status: int, headers: PackedStringArray, body: PackedByteArray) -> void:
			pending.settle(_response(status, headers, body) if result == OK else null)
	)
	_timer(timeout_msec).timeout.connect(pending.settle.bind(null))
	if http.request(sent.url, sent.headers, sent.method, sent.body) != OK:
		pending.settle(null)
	var response: MusterResponse = await pending.wait()
	if is_instance_valid(http):
		http.queue_free()
	return response


## Milliseconds, which never go backwards while the program runs.
func now_msec() -> float:
	return Time.get_ticks_usec() / 1_000.0


## Calls `then` after so many milliseconds, unless its object is gone by then.
func after(msec: float, then: Callable) -> void:
	_timer(msec).timeout.connect(then)


func sleep(msec: float) -> void:
	var pending := MusterPending.new()
	after(msec, pending.settle.bind(null))
	await pending.wait()


## From 0 to below 1.
func random() -> float:
	return randf()


func _timer(msec: float) -> SceneTreeTimer:
	var tree: SceneTree = Engine.get_main_loop()
	return tree.create_timer(msec / 1_000.0, true, false, true)


static func _response(
	status: int, lines: PackedStringArray, body: PackedByteArray
) -> MusterResponse:
	var headers := {}
	for line in lines:
		headers[line.get_slice(":", 0).to_lower()] = line.substr(line.find(":") + 1).strip_edges()
	return MusterResponse.new(status, headers, body.get_string_from_utf8())
