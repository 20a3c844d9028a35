@tool
extends EditorPlugin
## Adds the autoload `Muster`, and the settings `muster/url` and `muster/public_token`.


func _enable_plugin() -> void:
	add_autoload_singleton("Muster", "res://addons/muster/muster_client.gd")


func _disable_plugin() -> void:
	remove_autoload_singleton("Muster")


func _enter_tree() -> void:
	for setting: String in ["muster/url", "muster/public_token"]:
		if not ProjectSettings.has_setting(setting):
			ProjectSettings.set_setting(setting, "")
		ProjectSettings.set_initial_value(setting, "")
		ProjectSettings.set_as_basic(setting, true)
