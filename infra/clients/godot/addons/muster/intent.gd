class_name MusterIntent
extends RefCounted
## One find, join or create: each attempt repeats key and body, so that all of them take one seat.
##
## When it is cancelled or its deadline passes, an attempt may have taken the seat without a
## response. Then it goes on for at most 35 seconds, until it knows, and gives the seat back.

signal over

## For how long the seat of an intent that was given up is looked for, to leave it.
const GIVE_BACK_MSEC := 35_000
## Codes of a 503 after which the intent has no seat.
const WITHOUT_SEAT: Array[String] = [
	"MATCHMAKER_NO_SERVER_AVAILABLE", "MATCHMAKER_LOBBY_START_TIMEOUT", "CAPTCHA_UNAVAILABLE"
]

var _world: MusterWorld
var _pending := MusterPending.new()
var _end: float
var _is_given_up := false
## Whether an attempt may have taken the seat.
var _is_uncertain := false
var _last := MusterResult.failed(
	MusterError.new("no response of the matchmaker before the deadline")
)


func _init(world: MusterWorld) -> void:
	_world = world


## A key that no other intent has.
static func new_key() -> String:
	return Crypto.new().generate_random_bytes(16).hex_encode()


## The end of the intent for its caller. `give_back` gets the answer that comes later. The caller
## keeps the intent until `over`.
func take(request: MusterRequest, call: MusterCall, give_back: Callable) -> MusterResult:
	_end = _world.now_msec() + call.deadline_msec
	var cancel := _give_up.bind(MusterResult.cancelled())
	call.cancelled.connect(cancel)
	_world.after(call.deadline_msec, _pass_deadline)
	_run(request, give_back)
	var result: MusterResult = await _pending.wait()
	call.cancelled.disconnect(cancel)
	return result


func _pass_deadline() -> void:
	_give_up(_last)


func _give_up(result: MusterResult) -> void:
	if _pending.is_settled:
		return
	_is_given_up = true
	_end = _world.now_msec() + GIVE_BACK_MSEC
	_pending.settle(result)


func _run(request: MusterRequest, give_back: Callable) -> void:
	var failures := 0
	while not _is_given_up or _is_uncertain:
		var result := await MusterHttp.attempt(_world, request, MusterHttp.LONG_ATTEMPT_MSEC)
		if result.error == null or not result.error.is_transient():
			if result.error == null and _is_given_up:
				await give_back.call(result.data)
			# A refusal says that no attempt took a seat.
			_pending.settle(result)
			break
		_last = result
		if result.error.code in WITHOUT_SEAT:
			_is_uncertain = false
		elif result.error.status != 429:
			_is_uncertain = true
		var wait := MusterHttp.delay_msec(_world, failures, result.error.retry_after)
		if _world.now_msec() + wait >= _end:
			if _is_given_up:
				break
			_give_up(result)
		await _world.sleep(wait)
		failures += 1
	over.emit()
