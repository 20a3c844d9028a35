class_name MusterError
extends RefCounted
## A request that was refused, got no response in time, or was cancelled.

const CANCELLED := "CANCELLED"

var message: String
## The HTTP status; 0 where no response came.
var status: int
## The stable code of the error; empty where the gateway responded, or nobody.
var code: String
## Seconds after which a retry makes sense.
var retry_after: int
## Identifies the request in the service's log.
var ray_id: String
## A page that explains the code.
var documentation: String
## What the code promises, such as `max`.
var metadata: Dictionary


func _init(said: String, with_status: int = 0, with_code: String = "") -> void:
	message = said
	status = with_status
	code = with_code


## Whether the same request may succeed later: there was no response, or it was 408, 429 or 5xx.
func is_transient() -> bool:
	return not is_cancelled() and (status in [0, 408, 429] or status >= 500)


func is_cancelled() -> bool:
	return code == CANCELLED


func _to_string() -> String:
	return message if code.is_empty() else "%s: %s" % [code, message]


## What a response without success says.
static func refusal(response: MusterResponse) -> MusterError:
	var parsed: Variant = response.json()
	var body: Dictionary = {} if parsed == null else parsed
	var said := str(body.get("message", "status %d" % response.status))
	var error := MusterError.new(said, response.status, _text(body.get("code")))
	# A date would compare two clocks.
	var seconds: String = response.headers.get("retry-after", "")
	if seconds.is_valid_int() and seconds.to_int() >= 0:
		error.retry_after = seconds.to_int()
	error.ray_id = _text(body.get("ray_id", response.headers.get("x-request-id")))
	error.documentation = _text(body.get("documentation"))
	var promised: Variant = body.get("metadata")
	if promised is Dictionary:
		error.metadata = promised
	return error


static func _text(value: Variant) -> String:
	return value if value is String else ""
