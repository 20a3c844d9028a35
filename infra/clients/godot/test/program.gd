extends Node
## Runs the script that is the last argument, such as one of the README.


func _ready() -> void:
	var script: GDScript = load(OS.get_cmdline_user_args()[0])
	add_child(script.new())
