class_name MusterHttp
extends RefCounted
## Attempts of a request, and the pauses between them.

## After so long an attempt without a response counts as lost.
const ATTEMPT_MSEC := 11_000
## The same of a call that seats players or changes game servers, which may take 29 seconds.
const LONG_ATTEMPT_MSEC := 31_000
## The bound of the first random delay, which doubles up to the last.
const BACKOFF_MSEC := 500
const BACKOFF_MAX_MSEC := 8_000


## Milliseconds before the next attempt: what the service asks for, and a full jitter.
static func delay_msec(world: MusterWorld, failures: int, retry_after: int) -> float:
	var bound := minf(BACKOFF_MAX_MSEC, BACKOFF_MSEC * pow(2, failures))
	return retry_after * 1_000 + world.random() * bound


## Sends a request once.
static func attempt(world: MusterWorld, request: MusterRequest, msec: float) -> MusterResult:
	var response := await world.request(request, msec)
	if response != null and not response.is_success():
		return MusterResult.failed(MusterError.refusal(response))
	# A body that was cut off is no response either.
	var body: Variant = null if response == null else response.json()
	if body == null:
		return MusterResult.failed(MusterError.new("no response of the matchmaker"))
	return MusterResult.of(body)


## Sends a request that changes nothing when it is repeated, until it gets a response that stays.
static func send(
	world: MusterWorld, request: MusterRequest, call: MusterCall, attempt_msec: int = ATTEMPT_MSEC
) -> MusterResult:
	if call.is_cancelled:
		return MusterResult.cancelled()
	var pending := MusterPending.new()
	var cancel := pending.settle.bind(MusterResult.cancelled())
	call.cancelled.connect(cancel)
	_repeat(world, request, call.deadline_msec, attempt_msec, pending)
	var result: MusterResult = await pending.wait()
	call.cancelled.disconnect(cancel)
	return result


static func _repeat(
	world: MusterWorld,
	request: MusterRequest,
	deadline_msec: int,
	attempt_msec: int,
	pending: MusterPending
) -> void:
	var end := world.now_msec() + deadline_msec
	var failures := 0
	while not pending.is_settled:
		var left := end - world.now_msec()
		var result := await attempt(world, request, minf(attempt_msec, left))
		if result.error == null or not result.error.is_transient():
			return pending.settle(result)
		var wait := delay_msec(world, failures, result.error.retry_after)
		if world.now_msec() + wait >= end:
			return pending.settle(result)
		await world.sleep(wait)
		failures += 1
