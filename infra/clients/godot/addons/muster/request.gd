class_name MusterRequest
extends RefCounted
## A request as it is sent, the same in each attempt.

var method: HTTPClient.Method
var url: String
var headers: PackedStringArray
var body: String


func _init(
	with_method: HTTPClient.Method,
	with_url: String,
	with_headers: PackedStringArray = [],
	with_body: Variant = null
) -> void:
	method = with_method
	url = with_url
	headers = with_headers
	body = "" if method == HTTPClient.METHOD_GET else JSON.stringify(with_body, "", false, true)
