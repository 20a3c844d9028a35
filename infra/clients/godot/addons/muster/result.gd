class_name MusterResult
extends RefCounted
## How a call ended.

## Why it failed; null when it succeeded.
var error: MusterError
## The seat that a find, join, create or rejoin has.
var seat: MusterSeat
## The player whom a game server admitted.
var player: MusterPlayer
## The response's body.
var data: Dictionary


static func of(with_data: Dictionary) -> MusterResult:
	var result := MusterResult.new()
	result.data = with_data
	return result


static func failed(with_error: MusterError) -> MusterResult:
	var result := MusterResult.new()
	result.error = with_error
	return result


static func cancelled() -> MusterResult:
	return failed(MusterError.new("cancelled", 0, MusterError.CANCELLED))
