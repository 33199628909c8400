"""The session: options, the fields that are alive, recorders and watchers."""
