class_name ScriptedWorld
extends MusterWorld
## A service that responds by a script, under a clock that goes only where a test leads it.
##
## Nothing else is waited for, so that all that is due has happened when `pass_time` returns.

## What the service responds to a request and the number of those before it: as in rules.json, null
## for a connection that breaks, or a `MusterPending` of that.
var answer: Callable
var drawn := 0.5
## Requests with `at`, `path`, `headers`, and `body` as text.
var requests: Array[Dictionary]

var _now := 1_000.0
## What is to be called, each with `at` and `then`.
var _timers: Array[Dictionary]


func _init(with_answer: Callable) -> void:
	super(null)
	answer = with_answer


func request(sent: MusterRequest, timeout_msec: float) -> MusterResponse:
	var headers := {}
	for line in sent.headers:
		headers[line.get_slice(": ", 0)] = line.get_slice(": ", 1)
	var noted := {
		"at": _now,
		"path": sent.url.trim_prefix("http://muster.example/matchmaker/"),
		"headers": headers,
		"body": sent.body,
	}
	requests.append(noted)
	var given: Variant = answer.call(noted, requests.size() - 1)
	if given is MusterPending:
		var pending: MusterPending = given
		after(timeout_msec, pending.settle.bind(null))
		given = await pending.wait()
	return _made(given)


func now_msec() -> float:
	return _now


func after(msec: float, then: Callable) -> void:
	_timers.append({"at": _now + msec, "then": then})


func random() -> float:
	return drawn


## Lets everything that is due until then happen, in its order.
func pass_time(msec: float) -> void:
	var end := _now + msec
	while not _timers.is_empty():
		var first: Dictionary = _timers.front()
		for timer in _timers:
			if timer["at"] < first["at"]:
				first = timer
		if first["at"] > end:
			break
		_now = maxf(_now, first["at"])
		_timers.erase(first)
		if first["then"].is_valid():
			first["then"].call()
	_now = end


## The requests of an operation such as `find`, their bodies as JSON.
func sent_to(operation: String) -> Array[Dictionary]:
	var found: Array[Dictionary]
	for one in requests:
		if one["path"].ends_with("/" + operation):
			found.append(one.merged({"json": JSON.parse_string(one["body"])}))
	return found


static func _made(given: Variant) -> MusterResponse:
	if given == null:
		return null
	var response: Dictionary = given
	var body := {}
	if response.has("code"):
		var metadata: Dictionary = response.get("metadata", {})
		body = {"code": response["code"], "message": "in words", "ray_id": "ray"}
		body["metadata"] = metadata
	else:
		for key: String in response:
			if key not in ["status", "retry_after", "body"]:
				body[key] = response[key]
	var headers := {}
	if response.has("retry_after"):
		headers["retry-after"] = response["retry_after"]
	var text: String = response.get("body", JSON.stringify(body))
	return MusterResponse.new(response.get("status", 200), headers, text)
