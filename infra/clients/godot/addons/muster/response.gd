class_name MusterResponse
extends RefCounted
## A response as it came.

var status: int
## By names in lower case.
var headers: Dictionary
var body: String


func _init(with_status: int, with_headers: Dictionary, with_body: String) -> void:
	status = with_status
	headers = with_headers
	body = with_body


func is_success() -> bool:
	return status >= 200 and status < 300


## The body as a JSON object; null where it is none, as from a gateway or cut off.
func json() -> Variant:
	var parser := JSON.new()
	var is_object := parser.parse(body) == OK and parser.data is Dictionary
	return parser.data if is_object else null
