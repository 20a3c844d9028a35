class_name MusterPending
extends RefCounted
## A value that comes once: the first one counts.

signal settled

var is_settled := false
var value: Variant


func settle(with: Variant) -> void:
	if is_settled:
		return
	is_settled = true
	value = with
	settled.emit()


## The value, as soon as it is there.
func wait() -> Variant:
	if not is_settled:
		await settled
	return value
