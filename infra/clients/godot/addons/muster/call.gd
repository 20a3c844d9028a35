class_name MusterCall
extends RefCounted
## How long a call may take, and what cancels it before.

signal cancelled

const DEADLINE_MSEC := 60_000

## Milliseconds from the call on, retries included.
var deadline_msec: int
var is_cancelled := false


func _init(with_deadline_msec: int = DEADLINE_MSEC) -> void:
	deadline_msec = with_deadline_msec


func cancel() -> void:
	if not is_cancelled:
		is_cancelled = true
		cancelled.emit()
