"""The work that is measured, one file a kind. Each function does one step in a folder and returns what it measured."""
