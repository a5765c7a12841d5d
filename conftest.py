"""The plugin in its own tree: the same name as the installed entry point, so it loads once."""

pytest_plugins = ["opbench.plugin"]
