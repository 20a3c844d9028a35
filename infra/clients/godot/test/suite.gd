class_name Suite
extends SceneTree
## Runs each method whose name begins with `test_`, and ends with status 1 where a check failed.

var _name := ""
var _checks := 0
var _failures := 0


func _initialize() -> void:
	# From the first frame on, nodes are in the tree.
	await process_frame
	var count := 0
	for method in get_method_list():
		if method["name"].begins_with("test_"):
			count += 1
			_name = method["name"].trim_prefix("test_").replace("_", " ")
			var before := _checks
			await call(method["name"])
			check(_checks > before, "checks nothing")
	print("%d tests, %d checks, %d failures" % [count, _checks, _failures])
	quit(1 if _failures > 0 or count == 0 else 0)


func check(is_true: bool, what: String) -> void:
	_checks += 1
	if not is_true:
		_failures += 1
		print("FAILED: %s: %s" % [_name, what])


func equal(found: Variant, expected: Variant, what: String) -> void:
	check(found == expected, "%s: %s instead of %s" % [what, found, expected])


## How a coroutine ends: null in `value` while it has not.
static func outcome(task: Callable) -> MusterPending:
	var pending := MusterPending.new()
	_settle(pending, task)
	return pending


static func _settle(pending: MusterPending, task: Callable) -> void:
	pending.settle(await task.call())


static func rules() -> Dictionary:
	return JSON.parse_string(FileAccess.get_file_as_string("res://../rules.json"))
